package slb

import (
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// memberChange is the difference of the members of one group.
type memberChange struct {
	add, set, remove []alicloud.Backend
	setBefore        []alicloud.Backend
}

// memberSteps lets f make steps of the difference of every group that is there already.
func (d *differ) memberSteps(f func(name, id string, change memberChange)) {
	for i := range d.desired.Groups {
		want := &d.desired.Groups[i]
		if have := d.actual.group(want.Name); have != nil {
			f(want.Name, have.ID, d.compareMembers(want, have))
		}
	}
}

// growMembers makes the steps that bring members in. One call that swaps members beats an add and a remove, and needs no
// room under the quota of members per CLB.
func (d *differ) growMembers(name, id string, change memberChange) {
	pairs := min(len(change.add), len(change.remove))
	for start := 0; start < pairs; start += alicloud.MaxBackendsPerCall {
		end := min(pairs, start+alicloud.MaxBackendsPerCall)
		d.step(d.backendStep(OpReplaceBackends, name, id, change.remove[start:end], change.add[start:end]))
	}
	for chunk := range slices.Chunk(change.add[pairs:], alicloud.MaxBackendsPerCall) {
		d.step(d.backendStep(OpAddBackends, name, id, nil, chunk))
	}
	for start := 0; start < len(change.set); start += alicloud.MaxBackendsPerCall {
		end := min(len(change.set), start+alicloud.MaxBackendsPerCall)
		d.step(d.backendStep(OpSetBackends, name, id, change.setBefore[start:end], change.set[start:end]))
	}
}

// shrinkMembers makes the steps that take members out, after the new ones are in.
func (d *differ) shrinkMembers(name, id string, change memberChange) {
	pairs := min(len(change.add), len(change.remove))
	for chunk := range slices.Chunk(change.remove[pairs:], alicloud.MaxBackendsPerCall) {
		d.step(d.backendStep(OpRemoveBackends, name, id, chunk, nil))
	}
}

func (d *differ) backendStep(op Op, name, id string, old, added []alicloud.Backend) Step {
	return Step{
		Op: op, Target: targetGroup(name), Before: backendsText(old), After: backendsText(added),
		groupName: name, groupID: id, old: slices.Clone(old), new: slices.Clone(added),
	}
}

func (d *differ) compareMembers(want, have *Group) memberChange {
	present := make(map[alicloud.BackendKey]alicloud.Backend, len(have.Backends))
	for _, member := range have.Backends {
		present[member.BackendKey] = member
	}
	var change memberChange
	keep := make(map[alicloud.BackendKey]bool, len(want.Backends)+len(want.Draining))
	for _, member := range want.Backends {
		keep[member.BackendKey] = true
		current, ok := present[member.BackendKey]
		if !ok {
			change.add = append(change.add, member)
			continue
		}
		d.compareMember(&change, want, member, current)
	}
	for _, member := range want.Draining {
		keep[member.BackendKey] = true
		if current, ok := present[member.BackendKey]; ok {
			d.compareMember(&change, want, member, current)
		}
	}
	for _, member := range have.Backends {
		if !keep[member.BackendKey] && d.owner.owns(member.Description) && (!want.Doubt || want.Gone.Has(member.ServerID)) {
			change.remove = append(change.remove, member)
		}
	}
	return change
}

// compareMember: a member that somebody else put in stands for ours, and is left as it is.
func (d *differ) compareMember(change *memberChange, group *Group, want, have alicloud.Backend) {
	if !d.owner.owns(have.Description) {
		return
	}
	if group.KeepWeights {
		want.Weight = have.Weight
	}
	if want != have {
		change.set = append(change.set, want)
		change.setBefore = append(change.setBefore, have)
	}
}
