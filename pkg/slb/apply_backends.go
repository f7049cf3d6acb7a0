package slb

import (
	"context"
	"fmt"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

func (a *applier) group(ctx context.Context, step Step) error {
	if step.Op == OpDeleteGroup {
		if err := a.call(a.api.DeleteVServerGroup(ctx, step.groupID)); err != nil && !alicloud.IsNotFound(err) {
			return err
		}
		a.model.Groups = slices.DeleteFunc(a.model.Groups, func(g Group) bool { return g.ID == step.groupID })
		return nil
	}
	id, err := a.api.CreateVServerGroup(ctx, a.model.LoadBalancer.ID, step.groupName, step.new)
	a.writes++
	if !refusesServer(err) {
		if err == nil {
			a.model.Groups = append(a.model.Groups, Group{ID: id, Name: step.groupName, Backends: slices.Clone(step.new)})
		}
		return err
	}
	// One bad server refuses the whole call: make the group empty and find out which it is.
	if id, err = a.api.CreateVServerGroup(ctx, a.model.LoadBalancer.ID, step.groupName, nil); a.call(err) != nil {
		return err
	}
	a.model.Groups = append(a.model.Groups, Group{ID: id, Name: step.groupName})
	return a.add(ctx, &a.model.Groups[len(a.model.Groups)-1], step.new)
}

func (a *applier) members(ctx context.Context, step Step) error {
	group := a.model.group(step.groupName)
	if step.groupID != "" {
		group = a.model.groupByID(step.groupID)
	}
	if group == nil {
		return fmt.Errorf("group %s is not there", step.groupName)
	}
	switch step.Op {
	case OpAddBackends:
		return a.add(ctx, group, step.new)
	case OpReplaceBackends:
		return a.replace(ctx, group, step)
	case OpSetBackends:
		return a.isolate(step.new, func(members []alicloud.Backend) error {
			return a.call(a.api.SetBackends(ctx, group.ID, members))
		}, func(members []alicloud.Backend) { group.drop(members); group.put(members) })
	default:
		return a.isolate(step.old, func(members []alicloud.Backend) error {
			return a.call(a.api.RemoveBackends(ctx, group.ID, members))
		}, group.drop)
	}
}

func (a *applier) add(ctx context.Context, group *Group, members []alicloud.Backend) error {
	return a.isolate(members, func(part []alicloud.Backend) error {
		return a.call(a.api.AddBackends(ctx, group.ID, part))
	}, group.put)
}

// replace swaps members in one call. Where a server is refused, the others must not wait for it: then the good ones go in
// one way and the old ones go out another.
func (a *applier) replace(ctx context.Context, group *Group, step Step) error {
	err := a.call(a.api.ReplaceBackends(ctx, group.ID, step.old, step.new))
	if err == nil {
		group.drop(step.old)
		group.put(step.new)
		return nil
	}
	if !refusesServer(err) {
		return err
	}
	if err := a.add(ctx, group, step.new); err != nil {
		return err
	}
	return a.isolate(step.old, func(members []alicloud.Backend) error {
		return a.call(a.api.RemoveBackends(ctx, group.ID, members))
	}, group.drop)
}

// isolate makes a call for all members, and where one server makes it fail, for the halves, so that one bad server keeps
// no other from its group. done notes the members of each call that succeeded; the refused ones are reported and hold up
// nothing that follows.
func (a *applier) isolate(members []alicloud.Backend, call func([]alicloud.Backend) error, done func([]alicloud.Backend)) error {
	if len(members) == 0 {
		return nil
	}
	err := call(members)
	switch {
	case err == nil:
		done(members)
		return nil
	case !refusesServer(err):
		return err
	case len(members) == 1:
		a.refused = true
		a.errs = append(a.errs, fmt.Errorf("member %s: %w", members[0], err))
		return nil
	}
	half := len(members) / 2
	if err := a.isolate(members[:half], call, done); err != nil {
		return err
	}
	return a.isolate(members[half:], call, done)
}

// put notes that members are in the group.
func (g *Group) put(members []alicloud.Backend) { g.Backends = append(g.Backends, members...) }

// drop notes that members are not in the group.
func (g *Group) drop(members []alicloud.Backend) {
	gone := make(map[alicloud.BackendKey]bool, len(members))
	for _, member := range members {
		gone[member.BackendKey] = true
	}
	g.Backends = slices.DeleteFunc(g.Backends, func(b alicloud.Backend) bool { return gone[b.BackendKey] })
}
