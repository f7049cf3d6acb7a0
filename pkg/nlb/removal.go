package nlb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/diff"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/observe"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/groups"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// RefreshForRemoval implements driver.Balancer.
func (n nlb) RefreshForRemoval(ctx context.Context, svc *corev1.Service, _ *driver.Record) (driver.Balancer, error) {
	known, failures := n.settleJobs(svc, n.observed)
	n = n.withKnown(known)
	n.unread, n.failures = nil, nil
	if failure := errors.Join(failures...); failure != nil {
		return n, failure // the next pass reads what is there and goes on
	}
	if err := n.waitToRemove(); err != nil {
		return n, err
	}
	if n.former != "" {
		return n.refreshFormer(ctx, svc)
	}
	n, err := n.foundForRemoval(ctx, svc)
	if err != nil {
		return n, err
	}
	if !n.Reused() && n.Group.IsZero() {
		n.listeners.Invalidate("the NLB is to be deleted: somebody may have added one")
	}
	known, err = n.readListenersForRemoval(ctx, n.observed)
	if n = n.withKnown(known); err != nil {
		return n, err
	}
	if n, err = n.readGroupsForRemoval(ctx, svc); err != nil {
		return n, err
	}
	n = n.unlessUsed(svc)
	return n, n.leaveFirst()
}

// unlessUsed has a load balancer stay, as an existing one does, on which somebody else has a listener, or which lacks the owner tag while
// not all else says that it is the Service's.
func (n nlb) unlessUsed(svc *corev1.Service) nlb {
	if n.Presence.Present() && !n.Reused() && n.Group.IsZero() &&
		(len(othersListeners(svc, n.listeners.Value)) > 0 || !isOwn(svc, &n.lb.Value, n.listeners.Value)) {
		n.Presence = presence.Found(n.ID(), true)
	}
	return n
}

// leaveFirst is an error while the Service has listeners on other load balancers, which are left before this one is removed. All that were
// known of have been.
func (n nlb) leaveFirst() error {
	if len(n.Leaving) == 0 {
		return nil
	}
	return &problem.WaitError{Reason: "the Service has listeners on other load balancers, too: " + problem.Some(n.Leaving), For: soonPoll}
}

// foundForRemoval finds the load balancer, unless it is known to be deleted: somebody may have taken it over since it was read. It returns
// an error while the NLB is being created.
func (n nlb) foundForRemoval(ctx context.Context, svc *corev1.Service) (nlb, error) {
	if n.Presence.Gone() && n.Presence.WasDeleted() || n.staysFor(svc) {
		return n, nil
	}
	if group, in := n.shared.ForRemoval(svc, n.Known); in {
		found, err := n.foundInGroup(ctx, svc, group, cmp.Or(n.ID(), lastRecord(nil, svc).LoadBalancerID))
		if !errors.Is(err, groups.ErrNotInGroup) {
			return found.awaitingCreation(svc, err)
		}
		n.Group = mark.Group{} // it never was, or the NLB is gone
	}
	at, err := n.locateForRemoval(ctx, svc, n.observed)
	if err != nil {
		if !at.Presence.IsZero() {
			n.Presence = at.Presence
		}
		return n, err
	}
	n.alsoOwned = at.Others
	return n.withKnown(n.withLocation(at)).awaitingCreation(svc, nil)
}

// staysFor reports whether the NLB that the Service is on stays whatever becomes of the Service: an existing one, or one of a group that
// others use. What the Service has there is known, or is read, and the NLB itself needs no search.
func (n nlb) staysFor(svc *corev1.Service) bool {
	if n.Group.IsZero() || !n.Presence.Present() {
		return n.Reused()
	}
	used, err := n.shared.IsUsed(svc, n.Group, n.ID())
	return err == nil && used
}

