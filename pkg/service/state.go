package service

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/failure"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

const (
	// unresolvedWait is how soon a backend that is not known in the cloud is read again; it grows, see [skipped].
	unresolvedWait = 30 * time.Second
	// conflictWait is how often a port that belongs to somebody else is read again.
	conflictWait = time.Minute
	// lockedWait is how often a load balancer is read that is locked. Nothing says when the debts are paid.
	lockedWait = 2 * time.Minute
	// maxBusyInRow is how often an answer may be busy before what is known is no longer trusted. At most 5 s apart,
	// that is about a minute; transitions are much shorter.
	maxBusyInRow = 12
)

// state is what is known of one Service between passes. It is a value: a pass works on its own, and commits the one that the
// next pass starts with. It can be rebuilt from the Service and the cloud.
type state struct {
	uid types.UID
	// engine is the one whose load balancer it is.
	engine driver.Engine
	// balancer is what is known of the load balancer.
	balancer driver.Balancer
	// record is what was applied; nil before it was loaded.
	record *driver.Record
	// origin is where the load balancer comes from; nil before it was loaded.
	origin *origin
	// lastValid are the parameters as they were last accepted, each by itself, ports those of the Service.
	lastValid *annotation.Params
	ports     []corev1.ServicePort
	removal   removal
	backoff   backoff
	cache     backendCache
	skipped   skipped
	// edition is the Service as the last pass saw it.
	edition edition
	// isEdited says that somebody has edited what the Service asks for since the pass before.
	isEdited bool
	// cause says why the Service is written to; empty once everything was.
	cause string
	// readAt is when the whole load balancer was read, driftAt when it is read again to repair drift.
	readAt, driftAt time.Time
	// settledAt is when every call whose end nobody has seen has come to an end in the cloud: one of a process before this one,
	// or one without an answer. Zero before the first pass.
	settledAt time.Time
	// unsettledSince is when a plan was carried out before settledAt. The load balancer is read again and again until then.
	unsettledSince time.Time
	// movedAt is since when the status of the Service shows the load balancer that it has moved to, and leaveAt when it leaves the one before;
	// zero where it has not moved, or its status does not show the other one yet.
	movedAt, leaveAt time.Time
	// leaving are the places that leaveAt is for, as a Record names them.
	leaving []string
	// leftLock is the lock of the load balancer that the Service has left and that was last followed, nil before that: with that, one read of
	// it is enough.
	leftLock *string
	// replaced is the id of a load balancer that vanished and whose replacement has no event yet.
	replaced string
	// failure is the signature of the last failed attempt, empty after a success.
	failure string
	// drifting says that this pass read the load balancer only because somebody may have changed it.
	drifting bool
	// pausedBy is what keeps this pass from writing to the cloud, "" for nothing.
	pausedBy string
	// ineffective is what the log last said about annotations that do not act as they read.
	ineffective string
}

// removal is how far the tear-down of a Service went.
type removal struct {
	// of is the id of a load balancer whose removal was begun, and kept why others of the Service stay, see [driver.Removal.Kept].
	of, kept string
	// reused says that the load balancer itself stays.
	reused bool
	// released says that nothing of ours is left on the Service.
	released bool
	// reclaimed is the id of a load balancer whose removal was begun before its Service wanted it again. Its delete protection is off.
	reclaimed string
}

// backoff is how long the Service has been waiting for the cloud.
type backoff struct {
	// waitingSince is since when the Service's calls have been waiting for the rate limit, over several passes; zero when they
	// are not.
	waitingSince time.Time
	// busy counts answers in a row that said "in transition".
	busy int
	// writes counts the calls that changed something and that have no event yet, because their pass had to wait.
	writes int
}

// isPatient reports whether "in transition" may still be what it says; after so many times somebody should hear of it.
func (b backoff) isPatient() bool { return b.busy < maxBusyInRow }

// countWrites returns the writes that a pass has to report, with those of passes that had to wait. A pass that has to wait itself leaves
// them to the next one.
func (b backoff) countWrites(writes int, waiting bool) (backoff, int) {
	writes += b.writes
	if b.writes = 0; waiting {
		b.writes = writes
	}
	return b, writes
}

