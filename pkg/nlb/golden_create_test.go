package nlb

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// elasticAddress allocates an elastic IP address.
func (w *world) elasticAddress() string {
	w.t.Helper()
	var eip struct{ AllocationId string } //nolint:revive // name on the wire
	w.account.Raw(api.VersionVPC, "AllocateEipAddress", map[string]string{"InternetChargeType": "PayByTraffic"}, &eip)
	return eip.AllocationId
}

func TestGoldenCreation(t *testing.T) {
	t.Parallel()
	two := edits(testkube.TCP(80))
	runGolden(t, []life{
		{name: "four ports, TCP and UDP on one number", nodes: 3, service: edits(ports(tcpPort(80), tcpPort(443), udpPort(80), udpPort(53))),
			changes: []change{{serves: []string{
				"TCP:443 i-n1:30443=100 i-n2:30443=100 i-n3:30443=100", "TCP:80 i-n1:30080=100 i-n2:30080=100 i-n3:30080=100",
				"UDP:53 i-n1:30053=100 i-n2:30053=100 i-n3:30053=100", "UDP:80 i-n1:30080=100 i-n2:30080=100 i-n3:30080=100",
			}}}},
		{name: "intranet with two-part zone maps sends no empty field", nodes: 1,
			service: edits(testkube.TCP(80), with(annotation.AddressType, "intranet")),
			changes: []change{{writes: create, check: func(t *testing.T, w *world) {
				t.Helper()
				if lb := w.balancer("web"); lb.AddressType != alicloud.NLBIntranet {
					t.Errorf("address type %s", lb.AddressType)
				}
			}}}},
		{name: "eleven zones", nodes: 1,
			service: edits(testkube.TCP(80),
				with(annotation.ZoneMaps, "a:vsw-a,b:vsw-a,c:vsw-a,d:vsw-a,e:vsw-a,f:vsw-a,g:vsw-a,h:vsw-a,i:vsw-a,j:vsw-a,k:vsw-a")),
			changes: []change{{writes: none, says: []string{"one entry for each zone, at most 10"}}}},
		{name: "duplicate zone", nodes: 1, service: edits(testkube.TCP(80), with(annotation.ZoneMaps, "cn-hangzhou-a:vsw-a,cn-hangzhou-a:vsw-b")),
			changes: []change{{writes: none, says: []string{"one entry for each zone"}}}},
		{name: "one zone is refused by the API, not here", nodes: 1,
			service: edits(testkube.TCP(80), with(annotation.ZoneMaps, "cn-hangzhou-a:vsw-a")), restless: true, changes: []change{{fails: true}}},
		{name: "dual stack, IPv6 backends without pods", nodes: 1,
			service: edits(testkube.TCP(80), with(annotation.IPVersion, "dualstack"), with(annotation.BackendIPVersion, "ipv6")), changes: []change{{
				writes: create, says: []string{"loadbalancer-backend-ip-version: ipv6 has no effect without"}, check: func(t *testing.T, w *world) {
					t.Helper()
					if lb := w.balancer("web"); lb.AddressIPVersion != alicloud.NLBDualStack {
						t.Errorf("IP version %s", lb.AddressIPVersion)
					}
				},
			}}},
		{name: "bandwidth package in the creation", nodes: 1, service: edits(testkube.TCP(80), with(annotation.BandwidthPackageID, "cbwp-1")),
			changes: []change{{writes: create, check: hasPackage("cbwp-1")}}},
		{name: "name, resource group, tags with a second equals sign", nodes: 1,
			service: edits(testkube.TCP(80), with(annotation.Name, "web.shop-1"), with(annotation.ResourceGroupID, "rg-1"),
				with(annotation.AdditionalTags, "a=b=c,d")), changes: []change{{
				writes: create, check: func(t *testing.T, w *world) {
					t.Helper()
					lb := w.balancer("web")
					a, _ := lb.Tag("a")
					if _, ok := lb.Tag("d"); lb.Name != "web.shop-1" || lb.ResourceGroupID != "rg-1" || a != "b=c" || !ok {
						t.Errorf("load balancer %+v", lb)
					}
				},
			}}},
		{name: "reads fail at first", nodes: 1, service: two, before: func(w *world) {
			w.account.Change(func(s *emulatorSettings) { s.NLBReadsFailAtFirst = true })
		}, changes: []change{{writes: create}}},
		{name: "SCTP next to TCP", nodes: 1, service: edits(ports(tcpPort(80), testkube.Port(90, corev1.ProtocolSCTP))),
			changes: []change{{writes: create, says: []string{`protocol "SCTP" of port 90 is not accepted`},
				serves: []string{"TCP:80 i-n1:30080=100"}}}},
	})
}

