package slb

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/refusal"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sharing"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// staying is why a Service stays where it is although its annotation asks for another place.
type staying struct {
	problem problem.Problem
	// to is the group that it would move to, zero for a CLB of its own.
	to mark.Group
}

// stayWake is how soon a Service that stays checks whether it may move. That takes no call unless it may.
const stayWake = time.Minute

// movePause is how long a move that the cloud refused is not tried again. Each attempt takes a place under the rate limit that all Services share,
// and a pass in which the old place gets no update.
var movePause = refusal.Pause{First: time.Minute, Least: time.Minute, Longest: 8 * time.Minute}

// move names a move that was refused. The zero value is any move for which the account would need one more CLB.
type move struct {
	service types.UID
	// to is the mark of the group, empty for a CLB of the Service's own, and asks what the annotations ask for.
	to, asks string
}

// anyCreation stands for all moves for which the account would need one more CLB.
var anyCreation move

var errCreationBlocked = errors.New("an annotation on which a new CLB depends is not accepted")

// moveOf names the move of a Service to a group, or to a CLB of its own where the group is zero.
func (e *engine) moveOf(svc *corev1.Service, to mark.Group) move {
	named := move{service: svc.UID, asks: e.paramsOf(svc).Fingerprint()}
	if !to.IsZero() {
		named.to = to.Mark()
	}
	return named
}

// moveRefused returns why a Service cannot move to a CLB that is there, nil where nothing is known to refuse it.
func (e *engine) moveRefused(svc *corev1.Service, to mark.Group) error {
	return e.moves.Err(e.moveOf(svc, to), time.Now())
}

// creationRefused returns why a Service cannot move to a new CLB, nil where nothing is known to refuse it. The annotations of decides say what that
// would be.
func (e *engine) creationRefused(svc *corev1.Service, to mark.Group, decides *corev1.Service) error {
	params := e.paramsOf(decides)
	if err := e.Refuse(params); err != nil {
		return err
	}
	if params.Refuses(annotation.ScopeCreation) || params.Refused(annotation.BackendType) {
		return errCreationBlocked
	}
	if err := e.moves.Err(anyCreation, time.Now()); err != nil {
		return err
	}
	return e.moveRefused(svc, to)
}

// mayMove reports whether a Service that stays may move by now. An unreadable group changes nothing.
func (e *engine) mayMove(svc *corev1.Service, to mark.Group, known observed) bool {
	if to.IsZero() {
		return known.group.IsZero() || e.paramsOf(svc).Has(annotation.LoadBalancerID) || e.creationRefused(svc, to, svc) == nil
	}
	place, leader, err := e.decide(to, svc)
	switch {
	case err != nil || place.Full || len(place.Taken) > 0:
		return false
	case place.ID == "":
		return e.creationRefused(svc, to, leader) == nil
	}
	return e.moveRefused(svc, to) == nil
}

// refusedInGroup returns why a Service cannot move to its place in a group. lb is the CLB there, nil for a new one.
func (e *engine) refusedInGroup(svc *corev1.Service, group mark.Group, leader *corev1.Service, lb *alicloud.LoadBalancer) error {
	if lb == nil {
		if err := e.creationRefused(svc, group, leader); err != nil {
			return err
		}
		return e.exposedBy(svc, group, e.paramsOf(leader).AddressType())
	}
	if err := e.exposedBy(svc, group, lb.AddressType); err != nil {
		e.noteRefusedMove(e.moveOf(svc, group), err)
		return err
	}
	return e.moveRefused(svc, group)
}

// overflowRefused returns why a Service that is on a CLB of its group cannot move to the next one, nil where it does not have to.
func (e *engine) overflowRefused(svc *corev1.Service, group mark.Group, at string) error {
	if at == "" || !annotation.Overflows(svc) {
		return nil
	}
	return e.creationRefused(svc, group, svc)
}

// staysOutside returns why a Service stays on the CLB with the id, and does not move to its place in a group. there is the CLB of that place, nil for a
// new one.
func (e *engine) staysOutside(svc *corev1.Service, group mark.Group, place sharing.Place, leader *corev1.Service, there *alicloud.LoadBalancer, id string) *staying {
	if place.Full || len(place.Taken) > 0 {
		return stayingWithoutPorts(id, group, place)
	}
	if err := e.refusedInGroup(svc, group, leader, there); err != nil {
		return stayingRefused(id, group, err)
	}
	return nil
}

// exposedBy fails if a CLB of the group is public and the Service asks for a private one. Other differences are reported, and this one would let
// everybody in.
func (e *engine) exposedBy(svc *corev1.Service, group mark.Group, addressType string) error {
	if addressType != alicloud.AddressInternet || e.paramsOf(svc).Get(annotation.AddressType) != alicloud.AddressIntranet {
		return nil
	}
	return &problem.ConfigError{
		Field: annotation.Group.Key(), Event: problem.ReasonLoadBalancerNotReusable,
		Reason: fmt.Sprintf("the CLB of load balancer group %s is public, and the Service asks for a private one (%s: intranet); choose another group",
			group, annotation.AddressType),
	}
}