// backendCache holds what was read of single backends.
type backendCache struct {
	// interfaces maps addresses of pods to their network interfaces.
	interfaces map[backend.PodAddress]string
	gates      podGates
	// sliceless is since when the Service has no EndpointSlice, zero while it has one.
	sliceless time.Time
}

// skipped is why backends are not all in line, as users read it, and since when.
type skipped struct {
	why   string
	since time.Time
}

// afterProblems returns the state after a pass that found problems.
func (s state) afterProblems(problems []problem.Problem) state {
	var why strings.Builder
	for _, found := range problems {
		if found.Reason == problem.ReasonSkipSyncBackends {
			why.WriteString(found.Message + "\n")
		}
	}
	if why.String() != s.skipped.why {
		s.skipped = skipped{why: why.String(), since: time.Now()}
	}
	return s
}

// nextReadIn returns after what time the backends are read again: soon at first, and then twice as long after the start each time. What
// does not change for long most likely never will.
func (s skipped) nextReadIn() time.Duration { return max(unresolvedWait, time.Since(s.since)) }

// longestCall is how long a call may go on in the cloud after whoever made it is gone: the client's timeout, and some more.
const longestCall = 30 * time.Second

// usualCall is how long calls hardly ever go on in the cloud.
const usualCall = 2 * time.Second

// carriesFinalizer reports whether the Service carries the finalizer of its engine: it may have a load balancer of that product.
func (s state) carriesFinalizer(svc *corev1.Service) bool {
	return driver.HasFinalizer(svc, s.engine.Product().Finalizer)
}

// atFirstPass returns the state of a Service that wants a load balancer. A process before this one may have worked on the Service a moment
// ago.
func (s state) atFirstPass(adopted bool) state {
	if s.settledAt.IsZero() {
		s.settledAt = time.Now()
		if adopted {
			s.settledAt = s.settledAt.Add(longestCall)
		}
	}
	if s.removal.of != "" {
		s.removal.reclaimed = s.removal.of
	}
	s.removal.of, s.removal.kept, s.removal.reused, s.removal.released = "", "", false, false
	return s
}

// afterPanic returns the state after a panic: what is known may be half of a change, and the next pass reads everything, as that of a new
// process does.
func (s state) afterPanic() state {
	return state{
		uid: s.uid, engine: s.engine, balancer: s.engine.Start(), origin: s.origin, lastValid: s.lastValid, removal: s.removal,
		replaced: s.replaced, failure: s.failure,
	}
}

// requestFor returns what [driver.Balancer.Refresh] needs to know of the Service.
func (s state) requestFor(svc *corev1.Service, params annotation.Params, adopted bool) driver.Request {
	return driver.Request{Service: svc, Params: params, Adopted: adopted, DriftDue: !time.Now().Before(s.driftAt),
		Unsettled: !s.unsettledSince.IsZero(), Applied: s.record, Edited: s.isEdited}
}

// afterRefresh returns the state after the load balancer was read.
func (s state) afterRefresh(found driver.Refreshed, resyncPeriod time.Duration) state {
	s.balancer = found.Balancer
	if found.Applied != nil {
		s.record = found.Applied
	}
	if found.Some {
		s.cache.interfaces = nil
	}
	if found.Whole {
		s.readAt = time.Now()
		s.driftAt = s.readAt.Add(driftWait(resyncPeriod, found.Together))
		s = s.nextSettling()
	}
	if found.Vanished != "" {
		s.replaced = found.Vanished
	}
	return s
}

// driftWait is after what time a load balancer is due for drift detection, at most six fifths of the period. Those that were read together
// become due one after the other over a whole period, but not right after the start, which has enough to read.
func driftWait(resyncPeriod time.Duration, together bool) time.Duration {
	if together {
		return resyncPeriod/5 + rand.N(resyncPeriod+1)
	}
	return resyncPeriod + rand.N(resyncPeriod/5+1)
}

// afterConflicts returns the state after a pass that found ports of the load balancer in use by others. One that failed says nothing.
func (s state) afterConflicts(problems []problem.Problem, err error) state {
	if err == nil && problem.HasReason(problems, problem.ReasonListenerConflict) {
		s.balancer = s.balancer.Invalidate("the other owner may leave the port at any time, without any event")
	}
	return s
}

