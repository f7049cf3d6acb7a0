package slb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/groups"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/observe"
)

// refreshed is what [clb.Refresh] finds, part by part.
type refreshed struct {
	clb observed
	// record is what was applied to the CLB, nil where the CLB could not be read.
	record *driver.Record
	// whole says that the whole CLB was read, some that a part was.
	whole, some bool
	// together says that the CLB was read with those of all other Services, at a start.
	together bool
	// charge is the internet charge type that was last asked for.
	charge deploy.PendingCharge
	// unread are the parts that could not be read. Their last values stand; a part without one is an error.
	unread map[model.Part]error
}

// Refresh implements driver.Balancer.
func (c clb) Refresh(ctx context.Context, of driver.Request) (driver.Refreshed, error) {
	if of.Edited {
		c.answers.TryAgain(c.ID())
	}
	c.observed = c.doubtGroup(of, c.observed)
	if c.Presence.IsZero() {
		record, _ := driver.RecordOn(of.Service)
		c.Leaving, c.Showing = record.Leaving, driver.ShownBy(of.Service)
	}
	found, err := c.refreshParts(ctx, of, c.observed, c.charge)
	if err == nil && found.clb.wholeModel() == nil && len(found.unread) > 0 {
		err = driver.JoinUnread(found.unread) // nothing is created while anything is unknown
	}
	if found.clb.Presence.Present() {
		found.clb.addresses = found.clb.addresses.begunWith(of.Service, &found.clb.loadBalancer.Value, of.Params)
	}
	after := c.withKnown(found.clb)
	after.unread, after.before = found.unread, nil
	if of.DriftDue && c.isTrusted() {
		after.before = c.wholeModel()
	}
	result := driver.Refreshed{
		Balancer: after, Applied: found.record, Whole: found.whole, Some: found.some, Together: found.together,
		Unread: driver.JoinUnread(found.unread),
	}
	if found.whole {
		result.Vanished = found.clb.Presence.Vanished()
	}
	return result, err
}

// refreshParts re-reads those parts of the CLB that are in doubt or due for drift detection.
func (e *engine) refreshParts(ctx context.Context, of driver.Request, known observed, charge deploy.PendingCharge) (refreshed, error) {
	found := refreshed{clb: known, charge: charge, unread: map[model.Part]error{}}
	if of.DriftDue && !of.Unsettled && known.comparisons > 0 {
		if e.isUnchanged(ctx, of, known, charge) {
			found.clb, found.whole, found.some = known.afterComparison(), true, true
			e.refreshFewHave(ctx, of, &found)
			return found, nil
		}
		of.Unsettled = true // what was read for others is older than what differs
	}
	found.clb = known.doubtOutdated(of)
	err := e.refreshLoadBalancer(ctx, of, &found)
	if err == nil && !found.together {
		err = e.refreshContents(ctx, of, &found)
	}
	if alicloud.HasCode(err, model.CodeLoadBalancerGone) && known.loadBalancer.Trusted() && !of.DriftDue {
		return e.refreshParts(ctx, of, known.invalidateAll("the CLB is gone"), charge)
	}
	if err != nil {
		return found, errors.Join(driver.JoinUnread(found.unread), err) // what cannot be read may be why
	}
	if found.whole {
		found.clb.comparisons = someComparisons()
	}
	e.refreshFewHave(ctx, of, &found)
	return found, nil
}

// doubtOutdated puts in doubt what the request says is to be read.
func (o observed) doubtOutdated(of driver.Request) observed {
	asksForGroups := o.asksForGroups(of.Params)
	if of.DriftDue {
		o = o.invalidateAll("due for drift detection")
	}
	if asksForGroups {
		o.groups.Invalidate("an annotation names a group that was not there")
	}
	return o
}

// refreshLoadBalancer finds the CLB.
func (e *engine) refreshLoadBalancer(ctx context.Context, of driver.Request, found *refreshed) error {
	if found.clb.loadBalancer.Trusted() {
		return nil
	}
	clb := &found.clb
	if preloaded, err := e.takePreload(ctx, of, found); preloaded || err != nil {
		return err
	}
	at, err := e.locateCLB(ctx, of, *clb)
	switch {
	case err != nil && !at.Presence.IsZero():
		clb.Presence, clb.Group = at.Presence, at.Group
		*clb = clb.withLeaving(at.Leaves)
		return err
	case err != nil && clb.standsDespite(err):
		found.unread[model.PartLoadBalancer] = err
		return nil
	case err != nil:
		return err
	}
	if at.Presence.Reused() {
		if err := e.admitOrFollow(ctx, of, &at.LB, found); err != nil {
			return err
		}
	}
	found.some, found.whole = true, true
	found.charge.Correct(&at.LB, time.Now())
	if at.LB.ID != clb.loadBalancer.Value.ID {
		*clb = observed{Known: clb.Elsewhere(presence.Presence{}), access: clb.access}
		clb.access.Invalidate("the Service is on another CLB")
	}
	clb.Presence, clb.Group, clb.Stays, clb.From = at.Presence, at.Group, at.Stays, at.From
	clb.loadBalancer.Set(at.LB)
	if refused := found.unread[model.PartLoadBalancer]; refused != nil {
		clb.loadBalancer.Invalidate(failureText(refused)) // it is admitted again without any event
	}
	// Without this place, which a move that was begun may have noted as one to leave.
	*clb = clb.withLeaving(groups.LeftBefore(of.Service, at.Group, at.Leaves))
	clb.addresses.askAgain()
	e.observeTogether(ctx, of, found)
	return nil
}

