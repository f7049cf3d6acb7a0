package model

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// on is a listener; with a last port it is on a range.
func on(protocol string, first, last int) Listener {
	if last == 0 {
		return Listener{NLBListener: alicloud.NLBListener{Protocol: protocol, Port: first}}
	}
	return Listener{NLBListener: alicloud.NLBListener{Protocol: protocol, StartPort: first, EndPort: last}}
}

func TestKeysOfListeners(t *testing.T) {
	t.Parallel()
	for want, l := range map[string]Listener{
		"tcp:80": on("TCP", 80, 0), "udp:80": on("UDP", 80, 0), "tcp:443": on("TCPSSL", 443, 0), "tcp:80_90": on("TCP", 80, 90),
		"udp:80_90": on("UDP", 80, 90),
	} {
		if got := l.Key(); got != want {
			t.Errorf("key %q, want %q", got, want)
		}
		m := &Model{Listeners: []Listener{on("TCP", 1, 0), l}}
		if found := m.Listener(want); found != &m.Listeners[1] {
			t.Errorf("%s: found %v", want, found)
		}
	}
	if (&Model{}).Listener("tcp:80") != nil || (*Model)(nil).Listener("tcp:80") != nil {
		t.Error("found a listener where there is none")
	}
}

func TestOverlappingListeners(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		a, b Listener
		want bool
	}{
		{"one port", on("TCP", 80, 0), on("TCP", 80, 0), true},
		{"two ports", on("TCP", 80, 0), on("TCP", 81, 0), false},
		{"TLS is TCP", on("TCP", 80, 0), on("TCPSSL", 80, 0), true},
		{"UDP is not", on("TCP", 80, 0), on("UDP", 80, 0), false},
		{"first port of a range", on("TCP", 80, 90), on("TCP", 80, 0), true},
		{"last port of a range", on("TCP", 80, 90), on("TCP", 90, 0), true},
		{"after a range", on("TCP", 80, 90), on("TCP", 91, 0), false},
		{"ranges that touch", on("TCP", 80, 90), on("TCP", 90, 99), true},
		{"a range within another one", on("UDP", 80, 90), on("UDP", 84, 85), true},
		{"ranges side by side", on("TCP", 80, 90), on("TCP", 91, 99), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.a.Overlaps(&test.b) != test.want || test.b.Overlaps(&test.a) != test.want {
				t.Errorf("overlap: %v and %v, want %v", test.a.Overlaps(&test.b), test.b.Overlaps(&test.a), test.want)
			}
		})
	}
}

// withGroup returns a group that is there, or is to be, changed.
func withGroup(changes ...func(*Group)) Group {
	g := Group{NLBGroup: alicloud.NLBGroup{ID: "sgp-1", Name: "web", Type: "Instance", Protocol: "TCP", VPCID: "vpc-1",
		AddressIPVersion: "ipv4"}}
	for _, change := range changes {
		change(&g)
	}
	return g
}

