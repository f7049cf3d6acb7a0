// Package limits counts calls in fixed windows, as the cloud does: an action that is over its quota stays closed until
// the window's end, whatever the caller does in between.
package limits

import (
	"sync"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
)

// Quota is how many calls one window admits.
type Quota struct {
	Calls  int
	Window time.Duration
}

// Windows counts the calls of one account. It is safe for concurrent use. A nil *Windows admits everything.
type Windows struct {
	quotas Quotas
	mu     sync.Mutex
	used   map[string]window // guarded by mu
}

type window struct {
	start time.Time
	calls int
	quota Quota
}

// New makes windows with quotas.
func New(quotas Quotas) *Windows {
	return &Windows{quotas: quotas, used: map[string]window{}}
}

// Admit counts a call, or refuses it when its window is full. A refused call is not counted.
func (w *Windows) Admit(product, action string, kind api.Kind, now time.Time) *api.Error {
	if w == nil {
		return nil
	}
	q, limited := w.quotas(product, action, kind)
	if !limited {
		return nil
	}
	key := product + "/" + action
	w.mu.Lock()
	defer w.mu.Unlock()
	u := w.used[key]
	// A call that was read before the end of the last window counts in the present one: going back would forget who called since.
	if start := now.Truncate(q.Window); start.After(u.start) {
		u = window{start: start, quota: q}
	}
	if u.calls >= q.Calls {
		return api.BadRequest("Throttling.User", "Request was denied due to user flow control.")
	}
	u.calls++
	w.used[key] = u
	return nil
}
