package nlb

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// official is what the official CCM makes for a Service: names, descriptions, tags and settings are those of its code.
type official struct {
	lb     func(*alicloud.NLB)
	groups []officialGroup
	// listeners refer to a group by its place.
	listeners []officialListener
	// access are the source ranges, of a security group of its own.
	access []string
}

type officialGroup struct {
	port, protocol string
	change         func(*alicloud.NLBGroup)
	// servers without a description get the group's name.
	servers []alicloud.NLBServer
}

type officialListener struct {
	port, start, end, group int
	protocol                string
	change                  func(*alicloud.NLBListener)
}

func officialTags() []alicloud.Tag {
	return []alicloud.Tag{{Key: "kubernetes.do.not.delete", Value: "a0f5e8a1cweb"}, {Key: "ack.aliyun.com", Value: testCluster}}
}

// make makes it, on an existing load balancer where id is given.
func (o *official) make(w *world, id string) {
	w.t.Helper()
	ctx, c := w.t.Context(), w.account.Client
	if id == "" {
		lb := alicloud.NLB{
			Name: "a0f5e8a1cweb", VPCID: emulatortest.VPC, AddressType: alicloud.NLBInternet, AddressIPVersion: alicloud.NLBIPv4,
			Tags:               officialTags(),
			Zones:              []alicloud.NLBZone{{ZoneID: "cn-hangzhou-a", VSwitchID: "vsw-a"}, {ZoneID: "cn-hangzhou-b", VSwitchID: "vsw-b"}},
			DeletionProtection: true, ModificationProtection: alicloud.ConsoleProtection, ModificationProtectionReason: "managed.by.ack",
		}
		if o.lb != nil {
			o.lb(&lb)
		}
		id = testkit.Must(c.CreateNLB(ctx, lb, "official"))(w.t)
		w.later(30 * settle)
	}
	if len(o.access) > 0 {
		o.restrict(w, id)
	}
	var groups []string
	for i := range o.groups {
		groups = append(groups, o.groups[i].make(w, fmt.Sprint("group", i)))
	}
	for i := range o.listeners {
		o.listeners[i].make(w, id, groups)
	}
	w.calls()
}

func (o *official) restrict(w *world, id string) {
	w.t.Helper()
	ctx, c := w.t.Context(), w.account.Client
	const text = "k8s.default.web.c1"
	group := testkit.Must(c.CreateSecurityGroup(ctx, alicloud.SecurityGroup{
		Name: "k8s-nlb-a0f5e8a1cweb", Description: text, VPCID: emulatortest.VPC, Type: alicloud.SecurityGroupEnterprise, Tags: officialTags(),
	}, "access"))(w.t)
	rules := []alicloud.SecurityRule{{Drop: true, Priority: 100, Protocol: "ALL", Ports: "-1/-1", CIDR: "0.0.0.0/0", Description: text}}
	for _, block := range o.access {
		rules = append(rules, alicloud.SecurityRule{Priority: 1, Protocol: "ALL", Ports: "-1/-1", CIDR: block, Description: text})
	}
	testkit.Check(w.t, c.AddSecurityRules(ctx, group, rules))
	testkit.Must(c.JoinSecurityGroups(ctx, id, []string{group}))(w.t)
	w.later(5 * settle)
}

func (g *officialGroup) make(w *world, token string) string {
	w.t.Helper()
	ctx, c := w.t.Context(), w.account.Client
	group := alicloud.NLBGroup{
		Name: "k8s." + g.port + "." + g.protocol + ".web.default.c1", VPCID: emulatortest.VPC, Protocol: g.protocol,
		Type: alicloud.NLBInstanceGroup, Tags: officialTags(),
		NLBGroupSettings: alicloud.NLBGroupSettings{Scheduler: new("Wrr")},
	}
	if g.change != nil {
		g.change(&group)
	}
	id, _, err := c.CreateNLBGroup(ctx, group, token)
	testkit.Check(w.t, err)
	w.later(5 * settle)
	servers := slices.Clone(g.servers)
	for i := range servers {
		if servers[i].Description == "" {
			servers[i].Description = group.Name
		}
	}
	if len(servers) > 0 {
		testkit.Must(c.AddNLBServers(ctx, id, servers))(w.t)
		w.later(5 * settle)
	}
	return id
}

