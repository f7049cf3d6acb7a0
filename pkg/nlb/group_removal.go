package nlb

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/diff"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/observe"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/groups"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
)

var _ driver.Mover = nlb{}

// Left implements driver.Mover.
func (n nlb) Left(svc *corev1.Service) []driver.Balancer {
	var left []driver.Balancer
	for _, place := range n.LeavingOf(svc) {
		former := nlb{engine: n.engine, former: place, observed: n.formers[place]}
		former.leftTags = n.leftTags
		left = append(left, former)
	}
	return left
}

// Leave implements driver.Mover.
func (n nlb) Leave(former driver.Balancer, svc *corev1.Service, gone bool) driver.Balancer {
	from, ok := former.(nlb)
	if !ok {
		return n
	}
	n.Known = n.shared.Leave(svc, n.Known, from.former, gone)
	n.formers, n.leftTags = maps.Clone(n.formers), maps.Clone(n.leftTags)
	if n.formers == nil {
		n.formers = map[string]observed{}
	}
	if n.formers[from.former] = from.observed; gone {
		delete(n.formers, from.former)
		delete(n.leftTags, from.former)
	}
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
		n.Presence = presence.Presence{}
		n.empty, err = n.missing.Empty(n.empty, "NLB "+n.former)
		return n, err
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

// foundInGroup reads the NLB of a group on which the Service has something, see [groups.Groups.FindForRemoval].
func (n nlb) foundInGroup(ctx context.Context, svc *corev1.Service, group mark.Group, id string) (nlb, error) {
	after := n
	found, err := n.shared.FindForRemoval(ctx, svc, group, n.current(), n.empty, id, func(lb *alicloud.NLB) (groups.Contents, error) {
		at := location{Presence: presence.Found(lb.ID, false), LB: *lb, Group: group}
		var err error
		after, err = n.withKnown(n.withLocation(at)).withListeners(ctx)
		return groups.Contents{Has: after.hasListener(svc), Others: after.hasOthersListener(svc)}, err
	})
	switch {
	case found.Took:
		n = after
	case found.Nothing:
		n.Presence = presence.Presence{}
	}
	n.empty = found.Empty
	return n, err
}

// planGroupRemoval removes what the Service has on the NLB of a group, and the NLB with the last of them. Listeners of anybody else keep
// it.
func (n nlb) planGroupRemoval(svc *corev1.Service, applied *driver.Record, removal driver.Removal) (driver.Removal, error) {
	actual, owner := n.wholeModel(), n.ownerOf(svc, n.observed)
	_, tagged := mark.GroupOn(n.lb.Value.Tags)
	used, last, err := n.shared.IsLast(svc, n.Group, n.ID(), !tagged || n.hasOthersListener(svc), n.empty)
	if err != nil {
		return removal, err
	}
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
