package model

import (
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Part names a part of what is known of a CLB.
type Part string

// Each part is read on its own, and has its own doubt.
const (
	PartLoadBalancer Part = "load balancer"
	PartListeners    Part = "listeners"
	PartGroups       Part = "vServer groups"
	PartExtensions   Part = "domain extensions"
	PartAccess       Part = "access control list"
)

// Parts are those that a step depends on, that of what it changes first: it is not tried while one of them cannot be read, and when it fails without a clear
// answer, they are read again.
func (s *Step) Parts() []Part {
	switch s.Op {
	case OpCreateGroup, OpAddBackends, OpReplaceBackends, OpSetBackends, OpRemoveBackends:
		return []Part{PartGroups}
	case OpDeleteGroup:
		return []Part{PartGroups, PartListeners}
	case OpReplaceListener, OpCreateListener, OpSetListener, OpStartListener, OpDeleteListener:
		if s.Listener.Attributes[alicloud.AttributeACLStatus] != "" || s.Listener.Attributes[alicloud.AttributeACLIDs] != "" {
			return []Part{PartListeners, PartGroups, PartAccess}
		}
		return []Part{PartListeners, PartGroups}
	case OpCreateExtension, OpSetExtension, OpDeleteExtension:
		return []Part{PartExtensions, PartListeners}
	case OpCreateAccess, OpAddEntries, OpRemoveEntries:
		return []Part{PartAccess}
	case OpDeleteAccess:
		return []Part{PartAccess, PartListeners}
	default:
		return []Part{PartLoadBalancer}
	}
}

// WithoutSteps leaves out the steps that depend on parts that could not be read, and those that build on them.
func (p Plan) WithoutSteps(unread map[Part]error) Plan {
	if len(unread) == 0 {
		return p
	}
	kept, blocked := Plan{Problems: p.Problems}, map[string]bool{}
	for _, step := range p.Steps {
		inDoubt := slices.ContainsFunc(step.Parts(), func(name Part) bool { return unread[name] != nil })
		if inDoubt || blocked[step.Key()] || slices.ContainsFunc(step.Needs, func(target string) bool { return blocked[target] }) {
			for _, key := range step.Keys() {
				blocked[key] = true
			}
			if unread[PartGroups] == nil {
				kept.Steps = append(kept.Steps, step.Meanwhile...)
			}
			continue
		}
		kept.Steps = append(kept.Steps, step)
	}
	return kept
}
