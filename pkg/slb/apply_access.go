package slb

import (
	"context"
	"errors"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

var errNoAccessList = errors.New("the access control list of the source ranges does not exist")

func (a *applier) createAccess(ctx context.Context, step Step) error {
	id, err := a.api.CreateAccessList(ctx, step.access)
	if a.call(err) != nil {
		return err
	}
	created := step.access
	created.ID, created.Entries = id, nil
	a.model.Access = &created
	return nil
}

func (a *applier) addEntries(ctx context.Context, step Step) error {
	list := a.model.Access
	if list == nil {
		return errNoAccessList
	}
	if err := a.call(a.api.AddAccessListEntries(ctx, list.ID, step.access.Entries)); err != nil {
		return err
	}
	list.Entries = append(slices.Clone(list.Entries), step.access.Entries...)
	return nil
}

func (a *applier) removeEntries(ctx context.Context, step Step) error {
	list := a.model.Access
	if list == nil {
		return errNoAccessList
	}
	if err := a.call(a.api.RemoveAccessListEntries(ctx, list.ID, step.access.Entries)); err != nil {
		return err
	}
	list.Entries = slices.DeleteFunc(slices.Clone(list.Entries), func(e string) bool { return slices.Contains(step.access.Entries, e) })
	return nil
}

func (a *applier) deleteAccess(ctx context.Context, _ Step) error {
	list := a.model.Access
	if list == nil {
		return errNoAccessList
	}
	if err := a.call(a.api.DeleteAccessList(ctx, list.ID)); err != nil && !alicloud.IsNotFound(err) {
		return err
	}
	a.model.Access = nil
	return nil
}
