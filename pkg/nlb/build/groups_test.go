package build_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
)

func TestServerGroups(t *testing.T) {
	t.Parallel()
	const tcp, dual = "30080.TCP Type=Instance", "8080.TCP Type=Instance"
	tls := set("protocol-port", "tcpssl:80", "cert-id", "cert-1")
	kept := `AnnotationNoEffect: ` + key + `preserve-client-ip: "on" has no effect on TCPSSL listeners and server groups of the type Ip`
	checkRows(t, groupLines, []row{
		{"plain", plain, []string{tcp}, nil},
		{"pods: by the target port", pods, []string{"8080.TCP Type=Instance"}, nil},
		{"one for each protocol of a port", port(80, corev1.ProtocolUDP), []string{tcp, "30080.UDP Type=Instance"}, nil},
		{"two ports of pods with one target port share it", all(pods, port(81, corev1.ProtocolTCP),
			func(f *fixture) { f.svc.Spec.Ports[1].TargetPort = f.svc.Spec.Ports[0].TargetPort }),
			[]string{"8080.TCP Type=Instance"}, nil},
		{"a range has the target port checked", all(pods, set("listener-port-range", "1000-2000:80")),
			[]string{"1000_2000.TCP AnyPort=true HealthCheck=map[ConnectPort:8080] Type=Instance"}, nil},
		{"of addresses", set("server-group-type", "ip"), []string{"30080.TCP Type=Ip"}, []string{
			"SkipSyncBackends: nodes without an InternalIP cannot be backend servers of an Ip group: i-a, i-b",
		}},
		{"weights are left alone", set("ignore-weight-update", "on"), []string{"30080.TCP KeepWeights=true Type=Instance"}, nil},

		{"round robin", set("scheduler", "rr"), []string{"30080.TCP Scheduler=rr Type=Instance"}, nil},
		{"weighted round robin", set("scheduler", "WRR"), []string{"30080.TCP Scheduler=Wrr Type=Instance"}, nil},
		{"least connections", set("scheduler", "wlc"), []string{"30080.TCP Scheduler=Wlc Type=Instance"}, nil},
		{"QUIC id of UDP only", all(port(80, corev1.ProtocolUDP), set("scheduler", "qch")), []string{tcp,
			"30080.UDP Scheduler=qch Type=Instance"}, []string{
			"AnnotationNoEffect: " + key + "scheduler: qch has no effect on port 80, which is not UDP",
		}},
		{"no scheduler any more", removed("scheduler"), []string{"30080.TCP Scheduler=Wrr Type=Instance"}, nil},
		{"connection drain", set("connection-drain", "on", "connection-drain-timeout", "30"),
			[]string{"30080.TCP ConnectionDrain=true DrainTimeout=30 Type=Instance"}, nil},
		{"connection drain off", set("connection-drain", "off"), []string{"30080.TCP ConnectionDrain=false Type=Instance"}, nil},

		{"clients' addresses", set("preserve-client-ip", "on"), []string{"30080.TCP PreserveClientIP=true Type=Instance"}, nil},
		{"clients' addresses hidden", set("preserve-client-ip", "off"), []string{"30080.TCP PreserveClientIP=false Type=Instance"}, nil},
		{"TLS hides clients' addresses", tls, []string{"30080.TCPSSL PreserveClientIP=false Type=Instance"}, nil},
		{"clients' addresses with TLS", all(tls, set("preserve-client-ip", "on")), []string{"30080.TCPSSL PreserveClientIP=false Type=Instance"},
			[]string{kept}},
		{"clients' addresses with TLS no longer asked for", all(tls, removed("preserve-client-ip")),
			[]string{"30080.TCPSSL PreserveClientIP=false Type=Instance"}, nil},

		{"IPv6 of pods", all(pods, endpoints(), set("ip-version", "DualStack", "backend-ip-version", "ipv6")),
			[]string{"8080.TCP AddressIPVersion=DualStack Affinity=NonAffinity Type=Instance"}, nil},
		{"both families of pods", all(pods, set("ip-version", "DualStack", "backend-ip-version", "DualStack")),
			[]string{"8080.TCP AddressIPVersion=DualStack Affinity=Affinity Type=Instance"}, nil},
		{"IPv6 of nodes", set("ip-version", "DualStack", "backend-ip-version", "ipv6"), []string{tcp}, []string{
			"AnnotationNoEffect: " + key + "backend-ip-version: ipv6 has no effect without " + key +
				"ip-version: DualStack and service.beta.kubernetes.io/backend-type: eni",
		}},
		{"IPv6 of pods behind an NLB that is there without it", all(pods, existing(), set("ip-version", "DualStack", "backend-ip-version",
			"ipv6")), []string{dual}, []string{
			"ImmutableAttribute: " + key + "ip-version: DualStack cannot be changed, the NLB has ipv4; re-create the Service for it",
			"AnnotationNoEffect: " + key + "backend-ip-version: ipv6 has no effect without " + key +
				"ip-version: DualStack and service.beta.kubernetes.io/backend-type: eni",
		}},
	})
}

