package slb

import (
	"fmt"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
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
	OpAddBackends        Op = "add members"
	OpReplaceBackends    Op = "replace members"
	OpSetBackends        Op = "set members"
	OpCreateListener     Op = "create listener"
	OpSetListener        Op = "set listener"
	OpStartListener      Op = "start listener"
	OpCreateExtension    Op = "create domain extension"
	OpSetExtension       Op = "set domain extension"
	OpDeleteExtension    Op = "delete domain extension"
	OpDeleteListener     Op = "delete listener"
	OpRemoveBackends     Op = "remove members"
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

// annotationOf names the annotation that an operation on the CLB itself follows.
var annotationOf = map[Op]Suffix{
	OpSetName: Name, OpSetCharge: InstanceChargeType, OpSetSpec: Spec, OpSetInternet: ChargeType,
	OpSetProtection: DeleteProtection, OpSetModification: ModificationProtection,
}

// targetLoadBalancer is the target of steps on the CLB itself. Every other target needs it.
const targetLoadBalancer = "load balancer"

// targetAccess is the target of steps on the list of the source ranges.
const targetAccess = "source ranges"

func targetGroup(name string) string                 { return name }
func targetListener(key alicloud.ListenerKey) string { return key.String() }

// Step is one change: one call of the cloud, or where it has more members of a group than a call takes, a few.
type Step struct {
	Op Op `json:"op"`
	// Target names what changes, for example "tcp:80".
	Target string `json:"target"`
	// Before and After show the change; one of them is empty where something is made or removed.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`

	// needs are further keys of steps: when one of them failed, this one is not tried.
	needs []string

	loadBalancer alicloud.LoadBalancer
	vswitchIDs   []string
	listener     alicloud.Listener
	extension    alicloud.DomainExtension
	access       alicloud.AccessList
	groupName    string
	groupID      string // empty for a group that the same plan creates
	old, new     []alicloud.Backend
	tagKeys      []string
}

// key is what a failure of the step stops: further steps on its target. Each attribute of the CLB stands for itself, so
// that one that the cloud refuses keeps no other from being set.
func (s *Step) key() string {
	if _, attribute := annotationOf[s.Op]; attribute {
		return string(s.Op)
	}
	return s.Target
}

// String returns the step in one line.
func (s Step) String() string {
	text := string(s.Op)
	if s.Target != targetLoadBalancer {
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
	Problems []Problem
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

func backendsText(members []alicloud.Backend) string {
	texts := make([]string, len(members))
	for i, member := range members {
		texts[i] = member.String()
	}
	return strings.Join(texts, ", ")
}

// membersOnly leaves the changes of members of groups that are there. It is what may be done while an annotation is
// invalid.
func (p Plan) membersOnly() Plan {
	kept := Plan{Problems: p.Problems}
	for _, step := range p.Steps {
		switch step.Op {
		case OpAddBackends, OpReplaceBackends, OpSetBackends, OpRemoveBackends:
			if step.groupID != "" {
				kept.Steps = append(kept.Steps, step)
			}
		}
	}
	return kept
}

// name is what the step calls a listener, a group or its new members.
func (s *Step) name() string {
	switch {
	case s.groupName != "":
		return s.groupName
	case len(s.new) > 0:
		return s.new[0].Description
	default:
		return s.listener.Description
	}
}
