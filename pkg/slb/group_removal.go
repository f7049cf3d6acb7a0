package slb

import (
	"context"
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/diff"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/observe"
)

var _ driver.Mover = clb{}

// errNotInGroup says that no CLB of a group has anything of a Service.
var errNotInGroup = errors.New("no CLB of the group has anything of the Service")

// Left implements driver.Mover.
func (c clb) Left(svc *corev1.Service) []driver.Balancer {
	places := c.Leaving
	if c.Presence.IsZero() {
		record, _ := driver.RecordOn(svc)
		places = record.Leaving
	}
	var left []driver.Balancer
	for _, place := range places {
		former := clb{engine: c.engine, former: place}
		former.leavingDoubt = c.formerDoubts[place]
		left = append(left, former)
	}
	return left
}

// Leave implements driver.Mover.
func (c clb) Leave(former driver.Balancer, svc *corev1.Service, gone bool) driver.Balancer {
	from, ok := former.(clb)
	if !ok {
		return c
	}
	if c.Presence.IsZero() && c.Leaving == nil {
		record, _ := driver.RecordOn(svc)
		c.Leaving = record.Leaving
	}
	c.formerDoubts = maps.Clone(c.formerDoubts)
	if c.formerDoubts == nil {
		c.formerDoubts = map[string]leavingDoubt{}
	}
	c.formerDoubts[from.former] = from.leavingDoubt
	if gone {
		delete(c.formerDoubts, from.former)
		c.shared.Release(svc.UID, from.former, c.ID())
		c.Leaving = slices.DeleteFunc(slices.Clone(c.Leaving), func(place string) bool { return place == from.former })
		if c.Group.IsZero() {
			c.shared.Forget(svc.UID) // or it would count as one that uses the CLB, which the last Service of the group has to delete
		}
	}
	return c
}

// refreshFormer reads what the Service has left: a CLB, or those of a group.
func (c clb) refreshFormer(ctx context.Context, svc *corev1.Service) (driver.Balancer, error) {
	if group, ok := mark.ParseGroup(c.former); ok {
		return c.refreshInGroup(ctx, svc, group, "")
	}
	lb, err := c.readCLB(ctx, c.former)
	if err != nil {
		return c, err
	}
	if lb == nil {
		return c.confirmEmptied("CLB " + c.former)
	}
	if group, in := c.shared.GroupOn(lb); in {
		return c.refreshInGroup(ctx, svc, group, lb.ID)
	}
	c.empty = presence.Emptiness{}
	if driver.OwnedBy(svc, lb.Tags) {
		c.Presence = presence.Found(lb.ID, false)
		c.loadBalancer.Set(*lb)
		return c, nil
	}
	err = c.readStaying(ctx, svc, lb, true)
	return c, err
}

// confirmEmptied is an error until nothing was found for some seconds: one answer proves nothing.
func (c clb) confirmEmptied(what string) (driver.Balancer, error) {
	c.Presence = presence.Presence{}
	err := c.confirmEmpty(what)
	return c, err
}

// confirmEmpty is an error until nothing was found for some seconds, and then no more until something is.
func (c *clb) confirmEmpty(what string) (err error) {
	c.empty, err = c.missing.Empty(c.empty, what)
	return err
}

// refreshInGroup reads the CLB of a group on which the Service has something: the one with the id, else one with its marks, else one on
// which nobody is, which it may have begun to make.
func (c clb) refreshInGroup(ctx context.Context, svc *corev1.Service, group mark.Group, id string) (driver.Balancer, error) {
	found, named, err := c.shared.Candidates(ctx, svc, group, c.Known, id)
	if err != nil {
		return c, err
	}
	for i := range found {
		after, has, failure := c.readInGroup(ctx, svc, group, &found[i])
		if failure != nil || has || named {
			return after, failure
		}
	}
	if c.former != "" {
		return c.confirmEmptied("something of the Service in load balancer group " + group.String())
	}
	return c, errNotInGroup
}

// readInGroup reads a CLB of a group, and reports whether the Service has something on it, or nobody.
func (c clb) readInGroup(ctx context.Context, svc *corev1.Service, group mark.Group, lb *alicloud.LoadBalancer) (clb, bool, error) {
	before := c
	if err := c.readStaying(ctx, svc, lb, false); err != nil {
		return c, false, err
	}
	c.Group = group
	owner := mark.OwnerOf(svc, group.ClusterID)
	has := c.hasListener(svc) || slices.ContainsFunc(c.groups.Value, func(g model.Group) bool { return owner.Owns(g.Name) })
	if err := c.unread[model.PartGroups]; err != nil && !has && !c.groupsUnread.Outlasts(waits.LeftoverUnread) {
		return c, false, err
	}
	used, err := c.shared.IsUsed(svc, group, lb.ID)
	if err != nil {
		return c, false, err
	}
	if !c.hasOthersListener(svc) && !used {
		if !has && c.former == "" {
			if begun, err := c.shared.MayHaveBegun(ctx, svc, group, before.Known, lb.ID); err != nil || !begun {
				return before, false, err
			}
		}
		// The CLB goes with what is on it: an answer that shows nothing of anybody else is asked for again.
		err := c.confirmEmpty("a listener of somebody else on CLB " + lb.ID)
		return c, err == nil, err
	}
	c.empty = presence.Emptiness{}
	return c, has, nil
}

