package diff

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// backendChange is the difference of the backend servers of one group.
type backendChange struct {
	add, set, remove []alicloud.Backend
	setBefore        []alicloud.Backend
	// serves says that a backend server stays that takes traffic: then the others may leave before new ones come.
	serves bool
	// dead says that those to be removed take no traffic, see [model.Group.Dead].
	dead bool
	// balances is [model.Group.Balances].
	balances bool
}

// groupChange is the difference of one group.
type groupChange struct {
	name, id string
	backendChange
}

// compareGroups notes the differences of the groups that are there already.
func (d *differ) compareGroups() {
	for i := range d.desired.Groups {
		want := &d.desired.Groups[i]
		if have := d.actual.Group(want.Name); have != nil {
			d.changes = append(d.changes, groupChange{want.Name, have.ID, d.compareBackends(want, have)})
		}
	}
}

// Followed returns what brings the groups in line that a Service has on a CLB which it leaves and goes on to show: those that are desired,
// by their ids. Nothing else there changes.
func Followed(desired, actual *model.Model, service types.NamespacedName, clusterID string) model.Plan {
	d := &differ{desired: desired, actual: actual, owner: mark.Owner{Service: service, ClusterID: clusterID}}
	for i := range desired.Groups {
		want := &desired.Groups[i]
		if have := actual.GroupByID(want.ID); have != nil {
			d.changes = append(d.changes, groupChange{have.Name, have.ID, d.compareBackends(want, have)})
		}
	}
	d.backendSteps(d.clearBackends)
	d.backendSteps(d.addBackends)
	d.backendSteps(d.removeLastBackends)
	return d.plan
}

// backendSteps lets f make steps of the difference of every group that is there already.
func (d *differ) backendSteps(f func(name, id string, change backendChange)) {
	for _, change := range d.changes {
		f(change.name, change.id, change.backendChange)
	}
}

// countPairs returns how many backend servers are swapped, for each of which one comes and one leaves in the same call. That is better than
// a removal and an addition, and needs no room under the quota of backend servers per CLB. If more dead ones leave than others come, two
// calls are needed anyway: then the first one takes out all of them.
func (c *backendChange) countPairs() int {
	if c.serves && c.dead && len(c.remove) > len(c.add) {
		return 0
	}
	return min(len(c.add), len(c.remove))
}

// clearBackends makes the steps that take out what no longer answers, before anything else: its traffic is lost for as long.
func (d *differ) clearBackends(name, id string, change backendChange) {
	pairs := change.countPairs()
	if pairs > 0 {
		step := d.backendStep(model.OpReplaceBackends, name, id, change.remove[:pairs], change.add[:pairs])
		step.Balances = change.balances
		d.addStep(step)
	}
	if change.serves {
		d.addBackendSteps(model.OpRemoveBackends, name, id, change.remove[pairs:], nil)
	}
}

// addBackends makes the steps that bring backend servers in.
func (d *differ) addBackends(name, id string, change backendChange) {
	pairs := change.countPairs()
	d.addBackendSteps(model.OpAddBackends, name, id, nil, change.add[pairs:])
	d.addBackendSteps(model.OpSetBackends, name, id, change.setBefore, change.set)
}

// removeLastBackends makes the step that takes out the last backend servers of a group, after the new ones are in.
func (d *differ) removeLastBackends(name, id string, change backendChange) {
	if pairs := change.countPairs(); !change.serves {
		d.addBackendSteps(model.OpRemoveBackends, name, id, change.remove[pairs:], nil)
	}
}

// addBackendSteps makes a step on the backend servers of a group unless there is nothing to do.
func (d *differ) addBackendSteps(op model.Op, name, id string, old, added []alicloud.Backend) {
	if len(old)+len(added) > 0 {
		d.addStep(d.backendStep(op, name, id, old, added))
	}
}

func (d *differ) backendStep(op model.Op, name, id string, old, added []alicloud.Backend) model.Step {
	return model.Step{
		Op: op, Target: model.TargetGroup(name), Before: model.BackendsText(old), After: model.BackendsText(added),
		GroupName: name, GroupID: id, Old: slices.Clone(old), New: slices.Clone(added),
	}
}

