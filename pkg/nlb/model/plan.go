package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// Op is what a step does.
type Op string

// The operations.
const (
	OpCreateAccess Op = "create security group"
	OpAddRules     Op = "add rules"
	OpRemoveRules  Op = "remove rules"
	OpDeleteAccess Op = "delete security group"

	OpCreateLoadBalancer Op = "create NLB"
	OpSetAttributes      Op = "set attributes"
	OpSetZones           Op = "set zones"
	OpSetAddressType     Op = "set address type"
	OpSetIPv6            Op = "set IPv6 address type"
	OpJoin               Op = "join security groups"
	OpLeave              Op = "leave security groups"
	OpAttach             Op = "attach bandwidth package"
	OpDetach             Op = "detach bandwidth package"
	OpSetProtection      Op = "set protection"
	OpTag                Op = "tag"
	OpUntag              Op = "untag"
	OpDeleteLoadBalancer Op = "delete NLB"

	OpCreateGroup   Op = "create server group"
	OpUpdateGroup   Op = "update server group"
	OpAddServers    Op = "add servers"
	OpUpdateServers Op = "update servers"
	OpRemoveServers Op = "remove servers"
	OpDeleteGroup   Op = "delete server group"
	OpTagGroup      Op = "tag server group"
	OpUntagGroup    Op = "untag server group"

	OpCreateListener     Op = "create listener"
	OpUpdateListener     Op = "update listener"
	OpStartListener      Op = "start listener"
	OpDeleteListener     Op = "delete listener"
	OpAddCertificates    Op = "add certificates"
	OpRemoveCertificates Op = "remove certificates"
)

// TargetLoadBalancer is the target of steps on the load balancer itself, TargetAccess that of steps on the security group.
const (
	TargetLoadBalancer = "lb"
	TargetAccess       = "sg"
)

// TargetGroup is the target of steps on a server group. One of a port goes by its name, because it has no id before it is created; one
// that no port has any more goes by its id.
func TargetGroup(name string) string { return "group:" + name }

// TargetListener is the target of steps on a listener. It is the listener's key, which is the same before and after its creation.
func TargetListener(key string) string { return key }

// Step is one write. A step waits for jobs on what it locks and on what it needs, and is left out where an earlier step on one of
// them failed or waits.
type Step struct {
	Op     Op
	Target string
	// Before and After show the change to people.
	Before, After string
	// Needs are further targets that have to be there, and free.
	Needs []string
	// Optional says that the plan goes on without the step where the cloud refuses it.
	Optional bool

	// From is the id of the group that a listener leaves for Group. With Awaits, it stays there while no server is in the other one that
	// takes traffic. Meanwhile keeps the group that it is to leave in line with the endpoints, and is carried out only while it stays.
	From      string
	Awaits    bool
	Meanwhile []Step

	// Successor is the listener that is to take the place of the one that is deleted, nil for none.
	Successor *Listener

	// What the step writes.
	LoadBalancer alicloud.NLB
	Want         Want
	Group        alicloud.NLBGroup
	Settings     alicloud.NLBGroupSettings
	Servers      []alicloud.NLBServer
	Listener     Listener
	Changes      alicloud.NLBListenerSettings
	IDs          []string
	// Swaps are security groups that make room for those of IDs, if the two cannot be mixed.
	Swaps  []string
	Tags   []alicloud.Tag
	Access Access
	Rules  []alicloud.SecurityRule
}

// Locks are the targets that take no other write while the step's job is under way: a listener's jobs lock its load balancer.
func (s *Step) Locks() []string {
	switch s.Op {
	case OpCreateListener, OpUpdateListener, OpStartListener, OpDeleteListener, OpAddCertificates, OpRemoveCertificates:
		return []string{s.Target, TargetLoadBalancer}
	}
	return []string{s.Target}
}

// Uses are all targets that have to be there, and free.
func (s *Step) Uses() []string { return slices.Concat(s.Locks(), s.Needs) }

// String returns the step in one line.
func (s *Step) String() string {
	text := string(s.Op)
	if s.Target != TargetLoadBalancer && s.Target != TargetAccess {
		text += " " + s.Target
	}
	switch {
	case s.Before != "" && s.After != "":
		text += ": " + s.Before + " -> " + s.After
	case s.Before+s.After != "":
		text += ": " + s.Before + s.After
	}
	return text
}

// Plan is the steps to a desired model, in their order.
type Plan struct {
	Steps    []Step
	Problems []problem.Problem
	// Leaving says that a wanted backend server is still on its way out of its group. It is added once it is gone.
	Leaving bool
}

// Has reports whether an operation is among the steps.
func (p Plan) Has(op Op) bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Op == op })
}

// Empty reports whether the plan writes nothing.
func (p Plan) Empty() bool { return len(p.Steps) == 0 }

// maxShown is how many servers a step shows.
const maxShown = 5

// ServersText shows servers to people.
func ServersText(servers []alicloud.NLBServer) string {
	var shown []string
	for _, s := range servers[:min(len(servers), maxShown)] {
		name := s.ID
		if s.IP != "" && s.Type != alicloud.NLBServerECS && s.IP != s.ID {
			name += "/" + s.IP
		}
		shown = append(shown, fmt.Sprintf("%s:%d=%d", name, s.Port, s.Weight))
	}
	if more := len(servers) - maxShown; more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(shown, " ")
}

// Part is a part of what is known of an NLB.
type Part string

// The parts.
const (
	PartLoadBalancer Part = "load balancer"
	PartListeners    Part = "listeners"
	PartCertificates Part = "additional certificates"
	PartGroups       Part = "server groups"
	PartAccess       Part = "security group"
)

// Part is what a step changes.
func (s *Step) Part() Part {
	switch s.Op {
	case OpCreateAccess, OpAddRules, OpRemoveRules, OpDeleteAccess:
		return PartAccess
	case OpCreateGroup, OpUpdateGroup, OpAddServers, OpUpdateServers, OpRemoveServers, OpDeleteGroup, OpTagGroup, OpUntagGroup:
		return PartGroups
	case OpCreateListener, OpUpdateListener, OpStartListener, OpDeleteListener:
		return PartListeners
	case OpAddCertificates, OpRemoveCertificates:
		return PartCertificates
	}
	return PartLoadBalancer
}

// GoesByLastRead reports whether a step does not wait while what it changes cannot be read. What it would make could be there already, and
// what it would delete could be somebody else's by now; the rest is named by its id, and goes by what was read last. Otherwise dead servers
// would take traffic, and a certificate would expire, for as long as the answer takes.
func (s *Step) GoesByLastRead() bool {
	switch s.Op {
	case OpAddServers, OpUpdateServers, OpRemoveServers, OpUpdateGroup, OpUpdateListener:
		return true
	}
	return false
}
