package diff

import (
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// backendChange is the difference of the backend servers of one group.
type backendChange struct {
	add, set, remove []alicloud.Backend
	setBefore        []alicloud.Backend
	// serves says that a backend server stays that takes traffic: then the others may leave before new ones come.
	serves bool
}

// backendSteps lets f make steps of the difference of every group that is there already.
func (d *differ) backendSteps(f func(name, id string, change backendChange)) {
	for i := range d.desired.Groups {
		want := &d.desired.Groups[i]
		if have := d.actual.Group(want.Name); have != nil {
			f(want.Name, have.ID, d.compareBackends(want, have))
		}
	}
}

// clearBackends makes the steps that take out what no longer answers, before anything else: its traffic is lost for as long.
// One call that swaps backend servers is better than a removal and an addition, and needs no room under the quota of backend servers per CLB.
func (d *differ) clearBackends(name, id string, change backendChange) {
	pairs := min(len(change.add), len(change.remove))
	d.backends(model.OpReplaceBackends, name, id, change.remove[:pairs], change.add[:pairs])
	if change.serves {
		d.backends(model.OpRemoveBackends, name, id, change.remove[pairs:], nil)
	}
}

// addBackends makes the steps that bring backend servers in.
func (d *differ) addBackends(name, id string, change backendChange) {
	pairs := min(len(change.add), len(change.remove))
	d.backends(model.OpAddBackends, name, id, nil, change.add[pairs:])
	d.backends(model.OpSetBackends, name, id, change.setBefore, change.set)
}

// removeLastBackends makes the step that takes out the last backend servers of a group, after the new ones are in.
func (d *differ) removeLastBackends(name, id string, change backendChange) {
	if pairs := min(len(change.add), len(change.remove)); !change.serves {
		d.backends(model.OpRemoveBackends, name, id, change.remove[pairs:], nil)
	}
}

// backends makes a step on the backend servers of a group unless there is nothing to do.
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

func (d *differ) compareBackends(want, have *model.Group) backendChange {
	present := make(map[alicloud.BackendKey]alicloud.Backend, len(have.Backends))
	for _, server := range have.Backends {
		present[server.BackendKey] = server
	}
	var change backendChange
	keep := make(map[alicloud.BackendKey]bool, len(want.Backends)+len(want.Draining))
	for _, server := range want.Backends {
		keep[server.BackendKey] = true
		current, ok := present[server.BackendKey]
		if !ok {
			change.add = append(change.add, server)
			continue
		}
		change.serves = change.serves || server.Weight > 0 && current.Weight > 0
		d.compareBackend(&change, want, server, current)
	}
	for _, server := range want.Draining {
		keep[server.BackendKey] = true
		if current, ok := present[server.BackendKey]; ok {
			d.compareBackend(&change, want, server, current)
		}
	}
	for _, server := range have.Backends {
		if !keep[server.BackendKey] && d.mayLeave(want, server) {
			change.remove = append(change.remove, server)
		}
	}
	return change
}

// mayLeave reports whether a backend server may be removed: only one of ours, and in doubt only one that is known to be gone.
func (d *differ) mayLeave(group *model.Group, server alicloud.Backend) bool {
	return d.owner.Owns(server.Description) && (!group.Doubt || group.Gone.Has(server.ServerID))
}

// compareBackend notes a backend server that differs. One that somebody else put in stands for ours, and stays as it is.
func (d *differ) compareBackend(change *backendChange, group *model.Group, want, have alicloud.Backend) {
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
