package slb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/groups"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/observe"
)

// location is the CLB that a Service is on, if it is present.
type location = groups.Location[alicloud.LoadBalancer]

// locateCLB returns the CLB of a Service as it is.
//
// A Service stays on the CLB that it is on, whatever its annotation says later, unless it has the annotation [annotation.Move]: moving changes
// its address. So that CLB comes first, then the one of the annotation. adopted says that the Service had a CLB before this program saw it. With an error, the
// location may say what is known all the same.
func (e *engine) locateCLB(ctx context.Context, of driver.Request, known observed) (location, error) {
	if group, in := e.shared.Wanted(of.Service, of.Params, known.Group); in {
		return e.shared.Locate(ctx, of, group, known.Known)
	}
	return e.locateOutside(ctx, of.Service, of.Params, known, of.Adopted)
}

// locateOutside returns the CLB of a Service that is in no group.
func (e *engine) locateOutside(
	ctx context.Context, svc *corev1.Service, params annotation.Params, known observed, adopted bool,
) (location, error) {
	asked, lastID := params.Get(annotation.LoadBalancerID), cmp.Or(known.Presence.ID(), driver.Labeled(svc))
	current, err := e.locateCurrent(ctx, svc, known, lastID, asked, adopted)
	if err == nil && asksToMove(params, current.Presence) {
		return e.moveOutside(ctx, svc, params, known, current, adopted)
	}
	if err != nil || !current.Presence.IsZero() {
		return current, err
	}
	if asked != "" {
		leaves := current.Leaves
		if leaves == nil {
			leaves = known.leftGroup()
		}
		if doubt, unproven := e.shared.NoneCreated(ctx, svc, known.Known, adopted); unproven != nil {
			refused := e.refusesCLB(ctx, svc, params, asked) // what the author can do something about comes first
			return location{Presence: doubt, Leaves: leaves}, errors.Join(refused, unproven)
		}
		return e.locateAsked(ctx, svc, params, asked, known.Known.ShownFirst(leaves))
	}
	if len(current.Leaves) > 0 {
		return e.locateAfterGroup(ctx, svc, known, known.Known.ShownFirst(current.Leaves), adopted)
	}
	return e.decideAbsence(ctx, svc, known.Presence, lastID, mayHaveHad(svc, known, lastID, adopted))
}

// locateAfterGroup returns the CLB of its own that a Service gets which leaves the CLB of a group, or that CLB while it cannot get one.
// What the Service shows is that of its group, and says nothing about one of its own.
func (e *engine) locateAfterGroup(
	ctx context.Context, svc *corev1.Service, known observed, leaves []string, adopted bool,
) (location, error) {
	if back, err := e.neverLeft(ctx, svc, known.Known.Shows(), leaves); err != nil || back.Presence.Present() {
		return back, err
	}
	from, err := e.formerInGroup(ctx, svc, known, leaves)
	if err != nil {
		return location{}, err
	}
	if from != nil {
		if refused := e.shared.OwnRefused(svc); refused != nil {
			stays := e.shared.FoundInGroup(from, e.shared.StayingRefused(from.ID, mark.Group{}, refused))
			stays.Leaves = leaves
			return stays, nil
		}
	}
	record, _ := driver.RecordOn(svc)
	decided, err := e.decideAbsence(ctx, svc, known.ownPresence(), "",
		known.maybeCreated(false) || adopted && len(record.Leaving) > 0)
	if decided.Leaves = leaves; from != nil {
		decided.From = from.ID
	}
	return decided, err
}

// neverLeft returns the CLB outside of groups that a Service shows, which has only begun to move into a group that its annotation names no
// more. It stays there: moving to one of its own would change its address.
func (e *engine) neverLeft(ctx context.Context, svc *corev1.Service, shows string, leaves []string) (location, error) {
	if shows == "" {
		return location{}, nil
	}
	lb, by, err := e.hasOn(ctx, svc, shows)
	if err != nil || lb == nil {
		return location{}, err
	}
	back := e.shared.FoundAt(svc, lb, by != claimOwn) // one that is an existing one for all that anybody knows is not deleted with the Service
	back.Leaves = leaves
	return back, nil
}

