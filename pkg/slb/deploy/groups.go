package deploy

import (
	"context"
	"slices"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// createGroup creates the group with as many first backend servers as a call takes. The others follow in a step of their own: where
// that waits for room or fails, the group is there all the same, and listeners can use it.
func (a *Applier) createGroup(ctx context.Context, step model.Step) error {
	first := a.fittingBackends(a.nextBatch(step.New))
	if a.memory.attempts.Refused(a.model.LoadBalancer.ID, wanted(&step)) {
		first = nil // it was refused with them and without: one call shows whether it still is
	}
	id, err := a.createGroupWith(ctx, step.GroupName, first)
	switch {
	case a.tooMany(first, err):
		return a.createGroup(ctx, step)
	case len(first) > 0 && (refusesServer(err) || IsOverQuota(err)):
		first = nil // the follow-up finds out which of them the cloud refuses, and how many fit
		if id, err = a.createGroupWith(ctx, step.GroupName, nil); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	a.model.Groups = append(a.model.Groups, model.Group{ID: id, Name: step.GroupName, Backends: slices.Clone(first)})
	if rest := step.New[len(first):]; len(rest) > 0 {
		a.followUp = append(a.followUp, model.Step{
			Op: model.OpAddBackends, Target: step.Target, After: model.BackendsText(rest), GroupName: step.GroupName, GroupID: id, New: rest,
		})
	}
	return nil
}

func (a *Applier) createGroupWith(ctx context.Context, name string, backends []alicloud.Backend) (id string, err error) {
	err = a.callOnce(ctx, func() error {
		id, err = a.api.CreateVServerGroup(ctx, a.model.LoadBalancer.ID, name, backends)
		return err
	})
	return id, err
}

func (a *Applier) deleteGroup(ctx context.Context, step model.Step) error {
	if err := a.memory.uses.Err(step.GroupID, time.Now()); err != nil {
		return remembered{err}
	}
	err := a.callOnce(ctx, func() error { return a.api.DeleteVServerGroup(ctx, step.GroupID) })
	a.memory.uses.Note(step.GroupID, err, IsInUse(err), time.Now())
	if err != nil && !alicloud.IsNotFound(err) {
		return err
	}
	a.model.Groups = slices.DeleteFunc(a.model.Groups, func(g model.Group) bool { return g.ID == step.GroupID })
	return nil
}
