package provider

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/doctor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/node"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/vpcroute"
)

// routeTables checks that the tables that the settings select are there, and that pod CIDRs can be routed at all.
func (e *examination) routeTables(ctx context.Context) {
	if len(e.settings.ClusterCIDRs) == 0 {
		e.add(doctor.AreaCloud, "route tables", doctor.OK, "routes are switched off", "")
		return
	}
	e.podRanges()
	if e.place.vpcID == "" {
		e.add(doctor.AreaCloud, "route tables", doctor.NotChecked, "the VPC is not known", "")
		return
	}
	tables, err := e.client.DescribeRouteTables(ctx, e.place.vpcID)
	if err != nil {
		e.add(doctor.AreaCloud, "route tables", doctor.NotChecked, err.Error(), "")
		return
	}
	all := e.nodeList(ctx)
	selection := vpcroute.Select(e.routeConfig(), all, e.vSwitches, tables)
	switch {
	case len(selection.Missing) > 0:
		e.add(doctor.AreaCloud, "route tables", doctor.Wrong,
			fmt.Sprintf("%s has no route table %s", e.place.vpcID, strings.Join(selection.Missing, ", ")),
			"correct Global.routeTableIDs, --route-table-vswitches or --route-table-tag")
	case len(selection.IDs) == 0:
		e.add(doctor.AreaCloud, "route tables", doctor.Wrong, e.place.vpcID+" has no system route table that the access key can see",
			"set Global.routeTableIDs in the cloud-config")
	case selection.Ambiguous:
		e.add(doctor.AreaCloud, "route tables", doctor.Wrong, fmt.Sprintf("%s, one of several in %s; which of them the nodes use is not known",
			strings.Join(selection.IDs, ", "), e.place.vpcID), "set Global.routeTableIDs in the cloud-config, or grant vpc:DescribeVSwitches")
	default:
		e.add(doctor.AreaCloud, "route tables", doctor.OK, strings.Join(selection.IDs, ", "), "")
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
			e.add(doctor.AreaCloud, "route table "+id, doctor.Wrong,
				"vSwitches of nodes use it, but it is not managed, so pods there cannot reach pods on other nodes",
				"add it to Global.routeTableIDs, or leave the tables to be found")
		}
	}
}

// settled is how long a node may be new without the doctor finding its state wrong.
const settled = time.Minute

// routeTable checks that a managed table can be read, and that it holds the route of every node, to that node.
func (e *examination) routeTable(ctx context.Context, id string, all []*corev1.Node) {
	entries, err := e.client.DescribeRouteEntries(ctx, id, slices.ContainsFunc(e.settings.ClusterCIDRs, func(c netip.Prefix) bool {
		return c.Addr().Is6()
	}))
	if err != nil {
		e.add(doctor.AreaCloud, "route table "+id, doctor.Wrong, err.Error(), "correct Global.routeTableIDs, or grant vpc:DescribeRouteEntryList")
		return
	}
	e.routeEntries = max(e.routeEntries, len(entries))
	routed, missing, elsewhere := e.routesOf(all, entries)
	subject, detail := "route table "+id, fmt.Sprintf("%d custom entries, of which %d are routes of nodes", len(entries), routed)
	const fix = "start the manager, and see the events of the node"
	if len(missing) > 0 {
		e.add(doctor.AreaCloud, subject, doctor.Wrong,
			fmt.Sprintf("%s; no route for %s, first for node %s", detail, problem.Count(len(missing), "pod CIDR"), missing[0]), fix)
	}
	if len(elsewhere) > 0 {
		e.add(doctor.AreaCloud, subject, doctor.Wrong,
			fmt.Sprintf("%s; %s to another instance, first %s", detail, problem.Count(len(elsewhere), "route"), elsewhere[0]), fix)
	}
	if len(missing)+len(elsewhere) == 0 {
		e.add(doctor.AreaCloud, subject, doctor.OK, detail, "")
	}
	if outside := e.routeConfig().Outside(entries); len(outside) > 0 {
		e.add(doctor.AreaCloud, subject, doctor.Optional,
			fmt.Sprintf("%s of this cluster outside of --cluster-cidr %v, which use up the quota, first %s",
				problem.Count(len(outside), "route"), e.settings.ClusterCIDRs, outside[0].CIDR), "delete them once no pod has an address there")
	}
}

