package groups

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sharing"
)

// Members returns the Services of a group. svc is among them as the pass has it, which the cache may lag behind.
func (g *Groups[LB]) Members(group mark.Group, svc *corev1.Service) ([]*corev1.Service, error) {
	members, err := g.groupMembers(group, svc)
	found := make([]*corev1.Service, len(members))
	for i := range members {
		found[i] = members[i].Service
	}
	return found, err
}

// groupMembers is [Groups.Members] with what the Services ask for; svc is the first one.
func (g *Groups[LB]) groupMembers(group mark.Group, svc *corev1.Service) ([]member, error) {
	all, err := g.Services.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list the Services: %w", err)
	}
	found, name := []member{g.readMember(svc)}, mark.ServiceName(svc)
	for _, other := range g.readings.membersIn(group, all, g.memberOfAny) {
		if other.UID != svc.UID && mark.ServiceName(other.Service) != name {
			found = append(found, other)
		}
	}
	return found, nil
}

// membership is the Services of a group, and what counts of each for the places there.
type membership struct {
	members   []member
	services  []sharing.Service
	balancers []sharing.LoadBalancer
	// most is how many listeners a new load balancer has room for.
	most int
}

// buildMembership returns that of a group, of which svc is the first. own says that it is for the place of that one.
func (g *Groups[LB]) buildMembership(group mark.Group, svc *corev1.Service, own bool) (membership, error) {
	members, err := g.groupMembers(group, svc)
	if err != nil {
		return membership{}, err
	}
	state := g.Of(group.Mark())
	r := membership{members: members, services: make([]sharing.Service, len(members)), balancers: slices.Clone(state.LoadBalancers)}
	if own {
		r.balancers = state.For(mark.ServiceName(svc))
	}
	r.most, _ = g.Cloud.Room("")
	for i := range r.balancers {
		r.balancers[i].Most, r.balancers[i].Stay = g.Cloud.Room(r.balancers[i].ID)
	}
	for i := range members {
		r.services[i] = g.asMember(r.members[i], group, &state, own && i == 0)
		r.services[i].Bars = func(lb *sharing.LoadBalancer, leader types.UID) bool {
			return g.refusesAsRead(r.members[i], group, r.members, leader, lb) != nil
		}
	}
	return r, nil
}

// settledMembership is the membership in which a Service that had no pass yet takes no port from others, nor room: it may never have one.
// svc is the one for whose place it is, nil for none. The cache may lag behind the finalizer that a pass sets: one that has a place counts.
func (g *Groups[LB]) settledMembership(r membership, svc *corev1.Service) membership {
	r.services = slices.Clone(r.services)
	for i := range r.members {
		if r.members[i].Service != svc && r.services[i].At == "" && !driver.HasFinalizer(r.members[i].Service, g.Product.Finalizer) {
			r.services[i].Ports = nil
		}
	}
	return r
}

// decidePlace returns the place of a Service in its group, the Service itself as a member, and the one whose annotations decide on the
// attributes of the load balancer there.
func (g *Groups[LB]) decidePlace(group mark.Group, svc *corev1.Service) (place sharing.Place, own, leader member, err error) {
	r, err := g.buildMembership(group, svc, true)
	if err != nil {
		return sharing.Place{}, member{}, member{}, err
	}
	r = g.settledMembership(r, svc)
	place, own = sharing.Decide(r.services, r.balancers, r.most, svc.UID), r.members[0]
	i := slices.IndexFunc(r.members, func(m member) bool { return m.UID == place.Leader })
	if i < 0 {
		return place, own, own, nil
	}
	return place, own, r.members[i], nil
}

// HasIdle reports whether a group has a load balancer, other than the one with the id, on which none of its Services has a listener. It
// stays for what others have there: without a search from time to time, it would stay for good once they are gone.
func (g *Groups[LB]) HasIdle(group mark.Group, id string) bool {
	known := g.Of(group.Mark())
	return slices.ContainsFunc(known.LoadBalancers, func(lb sharing.LoadBalancer) bool {
		for _, has := range known.On {
			if slices.ContainsFunc(has[lb.ID], func(port sharing.Port) bool { return !slices.Contains(lb.Foreign, port) }) {
				return false
			}
		}
		return lb.ID != id
	})
}

// asMember is what counts of a Service for the places in its group. own says that it is the one for which that is decided.
func (g *Groups[LB]) asMember(svc member, group mark.Group, state *sharing.State, own bool) sharing.Service {
	one := sharing.Service{
		UID: svc.UID, Name: mark.ServiceName(svc.Service), Created: svc.CreationTimestamp.Time, Ports: portsOf(svc.Service),
		Overflow: annotation.Overflows(svc.Service),
		At:       g.On(group, svc.Service), Has: state.On[mark.ServiceName(svc.Service)],
	}
	if one.At == "" && svc.record.Group == group.Mark() { // one that is on a load balancer does not wait
		one.Waits = svc.record.LoadBalancerID
	}
	one.Elsewhere = one.At == "" && len(svc.Status.LoadBalancer.Ingress) > 0
	one.Stays = g.overflowRefused(svc, group, one.At) != nil
	one.Keeps = own && !svc.isIn(group) && svc.params.Has(annotation.LoadBalancerID)
	elsewhere := len(one.Has) == 0
	refused := elsewhere && g.keptOut(svc, group, state.LoadBalancers)
	one.Unfit = refused || !g.mayLead(svc, group)
	paused := elsewhere && driver.IsPaused(svc.Service)
	one.CreatesNone = paused || g.moves.Has(moveOf(svc, group))
	if !own && (refused || paused) {
		one.Ports = nil
	}
	return one
}

// keptOut reports whether a Service without listeners on the load balancers of the group may have none on any of them, whoever leads.
func (g *Groups[LB]) keptOut(svc member, group mark.Group, all []sharing.LoadBalancer) bool {
	public := len(all) > 0 && !slices.ContainsFunc(all, func(lb sharing.LoadBalancer) bool { return !lb.Public })
	return g.refusesSharing(svc, group, svc, &LoadBalancer{Public: public}) != nil
}

// mayLead reports whether a new load balancer of the group could follow the annotations of the Service. Those of one that only stays in the
// group are about another load balancer.
func (g *Groups[LB]) mayLead(svc member, group mark.Group) bool {
	return svc.isIn(group) && !svc.params.Refuses(annotation.ScopeCreation) && g.Cloud.Refuse(svc.params) == nil
}
