package groups

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sharing"
)

// Balancers returns the load balancers of a group, and the ids of those that it should have and that do not exist. Searches by tag lag and
// may be incomplete: what this process and the Records of the Services know is read by id. One that does not show the tag does not count.
func (g *Groups[LB]) Balancers(ctx context.Context, group mark.Group, svc *corev1.Service) (found []LB, missing []string, err error) {
	tag := alicloud.Tag{Key: mark.TagGroup, Value: group.Mark()}
	if found, err = g.Cloud.FindByTag(ctx, tag); err != nil {
		return nil, nil, fmt.Errorf("find the %ss of load balancer group %s: %w", g.Product.Name, group, err)
	}
	found = g.withGroupTag(found, tag)
	expected, err := g.expectedIDs(group, svc)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range expected {
		if g.balancerByID(found, id) != nil {
			continue
		}
		lb, failure := g.Cloud.Read(ctx, id)
		switch {
		case failure != nil:
			return nil, nil, failure
		case lb == nil:
			missing = append(missing, id)
		case slices.Contains(g.viewOf(lb).Tags, tag):
			found = append(found, *lb)
		}
	}
	if len(found) == 0 {
		found, err = g.createdFor(ctx, group, svc)
	}
	return found, missing, err
}

// createdFor returns the load balancers that were created for Services of a group, and on which none of them is as far as the Records say:
// the process ended before. While the creation of another Service has no answer, it fails: its next pass makes the call again.
func (g *Groups[LB]) createdFor(ctx context.Context, group mark.Group, svc *corev1.Service) (found []LB, err error) {
	all, err := g.Services.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list the Services: %w", err)
	}
	for _, other := range append([]*corev1.Service{svc}, all...) {
		if !driver.RecordSays(other, group.Mark()) || other != svc && other.UID == svc.UID || g.isRemoved(other.UID) {
			continue
		}
		record, _ := driver.RecordOn(other)
		may := driver.HasFinalizer(other, g.Product.Finalizer) && g.Config.Policy.AllowsGroup(other.Namespace, group.Namespace, group.Name)
		if other != svc && may && record.Creation.Open() && record.Group == group.Mark() {
			return nil, &problem.WaitError{
				Reason: fmt.Sprintf("Service %s is creating the %s of load balancer group %s", mark.ServiceName(other), g.Product.Name, group),
				For:    createdPoll,
			}
		}
		if record.Made == record.LoadBalancerID {
			continue // it has been there, and is looked for by its id
		}
		made, err := g.madeFor(ctx, other)
		if err != nil {
			return nil, err
		}
		found = append(found, made...)
	}
	found = g.withGroupTag(found, alicloud.Tag{Key: mark.TagGroup, Value: group.Mark()})
	g.Note(group.Mark(), func(known *sharing.State) { // the Service that began it may be gone before another one of the group is on it
		for i := range found {
			if id := g.balancerID(&found[i]); !known.Has(id) {
				known.LoadBalancers = append(slices.Clone(known.LoadBalancers), sharing.LoadBalancer{ID: id})
			}
		}
	})
	return found, nil
}

// createdPoll is how soon a Service looks again for the load balancer that another one of its group creates.
const createdPoll = time.Second

// withGroupTag returns the load balancers in an answer that show the tag of the group.
func (g *Groups[LB]) withGroupTag(found []LB, tag alicloud.Tag) []LB {
	return slices.DeleteFunc(found, func(lb LB) bool { return !slices.Contains(g.viewOf(&lb).Tags, tag) })
}

// withKnown adds the load balancer with the id to those that the search for a group shows, if it is one of the group all the same.
func (g *Groups[LB]) withKnown(
	ctx context.Context, svc *corev1.Service, group mark.Group, known Known, id string, found []LB,
) ([]LB, error) {
	if id == "" || g.balancerByID(found, id) != nil {
		return found, nil
	}
	lb, err := g.Cloud.Read(ctx, id)
	if err != nil || lb == nil {
		return found, err
	}
	in, grouped := g.viewOf(lb).Group()
	if grouped && in.Is(group) || !grouped && g.WasIn(svc, group, known, id) {
		found = append(found, *lb)
	}
	return found, nil
}

