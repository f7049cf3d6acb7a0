package slb

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/groups"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/diff"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/observe"
)

var _ driver.Mover = clb{}

// Left implements driver.Mover.
func (c clb) Left(svc *corev1.Service) []driver.Balancer {
	var left []driver.Balancer
	for _, place := range c.LeavingOf(svc) {
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
	c.Known = c.shared.Leave(svc, c.Known, from.former, gone)
	c.formerDoubts = maps.Clone(c.formerDoubts)
	if c.formerDoubts == nil {
		c.formerDoubts = map[string]leavingDoubt{}
	}
	if c.formerDoubts[from.former] = from.leavingDoubt; gone {
		delete(c.formerDoubts, from.former)
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
		c.Presence = presence.Presence{}
		c.empty, err = c.missing.Empty(c.empty, "CLB "+c.former)
		return c, err
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

// refreshInGroup reads the CLB of a group on which the Service has something, see [groups.Groups.FindForRemoval]. While its vServer groups
// cannot be read, nobody knows whether the Service has any there.
func (c clb) refreshInGroup(ctx context.Context, svc *corev1.Service, group mark.Group, id string) (driver.Balancer, error) {
	after := c
	found, err := c.shared.FindForRemoval(ctx, svc, group, c.current(), c.empty, id, func(lb *alicloud.LoadBalancer) (groups.Contents, error) {
		after = c
		return after.readInGroup(ctx, svc, group, lb)
	})
	switch {
	case found.Took:
		c = after
	case found.Nothing:
		c.Presence = presence.Presence{}
	}
	c.empty = found.Empty
	return c, err
}

// readInGroup reads a CLB of a group.
func (c *clb) readInGroup(ctx context.Context, svc *corev1.Service, group mark.Group, lb *alicloud.LoadBalancer) (groups.Contents, error) {
	if err := c.readStaying(ctx, svc, lb, false); err != nil {
		return groups.Contents{}, err
	}
	c.Group = group
	owner := mark.OwnerOf(svc, group.ClusterID)
	has := c.hasListener(svc) || slices.ContainsFunc(c.groups.Value, func(g model.Group) bool { return owner.Owns(g.Name) })
	if err := c.unread[model.PartGroups]; err != nil && !has && !c.groupsUnread.Outlasts(waits.LeftoverUnread) {
		return groups.Contents{}, err
	}
	return groups.Contents{Has: has, Others: c.hasOthersListener(svc)}, nil
}

// planGroupRemoval removes what the Service has on the CLB of a group, and the CLB with the last of them. Listeners of anybody else keep
// it.
func (c clb) planGroupRemoval(svc *corev1.Service, applied *driver.Record, removal driver.Removal) (driver.Removal, error) {
	actual := c.wholeModel()
	_, tagged := mark.GroupOn(actual.LoadBalancer.Tags)
	used, last, err := c.shared.IsLast(svc, c.Group, c.ID(), !tagged || c.hasOthersListener(svc), c.empty)
	if err != nil {
		return removal, err
	}
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
	_, err := c.readInGroup(ctx, svc, c.Group, &c.loadBalancer.Value)
	if alicloud.IsNotFound(err) {
		return nil, nil
	}
	c.empty = presence.Emptiness{}
	return c, err
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
