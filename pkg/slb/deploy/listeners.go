package deploy

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

func (a *Applier) createListener(ctx context.Context, step model.Step) error {
	listener, err := a.resolveListener(step)
	if err != nil {
		return err
	}
	if err := a.callOnce(ctx, func() error { return a.api.CreateListener(ctx, a.model.LoadBalancer.ID, listener) }); err != nil {
		return a.putBack(ctx, listener, err)
	}
	a.memory.noteOccupied(a.vacancyOf(listener.ListenerKey), false)
	a.noteListener(listener)
	return nil
}

// noteListener adds a listener that was just created.
func (a *Applier) noteListener(listener alicloud.Listener) {
	a.model.Listeners = append(a.model.Listeners, model.Listener{
		ListenerKey: listener.ListenerKey, Description: listener.Description, GroupID: listener.VServerGroupID,
		Status: alicloud.ListenerStopped, Attributes: maps.Clone(listener.Attributes),
	})
}

func (a *Applier) setListener(ctx context.Context, step model.Step) error {
	listener, err := a.resolveListener(step)
	if err != nil {
		return err
	}
	have := a.model.Listener(listener.ListenerKey)
	stays := a.emptyGroup(step, have.GroupID)
	if stays != nil {
		if listener.VServerGroupID = have.GroupID; isAsWanted(have, listener) {
			return stays
		}
	}
	if err := a.writeListener(ctx, have, listener); err != nil {
		a.setOneByOne(ctx, have, listener, err)
		return err
	}
	return stays
}

func (a *Applier) writeListener(ctx context.Context, have *model.Listener, listener alicloud.Listener) error {
	if err := a.callOnce(ctx, func() error { return a.api.SetListener(ctx, a.model.LoadBalancer.ID, listener) }); err != nil {
		return err
	}
	have.Description = listener.Description
	if listener.VServerGroupID != "" { // else the cloud leaves it as it is
		have.GroupID = listener.VServerGroupID
	}
	if have.Attributes == nil {
		have.Attributes = alicloud.Attributes{}
	}
	maps.Copy(have.Attributes, listener.Attributes)
	return nil
}

// setOneByOne moves a listener to its group, and then gives it its certificate, after the cloud refused these together with other changes:
// one setting that it does not take keeps no listener in a group that nothing serves any more, nor at a certificate that expires.
func (a *Applier) setOneByOne(ctx context.Context, have *model.Listener, want alicloud.Listener, refused error) {
	if !refusesListener(refused) || alicloud.IsThrottled(refused) || alicloud.IsForbidden(refused) {
		return
	}
	for _, name := range []string{"", alicloud.AttributeServerCertificateID} { // the group has no name
		part := alicloud.Listener{ListenerKey: want.ListenerKey, Description: have.Description, VServerGroupID: have.GroupID,
			Attributes: alicloud.Attributes{}}
		for present := range want.Attributes {
			if value, ok := have.Attributes[present]; ok {
				part.Attributes[present] = value
			}
		}
		if value, ok := want.Attributes[name]; ok {
			part.Attributes[name] = value
		} else if name == "" {
			part.VServerGroupID = want.VServerGroupID
		}
		rest := model.Listener{Description: part.Description, GroupID: part.VServerGroupID, Attributes: part.Attributes}
		if isAsWanted(have, part) || isAsWanted(&rest, want) { // nothing changes, or nothing else does
			continue
		}
		if part.VServerGroupID == have.GroupID {
			part.VServerGroupID = "" // it may be what the cloud refuses to hear of
		}
		if err := a.writeListener(ctx, have, part); err != nil && !refusesListener(err) {
			return
		}
	}
}

// emptyGroup returns why a listener stays in the group that it uses: its next one is to have backend servers and has none yet, and those of
// the old one take traffic. Where they wait for the room that the old group leaves, the listener has to move.
func (a *Applier) emptyGroup(step model.Step, from string) error {
	old, next := a.model.GroupByID(from), a.model.Group(step.GroupName)
	if old == nil || next == nil || old == next || !step.Awaits || !old.Serves() || next.Serves() {
		return nil
	}
	if slices.ContainsFunc(a.deferred, func(waiting model.Step) bool { return waiting.GroupName == step.GroupName }) {
		return nil
	}
	return remembered{&problem.WaitError{Reason: fmt.Sprintf("it keeps using vServer group %s, because %s has no backend servers yet",
		old.Name, next.Name), For: minRefusedFor}}
}

// isAsWanted reports whether a listener needs no write.
func isAsWanted(have *model.Listener, want alicloud.Listener) bool {
	for name := range want.Attributes {
		if !have.Attributes.Same(name, want.Attributes) {
			return false
		}
	}
	return have.Description == want.Description && have.GroupID == want.VServerGroupID
}

// resolveListener returns the listener of a step with the ids of what the same plan may have created before it.
func (a *Applier) resolveListener(step model.Step) (alicloud.Listener, error) {
	listener := step.Listener
	if step.GroupName != "" { // a listener that redirects has none
		group := a.model.Group(step.GroupName)
		if group == nil {
			return listener, fmt.Errorf("vServer group %s does not exist", step.GroupName)
		}
		listener.VServerGroupID = group.ID
	}
	listener.Attributes = model.WithAccessList(listener.Attributes, a.model.Access)
	if listener.Attributes[alicloud.AttributeACLIDs] == model.OwnAccessList {
		return listener, errNoAccessList
	}
	return listener, nil
}

func (a *Applier) startListener(ctx context.Context, step model.Step) error {
	key := step.Listener.ListenerKey
	if err := a.callOnce(ctx, func() error { return a.api.StartListener(ctx, a.model.LoadBalancer.ID, key) }); err != nil {
		return err
	}
	a.model.Listener(key).Status = alicloud.ListenerRunning
	a.memory.noteOccupied(a.vacancyOf(key), true)
	return nil
}

func (a *Applier) deleteListener(ctx context.Context, step model.Step) error {
	key := step.Listener.ListenerKey
	if err := a.callOnce(ctx, func() error {
		return a.api.DeleteListener(ctx, a.model.LoadBalancer.ID, key)
	}); err != nil && !model.ListenerGone(err) {
		return err
	}
	a.model.Listeners = slices.DeleteFunc(a.model.Listeners, func(l model.Listener) bool { return l.ListenerKey == key })
	return nil
}
