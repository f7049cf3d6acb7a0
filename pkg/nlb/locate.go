package nlb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/observe"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// get returns a load balancer by its id, nil when it does not exist. One that is being deleted is waited for.
func (n *nlb) get(ctx context.Context, id string) (*alicloud.NLB, error) {
	if id == "" {
		return nil, nil
	}
	lb, err := n.api.GetNLB(ctx, id)
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

// see takes over a load balancer that an answer showed.
func (n *nlb) see(svc *corev1.Service, lb *alicloud.NLB, reused bool) {
	n.missing.Found(svc.UID, lb.ID)
	if lb.ID != n.lb.Value.ID {
		n.listeners, n.lb = service.Part[[]model.Listener]{}, service.Part[alicloud.NLB]{}
		n.groups.Invalidate("the Service is on another load balancer")
	}
	n.presence = presence.Found(lb.ID, reused)
	n.lb.Set(*lb)
}

// locate finds the NLB of a Service: the one of the annotation, else one of its own by tag, by label and by name. A Service moves when
// the annotation changes, and leaves what it had once the other one serves. Without the annotation it stays on an existing one until its
// annotations say which zones one of its own is to be in.
func (n *nlb) locate(ctx context.Context, svc *corev1.Service, params annotation.Params, adopted bool) error {
	lastID, asked := cmp.Or(n.presence.ID(), svc.Labels[service.LabelLoadBalancerID]), params.Get(annotation.LoadBalancerID)
	if asked != "" {
		return n.locateAsked(ctx, svc, lastID, asked, adopted)
	}
	moves := n.leavesExisting(params)
	found, leaves, err := false, false, error(nil)
	if n.presence.Present() && !moves {
		found, err = n.locateByID(ctx, svc, n.presence.ID(), n.presence.Reused())
	}
	if !found && err == nil {
		found, err = n.locateOwned(ctx, svc, lastID)
	}
	if !found && err == nil {
		found, leaves, err = n.locateExisting(ctx, svc, params, lastID)
	}
	if found || err != nil {
		return err
	}
	return n.locateNone(ctx, svc, lastID, moves || leaves, adopted)
}

// leavesExisting reports whether a Service on an existing load balancer is to have one of its own.
func (n *nlb) leavesExisting(params annotation.Params) bool {
	return n.presence.Reused() && params.Has(annotation.ZoneMaps)
}

// locateExisting looks after an existing load balancer that the Service is on, or was on before its annotations changed. leaves says that
// it is there, and the Service is to have one of its own.
func (n *nlb) locateExisting(ctx context.Context, svc *corev1.Service, params annotation.Params, lastID string) (found, leaves bool, err error) {
	if n.presence.Present() || lastID == "" {
		return false, false, nil
	}
	lb, err := n.get(ctx, lastID)
	if err != nil || lb == nil || hasTag(lb, mark.TagOwner) {
		return false, false, err
	}
	if params.Has(annotation.ZoneMaps) {
		return false, true, nil
	}
	if err = n.admit(ctx, svc, lb); err != nil { // anybody who may write Services may write their labels
		return false, false, err
	}
	n.see(svc, lb, true)
	return true, false, nil
}

// locateNone decides what it means that no load balancer was found. moves says that the Service leaves an existing one.
func (n *nlb) locateNone(ctx context.Context, svc *corev1.Service, lastID string, moves, adopted bool) error {
	if moves {
		n.formerID = lastID
	}
	missed := !moves && (n.mayHave(svc, lastID) || adopted && n.presence.Unknown())
	return n.absent(ctx, svc, lastID, missed)
}

// locateByID looks after the load balancer that the Service is on.
func (n *nlb) locateByID(ctx context.Context, svc *corev1.Service, id string, reused bool) (found bool, err error) {
	lb, err := n.get(ctx, id)
	if lb == nil || err != nil {
		return false, err
	}
	if reason := n.refusedByPolicy(svc, lb); reused && reason != "" {
		return false, errNotReusable(lb.ID, reason)
	}
	n.see(svc, lb, reused)
	return true, nil
}

// locateAsked finds the load balancer that the annotation names. Where the Service may not use it, it stays on the one that it is on.
func (n *nlb) locateAsked(ctx context.Context, svc *corev1.Service, lastID, asked string, adopted bool) error {
	n.refusal = nil
	if n.presence.Present() && n.presence.ID() == asked {
		if found, err := n.locateByID(ctx, svc, asked, n.presence.Reused()); found || err != nil {
			return err
		}
	}
	own, err := n.ownBefore(ctx, svc, lastID, adopted)
	if err != nil {
		return err
	}
	if own != nil && own.ID == asked {
		n.see(svc, own, false)
		return nil
	}
	lb, err := n.reusable(ctx, svc, asked)
	if err != nil {
		return n.stay(ctx, svc, own, lastID, asked, err)
	}
	if own != nil {
		n.leftID, n.left = own.ID, service.Part[*alicloud.NLB]{}
	} else if n.formerID = ""; lastID != asked {
		n.formerID = lastID
	}
	n.see(svc, lb, true)
	return nil
}

// ownBefore returns the load balancer of the Service's own that it may be on, nil for none.
func (n *nlb) ownBefore(ctx context.Context, svc *corev1.Service, lastID string, adopted bool) (*alicloud.NLB, error) {
	if adopted && !n.presence.Present() || n.presence.Present() && !n.presence.Reused() {
		return n.ownedBy(ctx, svc, lastID)
	}
	return nil, nil
}

// stay keeps the Service on what it is on, its own or another existing load balancer, where it may not use the one that it asks for.
func (n *nlb) stay(ctx context.Context, svc *corev1.Service, own *alicloud.NLB, lastID, asked string, err error) error {
	refused, ok := errors.AsType[*problem.ConfigError](err)
	if !ok {
		return err
	}
	reused := own == nil
	if reused && lastID != "" && lastID != asked {
		// The label, which anybody may write who may write Services, gives nothing to the Service either.
		if own, _ = n.get(ctx, lastID); own != nil && (hasTag(own, mark.TagOwner) || n.admit(ctx, svc, own) != nil) {
			own = nil
		}
	}
	if own == nil {
		return err
	}
	n.see(svc, own, reused)
	n.refusal = refused
	return nil
}

// locateOwned looks for the load balancer of the Service's own.
func (n *nlb) locateOwned(ctx context.Context, svc *corev1.Service, lastID string) (found bool, err error) {
	lb, err := n.ownedBy(ctx, svc, lastID)
	if lb != nil {
		n.see(svc, lb, false)
	}
	return lb != nil, err
}

// mayHave reports whether anything says that there was a load balancer: without that, one that is not found was never made.
func (n *nlb) mayHave(svc *corev1.Service, lastID string) bool {
	return lastID != "" || n.presence.MaybeCreated() || len(svc.Status.LoadBalancer.Ingress) > 0
}

// ownedBy returns the load balancer of the Service's own: by its tag, else the one of the label, else by its name.
func (n *nlb) ownedBy(ctx context.Context, svc *corev1.Service, lastID string) (*alicloud.NLB, error) {
	owner := mark.DefaultName(svc.UID)
	found, err := observe.Owned(ctx, n.api, owner)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return n.untagged(ctx, svc, lastID)
	}
	if at := slices.IndexFunc(found, func(lb alicloud.NLB) bool { return lb.ID == lastID }); at >= 0 {
		return &found[at], nil
	}
	return single(found, owner)
}