// TestMatchingGroups: what cannot change of a group decides whether it can stand for a desired one.
func TestMatchingGroups(t *testing.T) {
	t.Parallel()
	id := func(id string) func(*Group) { return func(g *Group) { g.ID = id } }
	foreign := func(g *Group) { g.Foreign = true }
	uses := func(id string) Listener {
		return Listener{NLBListener: alicloud.NLBListener{NLBListenerSettings: alicloud.NLBListenerSettings{ServerGroupID: &id}}}
	}
	for _, test := range []struct {
		name string
		want Group
		have []Group
		used []Listener
		id   string
	}{
		{"the same", withGroup(), []Group{withGroup()}, nil, "sgp-1"},
		{"another name", withGroup(), []Group{withGroup(func(g *Group) { g.Name = "shop" })}, nil, ""},
		{"another type", withGroup(), []Group{withGroup(func(g *Group) { g.Type = "Ip" })}, nil, ""},
		{"the type in other letters", withGroup(), []Group{withGroup(func(g *Group) { g.Type = "instance" })}, nil, "sgp-1"},
		{"another protocol", withGroup(), []Group{withGroup(func(g *Group) { g.Protocol = "UDP" })}, nil, ""},
		{"TLS takes a group of TCP", withGroup(func(g *Group) { g.Protocol = "TCPSSL" }), []Group{withGroup()}, nil, "sgp-1"},
		{"TCP takes none of TLS", withGroup(), []Group{withGroup(func(g *Group) { g.Protocol = "TCPSSL" })}, nil, ""},
		{"for a range", withGroup(func(g *Group) { g.AnyPort = true }), []Group{withGroup()}, nil, ""},
		{"another VPC", withGroup(), []Group{withGroup(func(g *Group) { g.VPCID = "vpc-2" })}, nil, ""},
		{"an unknown VPC", withGroup(), []Group{withGroup(func(g *Group) { g.VPCID = "" })}, nil, "sgp-1"},
		{"another IP version", withGroup(func(g *Group) { g.AddressIPVersion = "DualStack" }), []Group{withGroup()}, nil, ""},
		{"any IP version", withGroup(func(g *Group) { g.AddressIPVersion = "" }), []Group{withGroup()}, nil, "sgp-1"},
		{"another affinity", withGroup(func(g *Group) {
			g.Affinity = "Affinity"
		}), []Group{withGroup(func(g *Group) { g.Affinity = "NonAffinity" })}, nil, ""},
		{"any affinity", withGroup(), []Group{withGroup(func(g *Group) { g.Affinity = "NonAffinity" })}, nil, "sgp-1"},
		{"the first of two", withGroup(), []Group{withGroup(), withGroup(id("sgp-2"))}, nil, "sgp-1"},
		{"the one in use of two", withGroup(), []Group{withGroup(), withGroup(id("sgp-2")), withGroup(id("sgp-3"))}, []Listener{uses("sgp-2")},
			"sgp-2"},
		{"the first one in use", withGroup(), []Group{withGroup(), withGroup(id("sgp-2"))}, []Listener{uses("sgp-2"), uses("sgp-1")}, "sgp-1"},
		{"somebody else's with the name", withGroup(), []Group{withGroup(foreign)}, nil, ""},
		{"somebody else's by its id", withGroup(foreign, id("sgp-2")), []Group{withGroup(foreign), withGroup(foreign, id("sgp-2"))}, nil,
			"sgp-2"},
		{"our own by its id", withGroup(foreign), []Group{withGroup()}, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m := &Model{Groups: test.have, Listeners: test.used}
			got := ""
			if found := m.Matching(&test.want); found != nil {
				got = found.ID
			}
			if got != test.id {
				t.Errorf("group %q, want %q", got, test.id)
			}
		})
	}
}

func TestGroupsByID(t *testing.T) {
	t.Parallel()
	m := &Model{Groups: []Group{withGroup(), {}}, Former: []Group{withGroup(func(g *Group) { g.ID = "sgp-2" })}}
	if m.GroupByID("sgp-1") != &m.Groups[0] || m.GroupByID("sgp-2") != nil || m.GroupByID("") != nil {
		t.Error("groups by id")
	}
	if m.FormerGroup("sgp-2") != &m.Former[0] || m.FormerGroup("sgp-1") != nil {
		t.Error("former groups by id")
	}
}

func server(id, ip string, weight int) alicloud.NLBServer {
	return alicloud.NLBServer{NLBServerKey: alicloud.NLBServerKey{ID: id, IP: ip, Type: alicloud.NLBServerENI, Port: 8080}, Weight: weight}
}

func TestGroupServes(t *testing.T) {
	t.Parallel()
	leaving := server("eni-1", "10.0.0.1", 100)
	leaving.Status = alicloud.NLBServerRemoving
	for name, test := range map[string]struct {
		servers []alicloud.NLBServer
		want    bool
	}{
		"no servers": {nil, false}, "without weight": {[]alicloud.NLBServer{server("eni-1", "10.0.0.1", 0)}, false},
		"on its way out": {[]alicloud.NLBServer{leaving}, false},
		"one of two":     {[]alicloud.NLBServer{leaving, server("eni-2", "10.0.0.2", 1)}, true},
	} {
		if g := (&Group{Servers: test.servers}); g.Serves() != test.want {
			t.Errorf("%s: serves %v", name, g.Serves())
		}
	}
}

