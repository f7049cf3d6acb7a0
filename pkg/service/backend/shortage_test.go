package backend_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// TestShortages: what a quota keeps from a Service is said once, with the numbers, however many ports it has. What to do depends on the product: another Service on
// the same NLB needs server groups of its own.
func TestShortages(t *testing.T) {
	t.Parallel()
	ports := []corev1.ServicePort{testkit.Port(80, corev1.ProtocolTCP), testkit.Port(443, corev1.ProtocolTCP)}
	const sharing, another = "let several Services share a CLB", "use CLBs for some Services"
	for name, test := range map[string]struct {
		local    bool
		choice   backend.Choice
		clb, nlb string
		// ways are what to do, those of a CLB and those of an NLB.
		clbWay, nlbWay string
	}{
		"a full load balancer": {
			true, backend.Choice{Room: backend.RoomOf(4, false, len(ports), func(func(backend.Entry) bool) {})},
			"up to 2 of 4 backends of a port get no traffic: the CLB can have 4 in all its groups", "up to 2 of 4 backends of a port get no traffic: the NLB can have 4 in all its groups",
			"raise the quota, use an NLB, or distribute", "raise the quota, or distribute",
		},
		"all instances full": {
			false, backend.Choice{Some: true, Lacking: []string{"i-n0", "i-n1"}, Quota: 50},
			"needs at least 2: an instance can be behind a CLB 50 times", "needs at least 2: an instance can be in a server group of an NLB 50 times", sharing, another,
		},
		"instances of pods full": {
			true, backend.Choice{Without: sets.New("i-n2", "i-n3")},
			"endpoints on 2 of 4 nodes get no traffic", "endpoints on 2 of 4 nodes get no traffic", sharing, another,
		},
		"none": {true, backend.Choice{}, "", "", "", ""},
	} {
		for _, isNLB := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", NLB ", isNLB), func(t *testing.T) {
				t.Parallel()
				var nodes []*corev1.Node
				for i := range 4 {
					nodes = append(nodes, testkit.Node(fmt.Sprint("n", i)))
				}
				r := backend.NewResolver(backend.Input{
					Nodes: backend.Nodes(nodes, testkit.InstanceID, now), Family: discoveryv1.AddressTypeIPv4, Local: test.local, Choice: test.choice, NLB: isNLB,
					Slices: []*discoveryv1.EndpointSlice{
						testkit.EndpointSlice("web", ports[0], "10.0.0.1@n0", "10.0.0.2@n1", "10.0.0.3@n2"),
						testkit.EndpointSlice("web", ports[1], "10.0.0.1@n0", "10.0.0.2@n1", "10.0.0.3@n2", "10.0.0.4@n3"),
					},
				})
				for _, port := range ports {
					if _, problems := r.Backends(port, ""); problem.HasReason(problems, problem.ReasonQuotaReached) {
						t.Errorf("port %d: %v", port.Port, problems)
					}
				}
				want, way := test.clb, test.clbWay
				if isNLB {
					want, way = test.nlb, test.nlbWay
				}
				found := r.Shortages()
				if want == "" && len(found) > 0 || want != "" && (len(found) != 1 || !strings.Contains(found[0].Message, want) || !strings.Contains(found[0].Message, way)) {
					t.Errorf("found %v, want one with %q and %q", found, want, way)
				}
			})
		}
	}
}
