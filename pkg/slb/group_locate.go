package slb

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sharing"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// groupOn returns the group whose Services share a CLB, false for none.
func groupOn(lb *alicloud.LoadBalancer) (mark.Group, bool) {
	value, ok := lb.Tag(mark.TagGroup)
	if !ok {
		return mark.Group{}, false
	}
	return mark.ParseGroup(value)
}

// regrouped puts in doubt which CLB the Service is on where its group, or other Services of that, have changed.
func (e *engine) regrouped(of service.Request, known observed) observed {
	svc := of.Service
	if !known.loadBalancer.Trusted() {
		return known
	}
	group, in := e.groupWanted(svc, of.Params, known)
	switch {
	case known.stays != nil && !group.Is(known.stays.to):
		known.loadBalancer.Invalidate("the Service is to be elsewhere")
	case known.stays != nil:
		if e.mayMove(svc, group, known) {
			known.loadBalancer.Invalidate("the Service may move")
		}
	case !in && !known.group.IsZero():
		known.loadBalancer.Invalidate("the Service has left its group")
	case !in:
	case !group.Is(known.group):
		known.loadBalancer.Invalidate("the Service is to be in another group")
	case e.movesInGroup(group, svc, known):
		known.loadBalancer.Invalidate("the Service is to be on another CLB of its group")
	}
	return known
}

// movesInGroup reports whether the place of a Service in its group has changed. An unreadable group changes nothing.
func (e *engine) movesInGroup(group mark.Group, svc *corev1.Service, known observed) bool {
	place, _, err := e.decide(group, svc)
	return err == nil && place.ID != known.presence.ID()
}

// locateInGroup finds the CLB of the group that the Service is to be on. What it was on before, it leaves, unless it would not get its ports.
func (e *engine) locateInGroup(ctx context.Context, of service.Request, group mark.Group, known observed) (location, error) {
	svc := of.Service
	found, missing, err := e.balancersOf(ctx, group, svc)
	if err != nil {
		return location{}, err
	}
	former, found, err := e.formerOf(ctx, svc, group, known, beforeOf(svc, known), found)
	if err != nil {
		return location{}, err
	}
	lost := e.lostIn(svc, group, known, former, found, missing)
	if err = e.readGroup(ctx, svc, group, found); err != nil {
		return location{}, err
	}
	return e.placeInGroup(ctx, of, group, known, former, found, lost)
}

// placeInGroup decides on which of the CLBs that were found the Service is to be. lost is one that should be among them, see [engine.lostIn].
func (e *engine) placeInGroup(ctx context.Context, of service.Request, group mark.Group, known observed, former location, found []alicloud.LoadBalancer, lost string) (location, error) {
	svc := of.Service
	at := e.inGroup(group, svc)
	place, leader, err := e.decide(group, svc)
	if err != nil {
		return location{}, err
	}
	there := balancerIn(found, place.ID)
	if former.presence.Present() {
		if former.stays = e.staysOutside(svc, group, place, leader, there, former.lb.ID); former.stays != nil {
			return former, nil
		}
	}
	leaves, from := former.leaves, former.lb.ID
	if at != "" && at != place.ID {
		leaves, from = append(leaves, at), at
	}
	if there == nil || lost != "" {
		decided, err := e.absentInGroup(ctx, of, group, known, lost, len(found) > 0)
		if err != nil || there == nil {
			return location{presence: decided, group: group, leaves: leaves, from: from}, err
		}
	}
	here := e.seenInGroup(svc, group, place, there, leaves)
	if refused := e.overflowRefused(svc, group, at); refused != nil && len(place.Taken) > 0 {
		here.stays = stayingRefused(here.lb.ID, group, refused)
	}
	return here, nil
}

// seenInGroup is the location of a CLB of a group that an answer showed.
func (e *engine) seenInGroup(svc *corev1.Service, group mark.Group, place sharing.Place, lb *alicloud.LoadBalancer, leaves []string) location {
	if !place.Full {
		e.shared.Put(svc.UID, lb.ID)
	}
	e.missing.Found(types.UID(group.Mark()), lb.ID)
	return location{presence: presence.Found(lb.ID, false), lb: *lb, group: group, leaves: leaves}
}

// lostIn returns the CLB of the group that should be there and was not found: the one that the Service is on, or that of another Service where none was
// found at all; empty for none.
func (e *engine) lostIn(svc *corev1.Service, group mark.Group, known observed, former location, found []alicloud.LoadBalancer, missing []string) string {
	before := beforeOf(svc, known)
	switch {
	case former.presence.Present() || indexOf(found, before) >= 0:
		return ""
	case e.wasInGroup(svc, group, known, before):
		return before
	case len(found) == 0 && len(missing) > 0:
		return missing[0]
	}
	return ""
}

// beforeOf returns the CLB that a Service is or was on, empty for none.
func beforeOf(svc *corev1.Service, known observed) string {
	return cmp.Or(known.presence.ID(), svc.Labels[service.LabelLoadBalancerID])
}

