package nlb

import (
	"context"
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/diff"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/observe"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
)

var _ driver.Mover = nlb{}

// errNotInGroup says that no NLB of a group has anything of a Service.
var errNotInGroup = errors.New("no NLB of the group has anything of the Service")

// Left implements driver.Mover.
func (n nlb) Left(svc *corev1.Service) []driver.Balancer {
	var left []driver.Balancer
	for _, place := range n.leavingOf(svc) {
		former := nlb{engine: n.engine, former: place, observed: n.formers[place]}
		former.leftTags = n.leftTags
		left = append(left, former)
	}
	return left
}

// leavingOf returns what the Service has left: as this process knows it, else as its Record says.
func (n nlb) leavingOf(svc *corev1.Service) []string {
	if n.Presence.IsZero() && n.Leaving == nil {
		record, _ := driver.RecordOn(svc)
		return record.Leaving
	}
	return n.Leaving
}

// Leave implements driver.Mover.
func (n nlb) Leave(former driver.Balancer, svc *corev1.Service, gone bool) driver.Balancer {
	from, ok := former.(nlb)
	if !ok {
		return n
	}
	n.Leaving = slices.Clone(n.leavingOf(svc))
	formers := map[string]observed{}
	maps.Copy(formers, n.formers)
	formers[from.former] = from.observed
	if gone {
		delete(formers, from.former)
		n.shared.Release(svc.UID, from.former, n.ID())
		n.Leaving = slices.DeleteFunc(n.Leaving, func(place string) bool { return place == from.former })
		n.leftTags = maps.Clone(n.leftTags)
		delete(n.leftTags, from.former)
		if n.Group.IsZero() {
			n.shared.Forget(svc.UID) // or it would count as one that uses the NLB, which the last Service of the group has to delete
		}
	}
	n.formers = formers
	return n
}

// refreshFormer reads what the Service has left: an NLB, or those of a group. Its server groups serve where it is now, and stay.
func (n nlb) refreshFormer(ctx context.Context, svc *corev1.Service) (driver.Balancer, error) {
	if group, ok := mark.ParseGroup(n.former); ok {
		return n.foundInGroup(ctx, svc, group, "")
	}
	if n.Presence.Gone() && n.Presence.WasDeleted() {
		n.Presence = presence.Presence{}
		return n, nil
	}
	lb, err := n.readNLB(ctx, n.former)
	if err != nil {
		return n, err
	}
	if lb == nil {
		return n.confirmEmptied("NLB " + n.former)
	}
	if group, in := n.shared.GroupOn(lb); in {
		return n.foundInGroup(ctx, svc, group, lb.ID)
	}
	n.empty = presence.Emptiness{}
	own := driver.OwnedBy(svc, lb.Tags)
	n = n.withKnown(n.withLocation(location{Presence: presence.Found(lb.ID, !own), LB: *lb}))
	return n.withListeners(ctx)
}

// withListeners reads the listeners.
func (n nlb) withListeners(ctx context.Context) (nlb, error) {
	listeners, err := observe.Listeners(ctx, n.api, n.nlbID())
	if err == nil {
		n.listeners.Set(listeners)
	}
	return n, err
}

// confirmEmptied is an error until nothing was found for some seconds: one answer proves nothing.
func (n nlb) confirmEmptied(what string) (nlb, error) {
	n.Presence = presence.Presence{}
	err := n.confirmEmpty(what)
	return n, err
}

// confirmEmpty is an error until nothing was found for some seconds, and then no more until something is.
func (n *nlb) confirmEmpty(what string) (err error) {
	n.empty, err = n.missing.Empty(n.empty, what)
	return err
}

// foundInGroup reads the NLB of a group on which the Service has something: the one with the id, else one with its marks, else one on which
// nobody is, which it may have begun to make.
func (n nlb) foundInGroup(ctx context.Context, svc *corev1.Service, group mark.Group, id string) (nlb, error) {
	found, named, err := n.shared.Candidates(ctx, svc, group, n.Known, id)
	if err != nil {
		return n, err
	}
	for i := range found {
		after, has, failure := n.readInGroup(ctx, svc, group, &found[i])
		if failure != nil || has || named {
			return after, failure
		}
	}
	if n.former != "" {
		return n.confirmEmptied("something of the Service in load balancer group " + group.String())
	}
	return n, errNotInGroup
}

// readInGroup reads an NLB of a group, and reports whether the Service has something on it, or nobody.
func (n nlb) readInGroup(ctx context.Context, svc *corev1.Service, group mark.Group, lb *alicloud.NLB) (nlb, bool, error) {
	before := n
	n, err := n.withKnown(n.withLocation(location{Presence: presence.Found(lb.ID, false), LB: *lb, Group: group})).withListeners(ctx)
	if err != nil {
		return n, false, err
	}
	used, err := n.shared.IsUsed(svc, group, lb.ID)
	if err != nil {
		return n, false, err
	}
	if !n.hasOthersListener(svc) && !used {
		if n.former == "" && !n.hasListener(svc) {
			if begun, err := n.shared.MayHaveBegun(ctx, svc, group, before.Known, lb.ID); err != nil || !begun {
				return before, false, err
			}
		}
		// The NLB goes with what is on it: an answer that shows nothing of anybody else is asked for again.
		if err := n.confirmEmpty("a listener of somebody else on NLB " + lb.ID); err != nil {
			return n, false, err
		}
		return n, true, nil
	}
	n.empty = presence.Emptiness{}
	return n, n.hasListener(svc), nil
}

// planGroupRemoval removes what the Service has on the NLB of a group, and the NLB with the last of them. Listeners of anybody else keep
// it.
func (n nlb) planGroupRemoval(svc *corev1.Service, applied *driver.Record, removal driver.Removal) (driver.Removal, error) {
	actual, owner := n.wholeModel(), n.ownerOf(svc, n.observed)
	used, err := n.shared.IsUsed(svc, n.Group, n.ID())
	if err != nil {
		return removal, err
	}
	_, tagged := mark.GroupOn(n.lb.Value.Tags)
	last := tagged && !used && !n.hasOthersListener(svc)
	// A port that the Service leaves may be what another one waits for, and where it has nothing, it keeps nothing.
	removal.Preserved = removal.Preserved && (n.former == "" || last && n.hasListener(svc))
	switch {
	case removal.Preserved && last:
		removal.Plan = n.removalPlan(diff.Preserving(actual, mark.Preserved(svc, n.config.ClusterID)))
	case removal.Preserved:
		var left model.Plan
		if tagged {
			left = diff.PreservingInGroup(actual, mark.Preserved(svc, n.config.ClusterID))
		}
		removal.Reused, removal.Plan = true, n.removalPlan(left)
	case last:
		removal.Plan = n.removalPlan(diff.Deletion(actual))
	default:
		removal.Reused = true
		record := loadRecord(applied, svc, n.observed)
		removal.Plan = n.removalPlan(diff.Leaving(actual, owner, n.shared.TagsOfNobody(n.Group, svc, record.TagKeys)))
		removal.Kept = n.shared.Kept(n.Group, n.ID(), used, tagged, "listeners and server groups")
	}
	return removal, err
}

// absenceOf is whom an absence is about: a Service, or all of a group.
func (n *nlb) absenceOf(svc *corev1.Service) types.UID {
	if n.Group.IsZero() {
		return svc.UID
	}
	return types.UID(n.Group.Mark())
}
