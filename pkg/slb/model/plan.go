package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// Op is what a step does.
type Op string

// The operations, in the order of their phases: what is new stands before anything uses it, and what goes is no longer
// used by anything.
const (
	OpCreateLoadBalancer Op = "create load balancer"
	OpCreateAccess       Op = "create access control list"
	OpAddEntries         Op = "add entries"
	OpRemoveEntries      Op = "remove entries"
	OpCreateGroup        Op = "create group"
	OpAddBackends        Op = "add backends"
	OpReplaceBackends    Op = "replace backends"
	OpSetBackends        Op = "set backends"
	OpReplaceListener    Op = "replace listener" // the new one is started, too
	OpCreateListener     Op = "create listener"
	OpSetListener        Op = "set listener"
	OpStartListener      Op = "start listener"
	OpCreateExtension    Op = "create domain extension"
	OpSetExtension       Op = "set domain extension"
	OpDeleteExtension    Op = "delete domain extension"
	OpDeleteListener     Op = "delete listener"
	OpRemoveBackends     Op = "remove backends"
	OpDeleteGroup        Op = "delete group"
	OpDeleteAccess       Op = "delete access control list"
	OpSetName            Op = "set name"
	OpSetProtection      Op = "set delete protection"
	OpSetModification    Op = "set modification protection"
	OpSetCharge          Op = "set instance charge type"
	OpSetSpec            Op = "set specification"
	OpSetInternet        Op = "set internet charge type"
	OpTag                Op = "set tags"
	OpUntag              Op = "remove tags"
	OpDeleteLoadBalancer Op = "delete load balancer"
)

// AnnotationOf names the annotation that an operation on the CLB itself follows.
var AnnotationOf = map[Op]annotation.Suffix{
	OpSetName: annotation.Name, OpSetCharge: annotation.InstanceChargeType, OpSetSpec: annotation.Spec, OpSetInternet: annotation.ChargeType,
	OpSetProtection: annotation.DeleteProtection, OpSetModification: annotation.ModificationProtection,
}

// TargetLoadBalancer is the target of steps on the CLB itself. Every other target needs it.
const TargetLoadBalancer = "load balancer"

// TargetAccess is the target of steps on the list of the source ranges.
const TargetAccess = "source ranges"

// TargetGroup is the target of steps on a vServer group.
func TargetGroup(name string) string { return name }

// TargetListener is the target of steps on a listener and its domain extensions.
func TargetListener(key alicloud.ListenerKey) string { return key.String() }

// Step is one change: one call, or a few where it has more backend servers than a call takes.
type Step struct {
	Op Op `json:"op"`
	// Target names what changes, for example "tcp:80".
	Target string `json:"target"`
	// Before and After show the change; one of them is empty where something is made or removed.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`

	// Repairs says that the step only repairs what somebody changed in the cloud.
	Repairs bool `json:"-"`
	// Balances says that all backend servers that the step takes out still work.
	Balances bool `json:"-"`
	// Needs are further keys of steps: when one of them failed, this one is not tried.
	Needs []string `json:"-"`

	LoadBalancer alicloud.LoadBalancer    `json:"-"`
	VSwitchIDs   []string                 `json:"-"`
	Listener     alicloud.Listener        `json:"-"`
	Replaced     *Listener                `json:"-"` // what goes to make room for Listener
	Extension    alicloud.DomainExtension `json:"-"`
	Access       alicloud.AccessList      `json:"-"`
	OnlyAccess   bool                     `json:"-"` // nothing of the listener changes but who may connect
	Awaits       bool                     `json:"-"` // the group is to have backend servers, or it is not known which
	GroupName    string                   `json:"-"`
	GroupID      string                   `json:"-"` // empty for a group that the same plan creates
	Old, New     []alicloud.Backend       `json:"-"`
	TagKeys      []string                 `json:"-"`
	// Meanwhile keeps the group that a listener is to leave in line with the endpoints. It is carried out only if the listener stays there.
	Meanwhile []Step `json:"-"`
}