// afterDeployment returns the state after a plan was carried out.
func (s state) afterDeployment(done driver.Deployment) state {
	s.balancer = done.Balancer
	if done.Lost != "" {
		return s
	}
	if done.Uncertain || done.RefusedBackend {
		s.cache.interfaces = nil
	}
	if done.Uncertain {
		s.settledAt = time.Now().Add(longestCall)
	}
	switch {
	case done.Interrupted:
	case done.Err == nil:
		s.backoff.busy, s.removal.reclaimed = 0, ""
	case done.Progress:
		s.backoff.busy = 0 // a large change takes many calls, and each may find the CLB busy once
	case !failure.AnyWaits(done.Err):
		s.backoff.busy = 0 // a refusal is another answer
	default:
		if s.backoff.busy++; s.backoff.busy%maxBusyInRow == 0 {
			s.balancer = s.balancer.Invalidate("the cloud keeps answering that it is busy")
		}
	}
	return s
}

// readUntilSettled has the load balancer read again after a plan that was made while an earlier call may still have been under way: what
// that does in the end, a second group of the same name for example, would else be found when everything is read for drift.
func (s state) readUntilSettled(plan driver.Plan) state {
	if len(plan.Steps()) == 0 || !time.Now().Before(s.settledAt) {
		return s
	}
	s.unsettledSince = time.Now()
	return s.nextSettling()
}

// nextSettling returns the state with the next of those reads: most calls end within seconds, so that the first one follows soon, the
// others after twice as long each, and the last one when every call has ended.
func (s state) nextSettling() state {
	now := time.Now()
	if s.unsettledSince.IsZero() || !now.Before(s.settledAt) {
		s.unsettledSince = time.Time{}
		return s
	}
	for _, at := range []time.Time{now.Add(max(usualCall, now.Sub(s.unsettledSince))), s.settledAt} {
		if at.Before(s.driftAt) {
			s.driftAt = at
		}
	}
	return s
}

// states are those of all Services.
type states struct {
	mu    sync.Mutex // guards byKey
	byKey map[types.NamespacedName]state
}

// stateOf returns the state of a Service; one of the same name that was deleted and created anew has none.
func (s *states) stateOf(svc *corev1.Service) state {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.byKey[mark.ServiceName(svc)]; ok && known.uid == svc.UID {
		return known
	}
	return state{uid: svc.UID}
}

// isFailing reports whether the last attempt for a Service failed. A pass that only waits is no attempt.
func (s *states) isFailing(key types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.byKey[key]
	return ok && known.failure != ""
}

// commitState replaces the state of a Service. The caller holds the lock of the Service.
func (s *states) commitState(svc *corev1.Service, known state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey == nil {
		s.byKey = map[types.NamespacedName]state{}
	}
	s.byKey[mark.ServiceName(svc)] = known
}

// invalidateShared puts things on a shared load balancer in doubt for all Services that rely on them but one. It returns those Services.
// The caller holds the lock of the load balancer, so that no pass over any of them is under way.
func (s *states) invalidateShared(ids []string, except types.UID, reason string) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	var doubting []types.NamespacedName
	for key, known := range s.byKey {
		if known.uid == except || known.balancer == nil {
			continue
		}
		if after, relies := known.balancer.InvalidateShared(ids, reason); relies {
			known.balancer = after
			s.byKey[key] = known
			doubting = append(doubting, key)
		}
	}
	return doubting
}

// dueSoon returns what is known of the load balancers that are due for drift detection within a time, the next first.
func (s *states) dueSoon(within time.Duration) []driver.Balancer {
	s.mu.Lock()
	defer s.mu.Unlock()
	type next struct {
		at       time.Time
		balancer driver.Balancer
	}
	var due []next // whole states, of thousands of Services, were a fifth of the garbage of an idle manager
	for _, known := range s.byKey {
		if known.balancer != nil && !known.driftAt.IsZero() && time.Until(known.driftAt) < within {
			due = append(due, next{known.driftAt, known.balancer})
		}
	}
	slices.SortFunc(due, func(a, b next) int { return a.at.Compare(b.at) })
	balancers := make([]driver.Balancer, 0, len(due))
	for i := range due {
		balancers = append(balancers, due[i].balancer)
	}
	return balancers
}

// dropState returns the UID of the Service whose state it drops.
func (s *states) dropState(key types.NamespacedName) types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	uid := s.byKey[key].uid
	delete(s.byKey, key)
	return uid
}
