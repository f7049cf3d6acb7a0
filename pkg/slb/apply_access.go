package slb

import (
	"context"
	"errors"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

var errNoAccessList = errors.New("the access control list of the source ranges is not there")

// access changes the list of the Service's source ranges.
func (a *applier) access(ctx context.Context, step Step) error {
	if step.Op == OpCreateAccess {
		id, err := a.api.CreateAccessList(ctx, step.access)
		if a.call(err) != nil {
			return err
		}
		created := step.access
		created.ID, created.Entries = id, nil
		a.model.Access = &created
		return nil
	}
	list := a.model.Access
	if list == nil {
		return errNoAccessList
	}
	switch step.Op {
	case OpAddEntries:
		if err := a.call(a.api.AddAccessListEntries(ctx, list.ID, step.access.Entries)); err != nil {
			return err
		}
		list.Entries = append(slices.Clone(list.Entries), step.access.Entries...)
	case OpRemoveEntries:
		if err := a.call(a.api.RemoveAccessListEntries(ctx, list.ID, step.access.Entries)); err != nil {
			return err
		}
		list.Entries = slices.DeleteFunc(slices.Clone(list.Entries), func(e string) bool { return slices.Contains(step.access.Entries, e) })
	default:
		if err := a.call(a.api.DeleteAccessList(ctx, list.ID)); err != nil && !alicloud.IsNotFound(err) {
			return err
		}
		a.model.Access = nil
	}
	return nil
}