// planGroupRemoval removes what the Service has on the CLB of a group, and the CLB with the last of them. Listeners of anybody else keep
// it.
func (c clb) planGroupRemoval(svc *corev1.Service, applied *driver.Record, removal driver.Removal) (driver.Removal, error) {
	actual := c.wholeModel()
	used, err := c.shared.IsUsed(svc, c.Group, c.ID())
	if err != nil {
		return removal, err
	}
	_, tagged := mark.GroupOn(actual.LoadBalancer.Tags)
	last := tagged && !used && !c.hasOthersListener(svc)
	// A port that the Service leaves may be what another one waits for, and where it has nothing, it keeps nothing.
	removal.Preserved = removal.Preserved && (c.former == "" || last && c.hasListener(svc))
	switch {
	case removal.Preserved && last:
		removal.Plan = plan{clb: c, Plan: diff.Preserving(actual, mark.Preserved(svc, c.config.ClusterID))}
	case removal.Preserved:
		removal.Reused = true
		if tagged {
			removal.Plan = plan{clb: c, Plan: diff.PreservingOnShared(actual, mark.Preserved(svc, c.config.ClusterID))}
		}
	case last:
		removal.Plan = plan{clb: c, Plan: diff.Deletion(actual)}
	default:
		removal.Reused = true
		record := loadRecord(applied, svc, actual)
		removal.Kept = c.shared.Kept(c.Group, c.ID(), used, tagged, "listeners and vServer groups")
		return c.planLeave(removal, &model.Model{RemoveTags: c.shared.TagsOfNobody(c.Group, svc, record.TagKeys)},
			mark.OwnerOf(svc, c.Group.ClusterID))
	}
	return removal, err
}

// leftGroup notes that a Service is no longer on the CLB of a group.
func (c clb) leftGroup(removal driver.Removal) {
	if !c.Group.IsZero() && !removal.Reused {
		c.shared.Lost(c.Group, removal.ID)
	}
}

// idInGroup is the CLB that the Service is on as one of its group, empty where that is not known.
func (c clb) idInGroup(svc *corev1.Service) string {
	if c.ID() != "" {
		return c.ID()
	}
	record, _ := driver.RecordOn(svc)
	return record.LoadBalancerID
}

// refreshUsed reads what is on the CLB of a group that the Service is on, unless it is known. The CLB stays for the other Services that use
// it, so that nothing of it needs a search. It returns nothing where that is not so.
func (c clb) refreshUsed(ctx context.Context, svc *corev1.Service) (driver.Balancer, error) {
	if c.ID() == "" || c.Group.IsZero() {
		return nil, nil
	}
	if used, err := c.shared.IsUsed(svc, c.Group, c.ID()); err != nil || !used {
		return nil, nil //nolint:nilerr // the search for the CLB reports it
	}
	if c.isTrusted() {
		return c, nil
	}
	found, _, err := c.readInGroup(ctx, svc, c.Group, &c.loadBalancer.Value)
	if alicloud.IsNotFound(err) {
		return nil, nil
	}
	return found, err
}

// withAccess adds the access control list of the Service, which goes with it.
func (c clb) withAccess(
	ctx context.Context, svc *corev1.Service, applied *driver.Record, found driver.Balancer, err error,
) (driver.Balancer, error) {
	on, ok := found.(clb)
	if err != nil || !ok {
		return found, err
	}
	params, _ := annotation.Parse(svc.Annotations)
	had := c.access.Known() || c.access.Value != nil || c.listUnread.Lasts()
	if !had && !mayHaveAccessList(svc, params, on.wholeModel(), loadRecord(applied, svc, on.wholeModel())) {
		on.access = driver.Part[*alicloud.AccessList]{}
		return on, nil
	}
	on.access = c.access
	list, _, err := observe.AccessList(ctx, c.api, svc, on.accessLists(svc), c.access.Value != nil)
	if on.listUnread = on.listUnread.After(err); err != nil {
		on.access.Invalidate(failureText(err)) // see PlanLeftovers
		return on, nil
	}
	on.access.Set(list)
	return on, nil
}
