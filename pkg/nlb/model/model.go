package model

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Model is an NLB with what a Service has on it, as it is or as it has to be.
type Model struct {
	// LoadBalancer has no ID where there is none.
	LoadBalancer alicloud.NLB
	// Want is what has to be of the load balancer itself, in a desired model only.
	Want Want
	// Reused says that the load balancer is an existing one that the Service names by id; Override that the Service manages its
	// listeners all the same.
	Reused, Override bool
	Groups           []Group
	// Former are groups that listeners use and are to leave, as they have to be while a listener stays in them. Desired models only.
	Former    []Group
	Listeners []Listener
	// Access is the security group for the source ranges of the Service, nil for none.
	Access *Access
	// HoldCreation keeps a load balancer from being created.
	HoldCreation bool
	// HoldListeners keeps listeners from being created, replaced and deleted.
	HoldListeners bool
	// HoldRanges keeps listeners on ranges of ports from being deleted.
	HoldRanges bool
	// Refused are targets that the cloud refuses to create, in a desired model only.
	Refused map[string]bool
	// Taken are the ports of the Service that others of its group have, in a desired model only.
	Taken []corev1.ServicePort
	// Dead are the instances among the servers that count as taking no traffic, in a desired model only.
	Dead sets.Set[string]
}

// Want is what has to be of the load balancer itself; nil leaves an attribute as it is. The attributes of a new one stand in
// [Model.LoadBalancer].
type Want struct {
	Name            *string
	AddressType     *string
	IPv6AddressType *string
	CrossZone       *bool
	// Zones replace those that are there, nil leaves them.
	Zones []alicloud.NLBZone
	// JoinGroups are security groups that the load balancer has to be in, LeaveGroups those that it has to leave.
	JoinGroups, LeaveGroups []string
	// BandwidthPackage is empty for none.
	BandwidthPackage *string
	DeleteProtection *bool
	Modification     *string
	// Tags have to be there, RemoveTags have to go.
	Tags       []alicloud.Tag
	RemoveTags []string
	// Ownership are the tags that make the load balancer the Service's, where they are missing.
	Ownership []alicloud.Tag
}

// Group is a server group. Its name identifies it among those of a Service; a desired one that is foreign has its id in place of a name.
type Group struct {
	alicloud.NLBGroup
	// Foreign says that the group is another's (annotation vgroup-port): only servers with our description are ours in it.
	Foreign bool
	Servers []alicloud.NLBServer
	// Strangers are listeners of somebody else on other load balancers that use the group, for people.
	Strangers []string

	// The rest is of a desired group. Draining are servers that keep what connections they have: with weight 0 where they are
	// registered.
	Draining []alicloud.NLBServer
	// Doubt keeps servers from being removed, but those whose ID is in Gone. Held are addresses that stay where they are.
	Doubt      bool
	Gone, Held sets.Set[string]
	// KeepWeights leaves the weights of servers that are there.
	KeepWeights bool
	// Description is what ours have.
	Description string
}

// Listener is a listener with the name of its server group.
type Listener struct {
	alicloud.NLBListener
	// Group is the name of the server group in a desired model.
	Group string
	// ServicePort and Transport are the port of the Service and its protocol. Desired models only.
	ServicePort int32
	Transport   corev1.Protocol
	// Blocked keeps the listener as it is, because nobody knows what it has to be: the reason of the event that says why, empty for one
	// that is not blocked.
	Blocked string
	// Certificates are the additional ones, where they were read or have to be. RemoveCertificates are those that have to go.
	Certificates, RemoveCertificates []string
}

// Access is the security group of a Service's source ranges.
type Access struct {
	alicloud.SecurityGroup
}

// Key identifies a listener: its transport and its port or range. TCP and TCPSSL are one transport.
func (l *Listener) Key() string {
	transport := "tcp"
	if l.Protocol == alicloud.NLBUDP {
		transport = "udp"
	}
	return transport + ":" + l.Ports()
}

// Ports is the port or the range of ports.
func (l *Listener) Ports() string {
	if l.Port == 0 {
		return fmt.Sprintf("%d_%d", l.StartPort, l.EndPort)
	}
	return fmt.Sprint(l.Port)
}

// Span returns the first and the last port.
func (l *Listener) Span() (first, last int) {
	if l.Port == 0 {
		return l.StartPort, l.EndPort
	}
	return l.Port, l.Port
}

// Overlaps reports whether two listeners want the same port.
func (l *Listener) Overlaps(other *Listener) bool {
	first, last := l.Span()
	from, to := other.Span()
	return (l.Protocol == alicloud.NLBUDP) == (other.Protocol == alicloud.NLBUDP) && first <= to && from <= last
}