// awaitingCreation returns an error while the NLB is being created.
func (n nlb) awaitingCreation(svc *corev1.Service, err error) (nlb, error) {
	if err != nil {
		return n, err
	}
	if n.Presence.Present() && n.lb.Value.Status == alicloud.NLBProvisioning {
		n = n.withKnown(n.awaitCreation(svc, n.observed))
		return n, n.waitError("the NLB is being created")
	}
	return n, nil
}

// waitToRemove returns an error while jobs keep the load balancer busy. One that is being created is waited for once it was found.
func (n nlb) waitToRemove() error {
	switch {
	case !n.isBusy(model.TargetLoadBalancer):
		return nil
	case n.Presence.Present() && n.lb.Value.Status == alicloud.NLBDeleting:
		return n.waitError("the NLB is being deleted")
	case len(n.jobs) > 0:
		return n.waitError("a job of the cloud is still running")
	}
	return nil
}

// readListenersForRemoval reads the listeners. Unlike for other passes, what was read before does not do where a read fails: what is not
// known would be left behind.
func (e *engine) readListenersForRemoval(ctx context.Context, known observed) (observed, error) {
	if !known.Presence.Present() || known.listeners.Trusted() {
		return known, nil
	}
	listeners, err := observe.Listeners(ctx, e.api, known.nlbID())
	if alicloud.IsNotFound(err) {
		id := known.nlbID()
		known.Presence = known.Presence.AfterLoss(id)
		return known, e.missing.Unproven(id)
	}
	if err == nil {
		known.listeners.Set(listeners)
	}
	return known, err
}

// readGroupsForRemoval reads the groups. Where neither an earlier read nor a listener names any, one empty list proves nothing: they would
// stay. Groups that cannot be read hold neither the listeners, which would go on to serve, nor the load balancer: see PlanLeftovers. Only
// where the author keeps the load balancer, they are waited for, to lose their tags with it.
func (n nlb) readGroupsForRemoval(ctx context.Context, svc *corev1.Service) (nlb, error) {
	if n.groups.Trusted() || len(n.jobs) > 0 {
		return n, nil
	}
	params, _ := n.Params(svc)
	known := n.observed
	read, err := n.readGroups(ctx, svc, params, known, nil)
	n = n.withKnown(read)
	if err == nil {
		err = n.strays
	}
	n.groupsUnread = n.groupsUnread.After(err)
	switch {
	case driver.IsUnread(err) && (!params.Preserves() || n.groupsUnread.Outlasts(waits.LeftoverUnread)):
		n.unread = map[model.Part]error{model.PartGroups: err}
		return n, nil
	case err != nil, known.groups.Known(), len(n.groups.Value) > 0, !mayHaveHad(svc, known, driver.Labeled(svc)):
		return n, err
	}
	if n.groupsUnseen, err = n.missing.Confirm(n.groupsUnseen, true, "no server groups found"); err != nil {
		n.groups = driver.Part[[]model.Group]{}
	}
	return n, err
}

func (n nlb) waitError(reason string) error {
	return &problem.WaitError{Reason: reason, For: cmp.Or(n.waitTime(), soonPoll)}
}

// locateForRemoval returns what is to be removed. What the annotations ask for counts less than what is there.
func (e *engine) locateForRemoval(ctx context.Context, svc *corev1.Service, known observed) (location, error) {
	params, _ := e.Params(svc)
	lastID, asked := lastIDOf(svc, known), params.Get(annotation.LoadBalancerID)
	if record, _ := driver.RecordOn(svc); slices.Contains(record.Leaving, lastID) {
		lastID = record.LoadBalancerID // that of the label has been left
	}
	if known.Presence.WasReleased() && asked == "" {
		return e.decideAbsence(ctx, svc, known.Presence, known.Presence.ID(), false)
	}
	if own, err := e.ownForRemoval(ctx, svc, known, lastID); err != nil || own.Presence.Present() {
		return own, err
	}
	existing, err := e.existingNLB(ctx, lastID, asked)
	if err == nil && (existing == nil || existing.ID != asked) {
		if own, failure := e.shownNLB(ctx, svc, lastID); failure != nil || own != nil {
			return e.shared.FoundAt(svc, own, false), failure
		}
	}
	switch {
	case err != nil:
		return location{}, err
	case existing == nil:
	case !hasTag(existing, mark.TagGroup) || existing.ID == asked:
		return e.shared.FoundAt(svc, existing, true), nil
	default: // one of a group, with nothing of the Service
		return e.decideAbsence(ctx, svc, known.Presence, "", known.Presence.MaybeCreated())
	}
	return e.decideAbsence(ctx, svc, known.Presence, lastID, mayHaveHad(svc, known, lastID) || asked == "" && known.Presence.Unknown())
}

