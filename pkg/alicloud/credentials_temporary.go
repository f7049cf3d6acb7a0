package alicloud

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

const (
	// renewMargin is how long before their end temporary keys are replaced at the latest. A source that is down for some
	// minutes then costs nothing.
	renewMargin = 10 * time.Minute
	// renewJitter is how much earlier that may be. Without it all programs that started together would ask together.
	renewJitter = 5 * time.Minute
	// renewRetry is the least time between two tries while the present keys are still good.
	renewRetry = 10 * time.Second
)

// TemporaryCredentials are keys that end. They are fetched on first use and replaced before their end, by one call at a
// time; until then, and while their source fails, the present ones stay in use. It is safe for concurrent use.
type TemporaryCredentials struct {
	source string
	fetch  func(context.Context) (Credentials, error)

	// turn is held by the one call that fetches.
	turn chan struct{}

	mu       sync.Mutex // guards what follows
	keys     Credentials
	renewAt  time.Time
	failed   error // of the last fetch; nil after a good one
	failedAt time.Time
}

var _ Refresher = (*TemporaryCredentials)(nil)

func newTemporaryCredentials(source string, fetch func(context.Context) (Credentials, error)) *TemporaryCredentials {
	return &TemporaryCredentials{source: source, fetch: fetch, turn: make(chan struct{}, 1)}
}

// Credentials implements [CredentialsProvider].
func (t *TemporaryCredentials) Credentials(ctx context.Context) (Credentials, error) {
	keys, due := t.present()
	if !due {
		return keys, nil
	}
	if time.Until(keys.Expiration) > 0 {
		return t.renew(ctx, keys), nil
	}
	return t.replace(ctx, keys)
}

// Refresh implements [Refresher].
func (t *TemporaryCredentials) Refresh(ctx context.Context, used Credentials) (Credentials, error) {
	return t.replace(ctx, used)
}

func (t *TemporaryCredentials) present() (keys Credentials, due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	return t.keys, !now.Before(t.renewAt) || !now.Before(t.keys.Expiration)
}

// renew replaces keys that are still good. Nobody waits for somebody else's renewal, and a failed one is logged once.
func (t *TemporaryCredentials) renew(ctx context.Context, keys Credentials) Credentials {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	default:
		return keys
	}
	before := t.failure()
	fetched, err := t.get(ctx)
	if err != nil {
		if before == nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Credentials cannot be renewed; the previous credentials stay in use", "until", keys.Expiration)
		}
		return keys
	}
	return fetched
}

// replace waits for keys other than unfit. Calls that waited for the same fetch share its result.
func (t *TemporaryCredentials) replace(ctx context.Context, unfit Credentials) (Credentials, error) {
	asked := time.Now()
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return Credentials{}, t.wrap(ctx.Err())
	}
	t.mu.Lock()
	keys, failed, failedAt := t.keys, t.failed, t.failedAt
	t.mu.Unlock()
	if !keys.same(unfit) && time.Until(keys.Expiration) > 0 {
		return keys, nil
	}
	if failed != nil && failedAt.After(asked) {
		return Credentials{}, failed
	}
	return t.get(ctx)
}

// get fetches and remembers the result. The caller has the turn.
func (t *TemporaryCredentials) get(ctx context.Context) (Credentials, error) {
	keys, err := t.fetch(ctx)
	observeCredentials(t.source, err)
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if err != nil {
		err = t.wrap(err)
		if ctx.Err() == nil { // a caller who gave up says nothing about the source
			t.failed, t.failedAt = err, now
			t.renewAt = later(t.renewAt, now.Add(renewRetry))
		}
		return Credentials{}, err
	}
	t.keys, t.failed = keys, nil
	credentialsExpiry.WithLabelValues(t.source).Set(float64(keys.Expiration.Unix()))
	t.renewAt = later(renewTime(now, keys.Expiration), now.Add(renewRetry))
	return keys, nil
}

func (t *TemporaryCredentials) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed
}

func (t *TemporaryCredentials) wrap(err error) error {
	return &CredentialsError{Source: t.source, err: err}
}

// renewTime is when keys that end at end are to be replaced. Of short-lived ones at least two thirds are used.
func renewTime(now, end time.Time) time.Time {
	life := end.Sub(now)
	return end.Add(-min(renewMargin, life/6) - rand.N(max(1, min(renewJitter, life/6))))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
