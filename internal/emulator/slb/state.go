package slb

import (
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// Where finds out where the network of this host has an address and a listener.
type Where struct {
	Address  func(ip string) string
	Endpoint func(l cloud.ListenerID) string
	// Elastic lists where a listener accepts connections to elastic addresses.
	Elastic func(lb *cloud.LoadBalancer, key cloud.ListenerKey) any
}

// State describes every load balancer for the admin API. The caller holds the store's lock.
func State(s *cloud.Store, now time.Time, where Where) api.Object {
	type group struct {
		VServerGroupId, VServerGroupName string        //nolint:revive // names on the wire
		BackendServers                   []backendView `json:"backendServers"`
	}
	type loadBalancer struct {
		view
		InternetChargeType string
		LoopbackAddress    string
		Listeners          []api.Object `json:"listeners"`
		VServerGroups      []group      `json:"vServerGroups"`
	}
	v, c := service{s}, &api.Call{Now: now}
	all := []loadBalancer{}
	for lb := range s.LoadBalancers.All() {
		view := loadBalancer{
			view: v.view(lb), InternetChargeType: lb.ChargeTypeAt(now), LoopbackAddress: where.Address(lb.Address),
			Listeners: []api.Object{}, VServerGroups: []group{},
		}
		for _, l := range lb.SortedListeners() {
			view.Listeners = append(view.Listeners, append(v.listenerListView(lb, l, c),
				api.Field{Name: "LoopbackEndpoint", Value: where.Endpoint(lb.ListenerID(l.ListenerKey))},
				api.Field{Name: "ElasticEndpoints", Value: where.Elastic(lb, l.ListenerKey)},
				api.Field{Name: "domainExtensions", Value: v.extensionViews(lb.ID, l)}))
		}
		for _, id := range lb.Groups {
			if g, ok := s.ServerGroups.Get(id); ok {
				view.VServerGroups = append(view.VServerGroups, group{g.ID, g.Name, v.backendsAnswer(g, lb).BackendServers.BackendServer})
			}
		}
		all = append(all, view)
	}
	acls, certificates := []aclDetail{}, []certificateView{}
	for a := range s.ACLs.All() {
		acls = append(acls, v.aclDetail(a, ""))
	}
	for cert := range s.Certificates.All() {
		certificates = append(certificates, v.certificateView(cert))
	}
	return api.Object{{Name: "loadBalancers", Value: all}, {Name: "acls", Value: acls}, {Name: "certificates", Value: certificates}}
}
