package groups

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/refusal"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sharing"
)

// StayReason is why a Service stays where it is although its annotation asks for another place.
type StayReason struct {
	problem problem.Problem
	// to is the group that it would move to, zero for a load balancer of its own.
	to mark.Group
}

// stayWake is how soon a Service that stays checks whether it may move. That takes no call unless it may.
const stayWake = time.Minute

// MovePause is how long a move that the cloud refused is not tried again. Each attempt takes a place under the rate limit that all Services
// share, and a pass in which the old place gets no update.
var MovePause = refusal.Pause{First: time.Minute, Least: time.Minute, Longest: waits.MoveRefused}

// move names a move that was refused. The zero value is any move for which the account would need one more load balancer.
type move struct {
	service types.UID
	// to is the mark of the group, empty for a load balancer of the Service's own, and asks what the annotations ask for.
	to, asks string
}

// anyCreation stands for all moves for which the account would need one more load balancer.
var anyCreation move

var errCreationBlocked = errors.New("an annotation on which a new load balancer depends is not accepted")

// moveOf names the move of a Service to a group, or to a load balancer of its own where the group is zero.
func moveOf(svc member, to mark.Group) move {
	named := move{service: svc.UID, asks: svc.fingerprint}
	if !to.IsZero() {
		named.to = to.Mark()
	}
	return named
}

// moveRefused returns why a Service cannot move to a load balancer that is there, nil where nothing is known to refuse it.
func (g *Groups[LB]) moveRefused(svc member, to mark.Group) error {
	return g.moves.Err(moveOf(svc, to), time.Now())
}

// OwnRefused returns why a Service cannot move to a new load balancer of its own, nil where nothing is known to refuse it.
func (g *Groups[LB]) OwnRefused(svc *corev1.Service) error {
	own := g.readMember(svc)
	return g.creationRefused(own, mark.Group{}, own)
}

// creationRefused returns why a Service cannot move to a new load balancer, nil where nothing is known to refuse it. The annotations of
// decides say what that would be.
func (g *Groups[LB]) creationRefused(svc member, to mark.Group, decides member) error {
	if err := g.Cloud.Refuse(decides.params); err != nil {
		return err
	}
	if decides.params.Refuses(annotation.ScopeCreation) || decides.params.Refused(annotation.BackendType) {
		return errCreationBlocked
	}
	if err := g.moves.Err(anyCreation, time.Now()); err != nil {
		return err
	}
	return g.moveRefused(decides, to)
}

// mayMove reports whether a Service that stays may move by now. An unreadable group changes nothing.
func (g *Groups[LB]) mayMove(svc *corev1.Service, to mark.Group, known Known) bool {
	if to.IsZero() {
		own := g.readMember(svc)
		if own.params.Has(annotation.LoadBalancerID) {
			return g.moveRefused(own, to) == nil
		}
		return known.Group.IsZero() && !known.Presence.Reused() || g.creationRefused(own, to, own) == nil
	}
	place, own, leader, err := g.decidePlace(to, svc)
	switch {
	case err != nil || place.Full:
		return false
	case known.Group.Is(to) && place.ID == known.Presence.ID():
		return !place.Kept
	case len(place.Taken) > 0:
		return false
	case place.ID == "":
		return g.creationRefused(own, to, leader) == nil
	}
	return g.moveRefused(own, to) == nil
}

// refusedInGroup returns why a Service cannot move to its place in a group. lb is the load balancer there, nil for a new one.
func (g *Groups[LB]) refusedInGroup(svc member, group mark.Group, leader member, lb *LB) error {
	if lb == nil {
		if err := g.creationRefused(svc, group, leader); err != nil {
			return err
		}
		return g.refusesSharing(svc, group, leader, nil)
	}
	if err := g.refusesSharing(svc, group, leader, g.viewOf(lb)); err != nil {
		g.noteRefused(moveOf(svc, group), err)
		return err
	}
	return g.moveRefused(svc, group)
}

// staysKept returns why a Service stays at its place in its group although others have a claim to it, nil where it does not.
func (g *Groups[LB]) staysKept(svc member, group mark.Group, place sharing.Place, at string) *StayReason {
	if !place.Kept {
		return nil
	}
	if refused := g.keptBy(svc, group, at); refused != nil {
		return g.StayingRefused(place.ID, group, refused)
	}
	return nil
}

// keptBy returns why a Service keeps its place in its group although others have a claim to it.
func (g *Groups[LB]) keptBy(svc member, group mark.Group, at string) error {
	if err := g.overflowRefused(svc, group, at); err != nil {
		return err
	}
	return g.refusesSharing(svc, group, svc, nil)
}

