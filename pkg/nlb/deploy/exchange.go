package deploy

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/refusal"
)

// exchangePause is how long something is not replaced again by what the cloud refused in its place: each attempt takes away what works for
// some seconds, and three calls.
var exchangePause = refusal.Pause{First: 5 * time.Minute, Least: 10 * time.Minute, Longest: waits.Replaced}

// exchange is something of a load balancer that has to go before what takes its place can come: all security groups, which may be of
// another type than the next ones, or the bandwidth package. op is what brings the next one.
type exchange struct {
	loadBalancerID string
	op             model.Op
}

// exchangeFor is an exchange with what is to come.
type exchangeFor struct {
	exchange
	next string
}

// exchanges are what was taken away from load balancers for something else. It is kept in memory only.
type exchanges struct {
	mu      sync.Mutex // guards taken
	taken   map[exchange][]string
	refused refusal.Refusals[exchangeFor]
}

func (e *exchanges) takeIDs(what exchange, ids []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.taken == nil {
		e.taken = map[exchange][]string{}
	}
	e.taken[what] = ids
}

func (e *exchanges) takenFor(what exchange) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.taken[what]
}

func (e *exchanges) dropExchange(what exchange) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.taken, what)
}

// exchanged are the operations that may bring something in the place of something else.
var exchanged = []model.Op{model.OpJoin, model.OpAttach}

// endExchanges forgets what was taken away for something that the load balancer has by now, or is not to have any more.
func (a *Applier) endExchanges(plan model.Plan) {
	for _, op := range exchanged {
		if !plan.Has(op) {
			a.Memory.exchanges.dropExchange(exchange{a.Model.LoadBalancer.ID, op})
		}
	}
}

// exchangeOf returns the exchange that a step takes part in, and false for any other step.
func (a *Applier) exchangeOf(step *model.Step) (exchangeFor, bool) {
	what := exchangeFor{exchange: exchange{loadBalancerID: a.Model.LoadBalancer.ID}}
	switch step.Op {
	case model.OpJoin:
		what.op, what.next = step.Op, strings.Join(step.IDs, " ")+" "+step.Access.Name
	case model.OpAttach:
		what.op, what.next = step.Op, *step.Want.BandwidthPackage
	case model.OpDetach:
		what.op, what.next = model.OpAttach, step.LoadBalancer.BandwidthPackageID
	default:
		return what, false
	}
	return what, true
}

// takesAway reports whether a step takes something away for something else. Only to join security groups of the same type takes none away.
func takesAway(step *model.Step) bool {
	return step.Op == model.OpDetach && step.LoadBalancer.BandwidthPackageID != "" || step.Op == model.OpJoin && len(step.Swaps) > 0
}

// waitsToExchange returns why a step does not take something away now: the cloud has refused what is to come in its place.
func (a *Applier) waitsToExchange(step *model.Step) error {
	if !takesAway(step) {
		return nil
	}
	what, _ := a.exchangeOf(step)
	return a.Memory.exchanges.refused.Err(what, time.Now())
}

// giveBack gives a load balancer back what was taken away for something that the cloud refuses, or whose job failed.
func (a *Applier) giveBack(ctx context.Context, step *model.Step, refused error) {
	what, ok := a.exchangeOf(step)
	if !ok || takesAway(step) {
		return
	}
	old := a.Memory.exchanges.takenFor(what.exchange)
	if len(old) == 0 || a.Busy(step.Target) || a.justStarted(step.Target) {
		return
	}
	back := &model.Step{Op: step.Op, Target: step.Target, After: strings.Join(old, " ")}
	lb := &a.Model.LoadBalancer
	switch {
	case step.Op == model.OpJoin && len(lb.SecurityGroups) == 0:
		back.IDs = old
	case step.Op == model.OpAttach && lb.BandwidthPackageID == "":
		back.Want.BandwidthPackage = &old[0]
	default:
		return
	}
	a.Memory.exchanges.refused.Add(what, refused, exchangePause, time.Now())
	job, err := a.attempt(ctx, back)
	if err != nil {
		a.failStep(back, err)
		return
	}
	a.Jobs = append(a.Jobs, Started{Job: job, Targets: back.Locks(), Step: back.String(), Part: back.Part()})
}

// refusedForNow reports whether the cloud refused a step for a while.
func refusedForNow(err error) bool { return isRefusal(err) || alicloud.IsNotFound(err) }

// rememberedError is the error of a step that is not tried for what the cloud said before.
func (a *Applier) rememberedError(step *model.Step, err error) error {
	return &problem.WaitError{Reason: describeStep(step, a.Model.LoadBalancer.ID) + ": will be tried again later: " + alicloud.Lasting(err),
		For: heldFor, Err: err}
}
