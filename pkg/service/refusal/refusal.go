// Package refusal remembers which calls the cloud refused, and for how long they are not made again. Whatever made the cloud refuse one,
// such as a quota, causes no event when it ends, so that the next attempt has to come by itself. The package makes no calls.
package refusal

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// Pause is how long a call is not made again.
type Pause struct {
	// First is the pause after the first refusal; 0 has the next pass try again.
	First time.Duration
	// Least is the one after the second refusal in a row. Then each is twice as long as the one before, up to Longest.
	Least, Longest time.Duration
	// Since has the pause be as long as the call has been refused for by then, in place of Least and of doubling: whatever is put right soon
	// is tried again soon.
	Since bool
}

// Lasting is the pause of a call that may be refused for ever, such as one for which the role lacks a permission: less than 30 attempts in
// a day.
var Lasting = Pause{Since: true, Longest: waits.Refused}

// freeTries is for how long a call is tried with each pass, which has its own backoff, before it pauses.
const freeTries = 10 * time.Second

// Fixed returns a pause of the same length after each refusal.
func Fixed(d time.Duration) Pause { return Pause{First: d, Least: d, Longest: d} }

// nextPause returns the pause after the one before.
func (p Pause) nextPause(before time.Duration) time.Duration {
	return min(max(p.Least, 2*before), p.Longest) //nolint:mnd // doubled
}

// Refusals are calls that the cloud refused, by what they were to do. The zero value is empty; several goroutines may use it.
type Refusals[K comparable] struct {
	mu    sync.Mutex // guards byKey
	byKey map[K]refused
}

type refused struct {
	err   error
	until time.Time
	pause time.Duration
	since time.Time
}

// Err returns why the cloud refused a call a short while ago, nil when the call may be made.
func (r *Refusals[K]) Err(what K, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if before, ok := r.byKey[what]; ok && now.Before(before.until) {
		return before.err
	}
	return nil
}

// Has reports whether the cloud refused a call the last time that it was made.
func (r *Refusals[K]) Has(what K) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.byKey[what]
	return ok
}

// Add notes that the cloud refused a call. It drops what nobody has asked for in the longest pause since it could be tried again.
func (r *Refusals[K]) Add(what K, err error, pause Pause, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wait, since := pause.First, now
	if before, ok := r.byKey[what]; ok {
		wait, since = pause.nextPause(before.pause), before.since
	}
	if pause.Since {
		if wait = min(now.Sub(since), pause.Longest); wait < freeTries {
			wait = 0
		}
	}
	maps.DeleteFunc(r.byKey, func(_ K, old refused) bool { return now.Sub(old.until) > pause.Longest })
	if r.byKey == nil {
		r.byKey = map[K]refused{}
	}
	r.byKey[what] = refused{err: err, until: now.Add(wait), pause: wait, since: since}
}

// Drop forgets what the cloud accepts again.
func (r *Refusals[K]) Drop(what K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byKey, what)
}

// DropFunc forgets what the cloud may accept again.
func (r *Refusals[K]) DropFunc(drop func(what K, err error) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.byKey, func(what K, old refused) bool { return drop(what, old.err) })
}

// OfCreation reports whether the cloud refused a load balancer for sure, and for a reason that does not pass by itself within seconds.
func OfCreation(err error) bool {
	if _, ok := errors.AsType[*problem.ConfigError](err); ok {
		return true
	}
	refused, ok := errors.AsType[*alicloud.Error](err)
	if !ok || alicloud.IsNoCredentials(err) || refused.Status < http.StatusBadRequest {
		return false
	}
	return !alicloud.IsAmbiguous(err) && !alicloud.IsThrottled(err) && !alicloud.IsBusy(err) && !alicloud.IsAuth(err)
}

// OfServers reports whether a call was refused, for sure and for good, for what it says about its backend servers. The cloud documents no
// complete list of such codes, so it is every refusal that does not say that the call as a whole came at the wrong time, from the wrong
// caller, twice, or at a resource that is gone, nor one of the others. A group of one bad server would otherwise never get another one.
func OfServers(err error, others ...func(error) bool) bool {
	refused, ok := errors.AsType[*alicloud.Error](err)
	if !ok || alicloud.IsNoCredentials(err) || refused.Status < http.StatusBadRequest || refused.Status >= http.StatusInternalServerError {
		return false
	}
	others = append(others, alicloud.IsAmbiguous, alicloud.IsThrottled, alicloud.IsBusy, alicloud.IsAuth, alicloud.IsForbidden)
	return !slices.ContainsFunc(others, func(is func(error) bool) bool { return is(err) })
}
