package model

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// TestLocksOfSteps: while a job of a listener is under way, its load balancer takes no other one; servers lock their group only.
func TestLocksOfSteps(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		ops   []Op
		locks []string
		part  Part
	}{
		{[]Op{OpCreateListener, OpUpdateListener, OpStartListener, OpDeleteListener}, []string{"it", TargetLoadBalancer}, PartListeners},
		{[]Op{OpAddCertificates, OpRemoveCertificates}, []string{"it", TargetLoadBalancer}, PartCertificates},
		{[]Op{OpCreateGroup, OpUpdateGroup, OpAddServers, OpUpdateServers, OpRemoveServers, OpDeleteGroup, OpUntagGroup}, []string{"it"},
			PartGroups},
		{[]Op{OpCreateAccess, OpAddRules, OpRemoveRules, OpDeleteAccess}, []string{"it"}, PartAccess},
		{[]Op{
			OpCreateLoadBalancer, OpSetAttributes, OpSetZones, OpSetAddressType, OpSetIPv6, OpJoin, OpLeave, OpAttach, OpDetach, OpSetProtection,
			OpTag, OpUntag, OpDeleteLoadBalancer,
		}, []string{"it"}, PartLoadBalancer},
	} {
		for _, op := range test.ops {
			step := Step{Op: op, Target: "it", Needs: []string{"another"}}
			if got := step.Locks(); !slices.Equal(got, test.locks) {
				t.Errorf("%s: locks %v, want %v", op, got, test.locks)
			}
			if got, want := step.Uses(), append(slices.Clone(test.locks), "another"); !slices.Equal(got, want) {
				t.Errorf("%s: uses %v, want %v", op, got, want)
			}
			if got := step.Part(); got != test.part {
				t.Errorf("%s: part %q, want %q", op, got, test.part)
			}
		}
	}
}

func TestStepsForPeople(t *testing.T) {
	t.Parallel()
	for want, step := range map[string]Step{
		"create NLB":                             {Op: OpCreateLoadBalancer, Target: TargetLoadBalancer},
		"add rules: 10.0.0.0/8":                  {Op: OpAddRules, Target: TargetAccess, After: "10.0.0.0/8"},
		"add servers group:web: i-1":             {Op: OpAddServers, Target: TargetGroup("web"), After: "i-1"},
		"update listener tcp:80: cps=1 -> cps=2": {Op: OpUpdateListener, Target: TargetListener("tcp:80"), Before: "cps=1", After: "cps=2"},
		"delete listener tcp:80: group:web":      {Op: OpDeleteListener, Target: TargetListener("tcp:80"), Before: "group:web"},
		"delete server group group:sgp-1":        {Op: OpDeleteGroup, Target: TargetGroup("sgp-1")},
	} {
		if got := step.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestServersForPeople(t *testing.T) {
	t.Parallel()
	of := func(kind, id, ip string) alicloud.NLBServer {
		return alicloud.NLBServer{NLBServerKey: alicloud.NLBServerKey{ID: id, IP: ip, Type: kind, Port: 80}, Weight: 5}
	}
	instance := of(alicloud.NLBServerECS, "i-1", "10.0.0.1")
	for want, servers := range map[string][]alicloud.NLBServer{
		"": nil, "i-1:80=5": {instance}, "eni-1/10.0.0.2:80=5": {of(alicloud.NLBServerENI, "eni-1", "10.0.0.2")},
		"10.0.0.3:80=5": {of(alicloud.NLBServerIP, "10.0.0.3", "10.0.0.3")},
		"i-1:80=5 i-1:80=5 i-1:80=5 i-1:80=5 i-1:80=5":            slices.Repeat([]alicloud.NLBServer{instance}, maxShown),
		"i-1:80=5 i-1:80=5 i-1:80=5 i-1:80=5 i-1:80=5 and 2 more": slices.Repeat([]alicloud.NLBServer{instance}, maxShown+2),
	} {
		if diff := cmp.Diff(want, ServersText(servers)); diff != "" {
			t.Errorf("servers (-want +got):\n%s", diff)
		}
	}
}

func TestPlans(t *testing.T) {
	t.Parallel()
	plan := Plan{Steps: []Step{{Op: OpTag}}}
	if !plan.Has(OpTag) || plan.Has(OpUntag) || plan.Empty() || !(Plan{}).Empty() {
		t.Error("what a plan has")
	}
}
