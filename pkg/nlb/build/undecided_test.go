package build_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// TestAnnotationsOfServersThatAreNotAccepted: nothing was accepted before, as after a restart. Who is a backend follows the nodes where the
// annotation does not decide that: a node that is gone leaves, and another one joins like those that are there.
func TestAnnotationsOfServersThatAreNotAccepted(t *testing.T) {
	t.Parallel()
	there := func(weight int, instances ...string) func(*fixture) {
		return existing(registered("sgp-1", "30080.TCP", instances...), func(m *model.Model) {
			for i := range m.Groups[0].Servers {
				m.Groups[0].Servers[i].Weight = weight
			}
		})
	}
	const a, b = "Ecs i-a:30080 weight 30", "Ecs i-b:30080 weight 30"
	for _, test := range []struct {
		name         string
		change       func(*fixture)
		want         []string
		keepsWeights bool
	}{
		{"weight", all(there(30, "i-a", "i-gone"), set("default-weight", "heavy")), []string{a, b}, true},
		{"updates of weights", all(there(30, "i-a", "i-gone"), set("ignore-weight-update", "yes")), []string{a, b}, true},
		{"nodes without scheduling", all(there(30, "i-a", "i-gone"), set("remove-unscheduled-backend", "yes")), []string{a, b}, true},
		{"labels: none joins", all(there(30, "i-a", "i-gone"), set("backend-label", "a=(")), []string{"Ecs i-a:30080 weight 100"}, false},
		{"labels: none would be left", all(there(30, "i-gone"), set("backend-label", "a=(")), []string{"doubt, gone []"}, false},
		{"type of the group: that which is there", all(there(30, "i-a", "i-gone"), set("server-group-type", "Nodes")),
			[]string{"Ecs i-a:30080 weight 100", "Ecs i-b:30080 weight 100"}, false},
		{"the same of addresses", all(existing(func(m *model.Model) {
			registered("sgp-1", "30080.TCP", "i-a")(m)
			m.Groups[0].Type = alicloud.NLBIPGroup
		}), func(f *fixture) {
			f.nodes = []*corev1.Node{testkube.Node("a", address("10.0.0.10")), testkube.Node("b", address("10.0.0.11"))}
		}, set("server-group-type", "Nodes")), []string{"Ip 10.0.0.10:30080 weight 100", "Ip 10.0.0.11:30080 weight 100"}, false},
		{"type of a group that is not there", all(existing(), set("server-group-type", "Nodes")), []string{"doubt, gone []"}, false},
		{"the family of nodes", all(there(30, "i-a"), set("backend-ip-version", "ipv5")),
			[]string{"Ecs i-a:30080 weight 100", "Ecs i-b:30080 weight 100"}, false},
		{"groups of others, without any", all(there(30, "i-a"), set("vgroup-port", "rsp-1:80")),
			[]string{"Ecs i-a:30080 weight 100", "Ecs i-b:30080 weight 100"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(80)
			test.change(f)
			built, problems := f.build()
			got := slices.DeleteFunc(serverLines(built), func(line string) bool { return strings.HasPrefix(line, "dead ") })
			if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("servers %q, want %q", got, test.want)
			}
			if built.Groups[0].KeepWeights != test.keepsWeights {
				t.Errorf("keeps weights: %v", built.Groups[0].KeepWeights)
			}
			if !problem.HasReason(problems, problem.ReasonInvalidAnnotation) {
				t.Errorf("says %q", said(problems))
			}
		})
	}
}

// TestListenersAreHeldOnExistingLoadBalancersOnly: on an NLB of its own, a Service manages its listeners whatever force-override-listeners
// says.
func TestListenersAreHeldOnExistingLoadBalancersOnly(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*fixture)
		holds  bool
	}{
		"none yet": {plain, false}, "its own": {existing(), false}, "existing": {reused(), true},
	} {
		f := newFixture(80)
		all(test.change, set("force-override-listeners", "yes"))(f)
		if built, _ := f.build(); built.HoldListeners != test.holds {
			t.Errorf("%s: holds its listeners: %v", name, built.HoldListeners)
		}
	}
}