// TestRegistered: a pod is ready for traffic once it is in every group in which it is to be.
func TestRegistered(t *testing.T) {
	t.Parallel()
	const pod = "10.0.0.1"
	in := func(id string, servers ...alicloud.NLBServer) Group {
		return withGroup(func(g *Group) { g.ID, g.Name, g.Servers = id, id, servers })
	}
	yes, idle, other := server("eni-1", pod, 100), server("eni-1", pod, 0), server("eni-2", "10.0.0.2", 100)
	for _, test := range []struct {
		name        string
		wants, have []Group
		busy        string
		want        bool
	}{
		{"in its group", []Group{in("a", yes)}, []Group{in("a", yes)}, "", true},
		{"in both groups", []Group{in("a", yes), in("b", yes)}, []Group{in("a", yes), in("b", yes)}, "", true},
		{"in one of two", []Group{in("a", yes), in("b", yes)}, []Group{in("a", yes), in("b", other)}, "", false},
		{"without weight", []Group{in("a", yes)}, []Group{in("a", idle)}, "", false},
		{"the group is not there", []Group{in("a", yes)}, nil, "", false},
		{"a job changes the group", []Group{in("a", yes)}, []Group{in("a", yes)}, "a", false},
		{"a job changes a group without it", []Group{in("a", yes), in("b", other)}, []Group{in("a", yes), in("b", other)}, "b", true},
		{"in no group", []Group{in("a", other)}, []Group{in("a", yes)}, "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			busy := func(id string) bool { return id == test.busy }
			if got := Registered(pod, &Model{Groups: test.wants}, &Model{Groups: test.have}, busy); got != test.want {
				t.Errorf("registered: %v", got)
			}
		})
	}
	if Registered(pod, nil, &Model{}, nil) || Registered(pod, &Model{}, nil, nil) {
		t.Error("registered where nothing is known")
	}
}

func TestConflicts(t *testing.T) {
	t.Parallel()
	m := &Model{Taken: []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}}}
	for name, test := range map[string]struct {
		m    *Model
		port corev1.ServicePort
		want bool
	}{
		"taken": {m, corev1.ServicePort{Port: 80, Protocol: corev1.ProtocolTCP, NodePort: 30080}, true}, "another port": {m,
			corev1.ServicePort{Port: 81, Protocol: corev1.ProtocolTCP}, false},
		"another protocol": {m, corev1.ServicePort{Port: 80, Protocol: corev1.ProtocolUDP}, false}, "no model": {nil, m.Taken[0], false},
	} {
		if got := test.m.Conflicts(test.port); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestCloneSharesNoLists: a plan that is tried on a clone leaves the original as it was.
func TestCloneSharesNoLists(t *testing.T) {
	t.Parallel()
	original := func() *Model {
		return &Model{
			Groups:    []Group{withGroup(func(g *Group) { g.Servers = []alicloud.NLBServer{server("eni-1", "10.0.0.1", 1)} })},
			Listeners: []Listener{on("TCP", 80, 0)},
			Access:    &Access{SecurityGroup: alicloud.SecurityGroup{ID: "sg-1", Rules: []alicloud.SecurityRule{{CIDR: "10.0.0.0/8"}}}},
		}
	}
	m := original()
	c := m.Clone()
	if diff := cmp.Diff(m, c); diff != "" {
		t.Errorf("clone (-original +clone):\n%s", diff)
	}
	c.Groups[0].Name, c.Groups[0].Servers[0].Weight, c.Listeners[0].Port, c.Access.ID, c.Access.Rules[0].CIDR = "x", 9, 9, "x", "x"
	if diff := cmp.Diff(original(), m); diff != "" {
		t.Errorf("a change of the clone changed the original (-want +got):\n%s", diff)
	}
	if (*Model)(nil).Clone() != nil {
		t.Error("the clone of no model is one")
	}
}
