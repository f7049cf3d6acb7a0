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
	"ListTagResources":                      {10, time.Second},
	"UntagResources":                        {5, time.Second},
}

var (
	// writeQuota is what most CLB writes have; it is assumed for every write whose quota is not published.
	writeQuota = quota{90, time.Minute}
	readQuota  = quota{3000, time.Minute}
)

// limiter keeps each action below its quota. The cloud counts in fixed windows, so the steady rate plus the burst must stay
// below the quota in any window: two thirds are spread evenly, one third may come at once.
type limiter struct {
	quotas map[string]quota

	mu      sync.Mutex // guards the maps
	buckets map[string]*rate.Limiter
	closed  map[string]time.Time // until when a throttled action stays closed
}

func newLimiter(quotas map[string]quota) *limiter {
	return &limiter{quotas: quotas, buckets: map[string]*rate.Limiter{}, closed: map[string]time.Time{}}
}

// wait returns when the action may be called, or with ctx's error.
func (l *limiter) wait(ctx context.Context, action string) error {
	start := time.Now()
	defer func() { observeWait(action, time.Since(start)) }()
	bucket, closedFor := l.state(action)
	if closedFor > 0 {
		timer := time.NewTimer(closedFor)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return bucket.Wait(ctx)
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
	if isRead(action) {
		return readQuota
	}
	return writeQuota
}

func newBucket(q quota) *rate.Limiter {
	burst := max(1, q.calls/3)
	return rate.NewLimiter(rate.Limit(float64(q.calls-burst)/q.window.Seconds()), burst)
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
}
