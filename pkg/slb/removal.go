package slb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/groups"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/diff"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/observe"
)

// RefreshForRemoval implements driver.Balancer. A CLB of ours goes with everything on it, unless something on it is somebody else's.
func (c clb) RefreshForRemoval(ctx context.Context, svc *corev1.Service, applied *driver.Record) (driver.Balancer, error) {
	c.unread = nil
	if c.former != "" {
		return c.refreshFormer(ctx, svc)
	}
	if group, in := c.shared.ForRemoval(svc, c.Known); in {
		found, err := c.refreshUsed(ctx, svc)
		if found == nil && err == nil {
			found, err = c.refreshInGroup(ctx, svc, group, c.idInGroup(svc))
		}
		if !errors.Is(err, groups.ErrNotInGroup) {
			return c.withAccess(ctx, svc, applied, found, err)
		}
		c.Group = mark.Group{} // it never was, or the CLB is gone
	}
	if known, err := c.confirmForRemoval(ctx, svc); known || err != nil {
		switch {
		case err != nil:
			return c, err
		case c.Reused():
			return c.reusedForRemoval(ctx, svc, applied)
		}
		return c.unlessUsed(ctx, svc)
	}
	at, err := c.locateForRemoval(ctx, svc, c.observed)
	if err != nil {
		if !at.Presence.IsZero() {
			c.Presence = at.Presence
		}
		return c, err
	}
	found := c.withKnown(observed{
		Known: groups.Known{Presence: at.Presence, Leaving: c.Leaving}, access: driver.Part[*alicloud.AccessList]{Value: c.access.Value},
		leavingDoubt: c.leavingDoubt, formerDoubts: c.formerDoubts,
	})
	if found.wholeModel() == nil {
		return found, nil
	}
	found.loadBalancer.Set(at.LB)
	found.alsoOwned = at.Others
	if found.Reused() {
		return found.reusedForRemoval(ctx, svc, applied)
	}
	params, _ := annotation.Parse(svc.Annotations)
	record := loadRecord(applied, svc, found.wholeModel())
	if found.access, _, err = c.refreshAccess(ctx, svc, params, found.observed, record); err != nil {
		found.access.Invalidate(failureText(err)) // it outlives the CLB, see PlanLeftovers
	}
	return found.unlessUsed(ctx, svc)
}

// unlessUsed reads the listeners of a CLB before it is deleted. One on which somebody else has a listener stays, as an existing one does,
// and so does one without the owner tag of which not all else says that it is the Service's.
func (c clb) unlessUsed(ctx context.Context, svc *corev1.Service) (driver.Balancer, error) {
	lb := &c.loadBalancer.Value
	read, err := observe.Listeners(ctx, c.api, *lb)
	if err != nil {
		return c, err
	}
	c.listeners.Set(read.Listeners)
	if len(othersListeners(svc, c.listeners.Value)) == 0 && isOwn(svc, lb, c.listeners.Value) {
		return c, nil
	}
	return c.readForRemoval(ctx, svc, read)
}

// othersListeners names those listeners of a CLB of the Service's own that are not the Service's.
func othersListeners(svc *corev1.Service, listeners []model.Listener) []string {
	var others []string
	for i := range listeners {
		if l := &listeners[i]; !isOf(svc, l.Description) {
			others = append(others, l.String())
		}
	}
	return others
}

// reusedForRemoval reads an existing CLB, unless it is known.
func (c clb) reusedForRemoval(ctx context.Context, svc *corev1.Service, applied *driver.Record) (driver.Balancer, error) {
	if c.isTrusted() {
		return c, nil
	}
	actual, err := observe.Listeners(ctx, c.api, c.loadBalancer.Value)
	if err != nil {
		return c, err
	}
	return c.readForRemoval(ctx, svc, actual)
}

// readForRemoval reads what else is on an existing CLB than listeners: only what carries marks of the Service is removed.
func (c clb) readForRemoval(ctx context.Context, svc *corev1.Service, actual *model.Model) (driver.Balancer, error) {
	actual.Reused = true
	if err := c.readGroupsBehind(ctx, svc, actual); err != nil {
		return c, err
	}
	list, _, err := observe.AccessList(ctx, c.api, svc, c.accessLists(svc), c.access.Value != nil)
	if err != nil {
		c.access.Invalidate(failureText(err)) // see PlanLeftovers
		return c, nil
	}
	c.access.Set(list)
	return c, nil
}

// readStaying reads what is on a CLB that stays.
func (c *clb) readStaying(ctx context.Context, svc *corev1.Service, lb *alicloud.LoadBalancer, reused bool) error {
	actual, err := observe.Listeners(ctx, c.api, *lb)
	if err != nil {
		return err
	}
	actual.Reused = reused
	return c.readGroupsBehind(ctx, svc, actual)
}

