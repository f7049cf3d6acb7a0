package conformance_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/conformance"
)

// asAccount are options as on a real account: without the emulator's own API, and without what only its fixture has.
func asAccount(o conformance.Options) conformance.Options {
	o.Admin, o.Environment.Disabled = nil, conformance.Key{}
	return o
}

// TestAccountRun: what runs on an account needs nothing that only an emulator has, and says why the rest does not run.
func TestAccountRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, o := emulated(t)
		d, err := conformance.Run(t.Context(), asAccount(o))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range d.Findings() {
			t.Error(f)
		}
		for _, r := range d.Scenarios {
			if r.Skipped == "" && slices.ContainsFunc(r.Exchanges, func(x conformance.Exchange) bool { return x.Admin != nil }) {
				t.Errorf("%s calls the emulator's own API", r.Name)
			}
		}
		if !d.Real {
			t.Error("the document does not say that it is of an account")
		}
	})
}

// TestPaceIsATenthOfThePublishedRates: calls of one action keep their distance.
func TestPaceIsATenthOfThePublishedRates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, o := emulated(t)
		pace, err := conformance.AccountPace()
		if err != nil {
			t.Fatal(err)
		}
		o = asAccount(o)
		o.Pace, o.Scenarios = pace, []string{"slb/access control", "slb/listeners"}
		if _, err := conformance.Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		last := map[string]time.Time{}
		for _, c := range e.Calls(0) {
			key := c.Product + " " + c.Action
			if previous, again := last[key]; again && c.Time.Sub(previous) < 10*time.Minute/90 && strings.HasPrefix(c.Action, "Create") {
				t.Errorf("%s again after %s", key, c.Time.Sub(previous))
			}
			last[key] = c.Time
		}
		if len(last) < 10 {
			t.Errorf("only %v were called", slices.Sorted(maps.Keys(last)))
		}
	})
}

// TestCleanAfterAKill: what a run has made and not removed is found by its tag, and nothing else is touched.
func TestCleanAfterAKill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, o := emulated(t)
		before := len(e.Instances())
		if _, err := conformance.Setup(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		other := o
		other.Tag = "another-run"
		if removed, err := conformance.Clean(t.Context(), other); err != nil || len(removed) > 0 {
			t.Errorf("another run removed %v, %v", removed, err)
		}
		other.Tag = ""
		if removed, err := conformance.Clean(t.Context(), other); err != nil || len(removed) != 3 {
			t.Errorf("removed %v, %v: want two instances and a security group", removed, err)
		}
		if after := len(e.Instances()); after != before {
			t.Errorf("%d instances are left, want %d", after, before)
		}
	})
}

// TestInterruptedRunLeavesNothing: the context ends in the middle of a scenario, which still removes what it made.
func TestInterruptedRunLeavesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, o := emulated(t)
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		o.Count = func(string, string) {
			if calls++; calls == 8 {
				cancel()
			}
		}
		o.Scenarios = []string{"slb/load balancer", "nlb/load balancer"}
		if _, err := conformance.Run(ctx, o); !errors.Is(err, context.Canceled) {
			t.Errorf("the run ended with %v", err)
		}
		o.Count = nil
		time.Sleep(time.Minute) // deletions end
		if left, err := conformance.Clean(t.Context(), o); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	})
}

// TestUsedVPCIsRefused: a run on an account does not begin in a VPC with instances.
func TestUsedVPCIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, o := emulated(t)
		if _, err := conformance.Setup(t.Context(), asAccount(o)); !errors.Is(err, conformance.ErrUsed) {
			t.Errorf("the setup ended with %v", err)
		}
	})
}

// TestDryRun: the plan has calls and a price, and nothing is called.
func TestDryRun(t *testing.T) {
	t.Parallel()
	p, err := conformance.DryRun(t.Context(), []string{"slb", "vpc"})
	if err != nil {
		t.Fatal(err)
	}
	if p.Calls["slb CreateLoadBalancer"] < 5 || p.Calls["nlb CreateLoadBalancer"] > 0 || p.Price <= 0 || p.Duration < time.Minute {
		t.Errorf("plan: %+v", p)
	}
	var text strings.Builder
	if err := p.Write(&text); err != nil || !strings.Contains(text.String(), "together at most") {
		t.Errorf("%v:\n%s", err, &text)
	}
}
