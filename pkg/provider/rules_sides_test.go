package provider

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// side is a product, as far as the rules need to know it.
type side struct {
	name    string
	feature alicloud.Feature
	// stages are Services, and edits that change each setting that there is.
	stages []stage
	// served are the ports that run, and state is all that was made for the Service, without ids.
	served func(w *ruled) portsServed
	state  func(w *ruled) []string
	// tls is the port with the certificate, and certificate which one that is.
	tls         string
	certificate func(w *ruled) string
	// joins, leaves, opens, rotates and removes are what a rule cannot do without.
	joins, leaves, opens, rotates, removes []string
	// known are the reads without which a new process knows nothing of the load balancer, and members those that a change of its members
	// needs.
	known, members []string
	// listeners is the read of the listeners. Without it, a new process follows the nodes and pods, and nothing else.
	listeners string
	// fresh are the reads without which nothing is created, and those of who may connect, without which no port opens; interfaces those that
	// find pods in the cloud.
	fresh, interfaces []string
	// foreign are things of somebody else.
	foreign []foreign
}

// stage is a Service with a change of many settings at once.
type stage struct {
	name       string
	pods       bool
	base, edit []func(*corev1.Service)

	wanted []string        // the state after the edit, without any fault
	calls  []request       // what led there, and the deletion
	based  map[string]bool // settings that the Service has before
}

// foreign is a thing of somebody else on or behind the load balancer.
type foreign struct {
	name   string
	make   func(w *ruled)
	cannot []rule
}

func ranges(blocks ...string) func(*corev1.Service) {
	return func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = blocks }
}

// ports sets the ports of the Service, such as "udp:53".
func ports(all ...string) func(*corev1.Service) {
	return func(svc *corev1.Service) {
		svc.Spec.Ports = nil
		for _, text := range all {
			var port int32
			protocol, number, _ := strings.Cut(text, ":")
			_, _ = fmt.Sscan(number, &port) //nolint:errcheck // it is one
			if protocol == "udp" {
				svc.Spec.Ports = append(svc.Spec.Ports, testkube.Port(port, corev1.ProtocolUDP))
			} else {
				svc.Spec.Ports = append(svc.Spec.Ports, testkube.Port(port, corev1.ProtocolTCP))
			}
		}
	}
}

func eni(svc *corev1.Service) { svc.Annotations[annotation.BackendType] = "eni" }