func (d *differ) compareBackends(want, have *model.Group) backendChange {
	if len(want.Draining) == 0 && sameMemory(want.Backends, have.Backends) {
		return backendChange{}
	}
	present := finder{backends: have.Backends}
	keep := make([]bool, len(have.Backends))
	change := backendChange{balances: want.Balances}
	for i := range want.Backends {
		server := &want.Backends[i]
		at := present.findBackend(&server.BackendKey)
		if at < 0 {
			change.add = append(change.add, *server)
			continue
		}
		keep[at] = true
		change.serves = change.serves || server.Weight > 0 && have.Backends[at].Weight > 0
		d.compareBackend(&change, want, server, &have.Backends[at], false)
	}
	for i := range want.Draining {
		if at := present.findBackend(&want.Draining[i].BackendKey); at >= 0 {
			keep[at] = true
			d.compareBackend(&change, want, &want.Draining[i], &have.Backends[at], true)
		}
	}
	if d.isNegligible(&change, want, have) {
		change.set, change.setBefore = nil, nil
	}
	change.remove = d.leavingBackends(want, have, keep)
	change.dead = !slices.ContainsFunc(change.remove, func(b alicloud.Backend) bool { return !want.Dead.Has(b.ServerID) })
	return change
}

// isNegligible reports whether the weights that differ would only shift shares of traffic, by less than is worth a call.
func (d *differ) isNegligible(change *backendChange, want, have *model.Group) bool {
	return want.Counted && len(change.set) > 0 && onlyShares(*change) && !d.sharesDiffer(want, have)
}

// leavingBackends returns the backend servers that are not to be kept and that may leave.
func (d *differ) leavingBackends(want, have *model.Group, keep []bool) []alicloud.Backend {
	var leaving []alicloud.Backend
	for i := range have.Backends {
		if !keep[i] && d.mayLeave(want, have.Backends[i]) {
			leaving = append(leaving, have.Backends[i])
		}
	}
	return leaving
}

// sameMemory reports whether two lists are one. Build returns that of the CLB while nothing in it changes.
func sameMemory(a, b []alicloud.Backend) bool {
	return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0]
}

// finder finds backend servers by their key. Mostly they are asked for in the order in which they stand; only otherwise there is a
// map, which costs more than all the rest of a comparison.
type finder struct {
	backends []alicloud.Backend
	next     int
	byKey    map[alicloud.BackendKey]int
}

// findBackend returns the index of a backend server, -1 for none.
func (f *finder) findBackend(key *alicloud.BackendKey) int {
	for at := f.next; at < min(f.next+2, len(f.backends)); at++ { // one of them may have to leave
		if f.backends[at].BackendKey == *key {
			f.next = at + 1
			return at
		}
	}
	if f.byKey == nil {
		f.byKey = make(map[alicloud.BackendKey]int, len(f.backends))
		for at := range f.backends {
			f.byKey[f.backends[at].BackendKey] = at
		}
	}
	at, ok := f.byKey[*key]
	if !ok {
		return -1
	}
	f.next = at + 1
	return at
}

// mayLeave reports whether a backend server may be removed: only one of ours that is not held, and in doubt
// only one that is known to be gone.
func (d *differ) mayLeave(group *model.Group, server alicloud.Backend) bool {
	return d.owner.Owns(server.Description) && (!group.Doubt || group.Gone.Has(server.ServerID)) && !group.Held.Has(server.ServerIP) &&
		!group.Held.Has(server.ServerID)
}

// compareBackend notes a backend server that differs. One that somebody else put in stands for ours, and stays as it is.
func (d *differ) compareBackend(change *backendChange, group *model.Group, want, have *alicloud.Backend, drains bool) {
	if *want == *have || !d.owner.Owns(have.Description) {
		return
	}
	wanted, is := *want, backend.Weight{Value: have.Weight, Mark: have.Description}
	next := is.Next(backend.Weight{Value: want.Weight, Mark: want.Description}, drains, group.KeepWeights)
	wanted.Weight, wanted.Description = next.Value, next.Mark
	if wanted != *have {
		change.set = append(change.set, wanted)
		change.setBefore = append(change.setBefore, *have)
	}
}
