package groups

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sharing"
)

// Known is what is known of the place of a Service.
type Known struct {
	Presence presence.Presence
	// Group is that of a load balancer that the Service shares, zero for any other one.
	Group mark.Group
	Stays *StayReason
	// From is the id of the load balancer that it is on until there is another one for it, empty for none.
	From string
	// Leaving are ids of load balancers and marks of groups that it has left, and on which it may have something, and Showing is the id of the
	// load balancer that its status shows, empty where that is not known.
	Leaving []string
	Showing string
}

// Moves reports whether a move of the Service has not ended: it may have something at another place than this one, or is to get another one.
func (k Known) Moves() bool {
	return len(k.Leaving) > 0 || k.From != "" && (!k.Presence.Present() || k.Presence.ID() == k.From)
}

// Shows returns the load balancer that the Service leaves and still shows, because it moves and is not served elsewhere yet, empty for none.
func (k Known) Shows() string {
	if !ShowsFormer(k.Showing, k.Leaving, k.Presence.ID()) {
		return ""
	}
	return k.Showing
}

// ShownFirst returns what a Service leaves, the load balancer that it shows in the middle of a move first: there it stays if it has to.
func (k Known) ShownFirst(leaves []string) []string {
	if k.Shows() == "" || len(leaves) == 0 {
		return leaves
	}
	return append([]string{k.Shows()}, slices.DeleteFunc(slices.Clone(leaves), func(place string) bool { return place == k.Shows() })...)
}

// LeavingOf returns what the Service has left: as this process knows it, else as its Record says.
func (k Known) LeavingOf(svc *corev1.Service) []string {
	if k.Presence.IsZero() && k.Leaving == nil {
		record, _ := driver.RecordOn(svc)
		return record.Leaving
	}
	return k.Leaving
}

// Leave returns what is known once something at a place that the Service has left was read or removed. gone says that nothing of the
// Service is there.
func (g *Groups[LB]) Leave(svc *corev1.Service, known Known, place string, gone bool) Known {
	known.Leaving = slices.Clone(known.LeavingOf(svc))
	if gone {
		is := ""
		if known.Presence.Present() {
			is = known.Presence.ID()
		}
		g.Release(svc.UID, place, is)
		known.Leaving = slices.DeleteFunc(known.Leaving, func(left string) bool { return left == place })
		if known.Group.IsZero() {
			g.Forget(svc.UID) // or it would count as one that uses the load balancer, which the last Service of the group has to delete
		}
	}
	return known
}

// Elsewhere returns what is known of other places, and nothing of this one but its presence.
func (k Known) Elsewhere(here presence.Presence) Known {
	return Known{Presence: here, Leaving: k.Leaving, Showing: k.Showing}
}

// Location is the load balancer that a Service is on, if it is present.
type Location[LB any] struct {
	Presence presence.Presence
	LB       LB
	// Group is that of a load balancer that Services share, zero for any other one.
	Group mark.Group
	// Leaves are ids of load balancers and marks of groups that the Service was on, and leaves.
	Leaves []string
	// Stays is why the Service stays here although it asks for another place, nil where it does not.
	Stays *StayReason
	// From is the id of the load balancer that the Service is on until there is another one for it, empty for none.
	From string
	// Others are the ids of further load balancers with the owner tag of the Service.
	Others []string
	// Missed says that there should be a load balancer, or may be: what is known of it is void once it is gone.
	Missed bool
	// Refusal is why the Service may not use the load balancer that its annotation names, so that it stays on this one, and AskedMissing since
	// when that is missing.
	Refusal      *problem.ConfigError
	AskedMissing presence.Missing
}

// FoundAt is the location of a load balancer outside of groups that an answer showed, and none for nil.
func (g *Groups[LB]) FoundAt(svc *corev1.Service, lb *LB, reused bool) Location[LB] {
	if lb == nil {
		return Location[LB]{}
	}
	id := g.balancerID(lb)
	g.Missing.Found(svc.UID, id)
	return Location[LB]{Presence: presence.Found(id, reused), LB: *lb}
}