// text is a value without what differs from one run to the next.
func text(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func tagText(tags []alicloud.Tag) string {
	var all []string
	for _, tag := range tags {
		all = append(all, tag.Key+"="+tag.Value)
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}

// stays are what cannot be while a listener of somebody else stays: the load balancer and the group that it uses stay with it.
var stays = []rule{heals, ends}

// byHand marks what a person made.
const byHand = "by-hand"

func ofCLB() *side {
	edits := func(f ...func(*corev1.Service)) []func(*corev1.Service) { return f }
	base := edits(ports("tcp:80", "tcp:443", "tcp:8080", "udp:53", "tcp:81"), with(annotation.ProtocolPort, "https:443,http:8080"),
		with(annotation.CertID, "cert-1"))
	return &side{
		name: "CLB", feature: alicloud.FeatureServices, tls: "https:443",
		stages: []stage{
			{name: "most settings", base: append(slices.Clone(base), ranges("192.0.2.0/24"), with(annotation.AdditionalTags, "a=1"),
				with(annotation.DomainExtensions, "a.example.com:cert-1,b.example.com:cert-1"), with(annotation.InstanceChargeType, "PayBySpec"),
				with(annotation.Spec, "slb.s1.small"),
				with(annotation.ChargeType, "paybybandwidth"), with(annotation.Bandwidth, "5")),
				edit: edits(ports("tcp:80", "tcp:443", "tcp:8080", "udp:53", "udp:54", "tcp:8081", "tcp:8443"),
					with(annotation.ProtocolPort, "https:443,http:8080,http:8081,https:8443"),
					with(annotation.Name, "renamed"), with(annotation.AdditionalTags, "b=2"), with(annotation.Scheduler, "wlc"), ranges("198.51.100.0/24"),
					with(annotation.DomainExtensions, "b.example.com:cert-3,c.example.com:cert-1"), with(annotation.DefaultWeight, "50"),
					with(annotation.DeleteProtection, "off"),
					with(annotation.ModificationProtection, "NonProtection"), with(annotation.Spec, "slb.s2.small"), with(annotation.Bandwidth, "10"),
					with(annotation.IdleTimeout, "20"), with(annotation.UnhealthyThreshold, "5"),
					with(annotation.TLSCipherPolicy, "tls_cipher_policy_1_2"), with(annotation.PersistenceTimeout, "60"))},
			{name: "ranges come", base: append(slices.Clone(base), with(annotation.InstanceChargeType, "PayByCLCU")),
				edit: edits(ranges("192.0.2.0/24"), with(annotation.InstanceChargeType, "PayBySpec"), with(annotation.Spec, "slb.s1.small"))},
			{name: "ranges go", base: append(slices.Clone(base), ranges("192.0.2.0/24")), edit: edits(ranges())},
			{name: "pods", pods: true, base: append(slices.Clone(base), eni),
				edit: edits(with(annotation.DefaultWeight, "50"), with(annotation.Scheduler, "wlc"))},
			{name: "elastic address",
				base: append(slices.Clone(base), with(annotation.ExternalIPType, "eip"), with(annotation.AddressType, "intranet"),
					with(annotation.VSwitchID, "vsw-a")), edit: edits(with(annotation.Name, "renamed"))},
		},
		served: servedByCLB, state: stateOfCLB,
		certificate: func(w *ruled) string {
			for _, l := range clbListeners(w) {
				if l.String() == "https:443" {
					return l.Attributes["ServerCertificateId"]
				}
			}
			return ""
		},
		joins:   []string{"AddVServerGroupBackendServers"},
		leaves:  []string{"RemoveVServerGroupBackendServers"},
		opens:   []string{"CreateVServerGroup", "CreateLoadBalancerTCPListener", "StartLoadBalancerListener"},
		rotates: []string{"SetLoadBalancerHTTPSListenerAttribute"},
		removes: []string{"DeleteLoadBalancer", "SetLoadBalancerDeleteProtection", "DescribeLoadBalancers", "DescribeLoadBalancerListeners"},
		known:   []string{"DescribeLoadBalancers", "DescribeVServerGroups"}, listeners: "DescribeLoadBalancerListeners",
		members: []string{"DescribeVServerGroupAttribute"},
		fresh: []string{
			"DescribeLoadBalancerListeners", "DescribeVServerGroups", "DescribeVServerGroupAttribute",
			"DescribeAccessControlLists", "DescribeAccessControlListAttribute", "CreateAccessControlList", "AddAccessControlListEntry",
		},
		interfaces: []string{"DescribeNetworkInterfaces"},
		foreign: []foreign{
			{name: "a listener on our group", make: func(w *ruled) { clbByHand(w, 9090, true) }, cannot: stays},
			{name: "a listener on a group of their own", make: func(w *ruled) { clbByHand(w, 9090, false) }, cannot: stays},
			{name: "a listener on the port to come", make: func(w *ruled) { clbByHand(w, 8081, false) }, cannot: stays},
			{name: "a server in our group", make: func(w *ruled) {
				w.server.Put("i-theirs", "{}")
				testkit.Check(w.t, w.person.AddBackends(w.t.Context(), clbGroups(w)[0].ID, []alicloud.Backend{{
					BackendKey: alicloud.BackendKey{Type: alicloud.BackendECS, ServerID: "i-theirs", Port: 9999}, Weight: 100, Description: byHand,
				}}))
			}},
			{name: "a listener of another load balancer on our list", make: func(w *ruled) {
				other := testkit.Must(w.person.CreateLoadBalancer(w.t.Context(),
					alicloud.LoadBalancer{Name: byHand, AddressType: alicloud.AddressInternet}, byHand))(w.t)
				lists := testkit.Must(w.person.DescribeAccessLists(w.t.Context(), alicloud.Tag{Key: "ack.aliyun.com"}))(w.t)
				group := testkit.Must(w.person.CreateVServerGroup(w.t.Context(), other.ID, byHand, nil))(w.t)
				testkit.Check(w.t, w.person.CreateListener(w.t.Context(), other.ID, alicloud.Listener{
					ListenerKey: alicloud.ListenerKey{Port: 80, Protocol: alicloud.ProtocolTCP}, Description: byHand, VServerGroupID: group,
					Attributes: alicloud.Attributes{"AclStatus": "on", "AclType": "white", "AclId": lists[0].ID},
				}))
			}},
			{name: "entries in our list", make: func(w *ruled) {
				lists := testkit.Must(w.person.DescribeAccessLists(w.t.Context(), alicloud.Tag{Key: "ack.aliyun.com"}))(w.t)
				testkit.Check(w.t, w.person.AddAccessListEntries(w.t.Context(), lists[0].ID, []string{"203.0.113.0/24"}))
			}},
		},
	}
}

// clb is the load balancer of the Service, nil while there is none.
func clb(w *ruled) *alicloud.LoadBalancer {
	w.t.Helper()
	for _, lb := range testkit.Must(w.person.DescribeLoadBalancers(w.t.Context(), alicloud.LoadBalancerQuery{}))(w.t) {
		if lb.Name != byHand {
			full := testkit.Must(w.person.DescribeLoadBalancer(w.t.Context(), lb.ID))(w.t)
			full.Tags = lb.Tags
			return &full
		}
	}
	return nil
}

func clbListeners(w *ruled) []alicloud.Listener {
	w.t.Helper()
	lb := clb(w)
	if lb == nil {
		return nil
	}
	return slices.DeleteFunc(testkit.Must(w.person.DescribeListeners(w.t.Context(), lb.ID))(w.t)[lb.ID], func(l alicloud.Listener) bool {
		return l.Description == byHand
	})
}

func clbGroups(w *ruled) (groups []alicloud.VServerGroup) {
	w.t.Helper()
	lb := clb(w)
	if lb == nil {
		return nil
	}
	for _, g := range testkit.Must(w.person.DescribeVServerGroups(w.t.Context(), lb.ID))(w.t) {
		full := testkit.Must(w.person.DescribeVServerGroup(w.t.Context(), g.ID))(w.t)
		full.Backends = slices.DeleteFunc(full.Backends, func(b alicloud.Backend) bool { return b.Description == byHand })
		if g.Name != byHand {
			groups = append(groups, full)
		}
	}
	slices.SortFunc(groups, func(a, b alicloud.VServerGroup) int { return strings.Compare(a.Name, b.Name) })
	return groups
}

func clbByHand(w *ruled, port int, ours bool) {
	w.t.Helper()
	group := clbGroups(w)[0].ID
	if !ours {
		group = testkit.Must(w.person.CreateVServerGroup(w.t.Context(), clb(w).ID, byHand, nil))(w.t)
	}
	testkit.Check(w.t, w.person.CreateListener(w.t.Context(), clb(w).ID, alicloud.Listener{
		ListenerKey: alicloud.ListenerKey{Port: port, Protocol: alicloud.ProtocolTCP}, Description: byHand, VServerGroupID: group,
		Attributes: alicloud.Attributes{},
	}))
}

func servedByCLB(w *ruled) portsServed {
	all, groups := portsServed{}, clbGroups(w)
	for _, l := range clbListeners(w) {
		if l.Status != "running" {
			continue
		}
		var members []string
		for _, g := range groups {
			for _, b := range g.Backends {
				if g.ID == l.VServerGroupID {
					members = append(members, w.host(b.ServerID, b.ServerIP))
				}
			}
		}
		slices.Sort(members)
		all[l.String()] = members
	}
	return all
}

// host is the instance behind a member, which may be named by an address.
func (w *ruled) host(id, address string) string {
	if host := w.hosts[address]; host != "" && !strings.HasPrefix(id, "i-") {
		return host
	}
	return id
}

func stateOfCLB(w *ruled) (lines []string) {
	lb := clb(w)
	if lb == nil {
		return nil
	}
	lines = append(lines,
		fmt.Sprintf("load balancer %s %s %s %s %s %d %s %s %s", lb.Name, lb.AddressType, lb.InstanceChargeType, lb.Spec, lb.InternetChargeType,
			lb.Bandwidth,
			lb.DeleteProtection, lb.ModificationProtection, tagText(lb.Tags)))
	names := map[string]string{}
	for _, g := range clbGroups(w) {
		names[g.ID] = g.Name
		var members []string
		for _, b := range g.Backends {
			members = append(members, fmt.Sprintf("%s:%d=%d", w.host(b.ServerID, b.ServerIP), b.Port, b.Weight))
		}
		slices.Sort(members)
		lines = append(lines, fmt.Sprintf("group %s %v", g.Name, members))
	}
	for _, list := range testkit.Must(w.person.DescribeAccessLists(w.t.Context(), alicloud.Tag{Key: "ack.aliyun.com"}))(w.t) {
		names[list.ID] = list.Name
		full := testkit.Must(w.person.DescribeAccessList(w.t.Context(), list.ID))(w.t)
		slices.Sort(full.Entries)
		lines = append(lines, fmt.Sprintf("list %s %v", list.Name, full.Entries))
	}
	for _, l := range clbListeners(w) {
		l.VServerGroupID = names[l.VServerGroupID]
		if id := l.Attributes["AclId"]; id != "" {
			l.Attributes["AclId"] = names[id]
		}
		lines = append(lines, "listener "+text(l))
		if l.Protocol == "https" {
			for _, e := range testkit.Must(w.person.DescribeDomainExtensions(w.t.Context(), lb.ID, l.Port))(w.t) {
				lines = append(lines, fmt.Sprintf("domain %d %s %s", l.Port, e.Domain, e.CertificateID))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func ofNLB() *side {
	edits := func(f ...func(*corev1.Service)) []func(*corev1.Service) { return f }
	base := edits(testkube.Class(nlb.Class), with(annotation.ZoneMaps, "cn-hangzhou-a:vsw-a,cn-hangzhou-b:vsw-b"),
		ports("tcp:80", "tcp:443", "udp:53", "tcp:81"),
		with(annotation.ProtocolPort, "tcpssl:443"), with(annotation.CertID, "cert-1"))
	return &side{
		name: "NLB", feature: alicloud.FeatureNLB, tls: "TCPSSL:443",
		stages: []stage{
			{name: "most settings",
				base: append(slices.Clone(base), ranges("192.0.2.0/24"), with(annotation.AdditionalTags, "a=1"),
					with(annotation.AdditionalCertIDs, "cert-2"), with(annotation.BandwidthPackageID, "cbwp-1")),
				edit: edits(ports("tcp:80", "tcp:443", "udp:53", "udp:54", "tcp:8443"), with(annotation.ProtocolPort, "tcpssl:443,tcpssl:8443"),
					with(annotation.Name, "renamed"),
					with(annotation.AdditionalTags, "b=2"), with(annotation.Scheduler, "wlc"), ranges("198.51.100.0/24"),
					with(annotation.AdditionalCertIDs, "cert-3"),
					with(annotation.DefaultWeight, "50"), with(annotation.DeleteProtection, "off"),
					with(annotation.ModificationProtection, "NonProtection"),
					with(annotation.BandwidthPackageID, "cbwp-2"), with(annotation.IdleTimeout, "20"), with(annotation.UnhealthyThreshold, "5"),
					with(annotation.TLSCipherPolicy, "tls_cipher_policy_1_2"),
					with(annotation.Cps, "1000"), with(annotation.CrossZoneEnabled, "off"), with(annotation.ConnectionDrain, "on"),
					with(annotation.ConnectionDrainTimeout, "30"),
					with(annotation.ZoneMaps, "cn-hangzhou-b:vsw-b,cn-hangzhou-c:vsw-c"))},
			{name: "ranges come", base: append(slices.Clone(base), with(annotation.IPVersion, "DualStack")),
				edit: edits(ranges("192.0.2.0/24"), with(annotation.IPv6AddressType, "internet"))},
			{name: "ranges go",
				base: append(slices.Clone(base), ranges("192.0.2.0/24"), with(annotation.IPVersion, "DualStack"),
					with(annotation.IPv6AddressType, "internet")), edit: edits(ranges(), unset(annotation.IPv6AddressType))},
			{name: "intranet", base: base, edit: edits(with(annotation.AddressType, "intranet"))},
			{name: "pods", pods: true, base: append(slices.Clone(base), eni),
				edit: edits(with(annotation.DefaultWeight, "50"), with(annotation.Scheduler, "wlc"))},
		},
		served: servedByNLB, state: stateOfNLB,
		certificate: func(w *ruled) string {
			for _, l := range nlbListeners(w) {
				if l.Port == 443 && len(l.CertificateIDs) > 0 {
					return l.CertificateIDs[0]
				}
			}
			return ""
		},
		joins:   []string{"AddServersToServerGroup"},
		leaves:  []string{"RemoveServersFromServerGroup"},
		opens:   []string{"CreateServerGroup", "CreateListener"},
		rotates: []string{"UpdateListenerAttribute"},
		removes: []string{"DeleteLoadBalancer", "UpdateLoadBalancerProtection", "ListLoadBalancers", "GetLoadBalancerAttribute", "ListListeners",
			"DeleteListener"},
		known: []string{"ListLoadBalancers", "GetLoadBalancerAttribute", "ListServerGroups"}, listeners: "ListListeners",
		members: []string{"ListServerGroupServers"},
		fresh: []string{
			"ListListeners", "ListServerGroups", "ListServerGroupServers", "DescribeSecurityGroups", "DescribeSecurityGroupAttribute",
			"CreateSecurityGroup", "AuthorizeSecurityGroup",
			"LoadBalancerJoinSecurityGroup",
		},
		interfaces: []string{"DescribeNetworkInterfaces"},
		foreign: []foreign{
			{name: "a listener on our group", make: func(w *ruled) { nlbByHand(w, balancer(w).ID, 9090, true) }, cannot: stays},
			{name: "a listener on the port to come", make: func(w *ruled) { nlbByHand(w, balancer(w).ID, 8443, true) }, cannot: stays},
			{name: "a listener of another load balancer on our group", make: func(w *ruled) {
				other := testkit.Must(w.person.CreateNLB(w.t.Context(), alicloud.NLB{
					Name: byHand, VPCID: "vpc-emulator", AddressType: alicloud.NLBInternet, AddressIPVersion: alicloud.NLBIPv4,
					Zones: []alicloud.NLBZone{{ZoneID: "cn-hangzhou-a", VSwitchID: "vsw-a"}, {ZoneID: "cn-hangzhou-b", VSwitchID: "vsw-b"}},
				}, byHand))(w.t)
				w.sleep(60)
				nlbByHand(w, other, 9090, true)
			}, cannot: stays},
			{name: "a server in our group", make: func(w *ruled) {
				w.server.Put("i-theirs", "{}")
				testkit.Must(w.person.AddNLBServers(w.t.Context(), nlbGroups(w)[0].ID, []alicloud.NLBServer{{
					NLBServerKey: alicloud.NLBServerKey{ID: "i-theirs", Type: alicloud.NLBServerECS, Port: 9999}, Weight: 100, Description: byHand,
				}}))(w.t)
				w.sleep(5)
			}},
			{name: "an instance in our security group", make: func(w *ruled) {
				var found struct {
					NetworkInterfaceSets struct {
						NetworkInterfaceSet []struct{ NetworkInterfaceId string } //nolint:revive // name on the wire
					}
				}
				w.server.Raw(api.VersionECS, "DescribeNetworkInterfaces", map[string]string{"InstanceId": "i-n2"}, &found)
				w.server.Raw(api.VersionECS, "ModifyNetworkInterfaceAttribute", map[string]string{
					"NetworkInterfaceId": found.NetworkInterfaceSets.NetworkInterfaceSet[0].NetworkInterfaceId,
					"SecurityGroupId.1":  securityGroups(w)[0].ID,
				}, nil)
			}},
			{name: "a rule in our security group", make: func(w *ruled) {
				testkit.Check(w.t,
					w.person.AddSecurityRules(w.t.Context(), securityGroups(w)[0].ID,
						[]alicloud.SecurityRule{{Priority: 1, Protocol: "ALL", Ports: "-1/-1", CIDR: "203.0.113.0/24", Description: byHand}}))
			}},
		},
	}
}

// balancer is the NLB of the Service, nil while there is none.
func balancer(w *ruled) *alicloud.NLB {
	w.t.Helper()
	for _, lb := range testkit.Must(w.person.ListNLBs(w.t.Context(), alicloud.NLBQuery{}))(w.t) {
		if lb.Name != byHand {
			full := testkit.Must(w.person.GetNLB(w.t.Context(), lb.ID))(w.t)
			full.Tags = lb.Tags
			return &full
		}
	}
	return nil
}

// nlbByHand makes a listener by hand that leads to a server group of ours, or else to one of their own.
func nlbByHand(w *ruled, id string, port int, ours bool) {
	w.t.Helper()
	text, group := byHand, ""
	if ours {
		group = nlbGroups(w)[slices.IndexFunc(nlbGroups(w), func(g alicloud.NLBGroup) bool { return g.Protocol == alicloud.NLBTCP })].ID
	} else {
		var err error
		group, _, err = w.person.CreateNLBGroup(w.t.Context(), alicloud.NLBGroup{
			Name: byHand, VPCID: "vpc-emulator", Protocol: alicloud.NLBTCP, Type: alicloud.NLBInstanceGroup,
		}, byHand)
		testkit.Check(w.t, err)
		w.sleep(5)
	}
	_, _, err := w.person.CreateNLBListener(w.t.Context(), alicloud.NLBListener{
		LoadBalancerID: id, Port: port, Protocol: alicloud.NLBTCP,
		NLBListenerSettings: alicloud.NLBListenerSettings{Description: &text, ServerGroupID: &group},
	}, byHand)
	testkit.Check(w.t, err)
	w.sleep(5)
}

func nlbListeners(w *ruled) []alicloud.NLBListener {
	w.t.Helper()
	lb := balancer(w)
	if lb == nil {
		return nil
	}
	return slices.DeleteFunc(testkit.Must(w.person.ListNLBListeners(w.t.Context(), []string{lb.ID}))(w.t), func(l alicloud.NLBListener) bool {
		return *l.Description == byHand
	})
}

func nlbGroups(w *ruled) []alicloud.NLBGroup {
	w.t.Helper()
	groups := testkit.Must(w.person.ListNLBGroups(w.t.Context(), alicloud.NLBGroupQuery{}))(w.t)
	slices.SortFunc(groups, func(a, b alicloud.NLBGroup) int { return strings.Compare(a.Name, b.Name) })
	return groups
}

func nlbServers(w *ruled, group string) []alicloud.NLBServer {
	w.t.Helper()
	return slices.DeleteFunc(testkit.Must(w.person.ListNLBServers(w.t.Context(), group))(w.t), func(s alicloud.NLBServer) bool {
		return s.Description == byHand
	})
}

func securityGroups(w *ruled) []alicloud.SecurityGroup {
	w.t.Helper()
	return testkit.Must(w.person.DescribeSecurityGroups(w.t.Context(), alicloud.Tag{Key: "ack.aliyun.com"}))(w.t)
}

func servedByNLB(w *ruled) portsServed {
	all := portsServed{}
	for _, l := range nlbListeners(w) {
		if l.Status != alicloud.NLBListenerRunning && l.Status != "Configuring" {
			continue
		}
		var members []string
		for _, s := range nlbServers(w, *l.ServerGroupID) {
			members = append(members, w.host(s.ID, s.IP))
		}
		slices.Sort(members)
		all[fmt.Sprintf("%s:%d", l.Protocol, l.Port)] = members
	}
	return all
}

func stateOfNLB(w *ruled) (lines []string) {
	names := map[string]string{}
	for _, g := range securityGroups(w) {
		names[g.ID] = g.Name
		var rules []string
		for _, r := range testkit.Must(w.person.DescribeSecurityGroup(w.t.Context(), g.ID))(w.t).Rules {
			if r.Description != byHand {
				rules = append(rules, fmt.Sprintf("%t %d %s %s %s", r.Drop, r.Priority, r.Protocol, r.Ports, r.CIDR))
			}
		}
		slices.Sort(rules)
		lines = append(lines, fmt.Sprintf("security group %s %v", g.Name, rules))
	}
	for _, g := range nlbGroups(w) {
		names[g.ID] = g.Name
		var members []string
		for _, s := range nlbServers(w, g.ID) {
			members = append(members, fmt.Sprintf("%s:%d=%d", w.host(s.ID, s.IP), s.Port, s.Weight))
		}
		slices.Sort(members)
		lines = append(lines, fmt.Sprintf("group %s %s %v", g.Name, text(g.NLBGroupSettings), members))
	}
	if lb := balancer(w); lb != nil {
		zones, groups := []string{}, []string{}
		for _, zone := range lb.Zones {
			zones = append(zones, zone.VSwitchID)
		}
		for _, id := range lb.SecurityGroups {
			groups = append(groups, names[id])
		}
		slices.Sort(zones)
		lines = append(lines,
			fmt.Sprintf("load balancer %s %s %s %v %v %s %t %t %s %s", lb.Name, lb.AddressType, lb.IPv6AddressType, zones, groups,
				lb.BandwidthPackageID, lb.CrossZone,
				lb.DeletionProtection, lb.ModificationProtection, tagText(lb.Tags)))
	}
	for _, l := range nlbListeners(w) {
		extra := testkit.Must(w.person.AdditionalCertificates(w.t.Context(), l.ID))(w.t)
		group := names[*l.ServerGroupID]
		l.ID, l.LoadBalancerID, l.ServerGroupID = "", "", &group
		lines = append(lines, fmt.Sprintf("listener %s %v", text(l), extra))
	}
	slices.Sort(lines)
	return lines
}
