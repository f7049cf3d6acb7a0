package conformance

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

func nlbExperiments() []experiment {
	return []experiment{
		{"traffic/checks of an NLB", "nlb", nlbChecks},
		{"traffic/PROXY protocol", "nlb", nlbProxy},
		{"traffic/security groups of an NLB", "nlb", nlbFilter},
		{"traffic/jobs of an NLB", "nlb", nlbJobs},
		{"traffic/zone that an NLB leaves", "nlb", nlbZoneLeft},
		{"traffic/UDP sessions of an NLB", "nlb", nlbDatagrams},
		{"traffic/servers without a zone", "nlb", nlbZoneless},
		{"traffic/certificates of an NLB", "nlb", nlbNames},
		{"traffic/ALPN", "nlb", nlbALPN},
	}
}

// nlbChecks has the checks of one backend server fail, and then those of both.
func nlbChecks(l *lab) {
	b := l.balanced(nil)
	group := l.serverGroup(P{
		"Protocol": "TCP", "PreserveClientIpEnabled": "false", "ConnectionDrainEnabled": "true", "ConnectionDrainTimeout": "30",
		"HealthCheckConfig.HealthCheckType": "HTTP", "HealthCheckConfig.HealthCheckConnectPort": strconv.Itoa(checkedPort),
		"HealthCheckConfig.HealthCheckInterval": "1", "HealthCheckConfig.HealthyThreshold": "2", "HealthCheckConfig.UnhealthyThreshold": "2",
	})
	var checker atomic.Value
	for i := range 2 {
		l.serve("tcp", i, servedPort, echo(nameOf(i)))
		ok := answering(http.StatusOK, nil)
		l.serve("tcp", i, checkedPort, func(c net.Conn, client netip.Addr) {
			checker.Store(client)
			ok(c, client)
		})
	}
	l.alter("AddServersToServerGroup", group, 0)
	listener := l.forward(b, group, "TCP", 80, nil)
	l.pause(time.Minute)
	c, greeting := l.meet(clientAddress, b.addresses[0])
	_, rest, _ := strings.Cut(greeting, " sees ")
	seen, _ := netip.ParseAddr(rest) // what is no address is nobody's
	source, _ := checker.Load().(netip.Addr)
	l.see("network.nlb-check-source", lines("checks by "+b.whose(source), "connections by "+b.whose(seen)),
		"checks by the cloud, connections by the cloud")

	l.alter("AddServersToServerGroup", group, 1)
	l.pause(time.Minute)
	l.serve("tcp", 0, checkedPort, answering(http.StatusInternalServerError, nil))
	l.pause(10 * time.Second)
	health := l.do("nlb", "GetListenerHealthStatus", P{"ListenerId": listener})
	const first = "ListenerHealthStatus.0.ServerGroupInfos.0.NonNormalServers.0."
	l.see("network.nlb-health-words", text(health, first+"Status"), "Unhealthy")
	l.see("network.nlb-check-fail", text(health, first+"Reason.ReasonCode"), "CHECK_FAIL")
	early := repeats(c)
	l.pause(time.Minute)
	l.see("network.nlb-unhealthy-drain", lines(early, repeats(c)), lines(again, refusal))
	l.serve("tcp", 1, checkedPort, answering(http.StatusInternalServerError, nil))
	l.pause(10 * time.Second)
	l.see("network.nlb-all-failed", served(l.greeting(clientAddress, b.addresses[0])), "served")
}

// nlbProxy looks for the VPC in the header of the PROXY protocol.
func nlbProxy(l *lab) {
	b, group := l.balanced(nil), l.serverGroup(unchecked("TCP"))
	vpc := append([]byte{0x01}, l.env.VPC...)
	l.serve("tcp", 0, servedPort, func(c net.Conn, _ netip.Addr) {
		header := make([]byte, 1000)
		n, err := c.Read(header)
		if err == nil {
			_, _ = fmt.Fprintf(c, "VPC: %t", bytes.Contains(header[:n], vpc) && bytes.IndexByte(header[:n], 0xE1) > 0)
		}
	})
	l.alter("AddServersToServerGroup", group, 0)
	l.forward(b, group, "TCP", 80, P{"ProxyProtocolEnabled": "true", "ProxyProtocolV2Config": `{"Ppv2VpcIdEnabled":true}`})
	_, header := l.meet(clientAddress, b.addresses[0])
	l.see("network.nlb-proxy-vpc", header, "VPC: true")
}

