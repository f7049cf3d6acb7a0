package bench

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
)

var journal = []emulator.Call{
	{Product: "slb", Action: "DescribeLoadBalancers", Kind: "read"},
	{Product: "slb", Action: "CreateLoadBalancer", Kind: "write", Status: 400, Code: "Throttling.User"},
	{Product: "slb", Action: "CreateLoadBalancer", Kind: "write"},
	{Product: "ecs", Action: "DescribeInstances", Kind: "read"},
	{Product: "ecs", Action: "ModifyNetworkInterfaceAttribute", Kind: "write"},
}

func TestCount(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		filter        filter
		reads, writes int
		text          string
	}{
		{"all, refused ones too", everything, 2, 3,
			"2 CreateLoadBalancer, 1 DescribeInstances, 1 DescribeLoadBalancers, 1 ModifyNetworkInterfaceAttribute, 1 of them refused (1 Throttling.User)"},
		{"one product", ofProduct("slb"), 1, 2, "2 CreateLoadBalancer, 1 DescribeLoadBalancers, 1 of them refused (1 Throttling.User)"},
		{"writes of it", writes(ofProduct("slb")), 0, 2, "2 CreateLoadBalancer, 1 of them refused (1 Throttling.User)"},
		{"without an action", exceptAction(ofProduct("ecs"), switchCheckOff), 1, 0, "1 DescribeInstances"},
		{"with an action of another", orAction(ofProduct("ecs"), "DescribeLoadBalancers"), 2, 1,
			"1 DescribeInstances, 1 DescribeLoadBalancers, 1 ModifyNetworkInterfaceAttribute"},
		{"none", ofProduct("vpc"), 0, 0, "no call"},
	} {
		got := count(journal, tt.filter)
		if got.reads != tt.reads || got.writes != tt.writes || got.calls() != tt.reads+tt.writes || got.String() != tt.text {
			t.Errorf("%s: %d reads, %d writes, %s", tt.name, got.reads, got.writes, got)
		}
	}
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	var values []time.Duration
	for i := 100; i > 0; i-- {
		values = append(values, time.Duration(i))
	}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 50, 0.99: 99, 1: 100} {
		if got := quantile(values, q); got != want {
			t.Errorf("quantile %v = %d, want %d", q, got, want)
		}
	}
	if got := quantile(nil, 0.5); got != 0 {
		t.Errorf("quantile of nothing = %d", got)
	}
	if got := quantile([]time.Duration{7}, 0.99); got != 7 {
		t.Errorf("quantile of one value = %d", got)
	}
}

func TestCountNodeReads(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	line := func(verb, resource, at string) string {
		return fmt.Sprintf(`{"verb":%q,"objectRef":{"resource":%q},"requestReceivedTimestamp":%q}`, verb, resource, at) + "\n"
	}
	log := line("get", "nodes", "2026-01-01T11:59:59.999999Z") + line("get", "nodes", "2026-01-01T12:00:00.000000Z") +
		line("list", "nodes", "2026-01-01T12:00:01.000000Z") + line("get", "leases", "2026-01-01T12:00:02.000000Z")
	if got, err := countNodeRequests(strings.NewReader(log), "get", since); got != 1 || err != nil {
		t.Errorf("%d, %v, want the one after the beginning", got, err)
	}
	for name, log := range map[string]string{"no request at all": "", "a line that is cut off": `{"verb":"get"`} {
		if got, err := countNodeRequests(strings.NewReader(log), "get", since); err == nil {
			t.Errorf("%s counts as %d", name, got)
		}
	}
}