func TestHealthChecks(t *testing.T) {
	t.Parallel()
	checkLines := func(m *model.Model) []string { return fields(m.Groups[0].HealthCheck) }
	on := func(pairs ...string) func(*fixture) {
		return set(append([]string{"health-check-flag", "on"}, pairs...)...)
	}
	checkRows(t, checkLines, []row{
		{"as the cloud has it", plain, nil, nil},
		{"off", set("health-check-flag", "off", "health-check-interval", "7"), []string{"Enabled=false"}, nil},
		{"no word about it any more", removed("health-check-flag"), []string{"Enabled=true"}, nil},
		{"no word about that of UDP any more", all(udp, removed("health-check-flag")), []string{"Enabled=false"}, nil},
		{"settings without the flag", set("health-check-interval", "7"), nil, []string{"AnnotationNoEffect: " + key +
			"health-check-interval has no effect without " + key + "health-check-flag"}},
		{"TCP", on("health-check-type", "TCP", "health-check-connect-port", "81", "health-check-connect-timeout", "6", "health-check-interval",
			"7", "healthy-threshold", "3", "unhealthy-threshold", "4"),
			[]string{"ConnectPort=81", "ConnectTimeout=6", "Enabled=true", "Healthy=3", "Interval=7", "Type=TCP", "Unhealthy=4"}, nil},
		{"HTTP", on("health-check-type", "http", "health-check-uri", "/ok", "health-check-domain", "$SERVER_IP", "health-check-method", "head",
			"health-check-httpcode", "http_3xx,http_2xx"),
			[]string{"Codes=[http_2xx http_3xx]", "Domain=$SERVER_IP", "Enabled=true", "Method=HEAD", "Type=HTTP", "URL=/ok"}, nil},
		{"settings of HTTP with TCP", on("health-check-uri", "/ok", "health-check-domain", "example.com"), []string{"Enabled=true"}, nil},
		{"UDP", all(udp, on("health-check-type", "udp")), []string{"Enabled=true", "Type=UDP"}, nil},
		{"UDP for a TCP port", on("health-check-type", "udp"), []string{"Enabled=true"}, []string{
			"InvalidAnnotation: " + key + "health-check-type: udp is not accepted for port 80, which is TCP; accepted: tcp, http",
		}},
		{"longest interval of TCP", on("health-check-interval", "50"), []string{"Enabled=true", "Interval=50"}, nil},
		{"interval too long for TCP", on("health-check-interval", "51", "health-check-connect-timeout", "9"), []string{"ConnectTimeout=9",
			"Enabled=true"}, []string{
			"InvalidAnnotation: " + key + "health-check-interval: 51 is not accepted for port 80: at most 50, unless the listener is UDP",
		}},
		{"interval of UDP", all(udp, on("health-check-interval", "51")), []string{"Enabled=true", "Interval=51"}, nil},
		{"interval of UDP as long as the timeout", all(udp, on("health-check-interval", "9", "health-check-connect-timeout", "9")),
			[]string{"ConnectTimeout=9", "Enabled=true", "Interval=9"}, nil},
		{"interval of a check by UDP shorter than the timeout", all(udp, on("health-check-type", "udp", "health-check-connect-timeout", "9")),
			[]string{"Enabled=true", "Type=UDP"}, []string{
				"InvalidAnnotation: " + key + "health-check-interval: 5 is not accepted for the check of port 80 by UDP: at least " + key +
					"health-check-connect-timeout, which is 9",
			}},
		{"interval of a UDP port that is checked by TCP", all(udp, on("health-check-connect-timeout", "9")),
			[]string{"ConnectTimeout=9", "Enabled=true"}, nil},
	})
}

