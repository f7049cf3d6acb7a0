package nlb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/observe"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/groups"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// location is the NLB that a Service is on, if it is present.
type location = groups.Location[alicloud.NLB]

// lastIDOf returns the load balancer that the Service has, or had, empty for none.
func lastIDOf(svc *corev1.Service, known observed) string {
	return cmp.Or(known.Presence.ID(), driver.Labeled(svc))
}

// locateNLB returns the NLB of a Service as it is: the one of the annotation, else one of its own by tag, by label and by name. A Service
// moves when the annotation changes, and leaves what it had once the other one serves. Without the annotation it stays on an existing one
// until its annotations say which zones one of its own is to be in. adopted says that the Service had an NLB before this program saw it.
// With an error, the location may say what is known all the same.
func (e *engine) locateNLB(ctx context.Context, of driver.Request, known observed) (location, error) {
	if group, in := e.shared.Wanted(of.Service, of.Params, known.Group); in {
		return e.shared.Locate(ctx, of, group, known.Known)
	}
	if leaves := leavesGroup(of.Service, known); leaves != nil {
		return e.leaveGroup(ctx, of, known, leaves)
	}
	return e.locateOutside(ctx, of.Service, of.Params, known, of.Adopted)
}

// locateOutside returns the NLB of a Service that is in no group.
func (e *engine) locateOutside(
	ctx context.Context, svc *corev1.Service, params annotation.Params, known observed, adopted bool,
) (location, error) {
	lastID, asked := lastIDOf(svc, known), params.Get(annotation.LoadBalancerID)
	if asked != "" {
		return e.locateAsked(ctx, svc, known, lastID, asked, adopted)
	}
	current, leaves, err := e.locateCurrent(ctx, svc, params, known, lastID)
	if err != nil || current.Presence.Present() {
		return current, err
	}
	if !leaves {
		return e.decideAbsence(ctx, svc, known.Presence, lastID, mayHaveHad(svc, known, lastID) || adopted && known.Presence.Unknown())
	}
	if existing, failure := e.stayBefore(ctx, svc, lastID); failure != nil || existing.Presence.Present() {
		return existing, failure
	}
	gone, err := e.decideAbsence(ctx, svc, known.Presence, lastID, known.Presence.MaybeCreated())
	gone.Leaves, gone.From = []string{lastID}, lastID
	return gone, err
}

// locateCurrent returns the NLB that a Service without the annotation is on: the one that is known, else one of its own, else an existing
// one that the annotation named before. Its presence is zero when none of them is there, which proves nothing yet. leaves says that the
// Service is to leave an existing one for one of its own.
func (e *engine) locateCurrent(
	ctx context.Context, svc *corev1.Service, params annotation.Params, known observed, lastID string,
) (current location, leaves bool, err error) {
	leaves = known.Presence.Reused() && wantsOwn(params)
	if known.Presence.Present() && !leaves {
		if current, err = e.locateByID(ctx, svc, known.Presence.ID(), known.Presence.Reused()); err != nil || current.Presence.Present() {
			return current, false, err
		}
	}
	own, _, err := e.ownedBy(ctx, svc, lastID)
	if err != nil || own != nil || known.Presence.Present() {
		return e.shared.FoundAt(svc, own, false), leaves, err
	}
	if own, err = e.shownNLB(ctx, svc, lastID); err != nil || own != nil {
		return e.shared.FoundAt(svc, own, false), false, err
	}
	return e.locateExisting(ctx, svc, params, lastID)
}

// locateByID looks after the load balancer that the Service is on. Its presence is zero when it is not there, which proves nothing yet.
func (e *engine) locateByID(ctx context.Context, svc *corev1.Service, id string, reused bool) (location, error) {
	lb, err := e.readNLB(ctx, id)
	if lb == nil || err != nil {
		return location{}, err
	}
	if reason := e.refusedByPolicy(svc, lb); reused && reason != "" {
		return location{}, errNotReusable(lb.ID, reason)
	}
	return e.shared.FoundAt(svc, lb, reused), nil
}

// wantsOwn reports whether the annotations ask for a load balancer of the Service's own: what cannot be an id may be meant to be one.
func wantsOwn(params annotation.Params) bool {
	return params.Has(annotation.ZoneMaps) && !params.Refused(annotation.LoadBalancerID)
}

// locateExisting looks after an existing load balancer that the Service was on before its annotations changed.
func (e *engine) locateExisting(
	ctx context.Context, svc *corev1.Service, params annotation.Params, lastID string,
) (existing location, leaves bool, err error) {
	lb, err := e.readNLB(ctx, lastID)
	if err != nil || lb == nil || hasTag(lb, mark.TagOwner) {
		return location{}, false, err
	}
	if hasTag(lb, mark.TagGroup) { // it is there, and no loss
		record, _ := driver.RecordOn(svc)
		return location{}, record.UsesExisting(lb.ID) && wantsOwn(params), nil
	}
	if used, failure := e.usedExisting(ctx, svc, lb); failure != nil || !used {
		return location{}, false, failure
	}
	if wantsOwn(params) {
		return location{}, true, nil
	}
	if err = e.checkExisting(ctx, svc, lb); err != nil {
		return location{}, false, err
	}
	return e.shared.FoundAt(svc, lb, true), false, nil
}