// stayingWithoutPorts says that a Service stays because it would not get its ports.
func stayingWithoutPorts(id string, to mark.Group, place sharing.Place) *staying {
	return &staying{to: to, problem: problem.Newf(problem.ReasonListenerConflict,
		"%s: the Service stays on CLB %s, because load balancer group %s %s; choose another port or group, or set %s: \"true\"",
		annotation.Group, id, to, refusalOf(place), annotation.GroupOverflow)}
}

// stayingRefused says that a Service stays because the move was refused.
func stayingRefused(id string, to mark.Group, err error) *staying {
	target := "a CLB of its own"
	if !to.IsZero() {
		target = "load balancer group " + to.String()
	}
	return &staying{to: to, problem: problem.Newf(problem.ReasonMoveRefused,
		"the Service stays on CLB %s, which serves it as before, because it cannot move to %s: %s; remove the cause, or restore the annotation %s; "+
			"the manager tries the move again every few minutes",
		id, target, alicloud.Lasting(err), annotation.Group)}
}

// in reports whether a Service is to be in the group that it is in: it does not stay there for want of another place.
func (s *staying) in(group mark.Group) bool { return s == nil || s.to.Is(group) }

// problems reports that the Service is not where its annotation asks for.
func (s *staying) problems() []problem.Problem {
	if s == nil {
		return nil
	}
	return []problem.Problem{s.problem}
}

// stayingParams are the annotations of a Service as if they named the existing CLB on which it stays. Without that, it would give up there what it
// has.
func (o *observed) stayingParams(svc *corev1.Service, params annotation.Params) annotation.Params {
	if o.stays == nil || !o.presence.Reused() {
		return params
	}
	params = params.With(annotation.LoadBalancerID, o.presence.ID())
	isOwn := func(l model.Listener) bool {
		owner, _, ok := mark.Parse(l.Description)
		return ok && owner == mark.ServiceName(svc)
	}
	if slices.ContainsFunc(o.listeners.Value, isOwn) {
		params = params.With(annotation.ForceOverrideListeners, "true")
	}
	return params
}

// noteCreation remembers whether the cloud takes one more CLB. A Service that was refused one and has another place goes back to that at once.
func (c *clb) noteCreation(svc *corev1.Service, done model.Plan, refused error, err error) error {
	if refused != nil && c.from != "" && !c.maybeMade() {
		failed := c.moveOf(svc, c.group)
		if alicloud.IsQuota(refused) && !alicloud.IsVSwitchFull(refused) {
			failed = anyCreation
		}
		c.noteRefusedMove(failed, refused)
		c.loadBalancer.Invalidate("the cloud refuses another CLB")
		return &problem.WaitError{Reason: "the Service stays on " + c.from, For: stayAtOnce}
	}
	did := func(op model.Op) bool {
		return slices.ContainsFunc(done.Steps, func(s model.Step) bool { return s.Op == op })
	}
	switch {
	case err == nil && did(model.OpDeleteLoadBalancer):
		c.moves.Drop(anyCreation)
	case c.ID() != "" && did(model.OpCreateLoadBalancer):
		c.allowMoves(c.moveOf(svc, c.group))
	}
	return err
}

// allowMoves forgets what was refused, once a move has shown that the cloud takes another CLB: of all Services that were to move to the same group.
func (e *engine) allowMoves(made move) {
	e.moves.DropFunc(func(m move, _ error) bool { return m == anyCreation || m == made || made.to != "" && m.to == made.to })
}

// stayAtOnce is for a pass that the next one follows, which goes on where the Service stays.
const stayAtOnce = time.Millisecond

// maybeMade reports whether an earlier attempt may have created the CLB.
func (c *clb) maybeMade() bool {
	return c.presence.MaybeCreated() || !c.group.IsZero() && c.shared.Of(c.group.Mark()).MaybeCreated
}

// noteRefusedMove remembers that a move was refused. Of several Services at once, one prolongs the pause.
func (e *engine) noteRefusedMove(what move, err error) {
	if now := time.Now(); e.moves.Err(what, now) == nil {
		e.moves.Add(what, err, movePause, now)
	}
}

// wakeWhileStaying has a Service that stays check from time to time whether it may move.
func (c *clb) wakeWhileStaying(shown service.Shown) service.Shown {
	if c.stays != nil && (shown.Wake == 0 || shown.Wake > stayWake) {
		shown.Wake = stayWake
	}
	return shown
}