// readGroupsBehind reads the groups of a CLB that stays. Where they cannot be read, the listeners of the Service go all the same: they would
// go on to serve. planLeave decides about the groups. Answers that contradict each other most often agree a moment later, and count as no
// answer when they do not.
func (c *clb) readGroupsBehind(ctx context.Context, svc *corev1.Service, actual *model.Model) error {
	whole, err := observe.Groups(ctx, c.api, actual, mark.ServiceName(svc))
	if err == nil {
		c.groupsUnread = driver.Unread{}
		c.setObserved(whole)
		return nil
	}
	c.groupsUnread = c.groupsUnread.After(err)
	if !driver.IsUnread(err) && !c.groupsUnread.Outlasts(waits.LeftoverUnread) {
		return err
	}
	actual.Groups = c.groups.Value
	c.setObserved(actual)
	c.groups.Invalidate(failureText(err))
	c.unread = map[model.Part]error{model.PartGroups: err}
	return nil
}

// confirmForRemoval reports whether a removal can rely on what is known of the CLB. A CLB of ours is searched for once by its tag before it
// is deleted: somebody may have taken it over. On an existing one, marks say what is removed.
func (c *clb) confirmForRemoval(ctx context.Context, svc *corev1.Service) (bool, error) {
	if !c.isTrusted() || c.ID() == "" {
		return false, nil
	}
	if c.Reused() {
		return true, nil
	}
	found, err := observe.Owned(ctx, c.api, svc)
	lb, others := observe.Among(found, c.ID())
	c.alsoOwned = others
	return lb != nil, err
}

// PlanRemoval implements driver.Balancer. It deletes a CLB of ours; its listeners and groups go with it. From an existing CLB it
// deletes what carries our mark. A CLB that the author of the Service wants to keep only loses what binds it to us.
func (c clb) PlanRemoval(svc *corev1.Service, applied *driver.Record) (driver.Removal, error) {
	actual := c.wholeModel()
	params, _ := annotation.Parse(svc.Annotations)
	removal := driver.Removal{
		Plan: plan{clb: c}, ID: c.ID(), Reused: actual.Reused, Preserved: params.Preserves(),
		Status: statusOf(actual, params, nil, c.ipMode(actual, params)),
	}
	switch {
	case !c.Group.IsZero():
		return c.planGroupRemoval(svc, applied, removal)
	case actual.Reused && removal.Preserved:
		_, searched := actual.LoadBalancer.Tag(mark.TagReused) // for orphans, without which nothing needs the note
		clusterID, proven := c.markedOn(svc, nil)              // its label or annotation alone may lead to the CLB of others
		if searched && proven && slices.Contains(model.ClusterIDsOn(actual, mark.ServiceName(svc)), clusterID) {
			removal.Plan = plan{clb: c, Plan: diff.PreservingOnShared(actual, mark.Preserved(svc, c.config.ClusterID))}
		}
	case actual.Reused:
		if c.former == "" { // one that the Service moves away from may be anybody's
			removal.Kept = c.keptReason(svc)
		}
		clusterID, proven := c.markedOn(svc, nil)
		if !proven {
			return removal, nil // what is there may be another cluster's
		}
		record := loadRecord(applied, svc, actual)
		tags, err := c.shared.TagsNotAskedFor(svc, record.LoadBalancerID, record.TagKeys)
		if err != nil {
			return removal, err
		}
		return c.planLeave(removal, &model.Model{Reused: true, Override: true, RemoveTags: tags}, mark.OwnerOf(svc, clusterID))
	case removal.Preserved:
		removal.Plan = plan{clb: c, Plan: diff.Preserving(actual, mark.Preserved(svc, c.config.ClusterID))}
		removal.Kept = driver.KeptBeside(Product, svc, c.ID(), c.alsoOwned)
	default:
		removal.Plan = plan{clb: c, Plan: diff.Deletion(actual, mark.Tags(svc, c.config.ClusterID)...)}
		removal.Kept = driver.KeptBeside(Product, svc, c.ID(), c.alsoOwned)
	}
	return removal, nil
}

// planLeave plans the removal of what the Service has on a CLB that stays. What somebody else uses stays, too. Groups that cannot be read are
// waited for once all else is gone, and are left behind at last.
func (c clb) planLeave(removal driver.Removal, nothing *model.Model, owner mark.Owner) (driver.Removal, error) {
	nothing.InUse = c.inUse()
	leaving := diff.Diff(nothing, c.wholeModel(), owner.Service, owner.ClusterID)
	switch err := c.unread[model.PartGroups]; {
	case err == nil:
	case c.groupsUnread.Outlasts(waits.LeftoverUnread):
		leaving.Problems = append(leaving.Problems, problem.Newf(problem.ReasonKeptInUse,
			"vServer groups of this Service on CLB %s stay if there are any: they could not be read (%s); if nothing uses them, delete them", c.ID(), failureText(err)))
	case len(leaving.Steps) == 0:
		return removal, err
	}
	removal.Plan = plan{clb: c, Plan: leaving}
	return removal, nil
}