// nlbFilter connects clients whom rules of a security group drop, accept and drop at the same priority, and do not name.
func nlbFilter(l *lab) {
	b, group := l.balanced(nil), l.serverGroup(unchecked("TCP"))
	l.serve("tcp", 0, servedPort, echo(nameOf(0)))
	l.alter("AddServersToServerGroup", group, 0)
	l.forward(b, group, "TCP", 80, nil)
	security := l.securityGroup("normal")
	p := P{"SecurityGroupId": security}
	for i, rule := range []struct{ policy, source, priority string }{{"drop", droppedAddress, "1"}, {"accept", equalAddress, "50"},
		{"drop", equalAddress, "50"}} {
		key := fmt.Sprintf("Permissions.%d.", i+1)
		p[key+"Policy"], p[key+"SourceCidrIp"], p[key+"Priority"], p[key+"IpProtocol"], p[key+"PortRange"] = rule.policy, rule.source+
			"/32", rule.priority, "TCP", "1/65535"
	}
	l.do("ecs", "AuthorizeSecurityGroup", p)
	l.job(l.do("nlb", "LoadBalancerJoinSecurityGroup", P{"LoadBalancerId": b.id, "SecurityGroupIds.1": security}))
	l.active(b.id)
	l.follow()
	greet := func(client string) string { return l.greeting(client, b.addresses[0]) }
	admitted := func(client string) string { return fmt.Sprint(greet(client) == nameOf(0)) }
	l.see("network.nlb-security-order", lines(admitted(clientAddress), admitted(equalAddress)), "true, false")
	l.see("network.nlb-dropped", greet(droppedAddress), refusal)
}

// nlbJobs uses a connection, and opens another one, while the listener is being changed.
func nlbJobs(l *lab) {
	b, group := l.balanced(nil), l.serverGroup(unchecked("TCP"))
	l.serve("tcp", 0, servedPort, echo(nameOf(0)))
	l.alter("AddServersToServerGroup", group, 0)
	listener := l.forward(b, group, "TCP", 80, nil)
	c, _ := l.meet(clientAddress, b.addresses[0])
	job := l.do("nlb", "UpdateListenerAttribute", P{"ListenerId": listener, "IdleTimeout": "100"})
	l.see("network.nlb-during-jobs", lines(repeats(c), l.greeting(clientAddress, b.addresses[0])), lines(again, nameOf(0)))
	l.job(job)
}

// nlbZoneLeft uses a connection, and the name, after the load balancer has left one of three zones.
func nlbZoneLeft(l *lab) {
	const zone, vSwitch = "cn-hangzhou-c", "vsw-c"
	b, group := l.balanced(P{"ZoneMappings.3.ZoneId": zone, "ZoneMappings.3.VSwitchId": vSwitch}), l.serverGroup(unchecked("TCP"))
	l.serve("tcp", 0, servedPort, echo(nameOf(0)))
	l.alter("AddServersToServerGroup", group, 0)
	l.forward(b, group, "TCP", 80, nil)
	c, _ := l.meet(clientAddress, b.addresses[2])
	p := l.nlbZones("Intranet")
	delete(p, "AddressType")
	delete(p, "VpcId")
	delete(p, "LoadBalancerName")
	p["LoadBalancerId"] = b.id
	l.job(l.do("nlb", "UpdateLoadBalancerZones", p))
	l.follow()
	left, _ := l.network.resolve(b.name)
	l.see("network.nlb-removed-zone", repeats(c), refusal)
	l.pause(2 * time.Minute)
	later, _ := l.network.resolve(b.name)
	l.see("network.nlb-removed-zone-names", fmt.Sprintf("%d addresses, then %d", len(left), len(later)), "2 addresses, then 2")
}

// nlbDatagrams sends datagrams to a backend server that leaves, without drain and with it.
func nlbDatagrams(l *lab) {
	b := l.balanced(nil)
	for i := range 2 {
		l.serve("udp", i, servedPort, numbered(nameOf(i)))
	}
	var seen []string
	for i, drain := range []string{"false", "true"} {
		p := unchecked("UDP")
		p["ConnectionDrainEnabled"], p["ConnectionDrainTimeout"] = drain, "30"
		group := l.serverGroup(p)
		l.alter("AddServersToServerGroup", group, 0)
		l.forward(b, group, "UDP", 53+i, nil)
		ask := func() string {
			return strings.TrimRight(l.network.ask(clientAddress, b.addresses[0], 53+i, "question"), "0123456789")
		}
		first := ask()
		l.alter("AddServersToServerGroup", group, 1)
		l.alter("RemoveServersFromServerGroup", group, 0)
		seen = append(seen, first, ask())
		for range 5 {
			l.pause(10 * time.Second)
			ask()
		}
		seen = append(seen, ask())
	}
	l.see("network.nlb-udp-sessions", lines(seen...), lines("a", "b", "b", "a", "a", "b"))

	group := l.serverGroup(P{"Protocol": "UDP", "HealthCheckConfig.HealthCheckEnabled": "true", "HealthCheckConfig.HealthCheckInterval": "1",
		"HealthCheckConfig.UnhealthyThreshold": "2"})
	l.alter("AddServersToServerGroup", group, 0)
	listener := l.forward(b, group, "UDP", 60, nil)
	l.pause(time.Minute)
	health := l.do("nlb", "GetListenerHealthStatus", P{"ListenerId": listener})
	l.see("network.nlb-udp-by-tcp", text(health, "ListenerHealthStatus.0.ServerGroupInfos.0.NonNormalServers.0.Status"), "Unhealthy")
}