// untagged returns the load balancer of the Service's own where the search by tag shows none: the index of tags lags, and a human may
// have removed the tag.
func (n *nlb) untagged(ctx context.Context, svc *corev1.Service, lastID string) (*alicloud.NLB, error) {
	owner := mark.DefaultName(svc.UID)
	lb, err := n.get(ctx, lastID)
	if err != nil {
		return nil, err
	}
	if lb != nil && (observe.Tagged(lb.Tags, alicloud.Tag{Key: mark.TagOwner, Value: owner}) || lb.Name == owner && lb.ModificationProtectionReason == mark.ProtectionReason) {
		return lb, nil
	}
	if !n.mayHave(svc, lastID) {
		return nil, nil
	}
	found, err := observe.Named(ctx, n.api, owner)
	if err != nil {
		return nil, err
	}
	return single(found, owner)
}

// single returns the only load balancer of those found, nil for none. Which of several is the Service's, only a human can tell.
func single(found []alicloud.NLB, owner string) (*alicloud.NLB, error) {
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
	return nil, &problem.ConfigError{Field: "tag " + mark.TagOwner, Reason: fmt.Sprintf("several NLBs have the value %s: %s; remove the tag from those that are not this Service's", owner, problem.Some(ids))}
}

// absent decides what it means that a Service has an NLB neither by id nor by tag. missed says that it should have one, or may.
func (n *nlb) absent(ctx context.Context, svc *corev1.Service, lastID string, missed bool) (err error) {
	n.presence, err = n.missing.Decide(ctx, n.presence, presence.Absence{
		Service: svc.UID, ID: lastID, NeverCreated: !missed, MaybeCreated: n.presence.MaybeCreated(),
	})
	if missed && n.presence.Gone() {
		n.lb, n.listeners = service.Part[alicloud.NLB]{}, service.Part[[]model.Listener]{}
	}
	return err
}

// reusable returns the load balancer that the annotation names, or why it cannot be used.
func (n *nlb) reusable(ctx context.Context, svc *corev1.Service, id string) (*alicloud.NLB, error) {
	lb, err := n.get(ctx, id)
	if err != nil {
		return nil, err
	}
	if lb == nil {
		return nil, errNotReusable(id, "does not exist; the manager creates no replacement")
	}
	if err := n.admit(ctx, svc, lb); err != nil {
		return nil, err
	}
	return lb, nil
}

// admit fails if the Service may not use an existing load balancer, whatever gives it to the Service: the annotation, or the label.
func (n *nlb) admit(ctx context.Context, svc *corev1.Service, lb *alicloud.NLB) error {
	reason, err := n.refusesReuse(ctx, svc, lb)
	if err == nil && reason != "" {
		err = errNotReusable(lb.ID, reason)
	}
	return err
}

func errNotReusable(id, reason string) error {
	return &problem.ConfigError{Field: annotation.LoadBalancerID.Key(), Reason: "NLB " + id + " " + reason, Event: problem.ReasonLoadBalancerNotReusable}
}

func hasTag(lb *alicloud.NLB, key string) bool {
	_, ok := lb.Tag(key)
	return ok
}