// TestCheckTimesOfAGroupThatIsThere: what no annotation says is as the group has it, and not as a new one would.
func TestCheckTimesOfAGroupThatIsThere(t *testing.T) {
	t.Parallel()
	f := newFixture(80)
	udp(f)
	set("health-check-flag", "on", "health-check-connect-timeout", "8")(f)
	built, _ := f.build()
	have, interval := built.Groups[0], 10
	have.ID, have.HealthCheck.Interval = "sgp-1", &interval
	f.observed = &model.Model{LoadBalancer: alicloud.NLB{ID: "nlb-1", VPCID: "vpc-1"}, Groups: []model.Group{have}}
	built, problems := f.build()
	if timeout := built.Groups[0].HealthCheck.ConnectTimeout; timeout == nil || *timeout != 8 || len(problems) > 0 {
		t.Errorf("timeout %v, problems %v", timeout, problems)
	}
}

// address gives a Node an InternalIP.
func address(ip string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
	}
}

func TestServers(t *testing.T) {
	t.Parallel()
	const a, b = "Ecs i-a:30080 weight 100", "Ecs i-b:30080 weight 100"
	local := func(items ...string) func(*fixture) {
		return all(func(f *fixture) { testkube.LocalTraffic(f.svc) }, endpoints(items...))
	}
	node := func(changes ...func(*corev1.Node)) func(*fixture) {
		return func(f *fixture) { f.nodes[1] = testkube.Node("b", changes...) }
	}
	addresses := func(f *fixture) {
		f.nodes = []*corev1.Node{testkube.Node("a", address("10.0.0.10")), testkube.Node("b", address("10.0.0.11"))}
	}
	checkRows(t, serverLines, []row{
		{"policy Cluster: all nodes", plain, []string{a, b}, nil},
		{"weight", set("default-weight", "30"), []string{"Ecs i-a:30080 weight 30", "Ecs i-b:30080 weight 30"}, nil},
		{"a node that is not ready", node(testkube.NotReady(now.Add(-time.Hour))), []string{a}, nil},
		{"a node that the autoscaler takes away", node(testkube.Taint(nodes.TaintToBeDeleted)), []string{a, "draining Ecs i-b:30080 weight 0"},
			nil},
		{"a node that is excluded", node(testkube.NodeLabel(corev1.LabelNodeExcludeBalancers, "")), []string{a}, nil},
		{"no nodes", func(f *fixture) { f.nodes = nil }, []string{"doubt, gone []"}, nil},

		{"policy Local: weights are numbers of pods", local("10.9.0.1@a", "10.9.0.2@a", "10.9.1.1@b"), []string{"Ecs i-a:30080 weight 2",
			"Ecs i-b:30080 weight 1"}, nil},
		{"policy Local: pods that terminate", local("10.9.0.1@a", "!10.9.1.1@b"), []string{"Ecs i-a:30080 weight 1",
			"draining Ecs i-b:30080 weight 0"}, nil},
		{"policy Local: no pods", local(), nil, nil},
		{"policy Local: unknown endpoints", func(f *fixture) { testkube.LocalTraffic(f.svc) }, []string{"doubt, gone []"}, nil},

		{"pods", pods, []string{"Eni eni-1/10.9.0.1:8080 weight 100", "Eni eni-2/10.9.0.2:8080 weight 100"}, nil},
		{"a pod that terminates", all(pods, endpoints("10.9.0.1@a", "!10.9.0.2@b")), []string{"Eni eni-1/10.9.0.1:8080 weight 100",
			"draining Eni eni-2/10.9.0.2:8080 weight 0"}, nil},
		{"a pod without a network interface", all(pods, endpoints("10.9.0.1@a", "10.9.0.3@b")), []string{"Eni eni-1/10.9.0.1:8080 weight 100",
			"held [10.9.0.3]"}, []string{
			"SkipSyncBackends: no network interface of the VPC has the addresses 10.9.0.3",
		}},
		{"pods on a range of ports have no port", all(pods, set("listener-port-range", "1000-2000:80")),
			[]string{"Eni eni-1/10.9.0.1:0 weight 100", "Eni eni-2/10.9.0.2:0 weight 100"}, nil},
		{"pods as the cloud-config says", all(pods, func(f *fixture) {
			delete(f.svc.Annotations, "service.beta.kubernetes.io/backend-type")
			f.config.DefaultBackendENI = true
		}), []string{"Eni eni-1/10.9.0.1:8080 weight 100", "Eni eni-2/10.9.0.2:8080 weight 100"}, nil},

		{"nodes by their addresses", all(addresses, set("server-group-type", "Ip")), []string{"Ip 10.0.0.10:30080 weight 100",
			"Ip 10.0.0.11:30080 weight 100"}, nil},
		{"a node without an address", all(addresses, node(), set("server-group-type", "Ip")), []string{"Ip 10.0.0.10:30080 weight 100"}, []string{
			"SkipSyncBackends: nodes without an InternalIP cannot be backend servers of an Ip group: i-b",
		}},
		{"no node has an address", set("server-group-type", "Ip"), []string{"doubt, gone []"}, []string{
			"SkipSyncBackends: nodes without an InternalIP cannot be backend servers of an Ip group: i-a, i-b",
		}},
		{"pods by their addresses", all(pods, set("server-group-type", "Ip")), []string{"Ip 10.9.0.1:8080 weight 100",
			"Ip 10.9.0.2:8080 weight 100"}, nil},
		{"an annotation of the servers is not accepted", set("server-group-type", "Alb"), []string{"doubt, gone []"}, []string{
			`InvalidAnnotation: ` + key + `server-group-type: "Alb" is not accepted; accepted: Instance, Ip`,
		}},
		{"dead ones among those that are there", all(node(testkube.NotReady(now.Add(-time.Hour))), existing(registered("sgp-1", "30080.TCP",
			"i-a", "i-b"))), []string{a, "dead [i-b]"}, nil},
	})
}