// routesOf counts the routes of nodes that work, and names the nodes whose pod CIDR has none, and the routes that lead to another instance.
func (e *examination) routesOf(all []*corev1.Node, entries []alicloud.RouteEntry) (routed int, missing, elsewhere []string) {
	byCIDR := map[netip.Prefix]*alicloud.RouteEntry{}
	for i := range entries {
		if cidr, err := netip.ParsePrefix(entries[i].CIDR); err == nil {
			byCIDR[cidr.Masked()] = &entries[i]
		}
	}
	instanceID := node.InstanceIDOf(e.client.Region())
	for _, n := range all {
		instance, err := instanceID(n)
		if err != nil || nodes.ExclusionLabel(n) != "" {
			continue
		}
		for _, text := range nodes.PodCIDRs(n) {
			cidr, err := netip.ParsePrefix(text)
			entry := byCIDR[cidr.Masked()]
			switch {
			case err != nil: // the checks of pod CIDRs say so
			case entry == nil || entry.Status != alicloud.RouteAvailable:
				if time.Since(n.CreationTimestamp.Time) > settled {
					missing = append(missing, n.Name)
				}
			case len(entry.NextHops) != 1 || entry.NextHops[0].ID != instance:
				elsewhere = append(elsewhere, fmt.Sprintf("%s of node %s to %v", text, n.Name, entry.NextHops))
			default:
				routed++
			}
		}
	}
	return routed, missing, elsewhere
}

// waits reports whether the node has waited for its initialization for longer than it takes.
func waits(n *corev1.Node) bool {
	return nodes.Uninitialized(n) && time.Since(n.CreationTimestamp.Time) > settled
}

// networks checks that the network of every node is available.
func (e *examination) networks(all []*corev1.Node) {
	var without []doctor.Check
	for _, n := range all {
		condition := nodes.Condition(n, corev1.NodeNetworkUnavailable)
		if condition != nil && condition.Status == corev1.ConditionTrue && time.Since(condition.LastTransitionTime.Time) > settled {
			without = append(without, doctor.Check{
				Area: doctor.AreaNodes, Subject: "network of " + n.Name, Status: doctor.Wrong,
				Detail: fmt.Sprintf("unavailable for %s: %s: %s", ago(condition.LastTransitionTime.Time), condition.Reason, condition.Message),
				Fix:    "start the manager, and see the events of the node",
			})
		}
	}
	e.report.Add(doctor.Limit(without)...)
	e.add(doctor.AreaNodes, "networks", doctor.OK, fmt.Sprintf("%d of %d nodes have one", len(all)-len(without), len(all)), "")
}

// unserved lists the ready nodes that are none of this manager's for their provider ID.
func (e *examination) unserved(all []*corev1.Node) {
	ours := node.InstanceIDOf(e.client.Region())
	var found []doctor.Check
	for _, n := range all {
		_, err := ours(n)
		if nodes.Ready(n) && (errors.Is(err, node.ErrProviderIDForeign) || errors.Is(err, node.ErrOtherRegion)) {
			found = append(found, doctor.Check{
				Area: doctor.AreaNodes, Subject: "provider ID of " + n.Name, Status: doctor.Optional,
				Detail: err.Error() + ": the node gets no route and is no backend server",
				Fix: "if that is intended, set the label " + nodes.LabelOnPremises +
					"=true; else delete the Node and let its kubelet register it again",
			})
		}
	}
	e.report.Add(doctor.Limit(found)...)
}

// podRanges checks the cluster CIDRs against the vSwitches: the cloud refuses a route into one of them.
func (e *examination) podRanges() {
	for _, pods := range e.settings.ClusterCIDRs {
		for i := range e.vSwitches {
			block, err := netip.ParsePrefix(e.vSwitches[i].CIDRBlock)
			if err == nil && block.Overlaps(pods) {
				e.add(doctor.AreaCloud, "cluster CIDR", doctor.Wrong, fmt.Sprintf("%s overlaps %s of vSwitch %s", pods, block, e.vSwitches[i].ID),
					"give the cluster a pod network that no vSwitch of the VPC uses")
				return
			}
		}
	}
	e.add(doctor.AreaCloud, "cluster CIDR", doctor.OK, fmt.Sprintf("%v overlaps no vSwitch", e.settings.ClusterCIDRs), "")
}