// Text returns the text of a setting that may be absent.
func Text(value *string) string {
	if value == nil {
		return ""
	}
	return *value
}

// Protocols are those of the listeners, in lower case.
func (m *Model) Protocols() sets.Set[string] {
	protocols := sets.New[string]()
	for i := range m.Listeners {
		protocols.Insert(strings.ToLower(m.Listeners[i].Protocol))
	}
	return protocols
}

// Listener returns the listener of a key, nil for none.
func (m *Model) Listener(key string) *Listener {
	if m == nil {
		return nil
	}
	for i := range m.Listeners {
		if m.Listeners[i].Key() == key {
			return &m.Listeners[i]
		}
	}
	return nil
}

// GroupByID returns a group, nil for none.
func (m *Model) GroupByID(id string) *Group {
	for i := range m.Groups {
		if id != "" && m.Groups[i].ID == id {
			return &m.Groups[i]
		}
	}
	return nil
}

// FormerGroup returns the group that a listener is to leave, as it has to be until then, nil for none.
func (m *Model) FormerGroup(id string) *Group {
	for i := range m.Former {
		if m.Former[i].ID == id {
			return &m.Former[i]
		}
	}
	return nil
}

// Serves reports whether a server of the group takes traffic.
func (g *Group) Serves() bool {
	return slices.ContainsFunc(g.Servers, func(s alicloud.NLBServer) bool { return s.Weight > 0 && s.Status != alicloud.NLBServerRemoving })
}

// ServerKey identifies a server of a group: the API fills in the address of an instance.
func ServerKey(s *alicloud.NLBServer) alicloud.NLBServerKey {
	key := s.NLBServerKey
	if key.Type == alicloud.NLBServerECS {
		key.IP = ""
	}
	return key
}

// Matching returns the group that stands for a desired one: of its name and kind, the first in use by a listener.
func (m *Model) Matching(want *Group) *Group {
	var found *Group
	for i := range m.Groups {
		have := &m.Groups[i]
		switch {
		case want.Foreign && have.Foreign && have.ID == want.ID:
			return have
		case want.Foreign, have.Foreign, have.Name != want.Name, !have.servesAs(want):
			continue
		}
		inUse := slices.ContainsFunc(m.Listeners, func(l Listener) bool { return Text(l.ServerGroupID) == have.ID })
		if found == nil || inUse {
			found = have
		}
		if inUse {
			break
		}
	}
	return found
}

// servesAs reports whether a group has what cannot change of the desired one. A TCPSSL listener takes a group of TCP, too.
func (g *Group) servesAs(want *Group) bool {
	protocol := g.Protocol == want.Protocol || want.Protocol == alicloud.NLBTCPSSL && g.Protocol == alicloud.NLBTCP
	version := want.AddressIPVersion == "" || strings.EqualFold(g.AddressIPVersion, want.AddressIPVersion)
	affinity := want.Affinity == "" || g.Affinity == "" || strings.EqualFold(g.Affinity, want.Affinity)
	vpc := want.VPCID == "" || g.VPCID == "" || g.VPCID == want.VPCID
	return strings.EqualFold(g.Type, want.Type) && protocol && g.AnyPort == want.AnyPort && version && affinity && vpc
}

// Registered reports whether a server with the address gets traffic in every group of the desired model in which it has to be.
func Registered(address string, desired, actual *Model, busy func(groupID string) bool) bool {
	if desired == nil || actual == nil {
		return false
	}
	wanted := false
	for i := range desired.Groups {
		want := &desired.Groups[i]
		if !slices.ContainsFunc(want.Servers, func(s alicloud.NLBServer) bool { return s.IP == address }) {
			continue
		}
		wanted = true
		have := actual.Matching(want)
		if have == nil || busy(have.ID) || !slices.ContainsFunc(have.Servers, func(s alicloud.NLBServer) bool {
			return s.IP == address && s.Weight > 0
		}) {
			return false
		}
	}
	return wanted
}

// Conflicts reports whether others of the group have a port of the Service.
func (m *Model) Conflicts(port corev1.ServicePort) bool {
	return m != nil && slices.ContainsFunc(m.Taken, func(taken corev1.ServicePort) bool {
		return taken.Port == port.Port && taken.Protocol == port.Protocol
	})
}

// Clone returns a copy whose lists can be changed.
func (m *Model) Clone() *Model {
	if m == nil {
		return nil
	}
	c := *m
	c.Groups, c.Listeners = slices.Clone(m.Groups), slices.Clone(m.Listeners)
	for i := range c.Groups {
		c.Groups[i].Servers = slices.Clone(c.Groups[i].Servers)
	}
	if m.Access != nil {
		access := *m.Access
		access.Rules = slices.Clone(access.Rules)
		c.Access = &access
	}
	return &c
}