// standsDespite reports whether what is known of the CLB stands although it cannot be read: its groups follow the endpoints, and its
// listeners the ports of the Service. One that the Service is about to move to serves nobody yet.
func (o observed) standsDespite(err error) bool {
	return driver.IsUnread(err) && !alicloud.HasCode(err, model.CodeLoadBalancerGone) && o.Presence.Present() && o.From == "" &&
		o.listeners.Known() && o.groups.Known()
}

// admitOrFollow fails if the Service may not use an existing CLB. One that is on it nevertheless, because the policy, or a tag of the CLB,
// changed later, keeps what it has there: that follows its endpoints, and only what is new is refused. Otherwise its dead backends would
// take traffic for as long as nobody decides.
func (e *engine) admitOrFollow(ctx context.Context, of driver.Request, lb *alicloud.LoadBalancer, found *refreshed) error {
	refused := e.checkExisting(ctx, of.Service, of.Params, lb)
	if _, config := errors.AsType[*problem.ConfigError](refused); !config {
		return refused
	}
	if on, err := e.marksOn(ctx, of.Service, lb); err != nil || !on {
		return errors.Join(refused, err)
	}
	found.unread[model.PartLoadBalancer] = refused
	return nil
}

// takePreload takes over the CLB of the Service's own that was read with those of all other Services. It reports whether there is one.
func (e *engine) takePreload(ctx context.Context, of driver.Request, found *refreshed) (bool, error) {
	clb := &found.clb
	_, grouped := e.shared.Wanted(of.Service, of.Params, clb.Group)
	pre, ok := e.preloads.Take(mark.DefaultName(of.Service.UID))
	if !ok || clb.wholeModel() != nil || grouped {
		return false, nil
	}
	model, err := pre.observeGroups(ctx, e.api, of.Service)
	if err != nil {
		return false, err
	}
	found.charge.Correct(&model.LoadBalancer, time.Now())
	clb.setObserved(model)
	clb.groupsAsked, clb.extensions, clb.access, clb.addresses = of.Params.Get(annotation.VGroupPort), driver.Part[struct{}]{}, driver.Part[*alicloud.AccessList]{}, elastic{}
	clb.groupsUnlisted, found.whole, found.some, found.together = true, true, true, true
	return true, nil
}

// observeTogether completes the first read of a CLB of a group with the listeners that were read for all its Services. Where they lack one
// of the Service, which proves nothing, or the read of a group fails, the Service reads all on its own.
func (e *engine) observeTogether(ctx context.Context, of driver.Request, found *refreshed) {
	clb := &found.clb
	if of.Applied != nil || clb.Group.IsZero() {
		return
	}
	read, ok := e.readings.Fresh(clb.Presence.ID(), driftWindow)
	if _, complete := groupsInUse(observe.New(read.lb, read.listeners), of.Service); !ok || !complete || len(clb.Leaving) > 0 {
		return
	}
	if model, err := read.observeGroups(ctx, e.api, of.Service); err == nil {
		clb.listeners.Set(model.Listeners)
		clb.groups.Set(model.Groups)
		clb.groupsUnlisted, found.together = true, true
	}
}

// refreshContents reads the listeners and groups of the CLB.
func (e *engine) refreshContents(ctx context.Context, of driver.Request, found *refreshed) error {
	clb := &found.clb
	if !clb.Presence.Present() {
		return nil
	}
	found.whole = found.whole && !clb.listeners.Trusted() && !clb.groups.Trusted()
	if err := e.refreshListeners(ctx, found); err != nil {
		return err
	}
	if err := e.refreshGroups(ctx, of, found); err != nil {
		return err
	}
	if clb.Presence.Reused() {
		return e.admitContents(of.Service, clb)
	}
	return nil
}

// refreshListeners reads the listeners. Where that fails, those of the last read stand.
func (e *engine) refreshListeners(ctx context.Context, found *refreshed) error {
	clb := &found.clb
	if clb.listeners.Trusted() {
		return nil
	}
	read, err := observe.Listeners(ctx, e.api, clb.loadBalancer.Value)
	if err != nil {
		return found.keepPart(model.PartListeners, clb.listeners.Known(), err)
	}
	clb.listeners.Set(read.Listeners)
	clb.extensions, found.some = driver.Part[struct{}]{}, true
	return nil
}

