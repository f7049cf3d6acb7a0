package alicloud

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"
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
	"SetDomainExtensionAttribute":           {400, time.Minute},
	"ListTagResources":                      {10, time.Second},
	"UntagResources":                        {5, time.Second},
}

var (
	// writeQuota is what most CLB writes have; it is assumed for every CLB write whose quota is not published.
	writeQuota = quota{90, time.Minute}
	readQuota  = quota{3000, time.Minute}
)

// unknownQuotas are those of actions whose quota only the account's Quota Center shows:
// https://www.alibabacloud.com/help/doc-detail/437902.htm. They begin high, and the first refusal teaches the real one.
var unknownQuotas = map[string]quota{
	"ModifyNetworkInterfaceAttribute": {1200, time.Minute},
}

// limiter keeps each action below its quota. The cloud counts in fixed windows, so the steady rate plus the burst must stay
// below the quota in any window: two thirds are spread evenly, one third may come at once.
type limiter struct {
	quotas map[string]quota

	mu      sync.Mutex // guards the maps
	buckets map[string]*rate.Limiter
	closed  map[string]time.Time // until when a throttled action stays closed
	minutes map[string]minute    // of actions with an unknown quota
}

// minute counts the calls of an action since the clock's last full minute.
type minute struct {
	start time.Time
	calls int
}

func newLimiter(quotas map[string]quota) *limiter {
	return &limiter{
		quotas: quotas, buckets: map[string]*rate.Limiter{}, closed: map[string]time.Time{}, minutes: map[string]minute{},
	}
}

// wait returns when the action may be called, or with ctx's error.
func (l *limiter) wait(ctx context.Context, action string) error {
	start := time.Now()
	defer func() { observeWait(action, time.Since(start)) }()
	for {
		bucket, closedFor := l.state(action)
		if err := sleep(ctx, closedFor); err != nil {
			return err
		}
		if err := bucket.Wait(ctx); err != nil {
			return err
		}
		// Another caller may have been throttled meanwhile.
		if l.admit(action, time.Now()) {
			return nil
		}
	}
}

func sleep(ctx context.Context, duration time.Duration) error {
	if duration <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// admit counts a call, unless the action is closed.
func (l *limiter) admit(action string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Before(l.closed[action]) {
		return false
	}
	if _, unknown := unknownQuotas[action]; unknown {
		m := l.minutes[action]
		if start := now.Truncate(time.Minute); !m.start.Equal(start) {
			m = minute{start: start}
		}
		m.calls++
		l.minutes[action] = m
	}
	return true
}

func (l *limiter) state(action string) (*rate.Limiter, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	bucket, ok := l.buckets[action]
	if !ok {
		bucket = newBucket(l.quota(action))
		l.buckets[action] = bucket
	}
	return bucket, time.Until(l.closed[action])
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

func newBucket(q quota) *rate.Limiter {
	steady, burst := q.shares()
	return rate.NewLimiter(steady, burst)
}

// shares splits the quota into a steady rate and a burst, see [limiter].
func (q quota) shares() (steady rate.Limit, burst int) {
	burst = max(1, q.calls/3)
	return rate.Limit(float64(q.calls-burst) / q.window.Seconds()), burst
}

// maxReopenJitter spreads the callers of one account over the first seconds of the new window; without it every cluster
// of the account would fire at the same moment and throttle the others again.
const maxReopenJitter = 3 * time.Second

// throttled closes the action until the next minute begins: the cloud answers nothing else before.
func (l *limiter) throttled(action string) {
	now := time.Now()
	reopen := now.Truncate(time.Minute).Add(time.Minute + rand.N(maxReopenJitter))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed[action] = reopen
	l.learn(action, now)
}

// leastQuota is the smallest quota that is learned: others may have used up the minute, of which we cannot know.
const leastQuota = 30

// learn takes what the cloud admitted in this minute for the quota of an action whose quota is not known. A smaller one
// stays until this process ends: a try with more costs a closed minute.
func (l *limiter) learn(action string, now time.Time) {
	unknown, ok := unknownQuotas[action]
	bucket := l.buckets[action]
	if !ok || bucket == nil {
		return
	}
	admitted := 0
	if m := l.minutes[action]; m.start.Equal(now.Truncate(time.Minute)) {
		admitted = m.calls - 1
	}
	if known := bucket.Burst() * 3; admitted < min(known, unknown.calls) {
		steady, burst := quota{max(leastQuota, admitted), time.Minute}.shares()
		bucket.SetLimit(steady)
		bucket.SetBurst(burst)
	}
}