func (l *officialListener) make(w *world, id string, groups []string) {
	w.t.Helper()
	ports := fmt.Sprint(l.port)
	if l.port == 0 {
		ports = fmt.Sprintf("%d_%d", l.start, l.end)
	}
	listener := alicloud.NLBListener{LoadBalancerID: id, Port: l.port, StartPort: l.start, EndPort: l.end, Protocol: l.protocol,
		NLBListenerSettings: alicloud.NLBListenerSettings{
			Description: new("k8s." + ports + "." + l.protocol + ".web.default.c1"), ServerGroupID: &groups[l.group],
		}}
	if l.change != nil {
		l.change(&listener)
	}
	_, _, err := w.account.Client.CreateNLBListener(w.t.Context(), listener, "listener"+ports+l.protocol)
	testkit.Check(w.t, err)
	w.later(5 * settle)
}

// node is a node as a server.
func node(name string, port, weight int) alicloud.NLBServer {
	return alicloud.NLBServer{NLBServerKey: alicloud.NLBServerKey{ID: testkube.InstanceOf(name), Type: alicloud.NLBServerECS, Port: port},
		Weight: weight}
}

// pod is the pod on a node as a server: in tests it has the address of the node's own interface.
func (w *world) pod(t *testing.T, name string, port int) alicloud.NLBServer {
	t.Helper()
	address := w.address(t, name)
	found := testkit.Must(w.account.Client.DescribeNetworkInterfaces(t.Context(),
		alicloud.NetworkInterfaceQuery{VPCID: emulatortest.VPC, PrivateIPs: []string{address}}))(t)
	return alicloud.NLBServer{NLBServerKey: alicloud.NLBServerKey{ID: found[0].ID, IP: address, Type: alicloud.NLBServerENI, Port: port},
		Weight: 100}
}

// adopted is one kind of Service that the official CCM serves.
type adopted struct {
	name     string
	service  []func(*corev1.Service)
	official func(t *testing.T, w *world) official
	// reused says that the load balancer is an existing one, either that the official CCM may have made it in another way, too.
	reused, either bool
}

func onePort(*world) official {
	return official{
		groups: []officialGroup{{port: "30080", protocol: "TCP",
			servers: []alicloud.NLBServer{node("n1", 30080, 100), node("n2", 30080, 100)}}},
		listeners: []officialListener{{port: 80, protocol: "TCP"}},
	}
}

