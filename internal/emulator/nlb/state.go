package nlb

import (
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// State describes every instance with its listeners, and every server group with its backend servers, for the admin API. The caller holds
// the store's lock.
func State(s *cloud.Store, now time.Time) api.Object {
	type instance struct {
		instanceView
		Tags      []tag
		Listeners []listenerView `json:"listeners"`
	}
	type group struct {
		groupView
		Servers []serverView `json:"servers"`
	}
	v, c := service{s}, &api.Call{Now: now, Params: api.Params{}}
	instances, groups := []instance{}, []group{}
	for lb := range s.NLBs.All() {
		view := instance{instanceView: v.view(c, lb), Tags: tagViews(lb.Tags), Listeners: []listenerView{}}
		for _, l := range s.NLBListenersOf(lb.ID, now) {
			view.Listeners = append(view.Listeners, v.listenerView(c, l))
		}
		instances = append(instances, view)
	}
	for g := range s.NLBGroups.All() {
		view := group{v.groupView(c, g), []serverView{}}
		for _, server := range g.LiveServers(now) {
			view.Servers = append(view.Servers, viewOfServer(c, g, server))
		}
		groups = append(groups, view)
	}
	return api.Object{{Name: "networkLoadBalancers", Value: instances}, {Name: "serverGroups", Value: groups}}
}
