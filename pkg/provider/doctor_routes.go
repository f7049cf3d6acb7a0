package provider

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/doctor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/node"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/vpcroute"
)

// routeTables checks that the tables that the settings select are there, and that pod CIDRs can be routed at all.
func (e *examination) routeTables(ctx context.Context) {
	if len(e.settings.ClusterCIDRs) == 0 {
		e.add("cloud", "route tables", doctor.OK, "routes are switched off", "")
		return
	}
	e.podRanges()
	if e.place.vpcID == "" {
		e.add("cloud", "route tables", doctor.NotChecked, "the VPC is not known", "")
		return
	}
	tables, err := e.client.DescribeRouteTables(ctx, e.place.vpcID)
	if err != nil {
		e.add("cloud", "route tables", doctor.NotChecked, err.Error(), "")
		return
	}
	all := e.nodeList(ctx)
	selection := vpcroute.Select(e.routeConfig(), all, e.vSwitches, tables)
	switch {
	case len(selection.Missing) > 0:
		e.add("cloud", "route tables", doctor.Wrong, fmt.Sprintf("%s has none for %s", e.place.vpcID, strings.Join(selection.Missing, ", ")),
			"correct Global.routeTableIDs, --route-table-vswitches or --route-table-tag")
	case len(selection.IDs) == 0:
		e.add("cloud", "route tables", doctor.Wrong, e.place.vpcID+" shows no system table", "set Global.routeTableIDs in the cloud-config")
	case selection.Ambiguous:
		e.add("cloud", "route tables", doctor.Wrong, fmt.Sprintf("%s, one of several in %s: it is not known which of them the nodes use",
			strings.Join(selection.IDs, ", "), e.place.vpcID), "set Global.routeTableIDs in the cloud-config, or allow vpc:DescribeVSwitches")
	default:
		e.add("cloud", "route tables", doctor.OK, strings.Join(selection.IDs, ", "), "")
	}
	e.unmanagedTables(all, selection.IDs)
	for _, id := range selection.IDs {
		e.routeTable(ctx, id, all)
	}
}

// nodeList returns the Nodes, none where the API server cannot be asked.
func (e *examination) nodeList(ctx context.Context) []*corev1.Node {
	if e.kube == nil {
		return nil
	}
	list, err := e.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil // the checks of the cluster say so
	}
	all := make([]*corev1.Node, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	return all
}

// unmanagedTables warns about tables that nodes use and that the settings leave out.
func (e *examination) unmanagedTables(all []*corev1.Node, managed []string) {
	for _, id := range vpcroute.SelectNodeTables(all, e.vSwitches).IDs {
		if len(all) > 0 && !slices.Contains(managed, id) {
			e.add("cloud", "route table "+id, doctor.Wrong, "vSwitches of nodes use it, but it is not managed, so pods there cannot reach pods on other nodes",
				"add it to Global.routeTableIDs, or leave the tables to be found")
		}
	}
}

// routeTable checks that a managed table can be read, and that it holds the routes of the nodes that are said to have one.
func (e *examination) routeTable(ctx context.Context, id string, all []*corev1.Node) {
	entries, err := e.client.DescribeRouteEntries(ctx, id, slices.ContainsFunc(e.settings.ClusterCIDRs, func(c netip.Prefix) bool { return c.Addr().Is6() }))
	if err != nil {
		e.add("cloud", "route table "+id, doctor.Wrong, err.Error(), "correct Global.routeTableIDs, or allow vpc:DescribeRouteEntryList")
		return
	}
	e.routeEntries = max(e.routeEntries, len(entries))
	available := map[string]bool{}
	for i := range entries {
		available[entries[i].CIDR] = entries[i].Status == alicloud.RouteAvailable
	}
	instanceID := node.InstanceIDOf(e.client.Region())
	routed, missing := 0, []string{}
	for _, n := range all {
		if _, err := instanceID(n); err != nil || nodes.ExclusionLabel(n) != "" {
			continue
		}
		for _, cidr := range nodes.PodCIDRs(n) {
			if available[cidr] {
				routed++
				continue
			}
			if condition := nodes.Condition(n, corev1.NodeNetworkUnavailable); condition != nil && condition.Status == corev1.ConditionFalse {
				missing = append(missing, n.Name)
			}
		}
	}
	detail := fmt.Sprintf("%d custom entries, %d of them routes of nodes", len(entries), routed)
	if len(missing) > 0 {
		e.add("cloud", "route table "+id, doctor.Wrong, fmt.Sprintf("%s; none for %d pod CIDRs whose nodes say that their network is available, the first of node %s",
			detail, len(missing), missing[0]), "run the manager, and see the events of the node")
		return
	}
	e.add("cloud", "route table "+id, doctor.OK, detail, "")
}

// podRanges checks the cluster CIDRs against the vSwitches: the cloud refuses a route into one of them.
func (e *examination) podRanges() {
	for _, pods := range e.settings.ClusterCIDRs {
		for i := range e.vSwitches {
			block, err := netip.ParsePrefix(e.vSwitches[i].CIDRBlock)
			if err == nil && block.Overlaps(pods) {
				e.add("cloud", "cluster CIDR", doctor.Wrong, fmt.Sprintf("%s overlaps with %s of vSwitch %s", pods, block, e.vSwitches[i].ID),
					"give the cluster a pod network that no vSwitch of the VPC uses")
				return
			}
		}
	}
	e.add("cloud", "cluster CIDR", doctor.OK, fmt.Sprintf("%v overlaps with no vSwitch", e.settings.ClusterCIDRs), "")
}