// FoundInGroup is the location of the load balancer of a group that an answer showed. stays is why the Service stays on it.
func (g *Groups[LB]) FoundInGroup(lb *LB, stays *StayReason) Location[LB] {
	view := g.viewOf(lb)
	group, _ := view.Group()
	return Location[LB]{Presence: presence.Found(view.ID, false), LB: *lb, Group: group, Stays: stays}
}

// Doubts says why it is in doubt which load balancer the Service is on: its group, or other Services of that, have changed. It is empty
// where it is not.
func (g *Groups[LB]) Doubts(svc *corev1.Service, params annotation.Params, known Known) string {
	group, in := g.Wanted(svc, params, known.Group)
	switch {
	case known.Stays != nil && !group.Is(known.Stays.to):
		return "the Service is to be elsewhere"
	case known.Stays != nil:
		if g.mayMove(svc, group, known) {
			return "the Service may move"
		}
	case !in && !known.Group.IsZero():
		return "the Service has left its group"
	case !in:
	case !group.Is(known.Group):
		return "the Service is to be in another group"
	case g.movesIn(group, svc, known):
		return "the Service is to be on another load balancer of its group"
	}
	return ""
}

// movesIn reports whether the place of a Service in its group has changed, or why it is there. An unreadable group changes nothing.
func (g *Groups[LB]) movesIn(group mark.Group, svc *corev1.Service, known Known) bool {
	place, _, _, err := g.decidePlace(group, svc)
	return err == nil && (place.ID != known.Presence.ID() || place.Kept || known.Shows() != "" && place.Lacks())
}

// Locate finds the load balancer of the group that the Service is to be on. What it was on before, it leaves, unless it would not get its
// ports.
func (g *Groups[LB]) Locate(ctx context.Context, of driver.Request, group mark.Group, known Known) (Location[LB], error) {
	svc := of.Service
	own, doubt, err := g.ownUnrecorded(ctx, of, group, known)
	if err != nil {
		return Location[LB]{Presence: doubt}, err
	}
	if found, ok := g.foundByOthers(of, group, known); ok && len(own) == 0 {
		return g.locateInPlace(ctx, of, group, known, Location[LB]{}, found, "")
	}
	asked := time.Now()
	found, missing, err := g.Balancers(ctx, group, svc)
	if err != nil {
		return Location[LB]{}, err
	}
	former, found, err := g.formerOf(ctx, svc, group, known, cmp.Or(slices.Concat([]string{beforeOf(svc, known, group)}, own)...), found)
	if err != nil {
		return Location[LB]{}, err
	}
	lost := g.lostIn(svc, group, known, former, found, missing)
	if err = g.readListeners(ctx, svc, group, found); err != nil {
		return Location[LB]{}, err
	}
	if lost == "" && len(missing) == 0 {
		g.shareSearch(group, svc.UID, found, asked)
	} else {
		g.dropSearch(group)
	}
	at, err := g.locateInPlace(ctx, of, group, known, former, found, lost)
	at.Leaves = slices.Concat(at.Leaves, own, begunPlace(known, group))
	return at, err
}

// locateInPlace decides on which of the load balancers that were found the Service is to be. lost is one that should be among them, see
// [Groups.lostIn].
func (g *Groups[LB]) locateInPlace(
	ctx context.Context, of driver.Request, group mark.Group, known Known, former Location[LB], found []LB, lost string,
) (Location[LB], error) {
	svc := of.Service
	at := g.On(group, svc)
	place, own, leader, err := g.decidePlace(group, svc)
	if err != nil {
		return Location[LB]{}, err
	}
	there, from := g.balancerByID(found, place.ID), ""
	if former.Presence.Present() {
		from = g.balancerID(&former.LB)
		former.Stays = g.staysOutside(own, group, place, leader, there, from)
	}
	if outside, err := g.stayInPlace(ctx, svc, group, known, former, found, place); err != nil || outside.Presence.Present() {
		return outside, err
	}
	leaves := former.Leaves
	if at != "" && at != place.ID {
		leaves, from = append(leaves, at), at
	}
	leaves = append(leaves, g.begunElsewhere(own, group, place, found)...)
	if there == nil || lost != "" {
		decided, err := g.decideAbsence(ctx, of, group, known, lost, len(found) > 0)
		if err != nil || there == nil {
			return Location[LB]{Presence: decided, Group: group, Leaves: leaves, From: from, Missed: true}, err
		}
	}
	here := g.foundLocation(svc, group, place, there, leaves)
	here.Stays = g.staysKept(own, group, place, at)
	return here, nil
}

