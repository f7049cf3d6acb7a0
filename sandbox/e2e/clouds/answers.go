package clouds

import (
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// Answer is a way in which a cloud answers wrongly that is known to have cost other clusters their nodes.
type Answer struct {
	Name string
	// URL is the cloud that answers like this.
	URL string
	// Faults are to be injected into the cluster's own account.
	Faults []map[string]any
	// Least is how long it is to be watched at least.
	Least time.Duration
}

// tooLate is longer than the manager waits for one answer, a repetition included.
const tooLate = 35 * time.Second

// Answers are wrong answers in place of those of the account at the URL own. The faults concern one action, or all with "*".
func Answers(t *testing.T, own, action string) []Answer {
	t.Helper()
	half := func(all []any) []any { return all[:len(all)/2] }
	none := func([]any) []any { return []any{} }
	fault := func(name, key string, value any) Answer {
		return Answer{Name: name, URL: own, Faults: []map[string]any{{"action": action, "kind": "read", "times": 0, key: value}}}
	}
	late := fault("answers too late", "latency", "25s")
	late.Least = tooLate
	return []Answer{
		{Name: "permission taken away", URL: Denied(t)},
		{Name: "key of another account", URL: Serve(t, nil, "i-stranger1", "i-stranger2")},
		{Name: "wrong secret", URL: Serve(t, Keyed(cluster.AccessKeyID, "another-secret"))},
		fault("temporary key expired", "code", "InvalidSecurityToken.Expired"),
		fault("server errors", "code", "ServiceUnavailable"),
		fault("answers dropped", "drop", "after"),
		fault("answers without a body", "body", ""),
		fault("answers with an empty object", "body", "{}"),
		fault("list that lags behind everything", "stale", "1h"),
		{Name: "empty lists", URL: Altered(t, own, true, none)},
		{Name: "half of every list", URL: Altered(t, own, false, half)},
		{Name: "half of every list, counted as if that were all", URL: Altered(t, own, true, half)},
		{Name: "cloud of another region", URL: Serve(t, Regional("cn-beijing"), "i-stranger1")},
		// The last one, as a call that is under way delays those after it.
		late,
	}
}