// overflowRefused returns why a Service that is on a load balancer of its group cannot move to the next one, nil where it does not have to.
func (g *Groups[LB]) overflowRefused(svc member, group mark.Group, at string) error {
	if at == "" || !annotation.Overflows(svc.Service) {
		return nil
	}
	return g.creationRefused(svc, group, svc)
}

// staysOutside returns why a Service stays on the load balancer with the id, and does not move to its place in a group. there is the load
// balancer of that place, nil for a new one.
func (g *Groups[LB]) staysOutside(svc member, group mark.Group, place sharing.Place, leader member, there *LB, id string) *StayReason {
	if place.Lacks() {
		return g.stayingWithoutPorts(id, group, place)
	}
	if err := g.refusedInGroup(svc, group, leader, there); err != nil {
		return g.StayingRefused(id, group, err)
	}
	return nil
}

// refusesSharing returns why a Service may have no listener on a load balancer of the group, nil for a new one: it is public and the
// Service asks for a private one, or the product says so. Other differences are reported, and these would let everybody in.
func (g *Groups[LB]) refusesSharing(svc member, group mark.Group, leader member, lb *LoadBalancer) error {
	public := leader.params.AddressType() == alicloud.AddressInternet // as the leader asks for a new one
	if lb != nil {
		public = lb.Public
	}
	if !public || svc.params.Get(annotation.AddressType) != alicloud.AddressIntranet {
		return g.Cloud.Unshareable(svc.Service, svc.params, group, leader.Service, leader.params, lb)
	}
	return &problem.ConfigError{
		Field: annotation.Group.Key(), Event: problem.ReasonLoadBalancerNotReusable,
		Reason: fmt.Sprintf("the %s of load balancer group %s is public, and the Service asks for a private one (%s: intranet); choose another group",
			g.Product.Name, group, annotation.AddressType),
	}
}

// refusesAsRead is [Groups.refusesSharing] for a load balancer as it was last read. Leader is one of the members, the Service itself where
// it is none.
func (g *Groups[LB]) refusesAsRead(svc member, group mark.Group, members []member, leader types.UID, lb *sharing.LoadBalancer) error {
	leads := svc
	if i := slices.IndexFunc(members, func(m member) bool { return m.UID == leader }); i >= 0 {
		leads = members[i]
	}
	var view *LoadBalancer
	if lb != nil {
		view = &LoadBalancer{ID: lb.ID, Public: lb.Public, SecurityGroups: lb.SecurityGroups}
	}
	return g.refusesSharing(svc, group, leads, view)
}

// stayingWithoutPorts says that a Service stays because it would not get its ports.
func (g *Groups[LB]) stayingWithoutPorts(id string, to mark.Group, place sharing.Place) *StayReason {
	return &StayReason{to: to, problem: problem.Newf(problem.ReasonListenerConflict,
		"%s: the Service stays on %s %s, because load balancer group %s %s; choose another port or group, or set %s: \"true\"",
		annotation.Group, g.Product.Name, id, to, g.refusalOf(place), annotation.GroupOverflow)}
}

// StayingRefused says that a Service stays because the move was refused.
func (g *Groups[LB]) StayingRefused(id string, to mark.Group, err error) *StayReason {
	target := "a " + g.Product.Name + " of its own"
	if !to.IsZero() {
		target = "load balancer group " + to.String()
	}
	return g.stayingRefused(id, to, target, fmt.Sprint("restore the annotation ", annotation.Group), err)
}

// StayingOnExisting says that a Service stays on an existing load balancer that its annotation names no more, because it gets none of its
// own.
func (g *Groups[LB]) StayingOnExisting(id string, err error) *StayReason {
	return g.stayingRefused(id, mark.Group{}, "a "+g.Product.Name+" of its own",
		fmt.Sprint("restore the annotation ", annotation.LoadBalancerID), err)
}

// StayingUnlessReusable says that a Service stays in its group because it may not use the existing load balancer that its annotation names.
// The move is not tried again for some minutes, unless the annotations change.
func (g *Groups[LB]) StayingUnlessReusable(svc *corev1.Service, id, asked string, err error) *StayReason {
	g.noteRefused(moveOf(g.readMember(svc), mark.Group{}), err)
	return g.stayingRefused(id, mark.Group{}, g.Product.Name+" "+asked, fmt.Sprint("correct the annotation ", annotation.LoadBalancerID), err)
}

// StayUnlessReusable returns the load balancer of a group with the id, if something on it is the Service's, which may not use the one that it
// asks for. A Record or a label alone does not prove that: whoever can edit Services can also set the one, and the other is written before
// the listeners. While the Service is elsewhere, nothing would follow its nodes there.
func (g *Groups[LB]) StayUnlessReusable(ctx context.Context, svc *corev1.Service, id, asked string, refused error) (Location[LB], error) {
	if mark.IsGroup(id) {
		return Location[LB]{}, nil
	}
	lb, err := g.Cloud.Read(ctx, id)
	if err != nil || lb == nil {
		return Location[LB]{}, err
	}
	if _, in := g.viewOf(lb).Group(); !in {
		return Location[LB]{}, nil
	}
	if has, _, err := g.Cloud.Claims(ctx, svc, lb); err != nil || !has {
		return Location[LB]{}, err
	}
	return g.FoundInGroup(lb, g.StayingUnlessReusable(svc, id, asked, refused)), nil
}

