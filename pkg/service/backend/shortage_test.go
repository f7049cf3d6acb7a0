package backend_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// TestShortages: what a quota keeps from a Service is said once, with the numbers, however many ports it has. What to do depends on the
// product: another Service on the same NLB needs server groups of its own.
func TestShortages(t *testing.T) {
	t.Parallel()
	ports := []corev1.ServicePort{testkube.Port(80, corev1.ProtocolTCP), testkube.Port(443, corev1.ProtocolTCP)}
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
			"up to 2 of 4 backends of a port get no traffic: the CLB can have 4 in all its vServer groups (quota slb_quota_backendservers_num), the Service has 2 vServer groups there, and others have 0 backends",
			"up to 2 of 4 backends of a port get no traffic: the NLB can have 4 in all its server groups (quota nlb_quota_loadbalancer_noeci_servers_num), the Service has 2 server groups there, and others have 0 backends",
			"raise the quota (https://quotas.console.aliyun.com/), use an NLB, or distribute",
			"raise the quota (https://quotas.console.aliyun.com/), or distribute",
		},
		"all instances full": {
			false, backend.Choice{Some: true, Lacking: 2, Quota: 50},
			"has 0 nodes as backends, and needs at least 2: an instance can be behind a CLB 50 times, and all other instances have reached this quota (slb_quota_backendserver_attached_num); raise",
			"has 0 nodes as backends, and needs at least 2: an instance can be in a server group of an NLB 50 times, and all other instances have reached this quota (nlb_quota_server_added_num); raise",
			sharing, another,
		},
		"instances of pods full": {
			true, backend.Choice{Without: sets.New("i-n2", "i-n3")},
			"be behind more CLBs (quota slb_quota_backendserver_attached_num): n2, n3; raise",
			"be in more server groups of NLBs (quota nlb_quota_server_added_num): n2, n3; raise", sharing, another,
		},
		"none": {true, backend.Choice{}, "", "", "", ""},
	} {
		for _, isNLB := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", NLB ", isNLB), func(t *testing.T) {
				t.Parallel()
				var nodes []*corev1.Node
				for i := range 4 {
					nodes = append(nodes, testkube.Node(fmt.Sprint("n", i)))
				}
				r := backend.NewResolver(backend.Input{
					Family: discoveryv1.AddressTypeIPv4, Local: test.local, NLB: isNLB,
					Facts: backend.Facts{Nodes: backend.Nodes(nodes, testkube.InstanceID, now), Choice: test.choice, Slices: []*discoveryv1.EndpointSlice{
						testkube.EndpointSlice("web", ports[0], "10.0.0.1@n0", "10.0.0.2@n1", "10.0.0.3@n2"),
						testkube.EndpointSlice("web", ports[1], "10.0.0.1@n0", "10.0.0.2@n1", "10.0.0.3@n2", "10.0.0.4@n3"),
					}},
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
				if want == "" && len(found) > 0 ||
					want != "" && (len(found) != 1 || !strings.Contains(found[0].Message, want) || !strings.Contains(found[0].Message, way)) {
					t.Errorf("found %v, want one with %q and %q", found, want, way)
				}
			})
		}
	}
}
