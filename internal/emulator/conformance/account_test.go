package conformance_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/conformance"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/rpc"
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

// TestPaceIsATenthOfThePublishedRates: calls of one action keep their distance, also those of different scenarios and those that remove
// what is left.
func TestPaceIsATenthOfThePublishedRates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, o := emulated(t)
		pace, err := conformance.AccountPace()
		if err != nil {
			t.Fatal(err)
		}
		o = asAccount(o)
		o.Pace = pace
		if _, err := conformance.Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if _, err := conformance.Clean(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		distance, last := conformance.Slow(e.Actions()), map[string]time.Time{}
		for _, c := range e.Calls(0) {
			key := c.Product + " " + c.Action
			if previous, again := last[key]; again && c.Time.Sub(previous) < distance(c.Product, c.Action) {
				t.Errorf("%s again after %s, not %s", key, c.Time.Sub(previous), distance(c.Product, c.Action))
			}
			last[key] = c.Time
		}
		if len(last) < 100 {
			t.Errorf("only %d actions were called", len(last))
		}
		if got, want := distance("slb", "CreateLoadBalancer"), 10*time.Minute/60; got != want {
			t.Errorf("load balancers are created every %s, want %s", got, want)
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

// TestCleanFindsAllPages: more resources of killed runs than a page has, and behind those of others.
func TestCleanFindsAllPages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, o := emulated(t)
		call := caller(t, o)
		quotas := `{"quotas":{"acls":1000}}`
		if _, err := o.Admin(t.Context(), http.MethodPut, "/_emulator/settings", quotas); err != nil {
			t.Fatal(err)
		}
		for i := range 120 {
			call("vpc", "AllocateEipAddress", map[string]string{"Name": "of-another-program"})
			call("slb", "CreateAccessControlList",
				map[string]string{"AclName": "left", "Tag.1.Key": conformance.TagKey, "Tag.1.Value": fmt.Sprint("run-", i)})
		}
		for i := range 3 {
			call("vpc", "AllocateEipAddress", map[string]string{"Name": fmt.Sprintf("%s-run-%d", conformance.TagKey, i)})
		}
		o.Tag = ""
		if removed, err := conformance.Clean(t.Context(), o); err != nil || len(removed) != 123 {
			t.Errorf("removed %d, %v: want 120 access control lists and 3 elastic IP addresses", len(removed), err)
		}
	})
}

// caller makes signed calls that succeed.
func caller(t *testing.T, o conformance.Options) func(product, action string, parameters map[string]string) {
	t.Helper()
	return func(product, action string, parameters map[string]string) {
		t.Helper()
		p := api.Params{
			"Action": action, "Version": api.VersionOf(product), "Format": "JSON", "RegionId": o.Environment.Region, "AccessKeyId": o.Key.ID,
			"SignatureMethod": "HMAC-SHA1", "SignatureVersion": "1.0", "SignatureNonce": rand.Text(),
			"Timestamp": time.Now().UTC().Format(time.RFC3339),
		}
		maps.Copy(p, parameters)
		p["Signature"] = rpc.Sign(o.Key.Secret, http.MethodGet, p)
		query := url.Values{}
		for name, value := range p {
			query.Set(name, value)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+o.Endpoint+"/?"+query.Encode(), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := o.Transport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", action, response.Status)
		}
	}
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

// TestInterruptedSetup: the context ends while an instance starts. What was made is found.
func TestInterruptedSetup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, o := emulated(t)
		ctx, cancel := context.WithCancel(t.Context())
		o.Count = func(_, action string) {
			if action == "DescribeInstances" {
				cancel()
			}
		}
		if _, err := conformance.Setup(ctx, o); !errors.Is(err, context.Canceled) {
			t.Errorf("the setup ended with %v", err)
		}
		o.Count = nil
		if removed, err := conformance.Clean(t.Context(), o); err != nil || len(removed) != 2 {
			t.Errorf("removed %v, %v: want an instance and a security group", removed, err)
		}
	})
}

// TestNetworksThatAreRefused: a run on an account does not begin in a VPC with instances, and needs two zones of one VPC.
func TestNetworksThatAreRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, o := emulated(t)
		if _, err := conformance.Inspect(t.Context(), asAccount(o)); !errors.Is(err, conformance.ErrUsed) {
			t.Errorf("a VPC with instances: %v", err)
		}
		o.Environment.VSwitches[1] = "vsw-a2"
		if _, err := conformance.Inspect(t.Context(), o); err == nil || !strings.Contains(err.Error(), "vsw-a and vsw-a2 are both in the zone") {
			t.Errorf("two vSwitches in one zone: %v", err)
		}
		o.Environment.VSwitches[1] = "vsw-other"
		if _, err := conformance.Inspect(t.Context(), o); err == nil || !strings.Contains(err.Error(), "vsw-other is in the VPC vpc-other") {
			t.Errorf("a vSwitch of another VPC: %v", err)
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
	if p.Calls["slb CreateLoadBalancer"] < 5 || p.Calls["nlb CreateLoadBalancer"] > 0 || p.Calls["nlb ListLoadBalancers"] == 0 ||
		p.Price <= 0 || p.Duration < time.Minute {
		t.Errorf("plan: %+v", p)
	}
	var text strings.Builder
	if err := p.Write(&text); err != nil || !strings.Contains(text.String(), "together at most") {
		t.Errorf("%v:\n%s", err, &text)
	}
}
