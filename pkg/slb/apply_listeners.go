package slb

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

func (a *applier) createListener(ctx context.Context, step Step) error {
	listener, err := a.resolve(step)
	if err != nil {
		return err
	}
	if err := a.call(a.api.CreateListener(ctx, a.model.LoadBalancer.ID, listener)); err != nil {
		return err
	}
	a.model.Listeners = append(a.model.Listeners, Listener{
		ListenerKey: listener.ListenerKey, Description: listener.Description, GroupID: listener.VServerGroupID,
		Status: alicloud.ListenerStopped, Attributes: maps.Clone(listener.Attributes),
	})
	return nil
}

func (a *applier) setListener(ctx context.Context, step Step) error {
	listener, err := a.resolve(step)
	if err != nil {
		return err
	}
	if err := a.call(a.api.SetListener(ctx, a.model.LoadBalancer.ID, listener)); err != nil {
		return err
	}
	have := a.model.listener(listener.ListenerKey)
	have.Description, have.GroupID = listener.Description, listener.VServerGroupID
	if have.Attributes == nil {
		have.Attributes = alicloud.Attributes{}
	}
	maps.Copy(have.Attributes, listener.Attributes)
	return nil
}

// resolve returns the listener of a step with the ids of what the same plan may have created before it.
func (a *applier) resolve(step Step) (alicloud.Listener, error) {
	listener := step.listener
	group := a.model.group(step.groupName)
	if group == nil {
		return listener, fmt.Errorf("vServer group %s does not exist", step.groupName)
	}
	listener.VServerGroupID = group.ID
	listener.Attributes = withAccessList(listener.Attributes, a.model.Access)
	if listener.Attributes["AclId"] == ownAccessList {
		return listener, errNoAccessList
	}
	return listener, nil
}

func (a *applier) startListener(ctx context.Context, step Step) error {
	key := step.listener.ListenerKey
	if err := a.call(a.api.StartListener(ctx, a.model.LoadBalancer.ID, key)); err != nil {
		return err
	}
	a.model.listener(key).Status = alicloud.ListenerRunning
	return nil
}

func (a *applier) deleteListener(ctx context.Context, step Step) error {
	key := step.listener.ListenerKey
	if err := a.call(a.api.DeleteListener(ctx, a.model.LoadBalancer.ID, key)); err != nil && !goneListener(err) {
		return err
	}
	a.model.Listeners = slices.DeleteFunc(a.model.Listeners, func(l Listener) bool { return l.ListenerKey == key })
	return nil
}