// refreshGroups reads the vServer groups. Where that fails, those of the last read stand.
func (e *engine) refreshGroups(ctx context.Context, of driver.Request, found *refreshed) error {
	clb := &found.clb
	if clb.groups.Trusted() {
		return nil
	}
	actual := &model.Model{LoadBalancer: clb.loadBalancer.Value, Listeners: clb.trustedListeners(), Reused: clb.Presence.Reused()}
	observed, err := observe.Groups(ctx, e.api, actual, mark.ServiceName(of.Service))
	if err == nil {
		err = e.confirmGroups(ctx, clb, observed.Groups, mark.ServiceName(of.Service))
	}
	if errors.Is(err, observe.ErrContradiction) {
		clb.listeners.Invalidate("they and the groups contradict each other")
	}
	if err != nil {
		return found.keepPart(model.PartGroups, clb.groups.Known(), err)
	}
	clb.groups.Set(observed.Groups)
	clb.groupsUnlisted = false
	clb.groupsAsked, found.some = of.Params.Get(annotation.VGroupPort), true
	return nil
}

// confirmGroups is an error while a group of the Service is missing in a list, and that it is gone is not proven: by id, too, and again
// some seconds later. A second group in its place would count towards the quota of backend servers.
func (e *engine) confirmGroups(ctx context.Context, clb *observed, found []model.Group, svc types.NamespacedName) error {
	missing := false
	for _, known := range clb.groups.Value {
		marked, _, ok := mark.Parse(known.Name)
		if !ok || marked != svc || slices.ContainsFunc(found, func(g model.Group) bool { return g.ID == known.ID }) {
			continue
		}
		_, err := e.api.DescribeVServerGroup(ctx, known.ID)
		switch {
		case err == nil:
			return fmt.Errorf("%w: the list of the groups of %s lacks %s, which is there", observe.ErrContradiction, clb.loadBalancer.Value.ID,
				known.ID)
		case !alicloud.IsNotFound(err):
			return fmt.Errorf("read group %s: %w", known.ID, err)
		}
		missing = true
	}
	var err error
	clb.groupsMissing, err = e.missing.Confirm(clb.groupsMissing, missing, "a vServer group of the Service was not found")
	return err
}

// keepPart notes that a part could not be read and that its last value stands. It returns the error where there is none, or where the CLB
// itself may be gone.
func (r *refreshed) keepPart(name model.Part, known bool, err error) error {
	if !known || alicloud.HasCode(err, model.CodeLoadBalancerGone) {
		return err
	}
	r.unread[name] = err
	return nil
}

// refreshFewHave reads what few Services have, and only where there may be any.
func (e *engine) refreshFewHave(ctx context.Context, of driver.Request, found *refreshed) {
	clb := &found.clb
	of.Params = clb.stayingParams(of.Service, of.Params)
	record := loadRecord(of.Applied, of.Service, clb.wholeModel())
	if !clb.extensions.Trusted() && mayHaveExtensions(of.Params, clb.wholeModel(), record) {
		observed := clb.wholeModel()
		if err := observe.Extensions(ctx, e.api, observed, mark.ServiceName(of.Service)); err != nil {
			found.unread[model.PartExtensions] = err
		} else {
			clb.listeners.Value = observed.Listeners
			clb.extensions.Set(struct{}{})
		}
	}
	found.record = &record
	list, missing, err := e.refreshAccess(ctx, of.Service, of.Params, *clb, record)
	if err == nil { // a second list would let in the same addresses, and count towards the quota of lists
		clb.accessMissing, err = e.missing.Confirm(clb.accessMissing, missing, "the access control list of the Service was not found")
	}
	if err != nil {
		found.unread[model.PartAccess] = err
	} else {
		clb.access = list
	}
}

// refreshAccess reads the list of the source ranges where there may be one. missing is as in [observe.AccessList].
func (e *engine) refreshAccess(ctx context.Context, svc *corev1.Service, params annotation.Params, clb observed, record driver.Record) (
	list driver.Part[*alicloud.AccessList], missing bool, err error,
) {
	access := clb.access
	if access.Trusted() {
		return access, false, nil
	}
	if !mayHaveAccessList(svc, params, clb.wholeModel(), record) {
		return driver.Part[*alicloud.AccessList]{Value: access.Value}, false, nil
	}
	seen, missing, err := observe.AccessList(ctx, e.api, svc, clb.accessLists(svc), access.Value != nil || clb.wholeModel() != nil)
	if err == nil {
		access.Set(seen)
	}
	return access, missing, err
}