func (g *Groups[LB]) stayingRefused(id string, to mark.Group, target, remedy string, err error) *StayReason {
	return &StayReason{to: to, problem: problem.Newf(problem.ReasonMoveRefused,
		"the Service stays on %s %s, which serves it as before, because it cannot move to %s: %s; remove the cause, or %s; the manager tries the move again every few minutes",
		g.Product.Name, id, target, alicloud.Lasting(err), remedy)}
}

// Params are the annotations of a Service as if they named the existing load balancer on which it stays. Without that, it would give up
// there what it has. manages says that the Service has listeners of its own there.
func (s *StayReason) Params(params annotation.Params, is presence.Presence, manages bool) annotation.Params {
	if s == nil || !is.Reused() {
		return params
	}
	params = params.With(annotation.LoadBalancerID, is.ID())
	if manages {
		params = params.With(annotation.ForceOverrideListeners, "true")
	}
	return params
}

// In reports whether a Service is to be in the group that it is in: it does not stay there for want of another place.
func (s *StayReason) In(group mark.Group) bool { return s == nil || s.to.Is(group) }

// Problems reports that the Service is not where its annotation asks for.
func (s *StayReason) Problems() []problem.Problem {
	if s == nil {
		return nil
	}
	return []problem.Problem{s.problem}
}

// Wakes has a Service that stays check from time to time whether it may move.
func (s *StayReason) Wakes(shown driver.Shown) driver.Shown {
	if s != nil && (shown.Wake == 0 || shown.Wake > stayWake) {
		shown.Wake = stayWake
	}
	return shown
}

// stayAtOnce is for a pass that the next one follows, which goes on where the Service stays.
const stayAtOnce = time.Millisecond

// Outcome is what came of a plan for a Service, as far as it concerns whether the cloud takes one more load balancer.
type Outcome struct {
	// Refused is why the cloud refuses to create one, nil where it did not.
	Refused error
	// Created and Deleted say what was done, and Err is the error of the plan.
	Created, Deleted bool
	Err              error
}

// Creation remembers whether the cloud takes one more load balancer, and returns the error of the pass. A Service that was refused one and
// has another place goes back to that at once: then its place is to be put in doubt.
func (g *Groups[LB]) Creation(svc *corev1.Service, at Known, came Outcome) (goesBack bool, err error) {
	to := at.Group
	isRefused := came.Refused != nil && !at.Presence.MaybeCreated() && !g.maybeMade(to)
	if isRefused && (at.From != "" || !to.IsZero() && !refusal.OfQuota(came.Refused)) {
		g.noteCreationRefused(svc, to, came.Refused)
		if at.From != "" {
			return true, &problem.WaitError{Reason: "the Service stays on " + at.From, For: stayAtOnce}
		}
	}
	switch {
	case came.Err == nil && came.Deleted:
		g.moves.Drop(anyCreation)
	case came.Created:
		made := moveOf(g.readMember(svc), to) // of all Services that were to move to the same group
		g.moves.DropFunc(func(m move, _ error) bool { return m == anyCreation || m == made || made.to != "" && m.to == made.to })
	}
	return false, came.Err
}

// noteCreationRefused remembers that the cloud refused a load balancer for a Service: any one, where the account has no room for another
// one, else that of the Service which decides on its attributes. Of a group, another one decides from now on.
func (g *Groups[LB]) noteCreationRefused(svc *corev1.Service, to mark.Group, refused error) {
	if refusal.OfQuota(refused) {
		g.noteRefused(anyCreation, refused)
		return
	}
	decides := g.readMember(svc)
	if !to.IsZero() {
		if _, _, leader, err := g.decidePlace(to, svc); err == nil {
			decides = leader
		}
	}
	if g.noteRefused(moveOf(decides, to), refused); !to.IsZero() {
		g.WakeConcerned(to, svc, "", nil)
	}
}

// noteRefused remembers that a move was refused. Of several Services at once, one prolongs the pause.
func (g *Groups[LB]) noteRefused(what move, err error) {
	if now := time.Now(); g.moves.Err(what, now) == nil {
		g.moves.Add(what, err, MovePause, now)
	}
}

// maybeMade reports whether an earlier attempt may have created a load balancer of the group.
func (g *Groups[LB]) maybeMade(group mark.Group) bool {
	return !group.IsZero() && g.Of(group.Mark()).MaybeCreated
}
