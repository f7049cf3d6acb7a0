package alicloud

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// quota is the number of calls of an action that one main account may make in a region within each window. Windows are
// fixed: they begin with the minute or the second of the clock.
type quota struct {
	calls  int
	window time.Duration
}

// publishedQuotas are the documented quotas that differ from those of most actions.
// Source: https://www.alibabacloud.com/help/en/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-quota.
var publishedQuotas = map[string]quota{
	"CreateLoadBalancer":                    {60, time.Minute},
	"SetLoadBalancerModificationProtection": {400, time.Minute},
	"ListTagResources":                      {10, time.Second},
	"UntagResources":                        {5, time.Second},

	// https://www.alibabacloud.com/help/en/quota-center/developer-reference/api-quotas-2020-05-10-quota
	"ListProductQuotas": {15, time.Second},

	// https://www.alibabacloud.com/help/en/slb/network-load-balancer/developer-reference/api-nlb-2022-04-30-quota
	"nlb:UpdateLoadBalancerProtection": {300, time.Minute},
}

var (
	// writeQuota is the quota of most CLB writes, and the assumed one of every write whose quota is not published.
	writeQuota = quota{90, time.Minute}
	readQuota  = quota{3000, time.Minute}
	// nlbWriteQuota and nlbReadQuota are those of nearly all actions of NLB, and assumed for those whose quota is not published.
	nlbWriteQuota = quota{200, time.Minute}
	nlbReadQuota  = quota{20, time.Second}
)

// unknownQuotas are the first guesses for actions whose quota is only shown on the account's own quota page:
// https://www.alibabacloud.com/help/doc-detail/437902.htm. They are high: what the cloud lets through shows how much of that is ours.
var unknownQuotas = map[string]quota{
	"ModifyNetworkInterfaceAttribute": {1200, time.Minute},
}

// limiter keeps each action below its quota, and lets the most urgent of the waiting calls go first.
type limiter struct {
	quotas map[string]quota

	mu     sync.Mutex // guards the rest
	queues map[string]*actionQueue
	random func() float64 // from 0 to 1
}

// actionQueue holds the calls of one action that wait for its quota, the most urgent one first.
type actionQueue struct {
	windowQuota
	// opened is when the action was called for the first time, suspected what is ours of the quota as far as the refusals in that window show
	// it.
	opened    time.Time
	suspected float64
	waiters   []*waiter
	// served is when each tenant was last served, since the queue was last empty.
	served map[string]turn
	// written is the pass that last wrote to each target, in the window that began at writtenIn.
	written   map[string]uint64
	writtenIn time.Time
	admitted  int         // how many calls have left the queue
	timer     *time.Timer // runs while a call waits
}

// turn is when a call left the queue, and after how many others.
type turn struct {
	at     time.Time
	number int
}

// waiter is a call in a queue. ready is closed when the call may go.
type waiter struct {
	Waiting
	rank  time.Time
	ready chan struct{}
}

func newLimiter(quotas map[string]quota) *limiter {
	return &limiter{quotas: quotas, queues: map[string]*actionQueue{}, random: rand.Float64}
}

func (l *limiter) quota(action string) quota {
	if published, ok := l.quotas[action]; ok {
		return published
	}
	if unknown, ok := unknownQuotas[action]; ok {
		return unknown
	}
	switch isNLB := strings.HasPrefix(action, productNLB.host+operationSeparator); {
	case isNLB && isRead(action):
		return nlbReadQuota
	case isNLB:
		return nlbWriteQuota
	case isRead(action):
		return readQuota
	}
	return writeQuota
}

// queueLocked returns the queue of the action.
func (l *limiter) queueLocked(action string) *actionQueue {
	q, ok := l.queues[action]
	if !ok {
		q = &actionQueue{windowQuota: windowQuota{quota: l.quota(action)}, opened: time.Now()}
		l.queues[action] = q
	}
	return q
}