// Key is what a failure of the step stops: further steps on its target. Each attribute of the CLB stands for itself, so
// that one that the cloud refuses keeps no other from being set.
func (s *Step) Key() string {
	if _, attribute := AnnotationOf[s.Op]; attribute {
		return string(s.Op)
	}
	switch s.Op {
	case OpTag, OpUntag: // a CLB serves without them, too
		return string(s.Op)
	case OpRemoveEntries: // who is not to connect any more does not depend on who else is
		return string(s.Op)
	case OpAddBackends, OpReplaceBackends, OpSetBackends, OpRemoveBackends:
		return "backend servers of " + s.Target // a group that lacks some still serves a listener
	}
	return s.Target
}

// Keys are those of which a failure of the step is one: its own, and that of a listener that stays where it was to be replaced.
func (s *Step) Keys() []string {
	if s.Replaced == nil {
		return []string{s.Key()}
	}
	return []string{s.Key(), TargetListener(s.Replaced.ListenerKey)}
}

// String returns the step in one line.
func (s Step) String() string {
	text := string(s.Op)
	if s.Target != TargetLoadBalancer {
		text += ": " + s.Target
	}
	switch {
	case s.Before != "" && s.After != "":
		return fmt.Sprintf("%s: %s -> %s", text, s.Before, s.After)
	case s.Before+s.After != "":
		return fmt.Sprintf("%s: %s", text, s.Before+s.After)
	}
	return text
}

// Plan is an ordered list of steps, and what the user should know about what is not in it.
type Plan struct {
	Steps    []Step
	Problems []problem.Problem
}

// Repairing marks the steps that only repair what somebody changed in the cloud: those on whose target the plan from the CLB as it was
// known before has no step.
func (p Plan) Repairing(known Plan) Plan {
	for i := range p.Steps {
		step := &p.Steps[i]
		step.Repairs = !slices.ContainsFunc(known.Steps, func(s Step) bool { return s.Key() == step.Key() })
	}
	return p
}

// Balancing marks the steps that take out only backend servers that work, of which serves knows by their instances: it is not urgent that
// they leave.
func (p Plan) Balancing(serves func(instanceID string) bool) Plan {
	balancingSteps(p.Steps, serves)
	return p
}

func balancingSteps(steps []Step, serves func(instanceID string) bool) {
	for i := range steps {
		step := &steps[i]
		step.Balances = len(step.Old) > 0 && !slices.ContainsFunc(step.Old, func(b alicloud.Backend) bool { return !serves(b.ServerID) })
		balancingSteps(step.Meanwhile, serves)
	}
}

// Has reports whether an operation is among the steps.
func (p Plan) Has(op Op) bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Op == op })
}

// OnlyBackends reports whether a plan changes nothing but backend servers of groups that are there.
func (p Plan) OnlyBackends() bool {
	return !slices.ContainsFunc(p.Steps, func(s Step) bool {
		return s.Op != OpAddBackends && s.Op != OpReplaceBackends && s.Op != OpSetBackends && s.Op != OpRemoveBackends
	})
}

// Empty reports whether carrying out the plan writes nothing.
func (p Plan) Empty() bool { return len(p.Steps) == 0 }

// String returns one line per step.
func (p Plan) String() string {
	lines := make([]string, len(p.Steps))
	for i, step := range p.Steps {
		lines[i] = step.String()
	}
	return strings.Join(lines, "\n")
}

// BackendsText lists backend servers for people.
func BackendsText(backends []alicloud.Backend) string {
	texts := make([]string, len(backends))
	for i, b := range backends {
		texts[i] = b.String()
	}
	return strings.Join(texts, ", ")
}

// Name is what the step calls a listener, a group or its new backend servers.
func (s *Step) Name() string {
	switch {
	case s.GroupName != "":
		return s.GroupName
	case len(s.New) > 0:
		return s.New[0].Description
	default:
		return s.Listener.Description
	}
}