func adoptedKinds() []adopted {
	plain := func(_ *testing.T, w *world) official { return onePort(w) }
	changed := func(f func(*official)) func(*testing.T, *world) official {
		return func(_ *testing.T, w *world) official {
			o := onePort(w)
			f(&o)
			return o
		}
	}
	servers := []alicloud.NLBServer{node("n1", 30080, 100), node("n2", 30080, 100)}
	secure := edits(testkube.TCP(80), with(annotation.ProtocolPort, "tcpssl:80"), with(annotation.CertID, "cert-1"))
	tls := func(group string) func(*testing.T, *world) official {
		return changed(func(o *official) {
			o.groups[0].protocol, o.listeners[0].protocol = "TCPSSL", "TCPSSL"
			o.groups[0].change = func(g *alicloud.NLBGroup) { g.Protocol, g.PreserveClientIP = group, new(false) }
			o.listeners[0].change = func(l *alicloud.NLBListener) { l.CertificateIDs = []string{"cert-1"} }
		})
	}
	return []adopted{
		{name: "one port", service: edits(testkube.TCP(80)), official: plain},
		{name: "TCP and UDP, which the API checks by TCP", service: edits(ports(tcpPort(80), udpPort(80))), official: changed(func(o *official) {
			o.groups = append(o.groups, officialGroup{port: "30080", protocol: "UDP", servers: servers})
			o.listeners = append(o.listeners, officialListener{port: 80, protocol: "UDP", group: 1})
		})},
		{name: "TCPSSL", service: secure, official: tls("TCPSSL")},
		{name: "TCPSSL with a group of TCP", either: true, service: secure, official: tls("TCP")},
		{name: "attributes of the load balancer",
			service: edits(testkube.TCP(80), with(annotation.Name, "shop"), with(annotation.AddressType, "intranet"),
				with(annotation.ResourceGroupID, "rg-1"),
				with(annotation.AdditionalTags, "a=1"), with(annotation.CrossZoneEnabled, "on")), official: changed(func(o *official) {
				o.lb = func(lb *alicloud.NLB) {
					lb.Name, lb.AddressType, lb.ResourceGroupID = "shop", alicloud.NLBIntranet, "rg-1"
					lb.Tags = append(lb.Tags, alicloud.Tag{Key: "a", Value: "1"}, alicloud.Tag{Key: "human", Value: "1"})
				}
				o.groups[0].change = func(g *alicloud.NLBGroup) { g.ResourceGroupID = "rg-1" }
			})},
		{name: "dual stack", service: edits(testkube.TCP(80), with(annotation.IPVersion, "DualStack")), official: changed(func(o *official) {
			o.lb = func(lb *alicloud.NLB) { lb.AddressIPVersion = alicloud.NLBDualStack }
		})},
		{name: "bandwidth package", service: edits(testkube.TCP(80), with(annotation.BandwidthPackageID, "cbwp-1")),
			official: changed(func(o *official) {
				o.lb = func(lb *alicloud.NLB) { lb.BandwidthPackageID = "cbwp-1" }
			})},
		{name: "source ranges", service: edits(testkube.TCP(80), func(svc *corev1.Service) {
			svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24", "198.51.100.7/32"}
		}),
			official: changed(func(o *official) { o.access = []string{"192.0.2.0/24", "198.51.100.7/32"} })},
		{name: "settings of the group",
			service: edits(testkube.TCP(80), with(annotation.Scheduler, "sch"), with(annotation.ConnectionDrain, "on"),
				with(annotation.ConnectionDrainTimeout, "30"), with(annotation.PreserveClientIP, "off"),
				with(annotation.HealthCheckFlag, "on"), with(annotation.HealthCheckType, "http"), with(annotation.HealthCheckURI, "/healthz"),
				with(annotation.HealthCheckMethod, "head")), official: changed(func(o *official) {
				o.groups[0].change = func(g *alicloud.NLBGroup) {
					g.NLBGroupSettings = alicloud.NLBGroupSettings{Scheduler: new("sch"), ConnectionDrain: new(true), DrainTimeout: new(30),
						PreserveClientIP: new(false), HealthCheck: alicloud.NLBHealthCheck{
							Enabled: new(true), Type: new("HTTP"), URL: new("/healthz"), Method: new("HEAD"), Codes: []string{"http_2xx"},
						}}
				}
			})},
		{name: "settings of the listener",
			service: edits(testkube.TCP(80), with(annotation.IdleTimeout, "60"), with(annotation.Cps, "100"), with(annotation.ProxyProtocol, "on"),
				with(annotation.PPV2VPCID, "on")), official: changed(func(o *official) {
				o.listeners[0].change = func(l *alicloud.NLBListener) {
					l.IdleTimeout, l.Cps, l.ProxyProtocol, l.ProxyProtocolV2 = new(60), new(100), new(true), &alicloud.ProxyProtocolV2{VPCID: true}
				}
			})},
		{name: "default weight", service: edits(testkube.TCP(80), with(annotation.DefaultWeight, "7")), official: changed(func(o *official) {
			o.groups[0].servers = []alicloud.NLBServer{node("n1", 30080, 7), node("n2", 30080, 7)}
		})},
		{name: "groups of addresses", service: edits(testkube.TCP(80), with(annotation.ServerGroupType, "Ip")),
			official: func(t *testing.T, w *world) official {
				t.Helper()
				o := onePort(w)
				o.groups[0].change = func(g *alicloud.NLBGroup) { g.Type, g.PreserveClientIP = alicloud.NLBIPGroup, new(false) }
				o.groups[0].servers = nil
				for _, name := range []string{"n1", "n2"} {
					ip := w.address(t, name)
					testkit.Check(t, w.factory.Core().V1().Nodes().Informer().GetIndexer().Update(testkube.Node(name, func(n *corev1.Node) {
						n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}}
					})))
					o.groups[0].servers = append(o.groups[0].servers,
						alicloud.NLBServer{NLBServerKey: alicloud.NLBServerKey{ID: ip, IP: ip, Type: alicloud.NLBServerIP, Port: 30080}, Weight: 100})
				}
				return o
			}},
		{name: "pods, two ports with one target port", service: edits(eni, ports(tcpPort(80), sameTarget(81, tcpPort(80)))),
			official: func(t *testing.T, w *world) official {
				t.Helper()
				w.putSlice(slice("web", tcpPort(80), sameTarget(81, tcpPort(80)), w.address(t, "n1")+"@n1", w.address(t, "n2")+"@n2"))
				return official{
					groups:    []officialGroup{{port: "8080", protocol: "TCP", servers: []alicloud.NLBServer{w.pod(t, "n1", 8080), w.pod(t, "n2", 8080)}}},
					listeners: []officialListener{{port: 80, protocol: "TCP"}, {port: 81, protocol: "TCP"}},
				}
			}},
		{name: "pods, named target port", service: edits(eni, ports(named(tcpPort(80)))), official: func(t *testing.T, w *world) official {
			t.Helper()
			w.putSlice(testkube.EndpointSlice("web", tcpPort(80), w.address(t, "n1")+"@n1"))
			return official{
				groups:    []officialGroup{{port: "http", protocol: "TCP", servers: []alicloud.NLBServer{w.pod(t, "n1", 8080)}}},
				listeners: []officialListener{{port: 80, protocol: "TCP"}},
			}
		}},
		{name: "range of ports", service: edits(eni, ports(tcpPort(80)), with(annotation.ListenerPortRange, "80-400:80")),
			official: func(t *testing.T, w *world) official {
				t.Helper()
				w.putSlice(testkube.EndpointSlice("web", tcpPort(80), w.address(t, "n1")+"@n1"))
				return official{
					groups: []officialGroup{{port: "80_400", protocol: "TCP", servers: []alicloud.NLBServer{w.pod(t, "n1", 0)},
						change: func(g *alicloud.NLBGroup) {
							g.AnyPort, g.HealthCheck.Enabled, g.HealthCheck.ConnectPort = true, new(true), new(8080)
						}}},
					listeners: []officialListener{{start: 80, end: 400, protocol: "TCP"}},
				}
			}},
		{name: "existing load balancer", reused: true,
			service: edits(testkube.TCP(80), without(annotation.ZoneMaps), with(annotation.ForceOverrideListeners, "true")), official: plain},
	}
}