// formerInGroup returns the CLB of a group on which a Service was, nil where it is gone, or where only its label says so: whoever can edit
// Services can also set that, and would get listeners on a CLB of others.
func (e *engine) formerInGroup(ctx context.Context, svc *corev1.Service, known observed, leaves []string) (*alicloud.LoadBalancer, error) {
	lb, err := e.readCLB(ctx, leaves[0])
	if err != nil || lb == nil {
		return nil, err
	}
	group, in := mark.GroupOn(lb.Tags)
	if !in {
		return nil, nil
	}
	record, _ := driver.RecordOn(svc)
	if known.Presence.ID() == lb.ID || record.Group == group.Mark() {
		return lb, nil
	}
	if marked, err := e.marksOn(ctx, svc, lb); err != nil || !marked {
		return nil, err
	}
	return lb, nil
}

// locateCurrent returns the CLB that a Service is on already: the one that is known, else one of our own by its tag, else the one
// that the label names. Its presence is zero when none of them is there, which proves nothing yet.
func (e *engine) locateCurrent(
	ctx context.Context, svc *corev1.Service, known observed, lastID, asked string, adopted bool,
) (location, error) {
	wasThere := known.Presence.Present()
	var leaves []string
	if wasThere {
		at, err := e.stillThere(ctx, svc, lastID, known.Presence.Reused())
		if err != nil || !at.Presence.IsZero() {
			return at, err
		}
		leaves = at.Leaves
	}
	if asked == "" || adopted || known.maybeCreated(false) {
		if lb, _, err := e.findOwn(ctx, svc, lastID); err != nil || lb != nil {
			own := e.shared.FoundAt(svc, lb, false)
			own.Leaves = leaves
			return own, err
		}
	}
	if wasThere {
		return location{Leaves: leaves}, nil
	}
	return e.locateShown(ctx, svc, known, lastID, asked, adopted)
}

// findOwn returns the CLB of the Service's own, by its owner tag: as a search shows it, else the one that was created for the Service as
// its Record says. The index of tags lags.
func (e *engine) findOwn(ctx context.Context, svc *corev1.Service, lastID string) (lb *alicloud.LoadBalancer, others []string, err error) {
	lb, others, err = observe.Find(ctx, e.api, svc, lastID)
	record, _ := driver.RecordOn(svc)
	if err != nil || lb != nil || record.Made == "" || record.Made == lastID { // that one is read anyway
		return lb, others, err
	}
	lb, err = e.readCLB(ctx, record.Made)
	if err != nil || lb == nil || !driver.OwnedBy(svc, lb.Tags) && !(driver.Evidence{ID: lb.ID, Name: lb.Name, Tags: lb.Tags}).MadeFor(svc) {
		return nil, nil, err
	}
	return lb, nil, nil
}

// locateShown returns the CLB that the Service shows: by its label, and by its address where the annotation names none.
func (e *engine) locateShown(
	ctx context.Context, svc *corev1.Service, known observed, lastID, asked string, adopted bool,
) (location, error) {
	if lastID != "" && lastID != asked {
		at, err := e.byID(ctx, svc, lastID, adopted)
		if err != nil || !at.Presence.IsZero() || at.Leaves != nil {
			return at, err
		}
	}
	if asked != "" {
		return location{}, nil
	}
	return e.byAddress(ctx, svc, known, adopted)
}

// stillThere returns the CLB that a Service is on, if it is there. One of a group that the Service has left is only what it leaves.
func (e *engine) stillThere(ctx context.Context, svc *corev1.Service, id string, reused bool) (location, error) {
	lb, err := e.readCLB(ctx, id)
	if err != nil || lb == nil {
		return location{}, err
	}
	if leaves := leavesGroup(lb); leaves != nil && !reused {
		return location{Leaves: leaves}, nil
	}
	return e.shared.FoundAt(svc, lb, reused), nil
}

