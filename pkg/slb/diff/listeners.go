package diff

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// managesListeners reports whether the listeners are ours to change. Those of an existing CLB are its owner's, unless an annotation says
// otherwise.
func (d *differ) managesListeners() bool { return !d.desired.Reused || d.desired.Override }

func (d *differ) listenerSteps() {
	if !d.managesListeners() {
		return
	}
	for i := range d.desired.Listeners {
		want := &d.desired.Listeners[i]
		have := d.actual.Listener(want.ListenerKey)
		switch {
		case want.Blocked, want.UpdateOnly && (have == nil || needsRecreation(want, have)):
		case have == nil:
			if old, free := d.inTheWay(want); free {
				d.createOrReplace(want, old)
				d.extensionSteps(want, nil)
			}
		case !d.mayWrite(want, have):
			d.addConflict(want, have)
		case needsRecreation(want, have):
			d.createOrReplace(want, have)
		default:
			d.updateListener(want, have)
			d.extensionSteps(want, have)
		}
	}
}

// inTheWay returns our listener of another protocol on the port, and false where somebody else's is there. Layer 7 shares its ports with
// TCP. A listener without our mark was made by hand, also on a CLB of ours: nobody asked to have it deleted.
func (d *differ) inTheWay(want *model.Listener) (ours *model.Listener, free bool) {
	for i := range d.actual.Listeners {
		have := &d.actual.Listeners[i]
		if have.Port != want.Port || have.Protocol == alicloud.ProtocolUDP || want.Protocol == alicloud.ProtocolUDP {
			continue
		}
		if !d.owner.Owns(have.Description) {
			d.addConflict(want, have)
			return nil, false
		}
		ours = have
	}
	return ours, true
}

// mayWrite reports whether a listener on a port of ours may be changed. One without a mark was made by a human: on an existing CLB the
// Service takes it over, on one of ours it stays, unless it leads where ours does, so that somebody has described ours anew.
func (d *differ) mayWrite(want, have *model.Listener) bool {
	group := d.actual.GroupByID(have.GroupID)
	asOurs := d.desired.Reused || group != nil && group.Name == want.Group || have.GroupID == want.Group && !needsRecreation(want, have)
	return d.owner.Owns(have.Description) || asOurs && !d.owner.OwnedByOther(have.Description)
}

func (d *differ) addConflict(want, have *model.Listener) {
	d.addProblem(problem.ReasonListenerConflict, "port %d is in use by listener %s of %s", want.Port, have.ListenerKey,
		mark.Maker(have.Description, d.owner.ClusterID))
}

// needsRecreation reports whether a listener must be created anew: whether an http listener forwards is set only at creation.
func needsRecreation(want, have *model.Listener) bool {
	if want.Protocol != alicloud.ProtocolHTTP {
		return false
	}
	return !want.Attributes.Same(alicloud.AttributeListenerForward, have.Attributes) ||
		want.Attributes[alicloud.AttributeForwardPort] != "" &&
			want.Attributes[alicloud.AttributeForwardPort] != have.Attributes[alicloud.AttributeForwardPort]
}

// createOrReplace makes the steps that create a listener, in the place of an old one if there is one.
func (d *differ) createOrReplace(want, old *model.Listener) {
	attributes := maps.Clone(want.Create)
	if attributes == nil {
		attributes = alicloud.Attributes{}
	}
	maps.Copy(attributes, model.WithAccessList(want.Attributes, d.actual.Access))
	step := model.Step{
		Op: model.OpCreateListener, Target: model.TargetListener(want.ListenerKey), After: ListenerText(attributes),
		Needs: d.needsOf(want, want.Attributes[alicloud.AttributeACLIDs] == model.OwnAccessList), GroupName: want.Group,
		Awaits:   d.awaitsBackends(want.Group),
		Listener: alicloud.Listener{ListenerKey: want.ListenerKey, Description: want.Description, Attributes: attributes},
	}
	if old != nil {
		step.Op, step.Before, step.Replaced = model.OpReplaceListener, strings.TrimSpace(old.String()+" "+ListenerText(old.Attributes)), old
		step.Meanwhile = d.meanwhileSteps(old)
		d.replaced = append(d.replaced, old.ListenerKey)
		d.addStep(step)
		return
	}
	d.addStep(step)
	d.startListener(want)
}

// needsOf returns what a write of a listener needs. restricts says that it changes who may connect.
func (d *differ) needsOf(want *model.Listener, restricts bool) []string {
	var needs []string
	if want.Group != "" {
		needs = append(needs, model.TargetGroup(want.Group))
	}
	if restricts {
		needs = append(needs, model.TargetAccess)
	}
	return needs
}

// awaitsBackends reports whether a group is to have backend servers that take traffic, or may have to: in doubt nobody knows. There may
// also be endpoints none of which can be a backend: then a listener that serves goes on to do so where it is.
func (d *differ) awaitsBackends(name string) bool {
	group := d.desired.Group(name)
	return group != nil && (group.Doubt || len(group.Held) > 0 || group.Serves())
}

