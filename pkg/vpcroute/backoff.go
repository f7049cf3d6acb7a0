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
	// accept, a missing permission. It ends early when the node or the table changes.
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
	until    time.Time
}

// until returns when the route may be tried again, zero if at once.
func (b backoff) until(key routeKey, instance string, now time.Time) time.Time {
	failed, ok := b[key]
	if !ok || failed.instance != instance || !now.Before(failed.until) {
		return time.Time{}
	}
	return failed.until
}

func (b backoff) failed(key routeKey, instance string, err error, now time.Time) {
	failed := b[key]
	if failed.instance != instance {
		failed = failure{instance: instance}
	}
	wait := maxBackoff
	if failed.attempts < 7 {
		wait = min(maxBackoff, firstBackoff<<failed.attempts)
	}
	if permanent(err) {
		wait = permanentRetry
	}
	failed.attempts++
	failed.until = now.Add(wait)
	b[key] = failed
}

func (b backoff) succeeded(key routeKey) { delete(b, key) }

func permanent(err error) bool {
	return alicloud.IsForbidden(err) || alicloud.IsAuth(err) ||
		alicloud.HasCode(err, "InvalidCidrBlock", "InvalidCidrBlock.Malformed", "OperationDenied")
}