// leavesGroup returns what a Service leaves that is in no group any more and was on a CLB of one, nil for any other CLB.
func leavesGroup(lb *alicloud.LoadBalancer) []string {
	if group, in := mark.GroupOn(lb.Tags); in {
		return []string{lb.ID, group.Mark()}
	}
	return nil
}

// locateForRemoval returns what is to be removed. What the annotations ask for counts less than what is there: they may be
// invalid, and deletion must work all the same. A CLB without the owner tag counts as an existing one, unless all else says that it is
// the Service's: somebody may have taken it over, so that only what carries the marks goes.
func (e *engine) locateForRemoval(ctx context.Context, svc *corev1.Service, known observed) (location, error) {
	params, _ := annotation.Parse(svc.Annotations)
	lastID := cmp.Or(known.Presence.ID(), driver.Labeled(svc))
	if own, err := e.ownForRemoval(ctx, svc, known, lastID); err != nil || own.Presence.Present() {
		return own, err
	}
	asked := params.Get(annotation.LoadBalancerID)
	missing := mayHaveHad(svc, known, lastID, asked == "")
	ids := slices.Compact([]string{lastID, asked})
	for _, id := range slices.DeleteFunc(ids, func(id string) bool { return id == "" }) {
		lb, claimed, err := e.claimedCLB(ctx, svc, id, id == lastID)
		switch {
		case err != nil:
			return location{}, err
		case claimed:
			return e.seenForRemoval(ctx, svc, lb)
		case lb != nil:
			// It exists, and nothing of it is the Service's. That says nothing about a CLB of the Service's own.
			missing = missing && id != lastID && (lastID != "" || known.maybeCreated(false))
		}
	}
	return e.absentForRemoval(ctx, svc, known, lastID, missing)
}

// ownForRemoval returns the CLB of the Service's own. Where that of the Service is gone, what was found beside it stays, and so does a
// stranger with a copy of the tag.
func (e *engine) ownForRemoval(ctx context.Context, svc *corev1.Service, known observed, lastID string) (location, error) {
	lb, others, err := e.findOwn(ctx, svc, lastID)
	if err != nil || lb == nil {
		return location{}, err
	}
	if had := known.Presence; had.ID() != "" && lb.ID != had.ID() && !had.WasReused() && !had.MaybeCreated() {
		return location{}, nil
	}
	if stranger, err := e.isStranger(ctx, svc, lb, lastID); stranger || err != nil {
		return location{}, err
	}
	own := e.shared.FoundAt(svc, lb, false)
	own.Others = others
	return own, nil
}

// seenForRemoval is the location of a CLB on which something is the Service's: its own one, or one that is treated like an existing one.
func (e *engine) seenForRemoval(ctx context.Context, svc *corev1.Service, lb *alicloud.LoadBalancer) (location, error) {
	if driver.OwnedBy(svc, lb.Tags) {
		return e.shared.FoundAt(svc, lb, false), nil
	}
	listeners, err := e.api.DescribeListeners(ctx, lb.ID)
	if err != nil {
		return location{}, fmt.Errorf("read the listeners of %s: %w", lb.ID, err)
	}
	return e.shared.FoundAt(svc, lb, !isOwn(svc, lb, observe.New(*lb, listeners[lb.ID]).Listeners)), nil
}

// absentForRemoval is [engine.decideAbsence], unless the address that the Service shows leads to its CLB.
func (e *engine) absentForRemoval(ctx context.Context, svc *corev1.Service, known observed, lastID string, missed bool) (location, error) {
	lb, by, err := e.atAddress(ctx, svc, known.Presence)
	if err != nil {
		return location{}, err
	}
	if lb != nil && by != claimGroup {
		return e.seenForRemoval(ctx, svc, lb)
	}
	return e.decideAbsence(ctx, svc, known.Presence, lastID, missed)
}

// mayHaveHad reports whether a Service had a CLB, or may have had one whose id nobody knows.
func mayHaveHad(svc *corev1.Service, known observed, lastID string, adopted bool) bool {
	return lastID != "" || len(svc.Status.LoadBalancer.Ingress) > 0 || known.maybeCreated(adopted)
}