// balancersOf returns the CLBs of a group, and the ids of those that it should have and that do not exist. Searches by tag lag and may be
// incomplete: what this process and the Records of the Services know is read by id, and where nothing is known, the name is searched for. One that
// does not show the tag does not count.
func (e *engine) balancersOf(ctx context.Context, group mark.Group, svc *corev1.Service) (found []alicloud.LoadBalancer, missing []string, err error) {
	tag := alicloud.Tag{Key: mark.TagGroup, Value: group.Mark()}
	if found, err = e.search(ctx, alicloud.LoadBalancerQuery{Tag: &tag}, group, tag); err != nil {
		return nil, nil, err
	}
	expected, err := e.expectedIn(group, svc)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range expected {
		if indexOf(found, id) >= 0 {
			continue
		}
		lb, failure := e.read(ctx, id)
		switch {
		case failure != nil:
			return nil, nil, failure
		case lb == nil:
			missing = append(missing, id)
		case slices.Contains(lb.Tags, tag):
			found = append(found, *lb)
		}
	}
	if len(found) == 0 {
		found, err = e.search(ctx, alicloud.LoadBalancerQuery{Name: group.DefaultName()}, group, tag)
	}
	return found, missing, err
}

// search returns the CLBs in an answer that show the tag of the group.
func (e *engine) search(ctx context.Context, query alicloud.LoadBalancerQuery, group mark.Group, tag alicloud.Tag) ([]alicloud.LoadBalancer, error) {
	found, err := e.api.DescribeLoadBalancers(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("find the CLBs of load balancer group %s: %w", group, err)
	}
	return slices.DeleteFunc(found, func(lb alicloud.LoadBalancer) bool { return !slices.Contains(lb.Tags, tag) }), nil
}