// meanwhileSteps makes the steps that keep the group of a listener in line with the endpoints while the listener stays in it.
func (d *differ) meanwhileSteps(listener *model.Listener) []model.Step {
	want, have := d.desired.FormerGroup(listener.GroupID), d.actual.GroupByID(listener.GroupID)
	if want == nil || have == nil {
		return nil
	}
	aside := &differ{desired: d.desired, actual: d.actual, owner: d.owner}
	change := d.compareBackends(want, have)
	for _, f := range []func(name, id string, change backendChange){aside.clearBackends, aside.addBackends, aside.removeLastBackends} {
		f(have.Name, have.ID, change)
	}
	return aside.plan.Steps
}

func (d *differ) startListener(want *model.Listener, needs ...string) {
	d.addStep(model.Step{
		Op: model.OpStartListener, Target: model.TargetListener(want.ListenerKey), Needs: needs,
		Listener: alicloud.Listener{ListenerKey: want.ListenerKey},
	})
}

func (d *differ) updateListener(want, have *model.Listener) {
	var before, after []string
	note := func(name, from, to string) {
		before = append(before, fmt.Sprintf("%s=%q", name, from))
		after = append(after, fmt.Sprintf("%s=%q", name, to))
	}
	if have.Description != want.Description {
		note("Description", have.Description, want.Description)
	}
	if group := d.actual.GroupByID(have.GroupID); want.Group != "" && (group == nil || group != d.actual.Group(want.Group)) {
		note("VServerGroup", have.GroupID, want.Group)
	}
	attributes := d.listenerAttributes(want, have)
	settings, access := len(after) > 0, false
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if !have.Attributes.Same(name, attributes) {
			note(name, have.Attributes[name], attributes[name])
			access, settings = access || model.IsAccess(name), settings || !model.IsAccess(name)
			if name == alicloud.AttributeProxyProtocol {
				d.addProblem(problem.ReasonAnnotationChanged,
					"the PROXY protocol of listener %s changes: open connections break, and backends must support the new setting", have.ListenerKey)
			}
		}
	}
	restricts := access && d.changesOwnList(want, have)
	if len(after) > 0 {
		d.addStep(model.Step{
			Op: model.OpSetListener, Target: model.TargetListener(want.ListenerKey),
			Before: strings.Join(before, " "), After: strings.Join(after, " "),
			Needs: d.needsOf(want, restricts), OnlyAccess: !settings, GroupName: want.Group, Awaits: d.awaitsBackends(want.Group),
			Meanwhile: d.meanwhileSteps(have),
			Listener:  alicloud.Listener{ListenerKey: want.ListenerKey, Description: want.Description, Attributes: attributes},
		})
	}
	switch {
	case have.Status == alicloud.ListenerStopped && restricts:
		d.startListener(want, model.TargetAccess)
	case have.Status == alicloud.ListenerStopped:
		d.startListener(want)
	}
}

// changesOwnList reports whether who may connect to a listener is, or was, what the access control list of the source ranges says. A list
// of the user's own is neither read nor written.
func (d *differ) changesOwnList(want, have *model.Listener) bool {
	return want.Attributes[alicloud.AttributeACLIDs] == model.OwnAccessList || model.UsesAccessList(have, d.actual.Access)
}

// deleteListeners removes listeners of ours that nothing wants any more. Where the Service does not manage the listeners, or no longer
// does, those go all the same whose port the Service does not have: nobody else changes them, and the node port that they lead to may
// become that of another Service.
func (d *differ) deleteListeners() {
	for i := range d.actual.Listeners {
		have := &d.actual.Listeners[i]
		if !d.managesListeners() && d.desired.Ports.Has(have.Port) {
			continue
		}
		if !d.owner.Owns(have.Description) || slices.Contains(d.replaced, have.ListenerKey) || d.desired.Listener(have.ListenerKey) != nil ||
			d.standsIn(have) {
			continue
		}
		d.addStep(model.Step{
			Op: model.OpDeleteListener, Target: model.TargetListener(have.ListenerKey), Before: ListenerText(have.Attributes),
			Listener: alicloud.Listener{ListenerKey: have.ListenerKey},
		})
	}
}

// standsIn reports whether the listener serves a port whose wanted listener, of another protocol, cannot be created yet.
func (d *differ) standsIn(have *model.Listener) bool {
	return slices.ContainsFunc(d.desired.Listeners, func(want model.Listener) bool {
		return want.Port == have.Port && (want.Blocked || want.UpdateOnly) && d.actual.Listener(want.ListenerKey) == nil
	})
}

// ListenerText shows the attributes of a listener in one line.
func ListenerText(attributes alicloud.Attributes) string {
	texts := make([]string, 0, len(attributes))
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		texts = append(texts, fmt.Sprintf("%s=%q", name, attributes[name]))
	}
	return strings.Join(texts, " ")
}