// ownForRemoval returns the NLB of the Service's own. Where that of the Service is gone, what was found beside it stays, and so does a
// stranger with a copy of the tag.
func (e *engine) ownForRemoval(ctx context.Context, svc *corev1.Service, known observed, lastID string) (location, error) {
	lb, others, err := e.ownedBy(ctx, svc, lastID)
	if err != nil || lb == nil || known.Presence.WasDeleted() && lb.ID != known.Presence.ID() {
		return location{}, err
	}
	last, err := e.besideStranger(ctx, svc, known, lb, lastID)
	switch {
	case err != nil:
		return location{}, err
	case last == nil:
	case driver.OwnedBy(svc, last.Tags): // only the search by tag lacked it
		lb, others = last, []string{lb.ID}
	default: // it has lost the tag, and is treated like an existing one
		return location{}, nil
	}
	own := e.shared.FoundAt(svc, lb, false)
	own.Others = others
	return own, nil
}

// besideStranger returns the last NLB of a Service if it still exists and nothing but the owner tag, which can be copied, gives another one
// to the Service, nil otherwise. One that the manager has created stands in the Record.
func (e *engine) besideStranger(
	ctx context.Context, svc *corev1.Service, known observed, lb *alicloud.NLB, lastID string,
) (*alicloud.NLB, error) {
	record, _ := driver.RecordOn(svc)
	if lastID == "" || lb.ID == lastID || lb.ID == record.Made {
		return nil, nil
	}
	last, err := e.readNLB(ctx, lastID)
	if err != nil || last == nil {
		return nil, err
	}
	owner := e.ownerOf(svc, known)
	listeners, err := observe.Listeners(ctx, e.api, lb.ID)
	if err != nil || slices.ContainsFunc(listeners, func(l model.Listener) bool { return owner.OwnsNLB(model.Text(l.Description)) }) {
		return nil, err
	}
	return last, nil
}

// existingNLB returns the first of the load balancers with these ids that no Service owns, nil if there is none.
func (e *engine) existingNLB(ctx context.Context, ids ...string) (*alicloud.NLB, error) {
	for _, id := range ids {
		lb, err := e.readNLB(ctx, id)
		if err != nil || lb != nil && !hasTag(lb, mark.TagOwner) {
			return lb, err
		}
	}
	return nil, nil
}

// PlanRemoval implements driver.Balancer. It deletes an NLB of ours; its listeners go with it. From an existing one it deletes what
// carries our mark. One that the author of the Service wants to keep only loses what binds it to us. From an existing one that the Service
// leaves for another one, everything goes: the ports are free then.
func (n nlb) PlanRemoval(svc *corev1.Service, applied *driver.Record) (driver.Removal, error) {
	params, _ := n.Params(svc)
	actual := n.wholeModel()
	preserved := params.Preserves() && (n.former == "" || !n.Reused())
	removal := driver.Removal{Plan: plan{nlb: n}, ID: n.ID(), Reused: n.Reused(), Preserved: preserved, Status: statusOf(&n.lb.Value, params)}
	switch {
	case !n.Group.IsZero():
		return n.planGroupRemoval(svc, applied, removal)
	case removal.Reused && removal.Preserved:
		removal.Plan = n.removalPlan(diff.PreservingOnExisting(actual))
	case removal.Reused:
		if n.former == "" { // one that the Service moves away from may be anybody's
			removal.Kept = n.keptReason(svc, params)
		}
		keys, err := n.shared.TagsNotAskedFor(svc, n.ID(), loadRecord(applied, svc, n.observed).TagKeys)
		if err != nil {
			return removal, err
		}
		removal.Plan = n.removalPlan(diff.Leaving(actual, n.ownerOf(svc, n.observed), keys))
	case removal.Preserved:
		removal.Plan = n.removalPlan(diff.Preserving(actual, mark.Preserved(svc, n.config.ClusterID)))
		removal.Kept = driver.KeptBeside(Product, svc, n.ID(), n.alsoOwned)
	default:
		removal.Plan = n.removalPlan(diff.Deletion(actual, mark.Tags(svc, n.config.ClusterID)...))
		removal.Kept = driver.KeptBeside(Product, svc, n.ID(), n.alsoOwned)
	}
	return removal, nil
}