// registered is a group of the Service that is there, with instances as its servers.
func registered(id, name string, instances ...string) func(*model.Model) {
	return func(m *model.Model) {
		g := model.Group{NLBGroup: alicloud.NLBGroup{ID: id, Name: mark(name), Type: alicloud.NLBInstanceGroup, Protocol: alicloud.NLBTCP,
			VPCID: "vpc-1"}}
		for _, instance := range instances {
			g.Servers = append(g.Servers, alicloud.NLBServer{
				NLBServerKey: alicloud.NLBServerKey{ID: instance, Type: alicloud.NLBServerECS, Port: 30080}, Weight: 100, Description: g.Name,
			})
		}
		m.Groups = append(m.Groups, g)
	}
}

// TestFormerGroups: until the listener of a port has left a group, what the Service has there follows the nodes.
func TestFormerGroups(t *testing.T) {
	t.Parallel()
	moving := []string{"Eni eni-1/10.9.0.1:8080 weight 100", "Eni eni-2/10.9.0.2:8080 weight 100"}
	withNode := func(items ...string) []string { return append(append([]string{}, moving...), items...) }
	there := func(m *model.Model) {
		registered("sgp-1", "30080.TCP", "i-a")(m)
		ours(80, "TCP", "sgp-1")(m)
	}
	checkRows(t, serverLines, []row{
		{"from nodes to pods", all(pods, existing(there)), withNode("former Ecs i-a:30080 weight 100", "former Ecs i-b:30080 weight 100"), nil},
		{"the group stays the same", existing(there), []string{"Ecs i-a:30080 weight 100", "Ecs i-b:30080 weight 100"}, nil},
		{"nothing of the Service is in it", all(pods, existing(there, func(m *model.Model) {
			for i := range m.Groups[0].Servers {
				m.Groups[0].Servers[i].Description = "by hand"
			}
		})), moving, nil},
		{"the listener is somebody else's", all(pods, existing(there, func(m *model.Model) { *m.Listeners[0].Description = "by hand" })), moving,
			nil},
		{"of a load balancer whose listeners are left alone", all(pods, reused(there)), moving, []string{
			`ListenersLeftAlone: the Service does not manage the listeners of an existing NLB; to manage them, set ` + key +
				`force-override-listeners: "true"`,
		}},
	})
}
