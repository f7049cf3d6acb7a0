package deploy

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// How long a backend server that the cloud refused is left out. Whatever made the cloud refuse it (its VPC, its state, a quota of
// its own) causes no event, so the next attempt comes by itself: after the first refusal with the next pass, then at intervals that
// double.
const (
	minRefusedFor = time.Minute
	maxRefusedFor = 8 * time.Minute
)

// maxInARow is how many backend servers the cloud may refuse one by one, with none accepted between, before the rest waits for the
// next pass: the cause may be the group or the CLB, and then each attempt wastes a call.
const maxInARow = 5

// refusesServer reports whether a call was refused, for sure and for good, for what it says about its backend servers: an instance
// that was released, has no address, is in another VPC or behind as many CLBs as it may be. The cloud documents no complete list
// of such codes, so it is every refusal that does not say that the call as a whole came at the wrong time, from the wrong caller
// or at a resource that is gone.
func refusesServer(err error) bool {
	var refused *alicloud.Error
	if !errors.As(err, &refused) || alicloud.IsNoCredentials(err) || refused.Code == "" {
		return false
	}
	if refused.Status < http.StatusBadRequest || refused.Status >= http.StatusInternalServerError {
		return false
	}
	for _, other := range []func(error) bool{
		alicloud.IsAmbiguous, alicloud.IsThrottled, alicloud.IsBusy, alicloud.IsAuth, alicloud.IsForbidden, resourceGone, alicloud.IsTooManyBackends, IsOverQuota,
	} {
		if other(err) {
			return false
		}
	}
	return true
}

// resourceGone reports whether the CLB or the group of a call is gone.
func resourceGone(err error) bool {
	return alicloud.IsNotFound(err) && !alicloud.HasCode(err, "InvalidInstanceId.NotFound")
}

// IsOverQuota reports whether a call was refused because the CLB has as many backend servers as it may have. Other quotas are those of
// one instance.
// Source: https://www.alibabacloud.com/help/en/slb/api-addvservergroupbackendservers.
func IsOverQuota(err error) bool {
	return alicloud.HasCode(err, "InstanceBackendServerNumberOverLimit")
}

// Memory is what the answers to earlier calls have shown. The zero value is empty; several goroutines may use it.
type Memory struct {
	mu       sync.Mutex // guards the rest
	refusals map[change]refusal
	paces    map[string]pace
	// vacancies are ports that nothing serves because their listeners were deleted to make room for others.
	vacancies    map[vacancy]*model.Listener
	replacements map[replacement]refusal
	shortages    map[shortage]refusal
	// settle is the settle time of the CLB that was last written to: the first guess for others.
	settle time.Duration
}

// change is what a call does to one backend server.
type change struct {
	op      model.Op
	groupID string
	backend alicloud.Backend
}

// refusal is the answer to a change.
type refusal struct {
	err   error
	until time.Time
	wait  time.Duration
}

// refused returns why the cloud refused a change a short while ago, nil when the change may be tried.
func (m *Memory) refused(c change, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if before, ok := m.refusals[c]; ok && now.Before(before.until) {
		return before.err
	}
	return nil
}

func (m *Memory) refuse(c change, err error, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refusals == nil {
		m.refusals = map[change]refusal{}
	}
	refuseAgain(m.refusals, c, err, maxRefusedFor, now)
}

// refuseAgain notes a refusal: the next attempt may come at once after the first one, and later at intervals that double up to the
// longest.
func refuseAgain[K comparable](refusals map[K]refusal, what K, err error, longest time.Duration, now time.Time) {
	wait := time.Duration(0)
	if before, ok := refusals[what]; ok {
		wait = min(max(minRefusedFor, 2*before.wait), longest) //nolint:mnd // doubled
	}
	for other, old := range refusals {
		if now.Sub(old.until) > longest {
			delete(refusals, other) // nothing has asked for it since
		}
	}
	refusals[what] = refusal{err: err, until: now.Add(wait), wait: wait}
}

func (m *Memory) accept(c change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.refusals, c)
}

// refusedServer is a backend server that a step leaves out.
type refusedServer struct {
	backend alicloud.Backend
	err     error
}

// reportRefused turns the backend servers that a step left out into one error for each code.
func (a *Applier) reportRefused(step model.Step) {
	for len(a.left) > 0 {
		first := a.left[0]
		same := func(r refusedServer) bool { return code(r.err) == code(first.err) }
		var names []string
		for _, left := range a.left {
			if same(left) {
				names = append(names, left.backend.String())
			}
		}
		a.errs = append(a.errs, fmt.Errorf("%s: the cloud refuses %s: %w", a.describe(step), problem.Some(names), first.err))
		a.left = slices.DeleteFunc(a.left, same)
	}
}

func code(err error) string {
	if refused, ok := errors.AsType[*alicloud.Error](err); ok {
		return refused.Code
	}
	return ""
}
