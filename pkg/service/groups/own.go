package groups

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
)

// ownUnrecorded returns the load balancers of the Service's own of which nothing on it may say anything: a process before this one may have
// created one before it ended, or the answer to the creation was lost, and then the Service was put into a group. A Record that says that
// the Service leaves nothing, and is in a group, says that it has none. Without this, nobody would ever delete them. With an error, it may
// say what is known all the same.
func (g *Groups[LB]) ownUnrecorded(
	ctx context.Context, of driver.Request, group mark.Group, known Known,
) ([]string, presence.Presence, error) {
	record, _ := driver.RecordOn(of.Service)
	begun := of.Adopted && known.Presence.IsZero() && (record.Group == "" || len(record.Leaving) > 0)
	if !begun && (!known.Presence.MaybeCreated() || !known.Group.IsZero()) {
		return nil, presence.Presence{}, nil
	}
	found, err := g.ownedBy(ctx, of.Service)
	if err != nil {
		return nil, presence.Presence{}, err
	}
	begunFor := g.begunFor(found, record.Made, beforeOf(of.Service, known, group), record.LoadBalancerID)
	if len(begunFor) == 0 { // what was found is somebody else's with a copy of the tag, or what the Service leaves anyway
		decided, err := g.NoneCreated(ctx, of.Service, known, of.Adopted)
		return nil, decided, err
	}
	return begunFor, presence.Presence{}, nil
}

// NoneCreated is an error until no search has shown a load balancer of the Service's own for some seconds, if there may be one whose
// creation was not answered. The Service is to be elsewhere, and once it is, nothing says any more that there may be one. It returns what
// is known until then.
func (g *Groups[LB]) NoneCreated(ctx context.Context, svc *corev1.Service, known Known, adopted bool) (presence.Presence, error) {
	begun := adopted && known.Presence.IsZero() && mayHaveCreated(svc)
	if !known.Group.IsZero() || !begun && !known.Presence.MaybeCreated() {
		return presence.Presence{}, nil
	}
	return g.Missing.Decide(ctx, known.Presence, presence.Absence{Service: svc.UID, MaybeCreated: true})
}

// mayHaveCreated reports whether a process before this one may have asked for a load balancer of the Service's own, and has not noted its
// ID: the Service was about to leave others for it, or shows none.
func mayHaveCreated(svc *corev1.Service) bool {
	record, _ := driver.RecordOn(svc)
	shows := svc.Labels[driver.LabelLoadBalancerID] != "" || len(svc.Status.LoadBalancer.Ingress) > 0
	return record.Group == "" && record.LoadBalancerID == "" && (len(record.Leaving) > 0 || !shows)
}

// ownedBy returns the load balancers with the owner tag of a Service.
func (g *Groups[LB]) ownedBy(ctx context.Context, svc *corev1.Service) ([]LB, error) {
	owner := mark.DefaultName(svc.UID)
	tag := alicloud.Tag{Key: mark.TagOwner, Value: owner}
	found, err := g.Cloud.FindByTag(ctx, tag)
	if found = g.withGroupTag(found, tag); err == nil && len(found) == 0 { // the index of tags lags
		found, err = g.madeFor(ctx, svc)
		found = g.withGroupTag(found, tag)
	}
	if err != nil {
		return nil, fmt.Errorf("find the %ss of the Service's own: %w", g.Product.Name, err)
	}
	return found, nil
}

// madeFor returns the load balancer that was created for a Service as its Record says, none where there is none.
func (g *Groups[LB]) madeFor(ctx context.Context, svc *corev1.Service) ([]LB, error) {
	record, _ := driver.RecordOn(svc)
	if record.Made == "" {
		return nil, nil
	}
	lb, err := g.Cloud.Read(ctx, record.Made)
	if err != nil || lb == nil {
		return nil, err
	}
	return []LB{*lb}, nil
}

// MayHaveBegun reports whether a Service may have begun to create the load balancer of a group on which nobody has anything: something says
// that it was on it, or it shows no other one and has none of its own. One that stays outside of the group for now has: that one would stay
// in the cloud if the other one was deleted in its place.
func (g *Groups[LB]) MayHaveBegun(ctx context.Context, svc *corev1.Service, group mark.Group, known Known, id string) (bool, error) {
	if known.Presence.WasDeleted() && known.Group.IsZero() {
		return false, nil // this process has just deleted the one of its own
	}
	if record, _ := driver.RecordOn(svc); record.LoadBalancerID == id || record.Made == id || g.WasOnShared(svc, known, group, id) {
		return true, nil
	}
	if shown := svc.Labels[driver.LabelLoadBalancerID]; shown != "" && shown != id {
		return false, nil // a process before this one may have deleted that; a Record names the group before anything is created for it
	}
	own, err := g.ownedBy(ctx, svc)
	return len(own) == 0, err
}

// begunFor returns the load balancer with the owner tag of a Service that is its own: the one that was created for it or that it had
// before. Others have a copy of the tag.
func (g *Groups[LB]) begunFor(found []LB, ids ...string) []string {
	for _, id := range ids {
		if g.balancerByID(found, id) != nil {
			return []string{id} // none is begun beside it
		}
	}
	return nil
}
