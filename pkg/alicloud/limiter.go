package alicloud

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// quota is how many calls of an action one main account may make in a region within each window. The windows are fixed:
// they begin with the minute or the second of the clock.
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
}

var (
	// writeQuota is what most CLB writes have; it is assumed for every write whose quota is not published.
	writeQuota = quota{90, time.Minute}
	readQuota  = quota{3000, time.Minute}
)

// unknownQuotas are those of actions whose quota only the account's own page of quotas shows:
// https://www.alibabacloud.com/help/doc-detail/437902.htm. They begin high, and the first refusal teaches the real one.
var unknownQuotas = map[string]quota{
	"ModifyNetworkInterfaceAttribute": {1200, time.Minute},
}

// limiter keeps each action below its quota, and lets the most urgent of the waiting calls go first.
type limiter struct {
	quotas map[string]quota

	mu    sync.Mutex // guards gates and what is in them
	gates map[string]*gate
}

// gate is the waiting line of one action.
type gate struct {
	pace
	waiters []*waiter
	timer   *time.Timer // runs while somebody waits
}

// waiter is a call in line. ready is closed when it may go.
type waiter struct {
	rank  time.Time
	ready chan struct{}
}

func newLimiter(quotas map[string]quota) *limiter {
	return &limiter{quotas: quotas, gates: map[string]*gate{}}
}

func (l *limiter) quota(action string) quota {
	if published, ok := l.quotas[action]; ok {
		return published
	}
	if unknown, ok := unknownQuotas[action]; ok {
		return unknown
	}
	if isRead(action) {
		return readQuota
	}
	return writeQuota
}

// gate returns the action's; the caller holds the lock.
func (l *limiter) gate(action string) *gate {
	g, ok := l.gates[action]
	if !ok {
		g = &gate{pace: pace{quota: l.quota(action)}}
		l.gates[action] = g
	}
	return g
}

// wait returns when the action may be called, or with the reason why the call gives up its place.
func (l *limiter) wait(ctx context.Context, action string) error {
	start := time.Now()
	defer func() { observeWait(action, time.Since(start)) }()
	if err := ctx.Err(); err != nil {
		return err
	}
	waiting := WaitingOf(ctx)
	w := l.enter(action, waiting.rank(start))
	if w == nil {
		return nil
	}
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

// enter takes a call that may go at once, and returns nil, or puts the call in line.
func (l *limiter) enter(action string, rank time.Time) *waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.gate(action)
	now := time.Now()
	if len(g.waiters) == 0 && !g.next(now).After(now) {
		g.take(now)
		return nil
	}
	w := &waiter{rank: rank, ready: make(chan struct{})}
	at, _ := slices.BinarySearchFunc(g.waiters, w, func(have, w *waiter) int {
		if have.rank.After(w.rank) {
			return 1
		}
		return -1 // of equal ones the first stays first
	})
	g.waiters = slices.Insert(g.waiters, at, w)
	l.schedule(g)
	return w
}

// leave takes a call out of the line. One that was let go in the same moment goes.
func (l *limiter) leave(action string, w *waiter, reason error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.gate(action)
	at := slices.Index(g.waiters, w)
	if at < 0 {
		return nil
	}
	g.waiters = slices.Delete(g.waiters, at, at+1)
	if len(g.waiters) == 0 {
		g.timer.Stop()
		g.timer = nil
	}
	return reason
}

// schedule sets the timer for the first in line; the caller holds the lock.
func (l *limiter) schedule(g *gate) {
	if g.timer != nil || len(g.waiters) == 0 {
		return
	}
	g.timer = time.AfterFunc(max(0, time.Until(g.next(time.Now()))), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		g.timer = nil
		l.admit(g)
		l.schedule(g)
	})
}

// admit lets those go that may.
func (l *limiter) admit(g *gate) {
	for now := time.Now(); len(g.waiters) > 0 && !g.next(now).After(now); {
		g.take(now)
		close(g.waiters[0].ready)
		g.waiters = slices.Delete(g.waiters, 0, 1)
	}
}

// maxReopenJitter spreads the callers of one account over the first seconds of the new window; without it every cluster
// of the account would fire at the same moment and throttle the others again.
const maxReopenJitter = 3 * time.Second

// throttled closes the action until the next minute begins: the cloud answers nothing else before.
func (l *limiter) throttled(action string) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.gate(action)
	g.closed = now.Truncate(time.Minute).Add(time.Minute + rand.N(maxReopenJitter))
	if _, unknown := unknownQuotas[action]; unknown {
		g.learn(now)
		return
	}
	g.careful = now.Add(carefulFor)
}

// leastQuota is the smallest quota that is learned: others may have used up the minute, of which we cannot know.
const leastQuota = 30

// learn takes what the cloud admitted in this minute for the quota of an action whose quota is not known. A smaller one
// stays until this process ends: a try with more costs a closed minute.
func (g *gate) learn(now time.Time) {
	current := g.at(now)
	g.quota.calls = min(g.quota.calls, max(leastQuota, current.used-1))
}
