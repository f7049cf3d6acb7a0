package slb

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/groups"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// claim is what gives a CLB that a Service names by id to the Service.
type claim int

const (
	// claimNone: nothing on the CLB is anybody's.
	claimNone claim = iota
	// claimOther: the CLB is that of another Service or cluster.
	claimOther
	// claimOwn: the owner tag names the Service.
	claimOwn
	// claimReused: the CLB is an existing one that Services of clusters may use.
	claimReused
	// claimMarks: the CLB has lost its tags, and its listeners or vServer groups carry marks of the Service.
	claimMarks
	// claimGroup: the CLB is one that Services of a group share.
	claimGroup
)

// holdsCLB reports whether the Service is on the CLB, outside of any group.
func (c claim) holdsCLB() bool { return c == claimOwn || c == claimReused || c == claimMarks }

// hasOn returns the CLB with the id and what gives it to the Service, nil unless the Service is on it outside of any group.
func (e *engine) hasOn(ctx context.Context, svc *corev1.Service, id string) (*alicloud.LoadBalancer, claim, error) {
	lb, err := e.readCLB(ctx, id)
	if err != nil || lb == nil {
		return nil, claimNone, err
	}
	by, err := e.claimOf(ctx, svc, lb)
	if err != nil || !by.holdsCLB() {
		return nil, by, err
	}
	return lb, by, nil
}

// claimOf reads the listeners and vServer groups only where the tags say nothing: somebody, or a policy, may have removed them.
func (e *engine) claimOf(ctx context.Context, svc *corev1.Service, lb *alicloud.LoadBalancer) (claim, error) {
	if driver.OwnedBy(svc, lb.Tags) {
		return claimOwn, nil
	}
	if _, tagged := lb.Tag(mark.TagOwner); tagged {
		return claimOther, nil
	}
	if _, grouped := lb.Tag(mark.TagGroup); grouped {
		return claimGroup, nil
	}
	for _, key := range []string{mark.TagReused, mark.TagAllow} { // nobody sets the latter on a CLB that this program made
		if _, reused := lb.Tag(key); reused {
			return claimReused, nil
		}
	}
	record, _ := driver.RecordOn(svc)
	marked, err := e.marksOn(ctx, svc, lb)
	switch {
	case err != nil || !marked:
		return claimNone, err
	case e.asksFor(svc, lb.ID), record.UsesExisting(lb.ID):
		return claimReused, nil
	}
	return claimMarks, nil
}

// isOwn reports whether a CLB with these listeners is the Service's own, see [driver.Evidence].
func isOwn(svc *corev1.Service, lb *alicloud.LoadBalancer, listeners []model.Listener) bool {
	return driver.OwnedBy(svc, lb.Tags) || driver.Evidence{
		ID: lb.ID, Name: lb.Name, Tags: lb.Tags, Shown: showsAddress(svc, lb),
		Marked: slices.ContainsFunc(listeners, func(l model.Listener) bool { return isOf(svc, l.Description) }),
	}.Owns(svc)
}

// isOf reports whether a text is the mark of the Service, of whatever cluster: on a CLB of its own, nobody else writes one.
func isOf(svc *corev1.Service, text string) bool {
	marked, _, ok := mark.Parse(text)
	return ok && marked == mark.ServiceName(svc)
}

// isStranger reports whether nothing but the owner tag, which can be copied, gives a CLB to a Service whose last CLB still exists. One that
// the manager has created stands in the Record.
func (e *engine) isStranger(ctx context.Context, svc *corev1.Service, lb *alicloud.LoadBalancer, lastID string) (bool, error) {
	record, _ := driver.RecordOn(svc)
	if lastID == "" || lb.ID == lastID || lb.ID == record.Made {
		return false, nil
	}
	if last, err := e.readCLB(ctx, lastID); err != nil || last == nil {
		return false, err
	}
	marked, err := e.marksOn(ctx, svc, lb)
	return !marked, err
}

// asksFor reports whether the annotation names the CLB.
func (e *engine) asksFor(svc *corev1.Service, id string) bool {
	params, _ := annotation.Parse(svc.Annotations)
	return params.Get(annotation.LoadBalancerID) == id
}

// marksOn reports whether a listener or a vServer group of the CLB carries a mark of the Service. Marks of another cluster count where the
// Service shows that it was on the CLB.
func (e *engine) marksOn(ctx context.Context, svc *corev1.Service, lb *alicloud.LoadBalancer) (bool, error) {
	return e.marksOfCluster(ctx, svc, lb.ID, wasOn(svc, lb))
}

