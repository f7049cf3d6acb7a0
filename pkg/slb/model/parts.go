package model

import (
	"maps"
	"slices"
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

// Parts are those that a step depends on, that of what it changes first: when it fails without a clear answer, they are read again.
func (s *Step) Parts() []Part {
	switch s.Op {
	case OpCreateGroup, OpAddBackends, OpReplaceBackends, OpSetBackends, OpRemoveBackends:
		return []Part{PartGroups}
	case OpDeleteGroup:
		return []Part{PartGroups, PartListeners}
	case OpReplaceListener, OpCreateListener, OpSetListener, OpStartListener, OpDeleteListener:
		if s.needsAccess() {
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

// fresh are the parts that a step waits for while they cannot be read: what it makes could be there already, and what it deletes could be
// somebody else's by now. Everything else goes by what was read last. Otherwise dead backend servers would take traffic, and a certificate
// would expire, for as long as the answer takes.
func (s *Step) fresh() []Part {
	switch s.Op {
	case OpAddBackends, OpReplaceBackends, OpSetBackends, OpRemoveBackends, OpSetExtension:
		return nil
	case OpSetListener:
		if s.needsAccess() {
			return []Part{PartAccess}
		}
		return nil
	default:
		return s.Parts()
	}
}

// needsAccess reports whether a step on a listener is about the access control list of the source ranges.
func (s *Step) needsAccess() bool { return slices.Contains(s.Needs, TargetAccess) }

// WithoutAccess returns a step on a listener that is there without who may connect, while the access control list of the source ranges
// cannot be read or written: the listener keeps what it has, and everything else of it, such as its group and its certificate, does not
// depend on the list. It says false where nothing else is left of the step. A listener that is new, or would start to serve, waits for the
// list, so that it never admits more than it should.
func (s Step) WithoutAccess() (Step, bool) {
	if s.Op != OpSetListener || !s.needsAccess() {
		return s, true
	}
	s.Needs = slices.DeleteFunc(slices.Clone(s.Needs), func(target string) bool { return target == TargetAccess })
	s.Listener.Attributes = maps.Clone(s.Listener.Attributes)
	maps.DeleteFunc(s.Listener.Attributes, func(name, _ string) bool { return IsAccess(name) })
	return s, !s.OnlyAccess
}

// WithoutSteps leaves out the steps that wait for parts that could not be read, and those that build on them. stands says of an error
// whether what was read before stands.
func (p Plan) WithoutSteps(unread map[Part]error, stands func(error) bool) Plan {
	if len(unread) == 0 {
		return p
	}
	kept, blocked := Plan{Problems: p.Problems}, map[string]bool{}
	for _, step := range p.Steps {
		if unread[PartAccess] != nil || blocked[TargetAccess] {
			var left bool
			if step, left = step.WithoutAccess(); !left {
				continue
			}
		}
		inDoubt := slices.ContainsFunc(step.Parts(), func(name Part) bool {
			return unread[name] != nil && (slices.Contains(step.fresh(), name) || !stands(unread[name]))
		})
		if inDoubt || blocked[step.Key()] || slices.ContainsFunc(step.Needs, func(target string) bool { return blocked[target] }) {
			for _, key := range step.Keys() {
				blocked[key] = true
			}
			if unread[PartGroups] == nil || stands(unread[PartGroups]) {
				kept.Steps = append(kept.Steps, step.Meanwhile...)
			}
			continue
		}
		kept.Steps = append(kept.Steps, step)
	}
	return kept
}

// WithoutNewPorts leaves out what would give the Service ports on an existing CLB that it does not have there: nobody knows whether it may.
// A port that it has gets another group where its endpoints are in one.
func (p Plan) WithoutNewPorts() Plan {
	moves := func(group string) bool {
		return slices.ContainsFunc(p.Steps, func(s Step) bool {
			return s.GroupName == group && (s.Op == OpSetListener || s.Op == OpReplaceListener)
		})
	}
	created := map[string]bool{}
	p.Steps = slices.DeleteFunc(slices.Clone(p.Steps), func(s Step) bool {
		switch s.Op {
		case OpCreateListener:
			created[s.Target] = true
		case OpCreateGroup:
			return !moves(s.GroupName)
		}
		return created[s.Target]
	})
	return p
}
