package vpc

import (
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// State describes every network resource for the admin API. The caller holds the store's lock.
func State(s *cloud.Store, now time.Time) api.Object {
	type table struct {
		tableView
		RouteEntries []entryView `json:"routeEntries"`
	}
	v, c := service{s}, &api.Call{Now: now}
	vpcs, vSwitches, tables := []vpcView{}, []vSwitchView{}, []table{}
	for n := range s.VPCs.All() {
		vpcs = append(vpcs, v.vpcView(n))
	}
	for sw := range s.VSwitches.All() {
		vSwitches = append(vSwitches, v.vSwitchView(sw))
	}
	for t := range s.RouteTables.All() {
		view := table{v.tableView(t, c), []entryView{}}
		for e := range t.Entries.All() {
			view.RouteEntries = append(view.RouteEntries, v.entryView(t, e, c))
		}
		tables = append(tables, view)
	}
	eips := []eipView{}
	for e := range s.EIPs.All() {
		eips = append(eips, v.eipView(e, now))
	}
	return api.Object{
		{Name: "vpcs", Value: vpcs}, {Name: "vSwitches", Value: vSwitches}, {Name: "routeTables", Value: tables}, {Name: "eips", Value: eips},
	}
}
