package nlb

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/groups"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// afterMove returns what is known after the load balancer was located, and what the Service leaves for it. last is the last Record of the
// Service.
func (o observed) afterMove(svc *corev1.Service, last driver.Record, at location) observed {
	was := o.Presence
	o = o.withLocation(at)
	places := groups.LeftBefore(svc, at.Group, at.Leaves)
	if at.Stays != nil {
		return o.leavingFor(last, places) // without this place, which a move that was begun has noted as one to leave
	}
	if at.Group.IsZero() && at.Presence.Present() {
		if was.Present() {
			places = append(places, was.ID())
		}
		// A process before this one may have begun a move to the load balancer that the Record names.
		if written, _ := driver.RecordOn(svc); at.Presence.Reused() || slices.Contains(written.Leaving, o.nlbID()) {
			places = append(places, written.LoadBalancerID)
		}
	}
	return o.leavingFor(last, withoutEmpty(places...))
}

// leavingFor returns what is known when the Service leaves load balancers and groups for the one that it is on now. last is its last
// Record, and says which tags it has on the load balancer that it is about.
func (o observed) leavingFor(last driver.Record, places []string) observed {
	group := o.Group
	if o.Presence.Present() && group.IsZero() {
		group, _ = mark.GroupOn(o.lb.Value.Tags)
	}
	o.Leaving = groups.Leaving(o.Leaving, places, o.nlbID(), group)
	tags := maps.Clone(o.leftTags)
	if id := last.LoadBalancerID; len(last.TagKeys) > 0 && slices.Contains(places, id) {
		if tags == nil {
			tags = map[string][]string{}
		}
		tags[id] = last.TagKeys
	}
	maps.DeleteFunc(tags, func(id string, _ []string) bool { return !slices.Contains(o.Leaving, id) })
	o.leftTags = tags
	return o
}

// withStrays returns what is known after a search for load balancers that the Service has left although its Record does not say so: those
// on which listeners of its own lead to its server groups, or that its label names. The Record may be lost. Listeners of others are noted
// on the groups.
func (e *engine) withStrays(ctx context.Context, svc *corev1.Service, known observed) (observed, error) {
	if params, _ := e.Params(svc); params.Preserves() {
		return known, nil // they may be on one that the author of the Service wanted to keep
	}
	ids := known.usersOfGroups()
	if known.Presence.Present() {
		ids = append(ids, driver.Labeled(svc))
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return id == "" || id == known.nlbID() || slices.Contains(known.Leaving, id) })
	slices.Sort(ids)
	owner := e.ownerOf(svc, known)
	for chunk := range slices.Chunk(slices.Compact(ids), alicloud.MaxNLBQuery) {
		found, err := e.listenersOfEach(ctx, chunk)
		if err != nil {
			return known, fmt.Errorf("read the listeners of load balancers that use server groups of the Service: %w", err)
		}
		for i := range found {
			switch l := &found[i]; {
			case l.Status == alicloud.NLBListenerDeleting:
			case owner.OwnsNLB(model.Text(l.Description)):
				known = known.leavingFor(driver.Record{}, []string{l.LoadBalancerID})
			default:
				known.usedBy(l)
			}
		}
	}
	return known, nil
}

// listenersOfEach returns the listeners of load balancers. One that is gone hides those of no other.
func (e *engine) listenersOfEach(ctx context.Context, ids []string) ([]alicloud.NLBListener, error) {
	found, err := e.api.ListNLBListeners(ctx, ids)
	if !alicloud.IsNotFound(err) {
		return found, err
	}
	if len(ids) == 1 {
		return nil, nil
	}
	for _, id := range ids {
		one, err := e.listenersOfEach(ctx, []string{id})
		if err != nil {
			return nil, err
		}
		found = append(found, one...)
	}
	return found, nil
}

// usedBy notes on the group that a listener of somebody else leads to that it does.
func (o observed) usedBy(l *alicloud.NLBListener) {
	for i := range o.groups.Value {
		if group := &o.groups.Value[i]; group.ID == model.Text(l.ServerGroupID) {
			group.Strangers = append(group.Strangers, "listener "+l.ID+" of "+l.LoadBalancerID)
		}
	}
}

// usersOfGroups are the ids of the load balancers with listeners that lead to server groups of the Service's own.
func (o observed) usersOfGroups() []string {
	var ids []string
	for i := range o.groups.Value {
		if group := &o.groups.Value[i]; !group.Foreign {
			ids = append(ids, group.LoadBalancers...)
		}
	}
	return ids
}

// servedElsewhere are the load balancers that the Service has left, and that serve it.
func (n nlb) servedElsewhere() []string {
	users := n.usersOfGroups()
	return slices.DeleteFunc(slices.Clone(n.Leaving), func(id string) bool { return !slices.Contains(users, id) })
}

// keepsLeft reports whether the Service stays on what it has left for now: nobody can tell whether the existing load balancer that it shows
// serves it, because it does not manage the listeners there, or they do not run yet.
func (n nlb) keepsLeft() bool {
	managed := n.desired != nil && n.desired.Override && n.countRunning() >= len(n.desired.Listeners)
	return n.Reused() && !managed && len(n.servedElsewhere()) > 0
}

// leftAlone reports what the Service keeps because it does not manage the listeners of the existing load balancer that it is on.
func (n nlb) leftAlone(desired *model.Model) []problem.Problem {
	kept := n.servedElsewhere()
	if !desired.Reused || desired.Override || len(kept) == 0 {
		return nil
	}
	return []problem.Problem{problem.Newf(problem.ReasonListenersLeftAlone,
		"what the Service used before is kept (%s): the Service does not manage the listeners of its load balancer, so the manager cannot determine when they serve it",
		problem.Some(kept))}
}