// wait returns when the action may be called, or with the reason why the call gives up its place.
func (l *limiter) wait(ctx context.Context, action string) error {
	start := time.Now()
	defer func() { observeWait(action, time.Since(start)) }()
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.useReserved(ctx, action) {
		return nil
	}
	waiting := WaitingOf(ctx)
	if waiting.Since.IsZero() {
		waiting.Since = start
	}
	w := l.enter(action, waiting)
	if w == nil {
		return nil
	}
	callsWaiting.WithLabelValues(action).Inc()
	defer callsWaiting.WithLabelValues(action).Dec()
	if waiting.Parked != nil {
		waiting.Parked()
	}
	if waiting.Resumed != nil {
		defer waiting.Resumed()
	}
	select {
	case <-w.ready:
		return nil
	case <-waiting.Interrupt:
		return l.leave(action, w, ErrInterrupted)
	case <-ctx.Done():
		return l.leave(action, w, ctx.Err())
	}
}

// enter counts a call that may go at once and returns nil, or puts the call into the queue.
func (l *limiter) enter(action string, waiting Waiting) *waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.queueLocked(action)
	now := time.Now()
	if len(q.waiters) == 0 && !q.next(now, 1, urgency(waiting)).After(now) {
		q.take(now)
		q.writes(waiting, now)
		return nil
	}
	w := &waiter{Waiting: waiting, rank: waiting.rank(waiting.Since), ready: make(chan struct{})}
	at, _ := slices.BinarySearchFunc(q.waiters, w, func(have, w *waiter) int {
		if have.rank.After(w.rank) {
			return 1
		}
		return -1 // calls of equal rank keep their order
	})
	q.waiters = slices.Insert(q.waiters, at, w)
	if q.timer != nil && urgency(waiting) > 0 {
		q.timer.Stop() // it may go sooner
		q.timer = nil
	}
	l.scheduleLocked(q)
	return w
}

// leave takes a call out of the queue. A call that was admitted at the same moment goes.
func (l *limiter) leave(action string, w *waiter, reason error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.queueLocked(action)
	at := slices.Index(q.waiters, w)
	if at < 0 {
		return nil
	}
	q.waiters = slices.Delete(q.waiters, at, at+1)
	if len(q.waiters) == 0 {
		q.timer.Stop()
		q.timer, q.served = nil, nil
	}
	return reason
}

// nextOf is when the next of the calls in the queue may go.
func (q *actionQueue) nextOf(now time.Time) time.Time {
	urgent := 0
	for _, w := range q.waiters {
		urgent += urgency(w.Waiting)
	}
	return q.next(now, len(q.waiters), urgent)
}

// urgency counts a call that takes out what no longer answers.
func urgency(w Waiting) int {
	if w.Priority == PriorityRemoval {
		return 1
	}
	return 0
}

// scheduleLocked sets the timer for the first call in the queue.
func (l *limiter) scheduleLocked(q *actionQueue) {
	if q.timer != nil || len(q.waiters) == 0 {
		return
	}
	q.timer = time.AfterFunc(max(0, time.Until(q.nextOf(time.Now()))), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		q.timer = nil
		q.admit()
		l.scheduleLocked(q)
	})
}

// admit lets the calls go that may.
func (q *actionQueue) admit() {
	number := 0
	for _, last := range q.served {
		number = max(number, last.number)
	}
	for now := time.Now(); len(q.waiters) > 0 && !q.nextOf(now).After(now); {
		q.take(now)
		at := q.turn(now)
		next := q.waiters[at]
		q.writes(next.Waiting, now)
		q.admitted++
		close(next.ready)
		q.waiters = slices.Delete(q.waiters, at, at+1)
		if q.served == nil {
			q.served = map[string]turn{}
		}
		number++
		q.served[next.Tenant] = turn{now, number}
	}
	if len(q.waiters) == 0 {
		q.served = nil
	}
}