// claimedCLB returns a CLB, nil where there is none, and whether it or something on it is the Service's. One that the Service had may be
// its own although nothing shows it any more.
func (e *engine) claimedCLB(ctx context.Context, svc *corev1.Service, id string, had bool) (*alicloud.LoadBalancer, bool, error) {
	lb, err := e.readCLB(ctx, id)
	if err != nil || lb == nil {
		return nil, false, err
	}
	claim, err := e.claimOf(ctx, svc, lb)
	// One that the Service uses by its id, without being in the group, or that got the tag of another Service.
	if err == nil && (claim == claimGroup || claim == claimOther) {
		marked, failure := e.marksOn(ctx, svc, lb)
		return lb, marked, failure
	}
	return lb, claim.holdsCLB() || had && claim == claimNone, err
}

// byID returns the CLB that the Service names by its label or had a moment ago, if it is the Service's although the search by tag
// did not find it. A CLB that is there and that nothing gives to the Service or to another one is an error: it may be the Service's,
// and a second one in its place would change the address.
func (e *engine) byID(ctx context.Context, svc *corev1.Service, id string, adopted bool) (location, error) {
	lb, err := e.readCLB(ctx, id)
	if err != nil || lb == nil {
		return location{}, err
	}
	claim, err := e.claimOf(ctx, svc, lb)
	if err != nil {
		return location{}, err
	}
	if claim == claimNone {
		return location{}, &problem.ConfigError{
			Field: "label " + driver.LabelLoadBalancerID,
			Reason: fmt.Sprintf("CLB %s exists and carries neither the tag %s nor anything of this Service, so no other CLB is created; restore the tag %s=%s, or remove the label",
				id, mark.TagOwner, mark.TagOwner, mark.DefaultName(svc.UID)),
		}
	}
	return e.claimedBy(ctx, svc, lb, claim, adopted)
}

// byAddress returns the CLB whose address the Service shows, if it is the Service's although neither tag, name nor id leads to it.
func (e *engine) byAddress(ctx context.Context, svc *corev1.Service, known observed, adopted bool) (location, error) {
	lb, by, err := e.atAddress(ctx, svc, known.Presence)
	if err != nil || lb == nil {
		return location{}, err
	}
	return e.claimedBy(ctx, svc, lb, by, adopted)
}

// decideAbsence decides what it means that a Service has a CLB neither by id nor by tag. missed says that it should have one, or may.
func (e *engine) decideAbsence(
	ctx context.Context, svc *corev1.Service, was presence.Presence, lastID string, missed bool,
) (location, error) {
	decided, err := e.missing.Decide(ctx, was, presence.Absence{
		Service: svc.UID, ID: lastID, NeverCreated: !missed, MaybeCreated: lastID == "",
	})
	return location{Presence: decided}, err
}

// readCLB returns a CLB by its id, nil when it does not exist.
func (e *engine) readCLB(ctx context.Context, id string) (*alicloud.LoadBalancer, error) {
	lb, err := e.api.DescribeLoadBalancer(ctx, id)
	if alicloud.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read CLB %s: %w", id, err)
	}
	return &lb, nil
}

// refusesCLB returns why the Service may not use the CLB that the annotation names, as far as that shows without its listeners.
func (e *engine) refusesCLB(ctx context.Context, svc *corev1.Service, params annotation.Params, id string) error {
	lb, err := e.namedCLB(ctx, svc, id)
	if err != nil {
		return err
	}
	return e.checkExisting(ctx, svc, params, lb)
}

// namedCLB returns the CLB that the annotation names. Whether the Service may use it, [engine.checkExisting] says.
func (e *engine) namedCLB(ctx context.Context, svc *corev1.Service, id string) (*alicloud.LoadBalancer, error) {
	lb, err := e.readCLB(ctx, id)
	if err != nil {
		return nil, err
	}
	if lb == nil {
		return nil, errNotReusable(id, e.config.Policy.Missing(e.config.ClusterID, svc.Namespace))
	}
	return lb, nil
}