// expectedIDs returns the ids of the load balancers that a group has as far as this process, or the Record of a Service, knows.
func (g *Groups[LB]) expectedIDs(group mark.Group, svc *corev1.Service) ([]string, error) {
	members, err := g.groupMembers(group, svc)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, known := range g.Of(group.Mark()).LoadBalancers {
		ids = append(ids, known.ID)
	}
	for i := range members {
		if record := &members[i].record; record.Group == group.Mark() && record.LoadBalancerID != "" {
			ids = append(ids, record.LoadBalancerID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// readListeners reads the listeners of the load balancers of a group, and notes who has which.
func (g *Groups[LB]) readListeners(ctx context.Context, svc *corev1.Service, group mark.Group, found []LB) error {
	members, err := g.Members(group, svc)
	if err != nil {
		return err
	}
	listeners, err := g.Cloud.Listeners(ctx, found)
	if err != nil {
		return fmt.Errorf("read the listeners of the %ss of load balancer group %s: %w", g.Product.Name, group, err)
	}
	var balancers []sharing.LoadBalancer
	on := map[types.NamespacedName]sharing.Listed{}
	for i := range found {
		view := g.viewOf(&found[i])
		id := view.ID
		balancers = append(balancers, sharing.LoadBalancer{
			ID: id, Foreign: foreignPorts(listeners[id], members, group.ClusterID), Public: view.Public, SecurityGroups: view.SecurityGroups,
		})
		for _, listener := range listeners[id] {
			if name := listener.Service; name.Name != "" && listener.ClusterID == group.ClusterID {
				on[name] = on[name].With(id, listener.Port)
			}
		}
	}
	g.Note(group.Mark(), func(known *sharing.State) {
		if known.LoadBalancers, known.On = balancers, on; len(balancers) > 0 {
			known.MaybeCreated = false
		}
	})
	return nil
}

// IsUsed reports whether another Service is on a load balancer of a group, or is to be. Only one that has the finalizer counts, because only
// that gets a pass of its own before it goes. Of one that names the load balancer by its ID, its listeners say so. It fails while the cache
// may lack Services.
func (g *Groups[LB]) IsUsed(svc *corev1.Service, group mark.Group, id string) (bool, error) {
	all, err := g.Services.List(labels.Everything())
	if err != nil {
		return false, fmt.Errorf("list the Services: %w", err)
	}
	if !slices.ContainsFunc(all, func(s *corev1.Service) bool { return s.UID == svc.UID }) {
		return false, &problem.WaitError{Reason: "the Services of the cluster are not in the cache yet", For: g.Missing.Over}
	}
	return slices.ContainsFunc(all, func(other *corev1.Service) bool {
		return other.UID != svc.UID && !g.hasGone(other) && g.usesBalancer(other, group, id)
	}), nil
}

// hasGone reports whether a Service that no longer asks for a load balancer has nothing in the cloud any more, whatever the cache says of
// its finalizer.
func (g *Groups[LB]) hasGone(svc *corev1.Service) bool {
	return g.isRemoved(svc.UID) && !g.Product.AskedBy(g.Config, svc)
}

func (g *Groups[LB]) usesBalancer(svc *corev1.Service, group mark.Group, id string) bool {
	if driver.NamesByID(svc, id) || !driver.HasFinalizer(svc, g.Product.Finalizer) {
		return false
	}
	record, _ := driver.RecordOn(svc)
	if record.Group == group.Mark() && record.LoadBalancerID == id {
		return true // it may have begun there, and have no listener yet
	}
	asks, in := g.Asked(svc)
	member := in && asks.Is(group)
	at := g.placeOf(svc)
	if _, known := g.At(svc.UID); at == id && !known {
		// Whoever can edit Services can also set the label, and would keep the load balancer for good.
		return member || record.LoadBalancerID == id
	}
	return at == id || at == "" && member
}

// ForRemoval returns the group on whose load balancer a Service may have something, false where it is in none.
func (g *Groups[LB]) ForRemoval(svc *corev1.Service, known Known) (mark.Group, bool) {
	if !known.Group.IsZero() {
		return known.Group, true
	}
	if known.Presence.Present() {
		return mark.Group{}, false
	}
	if record, ok := driver.RecordOn(svc); ok && record.Group != "" {
		return mark.ParseGroup(record.Group)
	}
	return g.Asked(svc)
}

// Candidates returns the load balancers of a group on which a Service may have something: the one with the id alone, where that is one of
// them.
func (g *Groups[LB]) Candidates(
	ctx context.Context, svc *corev1.Service, group mark.Group, known Known, id string,
) (found []LB, named bool, err error) {
	if found, _, err = g.Balancers(ctx, group, svc); err != nil {
		return nil, false, err
	}
	if found, err = g.withKnown(ctx, svc, group, known, id, found); err != nil {
		return nil, false, err
	}
	if lb := g.balancerByID(found, id); lb != nil {
		return []LB{*lb}, true, nil
	}
	return found, false, nil // the id is that of one that the Service was to leave
}

// Kept says why a load balancer of a group stays when a Service goes, empty where another Service of the group uses it. tagged says that it
// has the tag of the group, and contents what of the Service was removed from it.
func (g *Groups[LB]) Kept(group mark.Group, id string, used, tagged bool, contents string) string {
	switch {
	case used:
		return ""
	case !tagged:
		return fmt.Sprintf("%s %s stays in the cloud, without %s of this Service: its tag %s=%s was removed, so somebody may use it; if nobody does, delete it",
			g.Product.Name, id, contents, mark.TagGroup, group.Mark())
	}
	return fmt.Sprintf("%s %s of load balancer group %s stays in the cloud: no Service of the group uses it, but it has listeners of others",
		g.Product.Name, id, group)
}