// inUse returns the ids of what the cloud does not delete because somebody else uses it.
func (c clb) inUse() sets.Set[string] {
	used, now := sets.New[string](), time.Now()
	for i := range c.groups.Value {
		if id := c.groups.Value[i].ID; c.answers.Left(id, now) != nil {
			used.Insert(id)
		}
	}
	if list := c.access.Value; list != nil && deploy.IsInUse(c.answers.Left(list.ID, now)) {
		used.Insert(list.ID)
	}
	return used
}

// keptReason returns why a CLB stays in the cloud that may have been created for the Service, empty for one that was not.
func (c clb) keptReason(svc *corev1.Service) string {
	lb := &c.loadBalancer.Value
	others := othersListeners(svc, c.listeners.Value)
	if driver.OwnedBy(svc, lb.Tags) && len(others) > 0 {
		return fmt.Sprintf("CLB %s stays in the cloud, without listeners and vServer groups of this Service: it has listeners that are not this Service's (%s); if nobody uses them, delete it",
			lb.ID, problem.Some(others))
	}
	_, owned := lb.Tag(mark.TagOwner)
	_, reused := lb.Tag(mark.TagReused)
	if owned || reused || c.asksFor(svc, lb.ID) {
		return ""
	}
	return fmt.Sprintf("CLB %s stays in the cloud, without listeners and vServer groups of this Service: its tag %s=%s was removed, so somebody may use it; if nobody does, delete it",
		lb.ID, mark.TagOwner, mark.DefaultName(svc.UID))
}

// Removed implements driver.Balancer. Where there was an access control list, or the search for one found none, it is searched for
// once more before the Service is released.
func (c clb) Removed(removal driver.Removal) (known driver.Balancer, leftovers bool) {
	id := removal.ID
	if removal.Reused {
		id = ""
	}
	c.leftGroup(removal)
	after := observed{
		Known: groups.Known{Presence: c.Presence.AfterRelease(id), Leaving: c.Leaving}, access: c.access, formerDoubts: c.formerDoubts,
	}
	return c.withKnown(after), c.access.Value != nil || c.access.Doubt != "" || c.access.Known()
}

// PlanLeftovers implements driver.Balancer. The access control list outlives its CLB. One that cannot be read does not hold the Service
// for ever, and neither does one that somebody else uses.
func (c clb) PlanLeftovers(ctx context.Context, svc *corev1.Service) (driver.Balancer, driver.Plan, error) {
	nothing := plan{clb: c}
	if params, _ := annotation.Parse(svc.Annotations); params.Preserves() {
		return c, nothing, nil
	}
	record, _ := driver.RecordOn(svc)
	expected := len(annotation.SourceRangesOf(svc)) > 0 || slices.Contains(record.Annotations, driver.RecordedSourceRanges)
	list, _, err := observe.AccessList(ctx, c.api, svc, c.accessLists(svc), expected && !c.access.Known())
	if err != nil && alicloud.IsForbidden(err) && !expected && c.access.Value == nil {
		return c, nothing, nil // whoever may not read lists has made none
	}
	c.listUnread = c.listUnread.After(err)
	switch {
	case err != nil && !c.listUnread.Outlasts(waits.LeftoverUnread):
		return c, nothing, err
	case err != nil:
		return c, c.leavesList("access control list %s, which holds the source ranges of this Service, stays if it exists: it could not be read (%s); if nothing uses it, delete it",
			model.AccessListName(svc.UID), failureText(err)), nil
	case list == nil:
		return c, nothing, nil
	}
	c.access.Set(list)
	switch err = c.answers.Left(list.ID, time.Now()); {
	case deploy.IsInUse(err):
		return c, c.leavesList("%s", diff.ListInUse(list)), nil
	case err != nil:
		return c, c.leavesList("access control list %s, which holds the source ranges of this Service, stays: the cloud does not delete it (%s); if nothing uses it, delete it", list.ID, failureText(err)), nil
	}
	return c, plan{clb: c, Plan: diff.AccessListDeletion(list)}, nil
}

// leavesList is a plan that leaves the access control list, and says so.
func (c clb) leavesList(format string, args ...any) plan {
	return plan{clb: c, Plan: model.Plan{Problems: []problem.Problem{problem.Newf(problem.ReasonKeptInUse, format, args...)}}}
}
