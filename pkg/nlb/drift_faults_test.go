package nlb

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// TestSharedReadsThatProveNothing: what Services read together is empty, lacks some of them, fails, or comes late. Nothing is written, and
// what somebody changed in the meantime is repaired all the same.
func TestSharedReadsThatProveNothing(t *testing.T) {
	t.Parallel()
	for i, list := range []struct{ action, empty string }{
		{"ListLoadBalancers", `{\"LoadBalancers\":[],\"TotalCount\":0}`},
		{"ListListeners", `{\"Listeners\":[],\"TotalCount\":0}`},
		{"ListServerGroups", `{\"ServerGroups\":[],\"TotalCount\":0}`},
	} {
		rules := map[string]string{
			"empty": `"body":"` + list.empty + `"`, "partial": `"stale":"40m"`, "fails": `"code":"ServiceUnavailable","status":503`,
			"late":      `"latency":"5m"`,
			"no answer": `"drop":"after"`,
		}
		for j, fault := range slices.Sorted(maps.Keys(rules)) {
			if !testkit.Tried(i+j, 3) {
				continue
			}
			rule := rules[fault]
			t.Run(list.action+" "+fault, func(t *testing.T) {
				t.Parallel()
				inQuietWorld(t, owners(6, 80), func(t *testing.T, w *quietWorld) {
					w.add(newService("young", testkube.TCP(80), managed)) // the only one that a stale list lacks
					fault := fmt.Sprintf(`{"times":1,"action":%q,%s}`, list.action, rule)
					w.account.Fault(fault)
					if found := wrote(w.forward(longest)); len(found) > 0 {
						t.Errorf("writes %v", found)
					}
					if hits := w.account.FaultHits(); hits != 1 {
						t.Errorf("%d calls went wrong, want 1", hits)
					}
					w.spoil("young", func(s spoiled) error {
						return job(w.account.Client.RemoveNLBServers(t.Context(), s.group.ID, s.servers[:1]))
					})
					w.account.Fault(fault)
					if found, want := wrote(w.forward(longest)), map[string]int{"AddServersToServerGroup": 1}; !maps.Equal(found, want) {
						t.Errorf("writes %v, want %v", found, want)
					}
				})
			})
		}
	}
}

// TestDriftOfWhatFewServicesHave: additional certificates, the security group of source ranges and server groups of others are not among
// what Services read together, or are not found by the tag of the cluster.
func TestDriftOfWhatFewServicesHave(t *testing.T) {
	t.Parallel()
	inQuietWorld(t, owners(4, 80), func(t *testing.T, w *quietWorld) {
		w.addNodes("x")
		w.deleteNode("x")
		api, group := w.account.Client, w.groupByHand("shop")
		w.add(
			newService("tls", testkube.TCP(443), with(annotation.ProtocolPort, "tcpssl:443"), with(annotation.CertID, "cert-1"),
				with(annotation.AdditionalCertIDs, "cert-2")),
			newService("ranges", testkube.TCP(80), func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"} }),
			newService("joined", testkube.TCP(80), without(annotation.ZoneMaps), with(annotation.LoadBalancerID, w.existing("by-hand")),
				with(annotation.ForceOverrideListeners, "true"), with(annotation.VGroupPort, group+":80"), with(annotation.Weight, "60")),
		)
		testkit.Check(t,
			api.UntagNLB(t.Context(), alicloud.NLBTagGroup, []string{w.groups("web-1")[0].ID}, []string{w.groups("web-1")[0].Tags[0].Key}))
		if found := wrote(w.forward(2 * longest)); !maps.Equal(found, map[string]int{"TagResources": 1}) {
			t.Fatalf("writes %v, want the tag of the group", found)
		}
		w.spoil("tls", func(s spoiled) error {
			return job(api.RemoveCertificates(t.Context(), s.listener.ID, []string{"cert-2"}))
		})
		id := w.get("ranges").Labels[driver.LabelSecurityGroupID]
		testkit.Check(t, api.RemoveSecurityRules(t.Context(), id, testkit.Must(api.DescribeSecurityGroup(t.Context(), id))(t).Rules[:1]))
		servers := testkit.Must(api.ListNLBServers(t.Context(), group))(t)
		servers = slices.DeleteFunc(servers, func(s alicloud.NLBServer) bool { return s.Description == "by hand" })
		testkit.Must(api.RemoveNLBServers(t.Context(), group, servers[:1]))(t)
		w.later(5 * settle)
		want := map[string]int{"AssociateAdditionalCertificatesWithListener": 1, "AuthorizeSecurityGroup": 1, "AddServersToServerGroup": 1}
		if found := wrote(w.forward(longest)); !maps.Equal(found, want) {
			t.Errorf("writes %v, want %v", found, want)
		}
	})
}
