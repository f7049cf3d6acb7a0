package slb

import (
	"context"
	"fmt"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

func (a *applier) deleteGroup(ctx context.Context, step Step) error {
	if err := a.call(a.api.DeleteVServerGroup(ctx, step.groupID)); err != nil && !alicloud.IsNotFound(err) {
		return err
	}
	a.model.Groups = slices.DeleteFunc(a.model.Groups, func(g Group) bool { return g.ID == step.groupID })
	return nil
}

// createGroup makes the group with as many first members as a call takes. The others follow in a step of their own: where
// that waits for room or fails, the group is there all the same.
func (a *applier) createGroup(ctx context.Context, step Step) error {
	first := a.part(step.new)
	id, err := a.api.CreateVServerGroup(ctx, a.model.LoadBalancer.ID, step.groupName, first)
	a.writes++
	switch {
	case a.tooMany(first, err):
		return a.createGroup(ctx, step)
	case refusesServer(err):
		// One bad server refuses the whole call: make the group empty and find out which it is.
		first = nil
		if id, err = a.api.CreateVServerGroup(ctx, a.model.LoadBalancer.ID, step.groupName, nil); a.call(err) != nil {
			return err
		}
	case err != nil:
		return err
	}
	a.model.Groups = append(a.model.Groups, Group{ID: id, Name: step.groupName, Backends: slices.Clone(first)})
	if rest := step.new[len(first):]; len(rest) > 0 {
		a.followUp = append(a.followUp, Step{Op: OpAddBackends, Target: step.Target, After: backendsText(rest), groupName: step.groupName, new: rest})
	}
	return nil
}

// part returns as many first members as a call takes.
func (a *applier) part(members []alicloud.Backend) []alicloud.Backend {
	return members[:min(len(members), a.api.BackendsPerCall())]
}

// tooMany reports whether a call was refused for taking more members than the cloud has now said it takes.
func (a *applier) tooMany(members []alicloud.Backend, err error) bool {
	return len(members) > a.api.BackendsPerCall() && alicloud.IsTooManyBackends(err)
}

// groupOf returns the vServer group that a step changes.
func (a *applier) groupOf(step Step) (*Group, error) {
	group := a.model.group(step.groupName)
	if step.groupID != "" {
		group = a.model.groupByID(step.groupID)
	}
	if group == nil {
		return nil, fmt.Errorf("vServer group %s does not exist", step.groupName)
	}
	return group, nil
}

func (a *applier) addBackends(ctx context.Context, step Step) error {
	group, err := a.groupOf(step)
	if err != nil {
		return err
	}
	return a.add(ctx, group, step.new)
}

func (a *applier) removeBackends(ctx context.Context, step Step) error {
	group, err := a.groupOf(step)
	if err != nil {
		return err
	}
	return a.remove(ctx, group, step.old)
}

func (a *applier) setBackends(ctx context.Context, step Step) error {
	group, err := a.groupOf(step)
	if err != nil {
		return err
	}
	return a.inParts(step.new, func(backends []alicloud.Backend) error {
		return a.call(a.api.SetBackends(ctx, group.ID, backends))
	}, func(backends []alicloud.Backend) { group.drop(backends); group.put(backends) })
}

// add brings in those members that are not in the group yet: of a step that waited for room, some may be.
func (a *applier) add(ctx context.Context, group *Group, members []alicloud.Backend) error {
	return a.inParts(group.lacks(members), func(part []alicloud.Backend) error {
		return a.call(a.api.AddBackends(ctx, group.ID, part))
	}, group.put)
}

func (a *applier) remove(ctx context.Context, group *Group, members []alicloud.Backend) error {
	return a.inParts(members, func(part []alicloud.Backend) error {
		return a.call(a.api.RemoveBackends(ctx, group.ID, part))
	}, group.drop)
}

// replaceBackends swaps as many backend servers as a call takes at a time. Where a server is refused, the others must not
// wait for it: then the good ones go in one way and the old ones go out another.
func (a *applier) replaceBackends(ctx context.Context, step Step) error {
	group, err := a.groupOf(step)
	if err != nil {
		return err
	}
	for old, added := step.old, step.new; len(added) > 0; {
		gone, come := a.part(old), a.part(added)
		err := a.call(a.api.ReplaceBackends(ctx, group.ID, gone, come))
		switch {
		case err == nil:
			group.drop(gone)
			group.put(come)
			old, added = old[len(gone):], added[len(come):]
		case a.tooMany(come, err):
		case !refusesServer(err):
			return err
		default:
			if err := a.add(ctx, group, added); err != nil {
				return err
			}
			return a.remove(ctx, group, old)
		}
	}
	return nil
}

// inParts makes a call for as many members as it takes at a time.
func (a *applier) inParts(members []alicloud.Backend, call func([]alicloud.Backend) error, done func([]alicloud.Backend)) error {
	for len(members) > 0 {
		part := a.part(members)
		err := a.isolate(part, call, done)
		if a.tooMany(part, err) {
			continue
		}
		if err != nil {
			return err
		}
		members = members[len(part):]
	}
	return nil
}

// isolate makes a call for all members, and where one server makes it fail, for the halves, so that one bad server keeps
// no other from its group. done notes the members of each call that succeeded; the refused ones are reported and hold up
// nothing that follows.
func (a *applier) isolate(members []alicloud.Backend, call func([]alicloud.Backend) error, done func([]alicloud.Backend)) error {
	err := call(members)
	switch {
	case err == nil:
		done(members)
		return nil
	case !refusesServer(err):
		return err
	case len(members) == 1:
		a.refusedServer = true
		a.errs = append(a.errs, fmt.Errorf("member %s: %w", members[0], err))
		return nil
	}
	half := len(members) / 2
	if err := a.isolate(members[:half], call, done); err != nil {
		return err
	}
	return a.isolate(members[half:], call, done)
}