// begunElsewhere returns the load balancers of a group where a Service was about to be, and no longer is: those where it has listeners
// already, and the one that its Record names, because a process before this one may have created groups for backend servers there.
func (g *Groups[LB]) begunElsewhere(svc member, group mark.Group, place sharing.Place, found []LB) []string {
	begun := slices.DeleteFunc(slices.Clone(place.Unused), func(id string) bool {
		used, err := g.IsUsed(svc.Service, group, id) // without a listener yet
		return used || err != nil
	})
	if id := svc.record.LoadBalancerID; svc.record.Group == group.Mark() && id != place.ID && g.balancerByID(found, id) != nil {
		begun = append(begun, id)
	}
	return begun
}

// stayInPlace returns the load balancer outside of the group where the Service stays for now: the former one, or that which it shows. Its
// presence is zero where the Service moves to its place in the group, or is there.
func (g *Groups[LB]) stayInPlace(
	ctx context.Context, svc *corev1.Service, group mark.Group, known Known, former Location[LB], found []LB, place sharing.Place,
) (Location[LB], error) {
	switch {
	case g.balancerByID(found, known.Shows()) != nil: // it turns back before it shows another place, so that it has never left the group
		return Location[LB]{}, nil
	case former.Stays != nil:
		return former, nil
	}
	return g.goesBack(ctx, svc, group, known, place)
}

// goesBack returns the load balancer outside of the group that a Service shows in the middle of its move, if it lacks ports in the group by
// now. There it has all of them, and follows its nodes and edits; where it leaves only, nothing is changed. Its presence is zero where the
// Service goes on with its move.
func (g *Groups[LB]) goesBack(
	ctx context.Context, svc *corev1.Service, group mark.Group, known Known, place sharing.Place,
) (Location[LB], error) {
	if known.Shows() == "" || !place.Lacks() {
		return Location[LB]{}, nil
	}
	back, _, err := g.readOutside(ctx, svc, group, known, known.Shows(), nil)
	if err != nil || !back.Presence.Present() {
		return Location[LB]{}, err
	}
	back.Stays, back.Leaves = g.stayingWithoutPorts(known.Shows(), group, place), append(back.Leaves, group.Mark())
	if at := g.On(group, svc); at != "" {
		back.Leaves = append(back.Leaves, at)
	}
	g.Put(svc.UID, known.Shows())
	return back, nil
}

func (g *Groups[LB]) viewOf(lb *LB) *LoadBalancer {
	view := g.Cloud.View(lb)
	return &view
}

func (g *Groups[LB]) balancerID(lb *LB) string { return g.Cloud.View(lb).ID }

// foundLocation is the location of a load balancer of a group that an answer showed.
func (g *Groups[LB]) foundLocation(svc *corev1.Service, group mark.Group, place sharing.Place, lb *LB, leaves []string) Location[LB] {
	id := g.balancerID(lb)
	if !place.Full {
		g.Put(svc.UID, id)
	}
	g.Missing.Found(types.UID(group.Mark()), id)
	return Location[LB]{Presence: presence.Found(id, false), LB: *lb, Group: group, Leaves: leaves}
}

