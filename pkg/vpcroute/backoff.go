package vpcroute

import (
	"net/netip"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Waits before something that failed is tried again.
const (
	firstBackoff = time.Second
	maxBackoff   = 2 * time.Minute
	// permanentRetry is the wait after a refusal that no repetition changes: a used-up quota, a range that the cloud does not
	// accept, a missing permission, a table that does not exist. It ends early when the node or the table changes.
	permanentRetry = 5 * time.Minute
)

// routeKey names a route: one CIDR in one table.
type routeKey struct {
	table string
	cidr  netip.Prefix
}

// backoff remembers which routes failed, so that they do not hold up the others or flood the cloud.
type backoff map[routeKey]failure

type failure struct {
	instance string // the next hop that failed; another one is tried at once
	attempts int
	// duplicates counts the attempts in a row that met an entry which no read shows.
	duplicates int
	until      time.Time
}

// until returns when the route may be tried again, zero if at once.
func (b backoff) until(key routeKey, instance string, now time.Time) time.Time {
	failed, ok := b[key]
	if !ok || failed.instance != instance || !now.Before(failed.until) {
		return time.Time{}
	}
	return failed.until
}

// failed notes the failure and returns it.
func (b backoff) failed(key routeKey, instance string, err error, now time.Time) failure {
	failed := b[key]
	if failed.instance != instance {
		failed = failure{instance: instance}
	}
	wait := min(maxBackoff, firstBackoff<<min(failed.attempts, 10))
	if badNextHop(err) {
		// The cloud shows a new instance within seconds, and one of another VPC never. Each attempt costs a call per batch, and another
		// to find out which instances it was refused for.
		wait = min(permanentRetry, firstBackoff<<min(2*failed.attempts, 10))
	}
	if alicloud.IsDuplicate(err) {
		failed.duplicates++
	} else {
		failed.duplicates = 0
	}
	if permanent(err) || failed.duplicates > 1 {
		wait = permanentRetry
	}
	failed.attempts++
	failed.until = together(now, wait)
	b[key] = failed
	return failed
}

// together returns the end of a wait, later by half of it at most: routes that fail one after the other are then tried in one call.
func together(now time.Time, wait time.Duration) time.Time {
	step := wait / 2
	return now.Add(wait + step - 1).Truncate(step)
}

func (b backoff) succeeded(key routeKey) { delete(b, key) }

// permanent reports whether a repetition of the call would end alike.
func permanent(err error) bool {
	return refusesAll(err) || alicloud.HasCode(err, "InvalidCidrBlock", "InvalidCidrBlock.Malformed", "OperationDenied")
}

// refusesAll reports whether a refusal has nothing to do with the entries of the call: each of them would end alike.
func refusesAll(err error) bool {
	return alicloud.IsForbidden(err) || alicloud.IsAuth(err) || alicloud.HasCode(err,
		"InvalidRouteTableId.NotFound", "InvalidRouteTable.NotFound", "InvalidVpcId.NotFound",
		"InvalidTimeStamp.Expired", "InvalidTimeStamp.Format", "IllegalTimestamp",
	)
}

// badNextHop reports whether the cloud does not accept the instance as next hop, for example because it is in another VPC.
// Codes: https://www.alibabacloud.com/help/en/vpc/api-createrouteentries and
// https://github.com/kubernetes/cloud-provider-alibaba-cloud/issues/207.
func badNextHop(err error) bool {
	return alicloud.HasCode(err, "InvalidNextHop.NotFound", "InvalidNextHopId.NotFound", "OperationFailed.InvalidNexthop")
}