// keptReason returns why an NLB stays in the cloud that was created for the Service, as far as can be seen, empty for one that was not.
func (n nlb) keptReason(svc *corev1.Service, params annotation.Params) string {
	lb, record := &n.lb.Value, lastRecord(nil, svc)
	if others := othersListeners(svc, n.listeners.Value); driver.OwnedBy(svc, lb.Tags) && len(others) > 0 {
		return fmt.Sprintf("NLB %s stays in the cloud, without listeners and server groups of this Service: it has listeners that are not this Service's (%s); if nobody uses them, delete it",
			lb.ID, problem.Some(others))
	}
	if params.Get(annotation.LoadBalancerID) == lb.ID || hasTag(lb, mark.TagPreserved) || !wantsOwn(params) && !n.isShown(svc, lb, record) {
		return ""
	}
	return fmt.Sprintf("NLB %s stays in the cloud, without listeners and server groups of this Service: its tag %s=%s was removed, so somebody may use it; if nobody does, delete it",
		lb.ID, mark.TagOwner, mark.DefaultName(svc.UID))
}

func (n nlb) removalPlan(removal model.Plan) driver.Plan { return plan{nlb: n, Plan: removal} }

// Removed implements driver.Balancer. Groups and the security group outlive the load balancer.
func (n nlb) Removed(removal driver.Removal) (known driver.Balancer, leftovers bool) {
	n.Presence = n.Presence.AfterRelease("")
	return n, !removal.Preserved && (len(n.groups.Value) > 0 || n.access.Value != nil || n.unread[model.PartGroups] != nil)
}

// readLeftovers reads the groups. Where they cannot be read, those that were read before stand. A Service of which none were is held, until
// what there may be is left behind: unread is why.
func (n nlb) readLeftovers(ctx context.Context, svc *corev1.Service, params annotation.Params) (after nlb, unread, err error) {
	if err = n.unread[model.PartGroups]; err == nil {
		var known observed
		known, err = n.rereadGroups(ctx, svc, params)
		n = n.withKnown(known)
	}
	n.groupsUnread = n.groupsUnread.After(err)
	switch {
	case n.strays != nil: // a listener of the Service on another load balancer may go on to serve
		return n, nil, n.strays
	case err == nil || n.groups.Known():
		return n, nil, nil
	case driver.IsUnread(err) && n.groupsUnread.Outlasts(waits.LeftoverUnread):
		return n, err, nil
	}
	return n, nil, err
}

