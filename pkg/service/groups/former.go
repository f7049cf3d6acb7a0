package groups

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
)

// beforeOf returns the load balancer that a Service leaves for a group, empty for none: the one that it shows, where it has begun to move
// elsewhere, else the one that it is or was on. Somebody may have removed its label: then its Record names that, unless it is about a place
// in the group.
func beforeOf(svc *corev1.Service, known Known, to mark.Group) string {
	if known.Shows() != "" && !known.Group.Is(to) {
		return known.Shows()
	}
	recorded := ""
	if record, _ := driver.RecordOn(svc); record.Group != to.Mark() {
		recorded = record.LoadBalancerID
	}
	return cmp.Or(known.Presence.ID(), driver.Labeled(svc), recorded)
}

// begunPlace returns what a Service leaves where it has begun a move that it gives up for another place, or to go back to what it shows:
// nothing that it shows says that it was ever there.
func begunPlace(known Known, to mark.Group) []string {
	if known.Shows() == "" || known.Group.Is(to) {
		return nil
	}
	return withoutEmpty(known.Presence.ID(), known.Group.Mark())
}

func withoutEmpty(places ...string) []string {
	return slices.DeleteFunc(places, func(place string) bool { return place == "" })
}

// formerOf reads the load balancer on which the Service is or was, unless it is one of those that were found. Where neither its label nor
// its Record names one, the address that it shows may: nothing else would have it leave an existing one.
func (g *Groups[LB]) formerOf(
	ctx context.Context, svc *corev1.Service, group mark.Group, known Known, id string, found []LB,
) (Location[LB], []LB, error) {
	if id == "" {
		lb, err := g.Cloud.Shown(ctx, svc, known.Presence)
		if err != nil {
			return Location[LB]{}, found, err
		}
		if lb != nil {
			id = g.balancerID(lb)
		}
	}
	if id == "" || g.balancerByID(found, id) != nil {
		return Location[LB]{}, found, nil
	}
	return g.readOutside(ctx, svc, group, known, id, found)
}

// readOutside reads a load balancer on which the Service is or was, and which the search by tag does not show: one that the Service is to
// leave, or one of the group whose tag is not there, or not in the index yet.
func (g *Groups[LB]) readOutside(
	ctx context.Context, svc *corev1.Service, group mark.Group, known Known, id string, found []LB,
) (Location[LB], []LB, error) {
	lb, err := g.Cloud.Read(ctx, id)
	was := g.WasIn(svc, group, known, id)
	switch {
	case err != nil:
		return Location[LB]{}, found, err
	case lb == nil && !was:
		return Location[LB]{Leaves: []string{id}}, found, nil // one answer: it is asked for again before it counts as left
	case lb == nil:
		return Location[LB]{}, found, nil
	}
	view := g.viewOf(lb)
	in, tagged := view.Group()
	_, owned := view.Tag(mark.TagOwner)
	switch {
	case tagged && in.Is(group), !tagged && !owned && was:
		return Location[LB]{}, append(found, *lb), nil
	case tagged:
		former, failure := g.otherGroups(ctx, svc, known, in, lb)
		return former, found, failure
	}
	former, err := g.leaveUngrouped(ctx, svc, lb)
	return former, found, err
}

// otherGroups returns the load balancer of another group as one that the Service is to leave, if it is or was on that: as one of the group,
// or by its id. One of another cluster is an existing one, unless the Service was to be in the group.
func (g *Groups[LB]) otherGroups(ctx context.Context, svc *corev1.Service, known Known, in mark.Group, lb *LB) (Location[LB], error) {
	id := g.balancerID(lb)
	if !g.WasOnShared(svc, known, in, id) {
		has, _, err := g.Cloud.Claims(ctx, svc, lb)
		if err != nil || !has {
			return Location[LB]{}, err
		}
		if in.ClusterID != g.Config.ClusterID {
			return Location[LB]{Presence: presence.Found(id, true), LB: *lb, Leaves: []string{id}}, nil
		}
	}
	return Location[LB]{Presence: presence.Found(id, false), LB: *lb, Group: in, Leaves: []string{id, in.Mark()}}, nil
}

// leaveUngrouped returns a load balancer of no group as one that the Service is to leave, if it is the Service's or something on it is.
func (g *Groups[LB]) leaveUngrouped(ctx context.Context, svc *corev1.Service, lb *LB) (Location[LB], error) {
	view, reused := g.viewOf(lb), false
	owner, owned := view.Tag(mark.TagOwner)
	switch {
	case owned && owner != mark.DefaultName(svc.UID):
		return Location[LB]{}, nil // another Service's
	case !owned:
		var err error
		var has bool
		if has, reused, err = g.Cloud.Claims(ctx, svc, lb); err != nil || !has {
			return Location[LB]{}, err
		}
	}
	return Location[LB]{Presence: presence.Found(view.ID, reused), LB: *lb, Leaves: []string{view.ID}}, nil
}

// WasOnShared reports whether a Service is or was on the load balancer of a group, as far as this process knows or its Record says. Its
// label says nothing: backup tools restore that in other clusters, and whoever can edit Services can set it. The load balancer of another
// cluster counts only where the Service was to be in the group: it may be on that by its id as well.
func (g *Groups[LB]) WasOnShared(svc *corev1.Service, known Known, in mark.Group, id string) bool {
	record, _ := driver.RecordOn(svc)
	switch {
	case known.Group.Is(in), record.Group == in.Mark(), slices.Contains(record.Leaving, in.Mark()):
		return true
	case in.ClusterID != g.Config.ClusterID:
		return false
	}
	return known.Presence.ID() == id || known.Shows() == id || driver.ShownBy(svc) == id || slices.Contains(record.Leaving, id)
}

// WasIn reports whether the Service was on a load balancer as one of the group.
func (g *Groups[LB]) WasIn(svc *corev1.Service, group mark.Group, known Known, id string) bool {
	record, _ := driver.RecordOn(svc)
	return id != "" && (known.Group.Is(group) && known.Presence.ID() == id || record.Group == group.Mark() && record.LoadBalancerID == id)
}
