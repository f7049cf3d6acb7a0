package deploy

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// groupOf returns the vServer group that a step changes.
func (a *Applier) groupOf(step model.Step) (*model.Group, error) {
	group := a.model.Group(step.GroupName)
	if step.GroupID != "" {
		group = a.model.GroupByID(step.GroupID)
	}
	if group == nil {
		return nil, fmt.Errorf("vServer group %s does not exist", step.GroupName)
	}
	return group, nil
}

func (a *Applier) addBackends(ctx context.Context, step model.Step) error {
	group, err := a.groupOf(step)
	if err != nil {
		return err
	}
	return a.addToGroup(ctx, group, step.New)
}

// removeBackends leaves a group with its last backend servers that take traffic, while the cloud refuses those that were to come.
func (a *Applier) removeBackends(ctx context.Context, step model.Step) error {
	group, err := a.groupOf(step)
	if err != nil || a.lacking[group.ID] && !group.ServesWithout(step.Old) {
		return err
	}
	return a.removeFromGroup(ctx, group, step.Old)
}

func (a *Applier) setBackends(ctx context.Context, step model.Step) error {
	group, err := a.groupOf(step)
	if err != nil {
		return err
	}
	set := backendCall{model.OpSetBackends, group, func(part []alicloud.Backend) error {
		return a.callOnce(ctx, func() error { return a.api.SetBackends(ctx, group.ID, part) })
	}, func(part []alicloud.Backend) { group.Drop(part); group.Put(part) }}
	return a.inParts(set, a.allowedBackends(set, step.New))
}

// addToGroup adds those backend servers that are not in the group yet: of a step that waited for room, some may be. Where the CLB has no
// room for all of them, as many as fit go into a group that has none.
func (a *Applier) addToGroup(ctx context.Context, group *model.Group, backends []alicloud.Backend) error {
	add := a.addCall(ctx, group)
	backends = a.allowedBackends(add, group.Lacks(backends))
	fitting := a.fittingBackends(backends)
	err := a.inParts(add, fitting)
	switch {
	case IsOverQuota(err) && (a.late || len(group.Backends) == 0):
		return a.fillGroup(add, fitting, err)
	case err == nil && len(fitting) < len(backends):
		return a.noRoom
	}
	return err
}

// fittingBackends returns those of the backend servers that the CLB has room for, as far as that is known.
func (a *Applier) fittingBackends(backends []alicloud.Backend) []alicloud.Backend {
	return backends[:min(max(a.most-a.countServers(), 0), len(backends))]
}

// countServers is how many backend servers all groups of the Service have together.
func (a *Applier) countServers() int {
	servers := 0
	for i := range a.model.Groups {
		servers += len(a.model.Groups[i].Backends)
	}
	return servers
}

func (a *Applier) addCall(ctx context.Context, group *model.Group) backendCall {
	return backendCall{model.OpAddBackends, group, func(part []alicloud.Backend) error {
		return a.callOnce(ctx, func() error { return a.api.AddBackends(ctx, group.ID, part) })
	}, group.Put}
}

// fillGroup adds as many backend servers as the CLB has room for, and returns the refusal of the others. Until the plan has removed some,
// no further one is tried.
func (a *Applier) fillGroup(add backendCall, backends []alicloud.Backend, refusal error) error {
	least, most := 0, len(a.nextBatch(backends)) // so many fit, and so many do not
	for most-least > 1 {
		size := (most - least) / 2 //nolint:mnd // a binary search
		rest := slices.DeleteFunc(add.group.Lacks(backends), func(b alicloud.Backend) bool { return a.refusedBefore(add, b) != nil })
		switch err := a.isolateRefused(add, rest[:min(size, len(rest))]); {
		case err == nil:
			least += size
		case IsOverQuota(err):
			most = least + size
		default:
			return err
		}
	}
	a.most, a.noRoom = a.countServers(), refusal
	return refusal
}

func (a *Applier) removeFromGroup(ctx context.Context, group *model.Group, backends []alicloud.Backend) error {
	return a.inParts(backendCall{model.OpRemoveBackends, group, func(part []alicloud.Backend) error {
		return a.callOnce(ctx, func() error { return a.api.RemoveBackends(ctx, group.ID, part) })
	}, group.Drop}, backends)
}

// replaceBackends swaps as many backend servers as a call takes at a time. An old one whose replacement the cloud refuses leaves only
// if another one takes its traffic.
func (a *Applier) replaceBackends(ctx context.Context, step model.Step) error {
	group, err := a.groupOf(step)
	if err != nil {
		return err
	}
	added := a.allowedBackends(a.addCall(ctx, group), step.New)
	old, left := step.Old[:len(added)], slices.Clone(step.Old[len(added):])
	for len(added) > 0 {
		gone, come := a.nextBatch(old), a.nextBatch(added)
		kept, err := a.swapBackends(ctx, group, gone, come)
		if a.tooMany(come, err) {
			continue
		}
		if err != nil {
			return err
		}
		left = append(left, kept...)
		old, added = old[len(gone):], added[len(come):]
	}
	if len(left) == 0 || !group.ServesWithout(left) {
		return nil
	}
	return a.removeFromGroup(ctx, group, left)
}

