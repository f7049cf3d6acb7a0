package conformance

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/limits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/sleep"
)

// slowness is how far below the published rates a run on an account stays.
const slowness = 10

// Slow is the pace of runs on real accounts: a tenth of the published rates, and one call per second where none is published.
func Slow(table *api.Table) func(product, action string) time.Duration {
	return func(product, action string) time.Duration {
		kind := api.Write
		if a := table.Find(product, action); a != nil {
			kind = a.Kind
		}
		q, published := limits.Published(product, action, kind)
		if !published || q.Calls == 0 {
			return time.Second
		}
		return slowness * q.Window / time.Duration(q.Calls)
	}
}

// Pacer keeps the calls of an action apart, over all scenarios of a run: the cloud counts the calls of an account.
type Pacer struct {
	distance func(product, action string) time.Duration
	mu       sync.Mutex
	next     map[string]time.Time
}

// NewPacer makes one that keeps two calls of an action apart by the distance.
func NewPacer(distance func(product, action string) time.Duration) *Pacer {
	return &Pacer{distance: distance, next: map[string]time.Time{}}
}

// AccountPace is a pacer with the pace of [Slow] for the actions of the emulator.
func AccountPace() (*Pacer, error) {
	e, err := emulator.New(emulator.Options{})
	if err != nil {
		return nil, fmt.Errorf("read the table of actions: %w", err)
	}
	return NewPacer(Slow(e.Actions())), e.Close()
}

// turn waits until the action may be called. Nil does not wait.
func (p *Pacer) turn(ctx context.Context, product, action string) error {
	if p == nil {
		return ctx.Err()
	}
	key := product + " " + action
	p.mu.Lock()
	now := time.Now()
	at := p.next[key]
	if at.Before(now) {
		at = now
	}
	p.next[key] = at.Add(p.distance(product, action))
	p.mu.Unlock()
	return sleep.For(ctx, at.Sub(now))
}