// marksOfCluster reports whether a listener or a vServer group of a CLB carries a mark of the Service, with the id of this cluster or with
// any.
func (e *engine) marksOfCluster(ctx context.Context, svc *corev1.Service, id string, anyCluster bool) (bool, error) {
	isMarked := func(text string) bool {
		service, clusterID, ok := mark.Parse(text)
		return ok && service == mark.ServiceName(svc) && (anyCluster || clusterID == e.config.ClusterID && clusterID != literalClusterID)
	}
	listeners, err := e.api.DescribeListeners(ctx, id)
	if err != nil {
		return false, fmt.Errorf("read the listeners of %s: %w", id, err)
	}
	if slices.ContainsFunc(listeners[id], func(l alicloud.Listener) bool { return isMarked(l.Description) }) {
		return true, nil
	}
	vGroups, err := e.api.DescribeVServerGroups(ctx, id)
	if err != nil {
		return false, fmt.Errorf("read the vServer groups of %s: %w", id, err)
	}
	return slices.ContainsFunc(vGroups, func(g alicloud.VServerGroup) bool { return isMarked(g.Name) }), nil
}

// claimedBy is the location of a CLB that neither tag nor name shows to be the Service's, by what gives it to the Service.
func (e *engine) claimedBy(ctx context.Context, svc *corev1.Service, lb *alicloud.LoadBalancer, by claim, adopted bool) (location, error) {
	switch {
	case by == claimOwn, by == claimMarks:
		return e.shared.FoundAt(svc, lb, false), nil
	case by == claimReused && adopted:
		return e.usedExisting(ctx, svc, lb)
	case by == claimGroup && e.wasOnShared(svc, lb):
		return location{Leaves: leavesGroup(lb)}, nil
	case by == claimGroup && adopted:
		return e.guestOn(ctx, svc, lb)
	}
	return location{}, nil
}

// usedExisting returns an existing CLB if the Service was on it. Its label alone does not say so: whoever can edit Services can also set
// that, where the annotation is forbidden.
func (e *engine) usedExisting(ctx context.Context, svc *corev1.Service, lb *alicloud.LoadBalancer) (location, error) {
	record, _ := driver.RecordOn(svc)
	if record.UsesExisting(lb.ID) || showsAddress(svc, lb) {
		return e.shared.FoundAt(svc, lb, true), nil
	}
	if marked, err := e.marksOn(ctx, svc, lb); err != nil || !marked {
		return location{}, err
	}
	return e.shared.FoundAt(svc, lb, true), nil
}

// guestOn returns the CLB of a group of another cluster as an existing one, if the Service is on it by its ID: like any existing CLB, the
// Service keeps it whatever its annotation says later. Only marks of this cluster say so: a Service that was restored from a backup of the
// other cluster shows the same status and label as the one there.
func (e *engine) guestOn(ctx context.Context, svc *corev1.Service, lb *alicloud.LoadBalancer) (location, error) {
	if _, ours := e.shared.GroupOn(lb); ours {
		return location{}, nil
	}
	on, err := e.marksOfCluster(ctx, svc, lb.ID, false)
	if err != nil || !on {
		return location{}, err
	}
	return e.shared.FoundAt(svc, lb, true), nil
}

// wasOnShared reports whether anything but its label says that a Service was on the CLB of a group, see [groups.Groups.WasOnShared]. The
// status does, too, in the cluster that has written it.
func (e *engine) wasOnShared(svc *corev1.Service, lb *alicloud.LoadBalancer) bool {
	group, in := mark.GroupOn(lb.Tags)
	return in && (e.shared.WasOnShared(svc, groups.Known{}, group, lb.ID) || group.ClusterID == e.config.ClusterID && wasOn(svc, lb))
}

// atAddress returns the CLB whose address the status of the Service shows, with what gives it to the Service. It is nil where there is
// none, where this process knows the id of the CLB, and where nothing on the CLB is the Service's: addresses are used again.
func (e *engine) atAddress(ctx context.Context, svc *corev1.Service, known presence.Presence) (*alicloud.LoadBalancer, claim, error) {
	if known.ID() != "" {
		return nil, claimNone, nil
	}
	for _, shown := range svc.Status.LoadBalancer.Ingress {
		if shown.IP == "" {
			continue
		}
		found, err := e.api.DescribeLoadBalancers(ctx, alicloud.LoadBalancerQuery{Address: shown.IP})
		if err != nil {
			return nil, claimNone, fmt.Errorf("find the CLB of the Service by its address: %w", err)
		}
		for i := range found {
			lb := &found[i]
			if lb.Address != shown.IP {
				continue // the answer is about something else
			}
			by, err := e.claimOf(ctx, svc, lb)
			if err != nil {
				return nil, claimNone, err
			}
			if by != claimNone && by != claimOther {
				return lb, by, nil
			}
		}
	}
	return nil, claimNone, nil
}