// usedExisting reports whether the Service was on an existing load balancer. Its label alone does not say so: whoever can edit Services can
// also set that, where the annotation is forbidden.
func (e *engine) usedExisting(ctx context.Context, svc *corev1.Service, lb *alicloud.NLB) (bool, error) {
	if record, _ := driver.RecordOn(svc); record.UsesExisting(lb.ID) {
		return true, nil
	}
	listeners, err := e.api.ListNLBListeners(ctx, []string{lb.ID})
	if err != nil {
		return false, fmt.Errorf("read the listeners of NLB %s: %w", lb.ID, err)
	}
	return e.wasOn(svc, lb, listeners), nil
}

// locateAsked finds the load balancer that the annotation names. Where the Service may not use it, it stays on the one that it is on.
func (e *engine) locateAsked(
	ctx context.Context, svc *corev1.Service, known observed, lastID, asked string, adopted bool,
) (location, error) {
	if known.Presence.Present() && known.Presence.ID() == asked {
		if current, err := e.locateByID(ctx, svc, asked, known.Presence.Reused()); err != nil || current.Presence.Present() {
			return current, err
		}
	}
	own, err := e.ownBefore(ctx, svc, known, lastID, adopted)
	if err != nil {
		return location{}, err
	}
	if own != nil && own.ID == asked {
		return e.shared.FoundAt(svc, own, false), nil
	}
	lb, missing, err := e.reusableNLB(ctx, svc, asked, known)
	if own == nil {
		if doubt, unproven := e.shared.NoneCreated(ctx, svc, known.Known, adopted); unproven != nil {
			return location{Presence: doubt, AskedMissing: missing}, errors.Join(err, unproven) // what the author can do something about comes first
		}
	}
	if err != nil {
		stays, refused := e.stayOn(ctx, svc, own, known, lastID, asked, err)
		stays.AskedMissing = missing
		return stays, refused
	}
	moved := e.shared.FoundAt(svc, lb, true)
	if own != nil {
		moved.Leaves = []string{own.ID}
	}
	return moved, nil
}

// ownBefore returns the load balancer of the Service's own that it may be on, nil for none.
func (e *engine) ownBefore(ctx context.Context, svc *corev1.Service, known observed, lastID string, adopted bool) (*alicloud.NLB, error) {
	if adopted && !known.Presence.Present() || known.Presence.MaybeCreated() || known.Presence.Present() && !known.Presence.Reused() {
		own, _, err := e.ownedBy(ctx, svc, lastID)
		return own, err
	}
	return nil, nil
}

// stayOn keeps the Service on what it is on, its own or another load balancer, where it may not use the one that it asks for. One that it
// has begun to leave serves it until it is elsewhere.
func (e *engine) stayOn(
	ctx context.Context, svc *corev1.Service, own *alicloud.NLB, known observed, lastID, asked string, err error,
) (location, error) {
	refused, ok := errors.AsType[*problem.ConfigError](err)
	if !ok {
		return location{}, err
	}
	others := known.LeavingOf(svc)
	if own == nil && slices.ContainsFunc(others, mark.IsGroup) { // what it shares with a group, it does not have by id
		if at, failure := e.stayInGroup(ctx, svc, others, asked, refused); failure != nil || at.Presence.Present() {
			return at, failure
		}
		others = nil
	}
	stays := e.shared.FoundAt(svc, own, false)
	for _, id := range append([]string{lastID}, others...) {
		if !stays.Presence.Present() && id != asked {
			stays = e.usableLocation(ctx, svc, id)
		}
	}
	if !stays.Presence.Present() {
		return location{}, err
	}
	stays.Refusal = refused
	return stays, nil
}

// usableLocation is the location of a load balancer that the Service may be on: one of its own, or an existing one. The label gives nothing
// to the Service: whoever can edit Services can also set it.
func (e *engine) usableLocation(ctx context.Context, svc *corev1.Service, id string) location {
	lb, err := e.readNLB(ctx, id)
	switch {
	case err != nil || lb == nil:
		return location{}
	case driver.OwnedBy(svc, lb.Tags):
		return e.shared.FoundAt(svc, lb, false)
	case hasTag(lb, mark.TagOwner) || e.checkExisting(ctx, svc, lb) != nil:
		return location{}
	}
	return e.shared.FoundAt(svc, lb, true)
}

// decideAbsence decides what it means that a Service has an NLB neither by id nor by tag. missed says that it should have one, or may.
func (e *engine) decideAbsence(
	ctx context.Context, svc *corev1.Service, was presence.Presence, lastID string, missed bool,
) (location, error) {
	decided, err := e.missing.Decide(ctx, was, presence.Absence{
		Service: svc.UID, ID: lastID, NeverCreated: !missed, MaybeCreated: was.MaybeCreated(),
	})
	return location{Presence: decided, Missed: missed}, err
}

