package limits_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/limits"
)

func TestUsage(t *testing.T) {
	t.Parallel()
	w := limits.New(limits.Published)
	start := time.Date(2026, 1, 1, 10, 0, 30, 0, time.UTC)
	for range 70 {
		// The last ten are refused, which does not fill the window further.
		_ = w.Admit("slb", "CreateLoadBalancer", api.Write, start)
	}
	for product, action := range map[string]string{"slb": "DescribeLoadBalancers", "ecs": "DescribeInstances"} { // the second has no quota
		if refused := w.Admit(product, action, api.Read, start); refused != nil {
			t.Errorf("%s is refused: %v", action, refused)
		}
	}
	end := start.Add(30 * time.Second)
	want := []limits.Usage{
		{Product: "slb", Action: "CreateLoadBalancer", Calls: 60, Quota: limits.Quota{Calls: 60, Window: time.Minute}, Ends: end},
		{Product: "slb", Action: "DescribeLoadBalancers", Calls: 1, Quota: limits.Quota{Calls: 3000, Window: time.Minute}, Ends: end},
	}
	if d := cmp.Diff(want, w.Usage(start.Add(29*time.Second))); d != "" {
		t.Errorf("in the window (-want +got):\n%s", d)
	}
	if got := w.Usage(end); len(got) != 0 {
		t.Errorf("after the window: %v", got)
	}
	var off *limits.Windows
	if got := off.Usage(start); got != nil {
		t.Errorf("without windows: %v", got)
	}
}

// TestLateCalls: calls that were read in an earlier window, before the clock was set forward or the minute ended, do not reopen the present
// one.
func TestLateCalls(t *testing.T) {
	t.Parallel()
	w := limits.New(func(string, string, api.Kind) (limits.Quota, bool) {
		return limits.Quota{Calls: 2, Window: time.Minute}, true
	})
	before := time.Date(2026, 1, 1, 10, 0, 59, 0, time.UTC)
	var admitted []bool
	for _, now := range []time.Time{before, before.Add(time.Second), before, before.Add(time.Second), before} {
		admitted = append(admitted, w.Admit("slb", "CreateLoadBalancer", api.Write, now) == nil)
	}
	if d := cmp.Diff([]bool{true, true, true, false, false}, admitted); d != "" {
		t.Errorf("admitted (-want +got):\n%s", d)
	}
}