// swapBackends replaces each of the old backend servers by one of as many others, and returns those whose replacement the cloud refuses.
func (a *Applier) swapBackends(ctx context.Context, group *model.Group, old, added []alicloud.Backend) ([]alicloud.Backend, error) {
	err := a.callOnce(ctx, func() error { return a.api.ReplaceBackends(ctx, group.ID, old, added) })
	switch {
	case err == nil:
		group.Drop(old)
		group.Put(added)
		return nil, nil
	case !refusesServer(err):
		return nil, err
	case len(added) == 1: // either of the two may be what the cloud refuses
		return old, a.isolateRefused(a.addCall(ctx, group), added)
	}
	half := len(added) / 2
	left, err := a.swapBackends(ctx, group, old[:half], added[:half])
	if err != nil {
		return left, err
	}
	rest, err := a.swapBackends(ctx, group, old[half:], added[half:])
	return append(left, rest...), err
}

// nextBatch returns as many backend servers as a call takes.
func (a *Applier) nextBatch(backends []alicloud.Backend) []alicloud.Backend {
	return backends[:min(len(backends), a.api.BackendsPerCall())]
}

// tooMany reports whether a call was refused for taking more backend servers than the cloud has now said it takes.
func (a *Applier) tooMany(backends []alicloud.Backend, err error) bool {
	return len(backends) > a.api.BackendsPerCall() && alicloud.IsTooManyBackends(err)
}

// backendCall is a call that changes several backend servers of a group; done notes that it changed them.
type backendCall struct {
	op    model.Op
	group *model.Group
	make  func([]alicloud.Backend) error
	done  func([]alicloud.Backend)
}

func (c backendCall) changeOf(b alicloud.Backend) change { return change{c.op, c.group.ID, b} }

// refusedBefore returns why the cloud refused a backend server a short while ago.
func (a *Applier) refusedBefore(call backendCall, b alicloud.Backend) error {
	return a.memory.servers.Err(call.changeOf(b), time.Now())
}

// leaveOut notes that a call goes without a backend server that the cloud refuses.
func (a *Applier) leaveOut(call backendCall, b alicloud.Backend, err error) {
	a.left = append(a.left, refusedServer{b, err})
	a.lacking[call.group.ID] = a.lacking[call.group.ID] || call.op == model.OpAddBackends
}

// allowedBackends leaves out the backend servers that the cloud refused a short while ago.
func (a *Applier) allowedBackends(call backendCall, backends []alicloud.Backend) []alicloud.Backend {
	return slices.DeleteFunc(slices.Clone(backends), func(b alicloud.Backend) bool {
		err := a.refusedBefore(call, b)
		if err != nil {
			a.leaveOut(call, b, err)
		}
		return err != nil
	})
}

// inParts makes a call for as many backend servers as it takes at a time.
func (a *Applier) inParts(call backendCall, backends []alicloud.Backend) error {
	for len(backends) > 0 {
		part := a.nextBatch(backends)
		err := a.isolateRefused(call, part)
		if a.tooMany(part, err) {
			continue
		}
		if err != nil {
			return err
		}
		backends = backends[len(part):]
	}
	return nil
}

// isolateRefused makes a call for all backend servers, and where one of them makes it fail, for the halves, so that one bad server keeps no
// other out. The refused ones are reported and hold up nothing that follows. All together are not tried again while each that was refused
// before still is.
func (a *Applier) isolateRefused(call backendCall, backends []alicloud.Backend) error {
	isNew := func(b alicloud.Backend) bool { return !a.memory.servers.Has(call.changeOf(b)) }
	for again := !slices.ContainsFunc(backends, isNew); again && len(backends) > 1; again = a.refusedInARow > 0 {
		if err := a.isolateRefused(call, backends[:1]); err != nil {
			return err
		}
		backends = backends[1:]
	}
	if len(backends) == 0 {
		return nil
	}
	err := call.make(backends)
	switch {
	case err == nil:
		call.done(backends)
		a.refusedInARow = 0
		for _, b := range backends {
			a.memory.servers.Drop(call.changeOf(b))
		}
		return nil
	case !refusesServer(err):
		return err
	case len(backends) == 1:
		a.RefusedServer = true
		if call.op != model.OpAddBackends {
			// The group differs from what is known: one that is not there would stay out until the pass for drift.
			a.Doubts[model.PartGroups] = string(call.op) + " was refused"
		}
		if b := backends[0]; alicloud.IsQuota(err) && b.Type != alicloud.BackendENI {
			a.Exhausted = append(a.Exhausted, b.ServerID)
		}
		a.leaveOut(call, backends[0], err)
		a.memory.servers.Add(call.changeOf(backends[0]), err, serverPause, time.Now())
		if a.refusedInARow++; a.refusedInARow >= maxInARow {
			return err
		}
		return nil
	}
	half := len(backends) / 2
	if err := a.isolateRefused(call, backends[:half]); err != nil {
		return err
	}
	return a.isolateRefused(call, backends[half:])
}