// mayHaveHad reports whether anything says that there was a load balancer: without that, one that is not found was never made.
func mayHaveHad(svc *corev1.Service, known observed, lastID string) bool {
	return lastID != "" || known.Presence.MaybeCreated() || len(svc.Status.LoadBalancer.Ingress) > 0
}

// readNLB returns a load balancer by its id, nil when it does not exist. One that is being deleted is waited for.
func (e *engine) readNLB(ctx context.Context, id string) (*alicloud.NLB, error) {
	if id == "" {
		return nil, nil
	}
	lb, err := e.api.GetNLB(ctx, id)
	switch {
	case alicloud.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read NLB %s: %w", id, err)
	case lb.Status == alicloud.NLBDeleting:
		return nil, &problem.WaitError{Reason: "NLB " + id + " is being deleted", For: latePoll}
	}
	return &lb, nil
}

// ownedBy returns the load balancer of the Service's own, by its owner tag: as a search shows it, else the one of the label or that was
// created for the Service as its Record says, because the index of tags lags. Where several have the tag, others are the ids of those that
// the label does not name.
func (e *engine) ownedBy(ctx context.Context, svc *corev1.Service, lastID string) (lb *alicloud.NLB, others []string, err error) {
	owner := mark.DefaultName(svc.UID)
	found, err := observe.Owned(ctx, e.api, owner)
	if err != nil {
		return nil, nil, err
	}
	if len(found) == 0 {
		lb, err = e.findUnlisted(ctx, svc, lastID)
		return lb, nil, err
	}
	for i := range found {
		if found[i].ID == lastID {
			lb = &found[i]
		} else {
			others = append(others, found[i].ID)
		}
	}
	if lb != nil {
		return lb, others, nil
	}
	lb, err = singleOf(found, owner)
	return lb, nil, err
}

// findUnlisted returns the first load balancer of the Service that a search by tag does not show, by its owner tag or the Record, nil where
// there is none.
func (e *engine) findUnlisted(ctx context.Context, svc *corev1.Service, lastID string) (*alicloud.NLB, error) {
	record, _ := driver.RecordOn(svc)
	for _, id := range slices.Compact([]string{lastID, record.Made}) {
		lb, err := e.readNLB(ctx, id)
		if err != nil || lb != nil && (driver.OwnedBy(svc, lb.Tags) || (driver.Evidence{ID: id, Name: lb.Name, Tags: lb.Tags}).MadeFor(svc)) {
			return lb, err
		}
	}
	return nil, nil
}

// singleOf returns the only load balancer of those found, nil for none. Which of several is the Service's, only a human can tell.
func singleOf(found []alicloud.NLB, owner string) (*alicloud.NLB, error) {
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return &found[0], nil
	}
	var ids []string
	for i := range found {
		ids = append(ids, found[i].ID)
	}
	return nil, &problem.ConfigError{Field: "tag " + mark.TagOwner,
		Reason: fmt.Sprintf("several NLBs have the value %s: %s; remove the tag from those that are not this Service's", owner,
			problem.Some(ids))}
}

// reusableNLB returns the load balancer that the annotation names, or why it cannot be used. One answer does not prove that it does not
// exist: the Service would wait for minutes. But where not every load balancer may be used, to wait would tell that there is none. missing
// is what is known of that now.
func (e *engine) reusableNLB(
	ctx context.Context, svc *corev1.Service, id string, known observed,
) (lb *alicloud.NLB, missing presence.Missing, err error) {
	if lb, err = e.readNLB(ctx, id); err != nil {
		return nil, presence.Missing{}, err
	}
	if lb == nil {
		if known.Presence.ID() == id || e.config.Policy.Reuse() == policy.ReuseAny {
			if missing, err = e.missing.Confirm(known.askedMissing, true, "NLB "+id+" not found"); err != nil {
				return nil, missing, err
			}
		}
		// Still missing in the next pass, it is known to be.
		return nil, known.askedMissing, errNotReusable(id, e.config.Policy.Missing(e.config.ClusterID, svc.Namespace))
	}
	if err = e.checkExisting(ctx, svc, lb); err != nil {
		return nil, presence.Missing{}, err
	}
	return lb, presence.Missing{}, nil
}

// checkExisting fails if the Service may not use an existing load balancer, whatever gives it to the Service: the annotation, or the label.
func (e *engine) checkExisting(ctx context.Context, svc *corev1.Service, lb *alicloud.NLB) error {
	reason, err := e.refusesReuse(ctx, svc, lb)
	if err == nil && reason != "" {
		err = errNotReusable(lb.ID, reason)
	}
	return err
}

func errNotReusable(id, reason string) error {
	return &problem.ConfigError{Field: annotation.LoadBalancerID.Key(), Reason: "NLB " + id + " " + reason,
		Event: problem.ReasonLoadBalancerNotReusable}
}

func hasTag(lb *alicloud.NLB, key string) bool {
	_, ok := lb.Tag(key)
	return ok
}