// turn returns whose turn it is: of the most urgent call of each tenant, the one that has waited longest for its priority. A tenant waits
// since it was last served, however long its calls have been there: otherwise one with thousands of calls in the queue would hold up all
// others until the last of them has gone. Every second place goes to a tenant that has to take out what no longer answers, if there is any:
// behind the queues of hundreds of others, it would wait for minutes. The other places are for all, so that nobody holds up the others with
// such calls.
func (q *actionQueue) turn(now time.Time) int {
	best, rank, number := 0, time.Time{}, 0
	seen := map[string]bool{}
	var urgent map[string]bool // none, so that it is the turn of any
	if q.admitted%urgentShare == 1 {
		urgent = q.urgent()
	}
	for at, w := range q.waiters {
		if seen[w.Tenant] || len(urgent) > 0 && !urgent[w.Tenant] {
			continue
		}
		seen[w.Tenant] = true
		last, candidate := q.served[w.Tenant], w.rank
		if last.at.After(w.Since) {
			candidate = w.rankSince(last.at)
		}
		if len(seen) == 1 || candidate.Before(rank) || candidate.Equal(rank) && last.number < number {
			best, rank, number = at, candidate, last.number
		}
	}
	return q.instead(best, now)
}

// urgentShare is which part of the places goes to tenants that have to take out what no longer answers.
const urgentShare = 2

// urgent are the tenants that have to take out what no longer answers.
func (q *actionQueue) urgent() map[string]bool {
	tenants := map[string]bool{}
	for _, w := range q.waiters {
		if w.Priority == PriorityRemoval {
			tenants[w.Tenant] = true
		}
	}
	return tenants
}

// agedShare is which part of the places goes to the call of a tenant that has waited longest for its priority, even while something urgent
// waits: enough to hold nothing up for ever, and so few that the urgent calls take hardly longer.
const agedShare = 16

// instead returns which call of a tenant goes when it is the tenant's turn with the call at an index: one that takes out what no longer
// answers, if there is any. Of equally urgent calls, one goes for what was not written to in this window: what changes again after each
// write is written once per window while the quota is used up, with all that has changed meanwhile.
func (q *actionQueue) instead(at int, now time.Time) int {
	first := q.waiters[at]
	urgency := first.Priority
	if q.admitted%agedShare != agedShare-1 && slices.ContainsFunc(q.waiters, func(w *waiter) bool {
		return w.Tenant == first.Tenant && w.Priority == PriorityRemoval
	}) {
		urgency = PriorityRemoval
	}
	chosen := -1
	for i, w := range q.waiters {
		if w.Tenant != first.Tenant || w.Priority != urgency {
			continue
		}
		if !q.again(w, now) {
			return i
		}
		if chosen < 0 {
			chosen = i
		}
	}
	return chosen
}

// again reports whether another pass than that of a call has written to its target in this window. A call of the same pass belongs to that
// write, which one call was too small for. Since when it waits does not count: a pass that has written to one of several targets, and gave
// up its place before it wrote to the next, would otherwise write to the first one again and again, while the others wait.
func (q *actionQueue) again(w *waiter, now time.Time) bool {
	if !q.writtenIn.Equal(now.Truncate(q.quota.window)) {
		return false
	}
	pass, ok := q.written[w.Target]
	return ok && (w.Pass == 0 || pass != w.Pass)
}

// writes notes a call for a target; without one, it notes nothing.
func (q *actionQueue) writes(w Waiting, now time.Time) {
	if w.Target == "" {
		return
	}
	if window := now.Truncate(q.quota.window); !q.writtenIn.Equal(window) {
		q.written, q.writtenIn = map[string]uint64{}, window
	}
	q.written[w.Target] = w.Pass
}

// throttled closes the action until its next window begins, and leaves more of its quota to others.
func (l *limiter) throttled(action string) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.queueLocked(action)
	q.refused(now, time.Duration(l.random()*float64(q.reopenJitter())))
	if now.Truncate(q.quota.window).Equal(q.opened.Truncate(q.quota.window)) {
		q.suspect(now)
		return
	}
	q.prove()
	q.lower(now, l.random())
}

// suspect notes what is ours of the quota if others use it, too. That the window in which the action was called for the first time is used
// up does not prove that: the process before this one may have done it, and whoever then leaves half of the quota to others needs twice the
// time for what that one left undone.
func (q *actionQueue) suspect(now time.Time) {
	if q.suspected == 0 {
		ours := q.windowQuota
		ours.lower(now, 0)
		q.suspected = ours.share
	}
}

// prove takes the suspicion for true once a later window is used up, too.
func (q *actionQueue) prove() {
	if q.suspected > 0 {
		q.share, q.sharedAt, q.suspected = q.suspected, q.opened.Truncate(q.quota.window), 0
	}
}
