package groups

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sharing"
)

// Current is the load balancer that a Service is on, as its product knows it.
type Current[LB any] struct {
	Known

	// LB is nil while there is none.
	LB *LB
	// Former is the id of a load balancer that the Service has left, or the mark of a group, if that is what this is about; empty otherwise.
	Former string
}

// id is that of the load balancer, empty where none is known.
func (c *Current[LB]) id() string {
	if !c.Presence.Present() {
		return ""
	}
	return c.Presence.ID()
}

// CurrentOf returns what is known of the load balancer. former is as in [Current].
func CurrentOf[LB any](known Known, lb *LB, former string) Current[LB] {
	if !known.Presence.Present() {
		lb = nil
	}
	return Current[LB]{Known: known, LB: lb, Former: former}
}

// isOf reports whether the mark on the listener is the owner's.
func (l *Listener) isOf(owner mark.Owner) bool {
	return l.Service == owner.Service && l.ClusterID == owner.ClusterID
}

// PortsOf are those of the owner's listeners.
func PortsOf(owner mark.Owner, listeners iter.Seq[Listener]) []sharing.Port {
	var ports []sharing.Port
	for l := range listeners {
		if l.isOf(owner) {
			ports = append(ports, l.Port)
		}
	}
	return ports
}

// HasOthers reports whether a listener is not the owner's.
func HasOthers(owner mark.Owner, listeners iter.Seq[Listener]) bool {
	for l := range listeners {
		if !l.isOf(owner) {
			return true
		}
	}
	return false
}

// GroupOn returns the group of this cluster whose Services share a load balancer, false for none.
func (g *Groups[LB]) GroupOn(lb *LB) (mark.Group, bool) {
	if group, in := g.viewOf(lb).Group(); in && group.ClusterID == g.Config.ClusterID {
		return group, true
	}
	return mark.Group{}, false
}

// LockFor names what passes over a Service take turns on with those over others, see [driver.Balancer].
func (g *Groups[LB]) LockFor(svc *corev1.Service, params annotation.Params, at Current[LB]) string {
	switch {
	case at.Presence.Reused():
		if group, in := g.GroupOn(at.LB); in {
			return LockOf(group) // the last Service of the group may delete it
		}
		return at.Presence.ID()
	case !at.Group.IsZero():
		return LockOf(at.Group)
	case at.Former != "":
		if group, ok := mark.ParseGroup(at.Former); ok {
			return LockOf(group)
		}
		return ""
	case at.Stays != nil:
		return ""
	}
	if group, in := g.Wanted(svc, params, at.Group); in {
		return LockOf(group)
	}
	return params.Get(annotation.LoadBalancerID)
}

// IntendedRecord returns what must be recorded before the first pass over a Service writes it. wanted is what will have been applied.
func (g *Groups[LB]) IntendedRecord(svc *corev1.Service, params annotation.Params, wanted driver.Record) driver.Record {
	intent := wanted.Intent()
	group, in := g.Asked(svc)
	if in {
		intent.Group = group.Mark()
	}
	if in || params.Get(annotation.LoadBalancerID) != "" {
		intent.TagKeys = nil // which of them are its owner's, or decided on by another Service, is not known before the load balancer was read
	}
	return intent
}

// RecordPlaces adds to a Record where the Service is, and was.
func (k Known) RecordPlaces(record driver.Record) driver.Record {
	record.Group, record.Leaving, record.Shows, record.Existing = "", k.Leaving, "", k.Presence.Reused()
	if len(k.Leaving) > 0 {
		record.Shows = k.Showing
	}
	if !k.Group.IsZero() {
		record.Group = k.Group.Mark()
	}
	return record
}

// RepeatCreation makes the creation of a load balancer again, see [driver.Engine]. discard deletes the one that it makes although the
// Service has another one of its own: reads did not show that for a time.
func (g *Groups[LB]) RepeatCreation(
	ctx context.Context, svc *corev1.Service, creation driver.Creation, since presence.Missing,
	create func(ctx context.Context, lb LB, token string) (id string, err error), discard func(context.Context, *corev1.Service, *LB) error,
) (id string, missing presence.Missing, err error) {
	var lb LB
	if err = json.Unmarshal(creation.Parameters, &lb); err != nil {
		return "", since, fmt.Errorf("decode the parameters of the %s: %w", g.Product.Name, err)
	}
	if id, err = create(ctx, lb, creation.Token); err != nil {
		return "", since, err
	}
	found, err := g.Cloud.Read(ctx, id)
	if err != nil {
		return "", since, err
	}
	if missing, err = g.Missing.Confirm(since, found == nil, g.Product.Name+" "+id+" was created and not found"); err != nil || found == nil {
		return "", missing, err
	}
	last := driver.Labeled(svc)
	if last == "" || last == id || !driver.OwnedBy(svc, g.viewOf(found).Tags) { // one of a group is none beside its own, and others of the group may be on it
		return id, missing, nil
	}
	shown, err := g.Cloud.Read(ctx, last)
	if err != nil || shown == nil || !driver.OwnedBy(svc, g.viewOf(shown).Tags) {
		return id, missing, err
	}
	return last, missing, discard(ctx, svc, found)
}
