package vpcroute

import (
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Waits before something that failed is tried again.
const (
	firstBackoff = time.Second
	maxBackoff   = 2 * time.Minute
	// nextHopFactor lengthens the wait after a next hop that the cloud does not accept: it shows a new instance within seconds, and one of
	// another VPC never. Each attempt costs a call per batch, and another to find out which instances it was refused for.
	nextHopFactor = 4
)

// newBackoff returns the limiter of everything that this package tries again.
func newBackoff() workqueue.TypedRateLimiter[any] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[any](firstBackoff, maxBackoff)
}

// routeKey names a route in one table. A route to another instance is another one, and is tried at once.
type routeKey struct {
	table string
	route
}

// What else is tried again.
type (
	readOf      string // table
	fullTable   string // so that the nodes without a route cost neither a call nor an event each
	tableChoice struct{}
)

// retries are what failed, each with its own time for the next attempt, so that it holds nothing else up and does not flood the cloud.
type retries struct {
	begun    time.Time // of the grid on which attempts are, see [retries.failed]
	backoff  workqueue.TypedRateLimiter[any]
	failures map[any]failure
}

type failure struct {
	err      error
	attempts int
	// entries is what a full table held. It stays the limit until the table holds more, for the quota may have been raised.
	entries int
	until   time.Time
}

// unseen reports whether a route met an entry again and again that no read shows.
func (f failure) unseen() bool { return alicloud.IsDuplicate(f.err) && f.attempts > 1 }

func newRetries() retries {
	return retries{begun: time.Now(), backoff: newBackoff(), failures: map[any]failure{}}
}

// until returns when it may be tried again, zero if at once.
func (r retries) until(what any, now time.Time) time.Time {
	if failed := r.failures[what]; now.Before(failed.until) {
		return failed.until
	}
	return time.Time{}
}

// failed notes a failure. No wait depends on the wall clock, which may be set.
func (r retries) failed(what any, err error, now time.Time) {
	wait := r.backoff.When(what)
	failed := failure{err: err, attempts: r.backoff.NumRequeues(what)}
	_, read := what.(readOf)
	switch {
	case read && !tableGone(err) && (permanent(err) || alicloud.IsNotFound(err)):
		wait = min(wait, waits.TableUnread)
	case permanent(err), failed.unseen():
		wait = waits.RouteRefused
	case badNextHop(err):
		wait = min(nextHopFactor*wait, waits.RouteRefused)
	}
	failed.until = now.Add(wait)
	if _, ok := what.(routeKey); ok {
		// Up to half a wait sooner, the first time, so that routes that fail one after the other are tried in one call.
		step := wait / 2
		failed.until = r.begun.Add((now.Sub(r.begun) + wait) / step * step)
	}
	r.failures[what] = failed
}

// succeeded forgets the failures.
func (r retries) succeeded(what any) {
	r.backoff.Forget(what)
	delete(r.failures, what)
}

// room is how many routes may be created in the table now, at most one call's worth. Without room, the time says when
// there may be some.
func (r retries) room(t *table, now time.Time) (int, time.Time) {
	until := r.until(fullTable(t.id), now)
	if until.IsZero() {
		return alicloud.MaxRouteEntriesPerCall, until
	}
	return min(alicloud.MaxRouteEntriesPerCall, max(0, r.failures[fullTable(t.id)].entries-t.custom)), until
}

// permanent reports whether a repetition of the call would end alike.
func permanent(err error) bool {
	return refusesAll(err) || alicloud.HasCode(err, "InvalidCidrBlock", "InvalidCidrBlock.Malformed", "OperationDenied")
}

// refusesAll reports whether a refusal has nothing to do with the entries of the call: each of them would end alike.
func refusesAll(err error) bool {
	return alicloud.IsForbidden(err) || alicloud.IsAuth(err) || tableGone(err) || alicloud.HasCode(err, "InvalidVpcId.NotFound")
}

// tableGone reports whether the cloud says that there is no such table.
func tableGone(err error) bool {
	return alicloud.HasCode(err, "InvalidRouteTableId.NotFound", "InvalidRouteTable.NotFound")
}

// badNextHop reports whether the cloud does not accept the instance as next hop, for example because it is in another VPC.
// Codes: https://www.alibabacloud.com/help/en/vpc/api-createrouteentries and
// https://github.com/kubernetes/cloud-provider-alibaba-cloud/issues/207.
func badNextHop(err error) bool {
	return alicloud.HasCode(err, "InvalidNextHop.NotFound", "InvalidNextHopId.NotFound", "OperationFailed.InvalidNexthop")
}
