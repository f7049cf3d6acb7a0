package nlb

import (
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// Where finds out where the network has a name and a listener.
type Where struct {
	// Addresses are those that the name of an instance stands for.
	Addresses func(lb *cloud.NLB) any
	// Endpoints lists where a listener accepts connections to each address and port.
	Endpoints func(l cloud.ListenerID) any
}

type (
	stateInstance struct {
		instanceView
		Tags []tag
		// Addresses are what the name stands for.
		Addresses any
		Listeners []stateListener `json:"listeners"`
	}
	stateListener struct {
		listenerView
		Endpoints any
	}
	stateGroup struct {
		groupView
		Servers []stateServer `json:"servers"`
	}
	stateServer struct {
		serverView
		Health []stateHealth `json:"health"`
	}
	// stateHealth is the health of a backend server as one listener sees it.
	stateHealth struct { //nolint:revive // names on the wire
		ListenerId, Status, ReasonCode string
	}
	stateJob struct{ JobId, Status, CreateTime string } //nolint:revive // names on the wire
)

// State describes every instance with its listeners, every server group with its backend servers and their health, and every job, for the
// admin API. The caller holds the store's lock.
func State(s *cloud.Store, now time.Time, where Where) api.Object {
	v, c := service{s}, &api.Call{Now: now, Params: api.Params{}}
	instances, groups, jobs := []stateInstance{}, []stateGroup{}, []stateJob{}
	for lb := range s.NLBs.All() {
		view := stateInstance{instanceView: v.view(c, lb), Tags: tagViews(lb.Tags), Addresses: where.Addresses(lb), Listeners: []stateListener{}}
		for _, l := range s.NLBListenersOf(lb.ID, now) {
			view.Listeners = append(view.Listeners, stateListener{v.listenerView(c, l), where.Endpoints(l.ListenerID())})
		}
		instances = append(instances, view)
	}
	for g := range s.NLBGroups.All() {
		groups = append(groups, v.stateOfGroup(c, g))
	}
	for j := range s.NLBJobs.All() {
		jobs = append(jobs, stateJob{j.ID, j.Phase.At(now), cloud.Timestamp(j.Created)})
	}
	return api.Object{
		{Name: "networkLoadBalancers", Value: instances}, {Name: "serverGroups", Value: groups}, {Name: "networkLoadBalancerJobs", Value: jobs},
	}
}

func (s service) stateOfGroup(c *api.Call, g *cloud.NLBGroup) stateGroup {
	view := stateGroup{s.groupView(c, g), []stateServer{}}
	for _, server := range g.LiveServers(c.Now) {
		of := stateServer{viewOfServer(c, g, server), []stateHealth{}}
		for _, l := range s.NLBListenersTo(g.ID, c.Now) {
			status, reason := s.NLBHealth(l, g, server)
			of.Health = append(of.Health, stateHealth{l.ID, status, reason})
		}
		view.Servers = append(view.Servers, of)
	}
	return view
}