func hasPackage(id string) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		t.Helper()
		if got := w.balancer("web").BandwidthPackageID; got != id {
			t.Errorf("bandwidth package %q, want %q", got, id)
		}
	}
}

// securityGroup makes a security group.
func (w *world) securityGroup(token, kind string) string {
	w.t.Helper()
	return testkit.Must(w.account.Client.CreateSecurityGroup(w.t.Context(), alicloud.SecurityGroup{VPCID: emulatortest.VPC, Type: kind},
		token))(w.t)
}

// TestGoldenSecurityGroupsInTheCreation: the load balancer is never open to everybody.
func TestGoldenSecurityGroupsInTheCreation(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		group := w.securityGroup("a", alicloud.SecurityGroupEnterprise)
		w.calls()
		w.serve(1, testkube.TCP(80), with(annotation.SecurityGroupIDs, group))
		if got := writes(w.calls()); !slices.Equal(got, create) {
			t.Errorf("writes %v", got)
		}
		if got := w.balancer("web").SecurityGroups; !slices.Equal(got, []string{group}) {
			t.Errorf("security groups %v", got)
		}
		w.quiet("web")
	})
}

// TestGoldenClusterIDWithADot: names could not be read back.
func TestGoldenClusterIDWithADot(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.config.ClusterID = "c.1"
		w.restart()
		w.serve(1, testkube.TCP(80))
		mustReport(t, w.newEvents(), `cluster ID "c.1" contains a dot`)
		if calls := writes(w.calls()); len(calls) > 0 {
			t.Errorf("writes %v", calls)
		}
	})
}

// TestGoldenDualStackBackends: the IPv4 and the IPv6 address of a pod are backend servers, or the IPv6 one alone.
func TestGoldenDualStackBackends(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]int{"ipv4": 1, "ipv6": 1, "dualstack": 2} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				testkit.Check(t, w.factory.Core().V1().Nodes().Informer().GetIndexer().Add(testkube.Node("n1")))
				port := tcpPort(80)
				w.putSlice(testkube.EndpointSlice("web", port, w.address(t, "n1")+"@n1"))
				six := testkube.EndpointSlice("web", port, "2001:db8::5@n1")
				six.Name, six.AddressType = six.Name+"-6", "IPv6"
				w.putSlice(six)
				w.put(newService("web", eni, ports(port), with(annotation.IPVersion, "DualStack"), with(annotation.BackendIPVersion, version)))
				w.converge("web")
				group := w.groups("web")[0]
				servers := testkit.Must(w.account.Client.ListNLBServers(t.Context(), group.ID))(t)
				sixes := 0
				for _, s := range servers {
					if strings.Contains(s.IP, ":") {
						sixes++
					}
				}
				if len(servers) != want || (sixes == 1) != (version != "ipv4") {
					t.Errorf("group %+v has the servers %+v", group, servers)
				}
				if want := map[string]string{"ipv6": alicloud.NLBNonAffinity, "dualstack": alicloud.NLBAffinity}[version]; want != "" &&
					group.Affinity != want {
					t.Errorf("affinity %q, want %q", group.Affinity, want)
				}
				w.quiet("web")
			}, func(c *cloud.Config) {
				c.Instances = append(c.Instances, cloud.InstanceConfig{ID: "i-n1", VSwitchID: "vsw-a", IPv6s: []string{"2001:db8::5"}})
			})
		})
	}
}

// TestGoldenElasticAddresses: they are given for each zone, by a switch to internet, too, and have no effect on intranet.
func TestGoldenElasticAddresses(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		one, two := w.elasticAddress(), w.elasticAddress()
		zones := with(annotation.ZoneMaps, "cn-hangzhou-a:vsw-a:10.1.0.77:"+one+",cn-hangzhou-b:vsw-b::"+two)
		w.serve(1, testkube.TCP(80), zones)
		want := func(eips ...string) {
			t.Helper()
			got := w.balancer("web").Zones
			if len(got) != 2 || got[0].PrivateIPv4 != "10.1.0.77" || got[1].PrivateIPv4 == "" || got[0].AllocationID != eips[0] ||
				got[1].AllocationID != eips[1] {
				t.Errorf("zones %+v, want the elastic addresses %v", got, eips)
			}
			w.quiet("web")
		}
		want(one, two)
		w.newEvents()
		w.change("web", with(annotation.AddressType, "intranet"))
		w.converge("web")
		mustReport(t, w.newEvents(), "elastic IP addresses have no effect with loadbalancer-address-type: intranet")
		want("", "")
		w.change("web", with(annotation.AddressType, "internet"))
		w.converge("web")
		want(one, two)
	})
}