// nlbZoneless sends connections from both zones to a backend server whose zone is not known, while they do not cross zones.
func nlbZoneless(l *lab) {
	const pod = "172.31.5.5"
	l.do("vpc", "CreateRouteEntry", l.entry(l.table(), "172.31.5.0/24"))
	l.network.serve("tcp", pod, servedPort, echo(nameOf(0)))
	b := l.balanced(nil)
	l.job(l.do("nlb", "UpdateLoadBalancerAttribute", P{"LoadBalancerId": b.id, "CrossZoneEnabled": "false"}))
	l.active(b.id)
	l.follow()
	p := unchecked("TCP")
	p["ServerGroupType"] = "Ip"
	group := l.serverGroup(p)
	l.job(l.do("nlb", "AddServersToServerGroup",
		P{"ServerGroupId": group, "Servers.1.ServerId": pod, "Servers.1.ServerType": "Ip", "Servers.1.Port": strconv.Itoa(servedPort)}))
	l.forward(b, group, "TCP", 80, nil)
	var seen []string
	for _, address := range b.addresses {
		seen = append(seen, l.greeting(clientAddress, address))
	}
	l.see("network.nlb-server-zones", lines(seen...), lines(nameOf(0), nameOf(0)))
}

// secured is an NLB with a listener that ends TLS.
func (l *lab) secured(more ...P) nlbInZones {
	b, group := l.balanced(nil), l.serverGroup(unchecked("TCPSSL"))
	l.serve("tcp", 0, servedPort, echo(nameOf(0)))
	l.alter("AddServersToServerGroup", group, 0)
	for i, p := range more {
		p["CertificateIds.1"] = l.uploaded("default.test")
		l.forward(b, group, "TCPSSL", 443+i, p)
	}
	return b
}

// uploaded is the ID of a certificate for a name.
func (l *lab) uploaded(name string) string {
	made := newPair(1, name)
	return text(l.do("slb", "UploadServerCertificate",
		P{"ServerCertificateName": "conformance", "ServerCertificate": made.certificate, "PrivateKey": made.key}), "ServerCertificateId")
}

// handshake is what a client of TLS gets.
func (l *lab) handshake(address string, port int, config *tls.Config) (tls.ConnectionState, error) {
	raw, err := l.network.connect(clientAddress, address, port)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer raw.Close()
	config.InsecureSkipVerify = true // which certificate it is, the experiment finds out
	secure := tls.Client(raw, config)
	if err := secure.HandshakeContext(l.ctx); err != nil {
		return tls.ConnectionState{}, fmt.Errorf("handshake: %w", err)
	}
	return secure.ConnectionState(), nil
}

// nlbNames asks for names that an additional certificate has, that one covers, and that none has.
func nlbNames(l *lab) {
	b := l.secured(P{})
	listener := text(l.do("nlb", "ListListeners", P{"LoadBalancerIds.1": b.id}), "Listeners.0.ListenerId")
	more := P{"ListenerId": listener, "AdditionalCertificateIds.1": l.uploaded("*.shop.test"),
		"AdditionalCertificateIds.2": l.uploaded("www.shop.test")}
	l.job(l.do("nlb", "AssociateAdditionalCertificatesWithListener", more))
	l.active(b.id)
	var seen []string
	for _, name := range []string{"www.shop.test", "other.shop.test", "none.test"} {
		state, err := l.handshake(b.addresses[0], 443, &tls.Config{ServerName: name}) //nolint:gosec // any version
		if err != nil {
			seen = append(seen, refusal)
			continue
		}
		seen = append(seen, subject(state.PeerCertificates))
	}
	l.see("network.nlb-sni", lines(seen...), "www.shop.test, *.shop.test, default.test")
}

func subject(chain []*x509.Certificate) string {
	if len(chain) == 0 {
		return silence
	}
	return chain[0].Subject.CommonName
}

// nlbALPN offers two protocols to listeners with different policies, and none.
func nlbALPN(l *lab) {
	policy := func(name string) P { return P{"AlpnEnabled": "true", "AlpnPolicy": name} }
	b := l.secured(policy("HTTP2Optional"), policy("HTTP2Preferred"))
	var seen []string
	for i := range 2 {
		state, err := l.handshake(b.addresses[0], 443+i, &tls.Config{NextProtos: []string{"h2", "http/1.1"}}) //nolint:gosec // any version
		if err != nil {
			state.NegotiatedProtocol = refusal
		}
		seen = append(seen, state.NegotiatedProtocol)
	}
	_, err := l.handshake(b.addresses[0], 443, &tls.Config{}) //nolint:gosec // any version
	l.see("network.nlb-alpn", lines(append(seen, fmt.Sprintf("without ALPN: %t", err == nil))...), "http/1.1, h2, without ALPN: true")
}
