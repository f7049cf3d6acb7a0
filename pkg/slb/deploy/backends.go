package deploy

import (
	"context"
	"fmt"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

func (a *Applier) deleteGroup(ctx context.Context, step model.Step) error {
	if err := a.call(a.api.DeleteVServerGroup(ctx, step.GroupID)); err != nil && !alicloud.IsNotFound(err) {
		return err
	}
	a.model.Groups = slices.DeleteFunc(a.model.Groups, func(g model.Group) bool { return g.ID == step.GroupID })
	return nil
}

// createGroup makes the group with as many first members as a call takes. The others follow in a step of their own: where
// that waits for room or fails, the group is there all the same.
func (a *Applier) createGroup(ctx context.Context, step model.Step) error {
	first := a.part(step.New)
	id, err := a.api.CreateVServerGroup(ctx, a.model.LoadBalancer.ID, step.GroupName, first)
	a.Writes++
	switch {
	case a.tooMany(first, err):
		return a.createGroup(ctx, step)
	case refusesServer(err):
		// One bad server refuses the whole call: make the group empty and find out which it is.
		first = nil
		if id, err = a.api.CreateVServerGroup(ctx, a.model.LoadBalancer.ID, step.GroupName, nil); a.call(err) != nil {
			return err
		}
	case err != nil:
		return err
	}
	a.model.Groups = append(a.model.Groups, model.Group{ID: id, Name: step.GroupName, Backends: slices.Clone(first)})
	if rest := step.New[len(first):]; len(rest) > 0 {
		a.followUp = append(a.followUp, model.Step{Op: model.OpAddBackends, Target: step.Target, After: model.BackendsText(rest), GroupName: step.GroupName, New: rest})
	}
	return nil
}

// part returns as many first members as a call takes.
func (a *Applier) part(members []alicloud.Backend) []alicloud.Backend {
	return members[:min(len(members), a.api.BackendsPerCall())]
}

// tooMany reports whether a call was refused for taking more members than the cloud has now said it takes.
func (a *Applier) tooMany(members []alicloud.Backend, err error) bool {
	return len(members) > a.api.BackendsPerCall() && alicloud.IsTooManyBackends(err)
}

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
	return a.add(ctx, group, step.New)
}

func (a *Applier) removeBackends(ctx context.Context, step model.Step) error {
	group, err := a.groupOf(step)
	if err != nil {
		return err
	}
	return a.remove(ctx, group, step.Old)
}

func (a *Applier) setBackends(ctx context.Context, step model.Step) error {
	group, err := a.groupOf(step)
	if err != nil {
		return err
	}
	return a.inParts(step.New, func(backends []alicloud.Backend) error {
		return a.call(a.api.SetBackends(ctx, group.ID, backends))
	}, func(backends []alicloud.Backend) { group.Drop(backends); group.Put(backends) })
}

// add brings in those members that are not in the group yet: of a step that waited for room, some may be.
func (a *Applier) add(ctx context.Context, group *model.Group, members []alicloud.Backend) error {
	return a.inParts(group.Lacks(members), func(part []alicloud.Backend) error {
		return a.call(a.api.AddBackends(ctx, group.ID, part))
	}, group.Put)
}

func (a *Applier) remove(ctx context.Context, group *model.Group, members []alicloud.Backend) error {
	return a.inParts(members, func(part []alicloud.Backend) error {
		return a.call(a.api.RemoveBackends(ctx, group.ID, part))
	}, group.Drop)
}

// replaceBackends swaps as many backend servers as a call takes at a time. Where a server is refused, the others must not
// wait for it: then the good ones go in one way and the old ones go out another.
func (a *Applier) replaceBackends(ctx context.Context, step model.Step) error {
	group, err := a.groupOf(step)
	if err != nil {
		return err
	}
	for old, added := step.Old, step.New; len(added) > 0; {
		gone, come := a.part(old), a.part(added)
		err := a.call(a.api.ReplaceBackends(ctx, group.ID, gone, come))
		switch {
		case err == nil:
			group.Drop(gone)
			group.Put(come)
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
func (a *Applier) inParts(members []alicloud.Backend, call func([]alicloud.Backend) error, done func([]alicloud.Backend)) error {
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
func (a *Applier) isolate(members []alicloud.Backend, call func([]alicloud.Backend) error, done func([]alicloud.Backend)) error {
	err := call(members)
	switch {
	case err == nil:
		done(members)
		return nil
	case !refusesServer(err):
		return err
	case len(members) == 1:
		a.RefusedServer = true
		a.errs = append(a.errs, fmt.Errorf("member %s: %w", members[0], err))
		return nil
	}
	half := len(members) / 2
	if err := a.isolate(members[:half], call, done); err != nil {
		return err
	}
	return a.isolate(members[half:], call, done)
}
