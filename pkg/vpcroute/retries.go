package vpcroute

import (
	"net/netip"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Waits before a route that failed is tried again.
const (
	// permanentRetry is the wait after a refusal that no repetition changes: a used-up quota, a range that the cloud does not
	// accept, a missing permission, a table that does not exist. It ends early when the node or the table changes.
	permanentRetry = 5 * time.Minute
	// firstHopRetry is the wait after a next hop that the cloud does not accept: it shows a new instance within seconds, and one of another
	// VPC never. Each attempt costs a call per batch, and another to find out which instances it was refused for.
	firstHopRetry = 4 * time.Second
)

// routeKey names a route: one CIDR in one table.
type routeKey struct {
	table string
	cidr  netip.Prefix
}

// retries are the routes that failed, each with its own time for the next attempt, so that they do not hold up the others or flood the
// cloud.
type retries struct {
	begun    time.Time // of the grid on which attempts are, see [retries.failed]
	failures map[routeKey]failure
}

type failure struct {
	err      error
	instance string // the next hop that failed; another one is tried at once
	attempts int
	// duplicates counts the attempts in a row that met an entry which no read shows.
	duplicates int
	// occupant is the entry that has the destination, nil where none was found. It counts until the next attempt.
	occupant *entry
	until    time.Time
}

func newRetries() retries { return retries{begun: time.Now(), failures: map[routeKey]failure{}} }

// until returns when the route may be tried again, zero if at once.
func (r retries) until(key routeKey, instance string, now time.Time) time.Time {
	failed, ok := r.failures[key]
	if !ok || failed.instance != instance || !now.Before(failed.until) {
		return time.Time{}
	}
	return failed.until
}

// failed notes the failure and returns it. The next attempt comes up to half a wait later than its time, so that routes that fail one after
// the other are tried in one call. No wait depends on the wall clock, which may be set.
func (r retries) failed(key routeKey, instance string, err error, now time.Time) failure {
	failed := r.failures[key]
	if failed.instance != instance {
		failed = failure{instance: instance}
	}
	failed.duplicates++
	if !alicloud.IsDuplicate(err) {
		failed.duplicates = 0
	}
	wait := backoff(failed.attempts, firstBackoff, maxBackoff)
	switch {
	case permanent(err) || failed.duplicates > 1:
		wait = permanentRetry
	case badNextHop(err):
		wait = backoff(failed.attempts, firstHopRetry, permanentRetry)
	}
	failed.err, failed.occupant = err, nil
	failed.attempts++
	step := wait / 2
	failed.until = r.begun.Add((now.Sub(r.begun) + wait + step - 1) / step * step)
	r.failures[key] = failed
	return failed
}

// occupied notes whose the destination of a route is.
func (r retries) occupied(key routeKey, by entry, now time.Time) {
	failed := r.failures[key]
	failed.occupant, failed.duplicates, failed.until = &by, 0, now.Add(permanentRetry)
	r.failures[key] = failed
}

// backoff is the wait after so many attempts and one more: it doubles between two bounds.
func backoff(attempts int, first, most time.Duration) time.Duration {
	return min(first<<min(attempts, 16), most)
}

// permanent reports whether a repetition of the call would end alike.
func permanent(err error) bool {
	return refusesAll(err) || alicloud.HasCode(err, "InvalidCidrBlock", "InvalidCidrBlock.Malformed", "OperationDenied")
}

// refusesAll reports whether a refusal has nothing to do with the entries of the call: each of them would end alike.
func refusesAll(err error) bool {
	return alicloud.IsForbidden(err) || alicloud.IsAuth(err) || alicloud.HasCode(err,
		"InvalidRouteTableId.NotFound", "InvalidRouteTable.NotFound", "InvalidVpcId.NotFound")
}

// badNextHop reports whether the cloud does not accept the instance as next hop, for example because it is in another VPC.
// Codes: https://www.alibabacloud.com/help/en/vpc/api-createrouteentries and
// https://github.com/kubernetes/cloud-provider-alibaba-cloud/issues/207.
func badNextHop(err error) bool {
	return alicloud.HasCode(err, "InvalidNextHop.NotFound", "InvalidNextHopId.NotFound", "OperationFailed.InvalidNexthop")
}