// lostIn returns the load balancer of the group that should be there and was not found: the one that the Service is on, or that of another
// Service where none was found at all; empty for none.
func (g *Groups[LB]) lostIn(svc *corev1.Service, group mark.Group, known Known, former Location[LB], found []LB, missing []string) string {
	before := beforeOf(svc, known, group)
	switch {
	case former.Presence.Present() || g.balancerByID(found, before) != nil:
		return ""
	case g.WasIn(svc, group, known, before):
		return before
	case len(found) == 0 && len(missing) > 0:
		return missing[0]
	}
	return ""
}

// decideAbsence decides what it means that there is no load balancer of the group for the Service, or that the one that is lost was not
// found: one answer does not prove that it is gone, and a Service that went to another one of the group would get another address. others
// says that the group has other load balancers.
func (g *Groups[LB]) decideAbsence(
	ctx context.Context, of driver.Request, group mark.Group, known Known, lost string, others bool,
) (presence.Presence, error) {
	state := g.Of(group.Mark())
	was := known.Presence
	if !known.Group.Is(group) {
		was = presence.Presence{} // about something else
	}
	missed := lost != "" || state.MaybeCreated || was.Unknown() && !was.IsZero() || !state.Seen && !others && g.mayHaveBegun(of, group)
	decided, err := g.Missing.Decide(ctx, was, presence.Absence{
		Service: types.UID(group.Mark()), ID: lost, NeverCreated: !missed, MaybeCreated: state.MaybeCreated,
	})
	if err == nil {
		g.Note(group.Mark(), func(known *sharing.State) {
			known.Seen, known.MaybeCreated = true, false
		})
	}
	return decided, err
}

// mayHaveBegun reports whether a process before this one may have made a load balancer for the group: the Record of a Service says so
// before that.
func (g *Groups[LB]) mayHaveBegun(of driver.Request, group mark.Group) bool {
	members, err := g.Members(group, of.Service)
	return err != nil || slices.ContainsFunc(members, func(m *corev1.Service) bool {
		record, _ := driver.RecordOn(m)
		return record.Group == group.Mark() && (m.UID != of.Service.UID || of.Adopted)
	})
}

// balancerByID returns the load balancer with the id, nil for none.
func (g *Groups[LB]) balancerByID(all []LB, id string) *LB {
	for i := range all {
		if id != "" && g.balancerID(&all[i]) == id {
			return &all[i]
		}
	}
	return nil
}

// refusalOf says why a place is none.
func (g *Groups[LB]) refusalOf(place sharing.Place) string {
	if place.Full {
		return fmt.Sprintf("has no room for its listeners, but for %s, of which others use %d", g.roomText(place.ID), place.Others)
	}
	for port, owner := range place.Taken {
		if owner.Name.Name == "" {
			return fmt.Sprintf("already uses port %d for a listener that does not belong to the group", port.Number)
		}
		return fmt.Sprintf("already uses port %d for Service %s, which %s", port.Number, owner.Name, owner.Because())
	}
	return ""
}

// LeftBefore returns what a Service leaves for the load balancer that it is on now. A process before this one may have begun to put it into
// another group.
func LeftBefore(svc *corev1.Service, now mark.Group, leaves []string) []string {
	record, _ := driver.RecordOn(svc)
	if record.Group == "" || record.Group == now.Mark() {
		return leaves
	}
	return append(leaves, record.Group)
}

// ShowsFormer reports whether a Service shows a load balancer that it leaves for the one with the id. It is true where that is not known,
// and false once nothing of the Service is left on the one that it shows: that one may be gone while the Service still leaves others.
func ShowsFormer(shown string, leaving []string, id string) bool {
	return len(leaving) > 0 && shown != id && (shown == "" || slices.Contains(leaving, shown))
}

// Leaving returns what a Service leaves: what it has left before, and further places. It is not about the load balancer with the id, which
// the Service is on, nor about the group of that, zero for none.
func Leaving(left, places []string, id string, group mark.Group) []string {
	all := slices.Concat(left, places)
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(place string) bool {
		return id != "" && place == id || !group.IsZero() && place == group.Mark()
	})
}
