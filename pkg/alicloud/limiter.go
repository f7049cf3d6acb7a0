package alicloud

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// publishedQuotas are the calls per minute that the vendor documents for an action, per region and main account. Actions
// without a row get defaultQuota when they write and are not limited when they read (reads have 3,000 a minute).
// Source: https://www.alibabacloud.com/help/en/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-quota.
var publishedQuotas = map[string]int{
	"CreateLoadBalancer":     60,
	"DescribeLoadBalancers":  readQuota,
	"TagResources":           defaultQuota,
	"CreateRouteEntries":     300,
	"DeleteRouteEntries":     300,
	"DescribeRouteEntryList": readQuota,
}

const (
	// defaultQuota is what most CLB writes have; it is assumed for every write whose quota is not published.
	defaultQuota = 90
	readQuota    = 3000
)

// limiter keeps each action below its quota. The cloud counts in fixed one-minute windows, so the steady rate plus the
// burst must stay below the quota in any minute: two thirds are spread evenly, one third may come at once.
type limiter struct {
	quotas map[string]int

	mu      sync.Mutex // guards the maps
	buckets map[string]*rate.Limiter
	closed  map[string]time.Time // until when a throttled action stays closed
}

func newLimiter(quotas map[string]int) *limiter {
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

func (l *limiter) quota(action string) int {
	if quota, ok := l.quotas[action]; ok {
		return quota
	}
	if isRead(action) {
		return readQuota
	}
	return defaultQuota
}

func newBucket(perMinute int) *rate.Limiter {
	burst := perMinute / 3
	return rate.NewLimiter(rate.Limit(float64(perMinute-burst)/60), burst)
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
