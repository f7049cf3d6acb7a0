package diff

import (
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// memberChange is the difference of the members of one group.
type memberChange struct {
	add, set, remove []alicloud.Backend
	setBefore        []alicloud.Backend
	// serves says that a member stays that takes traffic: then the others may leave before new ones come.
	serves bool
}

// memberSteps lets f make steps of the difference of every group that is there already.
func (d *differ) memberSteps(f func(name, id string, change memberChange)) {
	for i := range d.desired.Groups {
		want := &d.desired.Groups[i]
		if have := d.actual.Group(want.Name); have != nil {
			f(want.Name, have.ID, d.compareMembers(want, have))
		}
	}
}

// clearMembers makes the steps that take out what no longer answers, before anything else: its traffic is lost for as long.
// One call that swaps members beats a removal and an addition, and needs no room under the quota of members per CLB.
func (d *differ) clearMembers(name, id string, change memberChange) {
	pairs := min(len(change.add), len(change.remove))
	d.backends(model.OpReplaceBackends, name, id, change.remove[:pairs], change.add[:pairs])
	if change.serves {
		d.backends(model.OpRemoveBackends, name, id, change.remove[pairs:], nil)
	}
}

// growMembers makes the steps that bring members in.
func (d *differ) growMembers(name, id string, change memberChange) {
	pairs := min(len(change.add), len(change.remove))
	d.backends(model.OpAddBackends, name, id, nil, change.add[pairs:])
	d.backends(model.OpSetBackends, name, id, change.setBefore, change.set)
}

// shrinkMembers makes the step that takes out the last members of a group, after the new ones are in.
func (d *differ) shrinkMembers(name, id string, change memberChange) {
	if pairs := min(len(change.add), len(change.remove)); !change.serves {
		d.backends(model.OpRemoveBackends, name, id, change.remove[pairs:], nil)
	}
}

// backends makes a step on the members of a group unless there is nothing to do.
func (d *differ) backends(op model.Op, name, id string, old, added []alicloud.Backend) {
	if len(old)+len(added) > 0 {
		d.step(d.backendStep(op, name, id, old, added))
	}
}

func (d *differ) backendStep(op model.Op, name, id string, old, added []alicloud.Backend) model.Step {
	return model.Step{
		Op: op, Target: model.TargetGroup(name), Before: model.BackendsText(old), After: model.BackendsText(added),
		GroupName: name, GroupID: id, Old: slices.Clone(old), New: slices.Clone(added),
	}
}

func (d *differ) compareMembers(want, have *model.Group) memberChange {
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
		change.serves = change.serves || member.Weight > 0 && current.Weight > 0
		d.compareMember(&change, want, member, current)
	}
	for _, member := range want.Draining {
		keep[member.BackendKey] = true
		if current, ok := present[member.BackendKey]; ok {
			d.compareMember(&change, want, member, current)
		}
	}
	for _, member := range have.Backends {
		if !keep[member.BackendKey] && d.mayLeave(want, member) {
			change.remove = append(change.remove, member)
		}
	}
	return change
}

// mayLeave: only a member of ours, and in doubt only one that is known to be gone.
func (d *differ) mayLeave(group *model.Group, member alicloud.Backend) bool {
	return d.owner.Owns(member.Description) && (!group.Doubt || group.Gone.Has(member.ServerID))
}

// compareMember: a member that somebody else put in stands for ours, and is left as it is.
func (d *differ) compareMember(change *memberChange, group *model.Group, want, have alicloud.Backend) {
	if !d.owner.Owns(have.Description) {
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
