package nlb

import (
	"iter"
	"slices"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// NodesReadAt implements driver.Balancer. What is known of servers is what their jobs are to achieve: while one is under way, it proves
// nothing.
func (n nlb) NodesReadAt() time.Time {
	switch {
	case n.Known.Moves():
	case n.Presence.Gone():
		return time.Now()
	case n.Presence.Present() && n.groups.Trusted() && n.serversChange():
		return time.Unix(0, 0) // a job that nobody waits for any more may still be at work: another read shows
	case n.Presence.Present() && n.groups.Trusted() && !n.changesGroups():
		return n.groups.ReadAt
	}
	return time.Time{}
}

// changesGroups reports whether a job that changes server groups is under way.
func (o observed) changesGroups() bool {
	for _, p := range o.jobs {
		if p.part == model.PartGroups {
			return true
		}
	}
	return false
}

// serversChange reports whether the cloud was at work on a backend server when that was read.
func (o observed) serversChange() bool {
	for i := range o.groups.Value {
		if slices.ContainsFunc(o.groups.Value[i].Servers, func(s alicloud.NLBServer) bool {
			return s.Status != "" && s.Status != alicloud.NLBServerAvailable
		}) {
			return true
		}
	}
	return false
}

// Nodes implements driver.Balancer.
func (n nlb) Nodes(in driver.Inputs) iter.Seq2[string, bool] {
	switch {
	case n.Presence.Gone(): // nothing sends to the groups that may be left
		return func(func(string, bool) bool) {}
	case !n.Presence.Present():
		return nil
	}
	owner, pods := n.ownerOf(in.Service, n.observed), n.Backends(in).Pods
	return func(yield func(string, bool) bool) {
		for i := range n.groups.Value {
			group := &n.groups.Value[i]
			for k := range group.Servers {
				server := &group.Servers[k]
				id, isNode := server.ID, server.Type == alicloud.NLBServerECS
				if server.Type == alicloud.NLBServerIP && !pods {
					id, isNode = server.IP, true
				}
				ours := !group.Foreign && server.Description == group.Name || owner.OwnsNLB(server.Description)
				if isNode && ours && !yield(id, server.Weight > 0) {
					return
				}
			}
		}
	}
}

// InvalidateBackends implements driver.Balancer.
func (n nlb) InvalidateBackends(reason string) driver.Balancer {
	n.groups.Invalidate(reason)
	return n
}
