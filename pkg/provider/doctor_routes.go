package provider

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/doctor"
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
	ids, missing := e.selected(tables)
	switch {
	case len(missing) > 0:
		e.add("cloud", "route tables", doctor.Wrong, fmt.Sprintf("%s has none for %s", e.place.vpcID, strings.Join(missing, ", ")),
			"correct Global.routeTableIDs, --route-table-vswitches or --route-table-tag")
	case len(ids) == 0:
		e.add("cloud", "route tables", doctor.Wrong, e.place.vpcID+" shows no system table", "set Global.routeTableIDs in the cloud-config")
	default:
		e.add("cloud", "route tables", doctor.OK, strings.Join(ids, ", "), "")
	}
}

// selected names the tables that are managed, and what was asked for and is not there.
func (e *examination) selected(tables []alicloud.RouteTable) (ids, missing []string) {
	wanted := map[string]func(alicloud.RouteTable) bool{}
	for _, id := range e.config.RouteTableIDs {
		wanted[id] = func(t alicloud.RouteTable) bool { return t.ID == id }
	}
	if len(e.config.RouteTableIDs) == 0 {
		for _, id := range e.settings.RouteTableVSwitches {
			wanted["vSwitch "+id] = func(t alicloud.RouteTable) bool { return slices.Contains(t.VSwitchIDs, id) }
		}
		if tag := e.settings.RouteTableTag; tag != nil {
			wanted[fmt.Sprintf("tag %s=%s", tag.Key, tag.Value)] = func(t alicloud.RouteTable) bool { return slices.Contains(t.Tags, *tag) }
		}
	}
	if len(wanted) == 0 {
		wanted["the system table"] = func(t alicloud.RouteTable) bool { return t.System }
	}
	for what, matches := range wanted {
		found := false
		for _, table := range tables {
			if matches(table) {
				found = true
				ids = append(ids, table.ID)
			}
		}
		if !found {
			missing = append(missing, what)
		}
	}
	slices.Sort(ids)
	slices.Sort(missing)
	return slices.Compact(ids), missing
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