// named gives a port a target port with a name.
func named(port corev1.ServicePort) corev1.ServicePort {
	port.TargetPort = intstr.FromString("http")
	return port
}

func sameTarget(number int32, as corev1.ServicePort) corev1.ServicePort {
	port := tcpPort(number)
	port.TargetPort = as.TargetPort
	return port
}

// changes make the Service of its kind, on an existing load balancer where id is given.
func (k adopted) changes(id string) []func(*corev1.Service) {
	changes := slices.Clone(k.service)
	if id != "" {
		changes = append(changes, with(annotation.LoadBalancerID, id))
	}
	return changes
}

// TestAdoption: what the official CCM made is taken over without a write, and so is what this engine made by a new process.
func TestAdoption(t *testing.T) {
	t.Parallel()
	for _, kind := range adoptedKinds() {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				id := kind.begin(w)
				made := kind.official(t, w)
				made.make(w, id)
				w.put(newService("web", append(kind.changes(id), func(svc *corev1.Service) { svc.Finalizers = []string{Finalizer} })...))
				w.converge("web")
				if calls := writes(w.calls()); len(calls) > 0 {
					t.Errorf("writes %v", calls)
				}
				w.quiet("web")
			})
		})
	}
}

// TestAdoptionOfAFormerPort: the official CCM compares servers without their ports, so that one may have that of a target port's name
// before it changed. The new one joins before the old one leaves.
func TestAdoptionOfAFormerPort(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n1")
		w.putSlice(testkube.EndpointSlice("web", tcpPort(80), w.address(t, "n1")+"@n1"))
		made := official{
			groups:    []officialGroup{{port: "http", protocol: "TCP", servers: []alicloud.NLBServer{w.pod(t, "n1", 9999)}}},
			listeners: []officialListener{{port: 80, protocol: "TCP"}},
		}
		made.make(w, "")
		w.put(newService("web", eni, ports(named(tcpPort(80))), func(svc *corev1.Service) { svc.Finalizers = []string{Finalizer} }))
		w.converge("web")
		if got, want := writes(w.calls()), []string{"AddServersToServerGroup", "RemoveServersFromServerGroup"}; !slices.Equal(got, want) {
			t.Errorf("writes %v, want %v", got, want)
		}
		w.quiet("web")
	})
}

// TestAdoptionOfALeftoverGroup: of two groups with one name, the one that no listener uses goes.
func TestAdoptionOfALeftoverGroup(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n1", "n2")
		made := onePort(w)
		made.groups = []officialGroup{{port: "30080", protocol: "TCP", change: func(g *alicloud.NLBGroup) { g.Type = alicloud.NLBIPGroup }},
			made.groups[0]}
		made.listeners[0].group = 1
		made.make(w, "")
		w.put(newService("web", testkube.TCP(80), func(svc *corev1.Service) { svc.Finalizers = []string{Finalizer} }))
		w.converge("web")
		if got, want := writes(w.calls()), []string{"DeleteServerGroup"}; !slices.Equal(got, want) {
			t.Errorf("writes %v, want %v", got, want)
		}
		if got := w.listeners(w.balancer("web").ID); len(got) != 1 || !strings.Contains(got[0], "i-n2:30080=100") {
			t.Errorf("listeners %v", got)
		}
		w.quiet("web")
	})
}
