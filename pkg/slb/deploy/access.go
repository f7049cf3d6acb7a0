package deploy

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

var errLastEntries = errors.New("the last entries of the access control list of the source ranges stay: without any, it may admit everybody")

var errNoAccessList = errors.New("the access control list of the source ranges does not exist")

func (a *Applier) createAccess(ctx context.Context, step model.Step) error {
	var id string
	err := a.callOnce(ctx, func() (err error) {
		id, err = a.api.CreateAccessList(ctx, step.Access)
		return err
	})
	if err != nil {
		return err
	}
	created := step.Access
	created.ID, created.Entries = id, nil
	a.model.Access = &created
	return nil
}

func (a *Applier) addEntries(ctx context.Context, step model.Step) error {
	list := a.model.Access
	if list == nil {
		return errNoAccessList
	}
	if err := a.callOnce(ctx, func() error { return a.api.AddAccessListEntries(ctx, list.ID, step.Access.Entries) }); err != nil {
		return err
	}
	list.Entries = append(slices.Clone(list.Entries), step.Access.Entries...)
	return nil
}

func (a *Applier) removeEntries(ctx context.Context, step model.Step) error {
	list := a.model.Access
	if list == nil {
		return errNoAccessList
	}
	left := slices.DeleteFunc(slices.Clone(list.Entries), func(e string) bool { return slices.Contains(step.Access.Entries, e) })
	if len(left) == 0 { // those that come were refused
		return errLastEntries
	}
	if err := a.callOnce(ctx, func() error { return a.api.RemoveAccessListEntries(ctx, list.ID, step.Access.Entries) }); err != nil {
		return err
	}
	list.Entries = left
	return nil
}

func (a *Applier) deleteAccess(ctx context.Context, step model.Step) error {
	list := a.model.Access
	if list == nil {
		return errNoAccessList
	}
	if err := a.memory.uses.Err(list.ID, time.Now()); err != nil {
		return remembered{err}
	}
	err := a.callOnce(ctx, func() error { return a.api.DeleteAccessList(ctx, list.ID) })
	a.memory.uses.Note(list.ID, err, IsInUse(err) || refusesFor(&step, err), time.Now())
	if err != nil && !alicloud.IsNotFound(err) {
		return err
	}
	a.model.Access = nil
	return nil
}