// expectedIn returns the ids of the CLBs that a group has as far as this process, or the Record of a Service, knows.
func (e *engine) expectedIn(group mark.Group, svc *corev1.Service) ([]string, error) {
	members, err := e.members(group, svc)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, known := range e.shared.Of(group.Mark()).LoadBalancers {
		ids = append(ids, known.ID)
	}
	for _, member := range members {
		if record, _ := service.RecordOn(member); record.Group == group.Mark() && record.LoadBalancerID != "" {
			ids = append(ids, record.LoadBalancerID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// formerOf reads the CLB on which the Service is or was, unless it is one of those that were found.
func (e *engine) formerOf(ctx context.Context, svc *corev1.Service, group mark.Group, known observed, id string, found []alicloud.LoadBalancer) (location, []alicloud.LoadBalancer, error) {
	if id == "" && len(found) == 0 {
		lb, _, err := e.atAddress(ctx, svc, known)
		if err != nil {
			return location{}, found, err
		}
		if lb != nil {
			id = lb.ID
		}
	}
	if id == "" || indexOf(found, id) >= 0 {
		return location{}, found, nil
	}
	return e.outside(ctx, svc, group, known, id, found)
}

// outside reads a CLB on which the Service is or was, and which the search by tag does not show: one that the Service is to leave, or one of
// the group whose tag is not there, or not in the index yet.
func (e *engine) outside(ctx context.Context, svc *corev1.Service, group mark.Group, known observed, id string, found []alicloud.LoadBalancer) (location, []alicloud.LoadBalancer, error) {
	lb, err := e.read(ctx, id)
	switch {
	case err != nil:
		return location{}, found, err
	case lb == nil && !e.wasInGroup(svc, group, known, id):
		return location{leaves: []string{id}}, found, nil // one answer: it is asked for again before it counts as left
	case lb == nil:
		return location{}, found, nil
	}
	in, tagged := groupOn(lb)
	_, owned := lb.Tag(mark.TagOwner)
	switch {
	case tagged && in.Is(group), !tagged && !owned && e.wasInGroup(svc, group, known, id):
		return location{}, append(found, *lb), nil
	case tagged:
		return location{presence: presence.Found(id, false), lb: *lb, group: in, leaves: []string{id, in.Mark()}}, found, nil
	case isTagged(lb, svc):
		return location{presence: presence.Found(id, false), lb: *lb, leaves: []string{id}}, found, nil
	case owned:
		return location{}, found, nil // another Service's
	}
	former, err := e.claimedOutside(ctx, svc, lb)
	return former, found, err
}

// claimedOutside returns the CLB as one that the Service is to leave if something on it is the Service's.
func (e *engine) claimedOutside(ctx context.Context, svc *corev1.Service, lb *alicloud.LoadBalancer) (location, error) {
	claim, err := e.claimOf(ctx, svc, lb)
	if err != nil || claim != claimReused && claim != claimMarks && claim != claimOwn {
		return location{}, err
	}
	return location{presence: presence.Found(lb.ID, claim == claimReused), lb: *lb, leaves: []string{lb.ID}}, nil
}

// wasInGroup reports whether the Service was on a CLB as one of the group.
func (e *engine) wasInGroup(svc *corev1.Service, group mark.Group, known observed, id string) bool {
	record, _ := service.RecordOn(svc)
	return id != "" && (known.group.Is(group) && known.presence.ID() == id || record.Group == group.Mark() && record.LoadBalancerID == id)
}

// readGroup reads the listeners of the CLBs of a group, and notes who has which.
func (e *engine) readGroup(ctx context.Context, svc *corev1.Service, group mark.Group, found []alicloud.LoadBalancer) error {
	members, err := e.members(group, svc)
	if err != nil {
		return err
	}
	var balancers []sharing.LoadBalancer
	on := map[types.NamespacedName]sharing.Listed{}
	for chunk := range slices.Chunk(found, listenersPerCall) {
		ids := make([]string, len(chunk))
		for i := range chunk {
			ids[i] = chunk[i].ID
		}
		listeners, err := e.api.DescribeListeners(ctx, ids...)
		if err != nil {
			return fmt.Errorf("read the listeners of the CLBs of load balancer group %s: %w", group, err)
		}
		for _, id := range ids {
			balancers = append(balancers, sharing.LoadBalancer{ID: id, Foreign: foreignPorts(listeners[id], members, group.ClusterID), Most: e.roomOf(id)})
			for i := range listeners[id] {
				if name, marked, ok := mark.Parse(listeners[id][i].Description); ok && marked == group.ClusterID {
					on[name] = on[name].With(id, portOf(&listeners[id][i]))
				}
			}
		}
	}
	e.shared.Note(group.Mark(), func(known *sharing.State) {
		if known.LoadBalancers, known.On = balancers, on; len(balancers) > 0 {
			known.MaybeCreated = false
		}
	})
	return nil
}

// absentInGroup decides what it means that there is no CLB of the group for the Service, or that the one that is lost was not found: one answer
// does not prove that it is gone, and a Service that went to another CLB of the group would get another address. others says that the group has
// other CLBs.
func (e *engine) absentInGroup(ctx context.Context, of service.Request, group mark.Group, known observed, lost string, others bool) (presence.Presence, error) {
	state := e.shared.Of(group.Mark())
	was := known.presence
	if !known.group.Is(group) {
		was = presence.Presence{} // about something else
	}
	missed := lost != "" || state.MaybeCreated || was.Unknown() && !was.IsZero() || !state.Seen && !others && e.begun(of, group)
	decided, err := e.missing.Decide(ctx, was, presence.Absence{
		Service: types.UID(group.Mark()), ID: lost, NeverCreated: !missed, MaybeCreated: state.MaybeCreated,
	})
	if err == nil {
		e.shared.Note(group.Mark(), func(known *sharing.State) {
			known.Seen, known.MaybeCreated = true, false
			known.Lost = cmp.Or(lost, known.Lost)
		})
	}
	return decided, err
}

// begun reports whether a process before this one may have made a CLB for the group: the Record of a Service says so before that.
func (e *engine) begun(of service.Request, group mark.Group) bool {
	members, err := e.members(group, of.Service)
	return err != nil || slices.ContainsFunc(members, func(m *corev1.Service) bool {
		record, _ := service.RecordOn(m)
		return record.Group == group.Mark() && (m.UID != of.Service.UID || of.Adopted)
	})
}

// balancerIn returns the CLB with the id, nil for none.
func balancerIn(all []alicloud.LoadBalancer, id string) *alicloud.LoadBalancer {
	if i := indexOf(all, id); i >= 0 {
		return &all[i]
	}
	return nil
}

func indexOf(all []alicloud.LoadBalancer, id string) int {
	return slices.IndexFunc(all, func(lb alicloud.LoadBalancer) bool { return lb.ID == id })
}

// refusalOf says why a place is none.
func refusalOf(place sharing.Place) string {
	if place.Full {
		return "has no room for its listeners"
	}
	for port, owner := range place.Taken {
		if owner.Name == "" {
			return fmt.Sprintf("has port %d in use by somebody outside of the group", port.Number)
		}
		return fmt.Sprintf("has port %d in use by Service %s, which is older", port.Number, owner)
	}
	return ""
}

// leftBefore returns what a Service leaves for the CLB that it is on now. A process before this one may have begun to put it into another group.
func (e *engine) leftBefore(svc *corev1.Service, now location) []string {
	record, _ := service.RecordOn(svc)
	if record.Group == "" || record.Group == now.group.Mark() {
		return now.leaves
	}
	return append(now.leaves, record.Group)
}

// concerning leaves out the listeners of the other Services of a group: each compares its own.
func (o observed) concerning(of service.Request, listeners []model.Listener) []model.Listener {
	if o.group.IsZero() {
		return listeners
	}
	owner := mark.OwnerOf(of.Service, o.group.ClusterID)
	return slices.DeleteFunc(slices.Clone(listeners), func(l model.Listener) bool { return owner.OwnedByOther(l.Description) })
}