// rereadGroups reads the groups. Those of a load balancer that this process deleted are known, unless they are in doubt: only the number
// of their servers is read, because others may have added some. A listener of others that leads to one keeps the cloud from deleting it,
// which puts them in doubt.
func (n nlb) rereadGroups(ctx context.Context, svc *corev1.Service, params annotation.Params) (observed, error) {
	if !n.groups.Trusted() || !n.Presence.WasDeleted() || n.strays != nil {
		return n.readGroups(ctx, svc, params, n.observed, nil)
	}
	known, groups := n.observed, slices.Clone(n.groups.Value)
	ids := make([]string, len(groups))
	for i := range groups {
		ids[i] = groups[i].ID
	}
	for chunk := range slices.Chunk(ids, alicloud.MaxNLBQuery) {
		found, err := n.api.ListNLBGroups(ctx, alicloud.NLBGroupQuery{IDs: chunk})
		if err != nil {
			return known, fmt.Errorf("read the server groups %v: %w", chunk, err)
		}
		for i := range found {
			at := slices.Index(ids, found[i].ID)
			if at < 0 || found[i].ServerCount == len(groups[at].Servers) {
				continue
			}
			if groups[at].Servers, err = n.api.ListNLBServers(ctx, found[i].ID); err != nil {
				return known, fmt.Errorf("read the servers of %s: %w", found[i].ID, err)
			}
		}
	}
	known.groups.Value = groups
	return known, nil
}

// deletable returns the groups of the Service without those that the cloud has refused to delete for a while, which stay.
func (n nlb) deletable() (rest *model.Model, kept []problem.Problem) {
	rest = &model.Model{Access: n.access.Value}
	stays := func(kind, id string) bool {
		err := n.memory.Left(id)
		if err != nil {
			kept = append(kept,
				problem.Newf(problem.ReasonKeptInUse,
					"%s %s, which the Service does not need any more, stays: the cloud does not delete it (%s); if nothing uses it, delete it", kind, id,
					alicloud.Lasting(err)))
		}
		return err != nil
	}
	for i := range n.groups.Value {
		if !stays("server group", n.groups.Value[i].ID) {
			rest.Groups = append(rest.Groups, n.groups.Value[i])
		}
	}
	if rest.Access != nil && stays("security group", rest.Access.ID) {
		rest.Access = nil
	}
	return rest, kept
}

// PlanLeftovers implements driver.Balancer.
func (n nlb) PlanLeftovers(ctx context.Context, svc *corev1.Service) (driver.Balancer, driver.Plan, error) {
	params, _ := n.Params(svc)
	if params.Preserves() {
		return n, plan{nlb: n}, nil
	}
	if len(n.jobs) > 0 {
		return n, plan{nlb: n}, n.waitError("a job of the cloud is still running")
	}
	n, groupsUnread, err := n.readLeftovers(ctx, svc, params)
	if err == nil {
		err = n.leaveFirst()
	}
	if err != nil {
		return n, plan{nlb: n}, err
	}
	var unread error
	record, _ := driver.RecordOn(svc)
	if mayHaveAccess(svc, record) || n.access.Value != nil {
		known, err := n.searchAccess(ctx, svc, n.observed)
		if n = n.withKnown(known); err != nil && !driver.IsUnread(err) {
			return n, plan{nlb: n}, err
		}
		n.accessUnread = n.accessUnread.After(err)
		switch {
		case n.accessUnread.Outlasts(waits.LeftoverUnread):
			n.access, unread = driver.Part[*model.Access]{}, err
		case err != nil:
			return n, plan{nlb: n}, err
		}
	}
	rest, kept := n.deletable()
	if unread != nil {
		kept = append(kept, problem.Newf(problem.ReasonKeptInUse,
			"security group %s, which holds the source ranges of this Service, stays if it exists: it could not be read (%s); if nothing uses it, delete it",
			cmp.Or(svc.Labels[driver.LabelSecurityGroupID], mark.DefaultName(svc.UID)), alicloud.Lasting(unread)))
	}
	if groupsUnread != nil {
		kept = append(kept, problem.Newf(problem.ReasonKeptInUse,
			"server groups of this Service with the tag %s=%s stay if there are any: they could not be read (%s); if nothing uses them, delete them",
			mark.TagOwner, mark.DefaultName(svc.UID), alicloud.Lasting(groupsUnread)))
	}
	leftovers := diff.Leftovers(rest, n.ownerOf(svc, n.observed))
	leftovers.Problems = slices.Concat(leftovers.Problems, n.besideAccess(), kept)
	return n, plan{nlb: n, Plan: leftovers}, nil
}
