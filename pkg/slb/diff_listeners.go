package slb

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// managesListeners: the listeners of a CLB that its user made are theirs, unless they say otherwise.
func (d *differ) managesListeners() bool { return !d.desired.Reused || d.desired.Override }

func (d *differ) listeners() {
	if !d.managesListeners() {
		return
	}
	for i := range d.desired.Listeners {
		want := &d.desired.Listeners[i]
		have := d.actual.listener(want.ListenerKey)
		switch {
		case want.Blocked:
		case have == nil:
			if d.makeRoom(want) {
				d.createListener(want)
				d.extensions(want, nil)
			}
		case d.owner.ownedByOther(have.Description):
			d.problem(ReasonListenerConflict, "listener %s belongs to %s", have.ListenerKey, have.Description)
		case recreates(want, have):
			d.deleteForReplacement(have)
			d.createListener(want)
		default:
			d.updateListener(want, have)
			d.extensions(want, have)
		}
	}
}

// makeRoom deletes our listener of another protocol on the port. Layer 7 shares its ports with TCP.
func (d *differ) makeRoom(want *Listener) bool {
	for i := range d.actual.Listeners {
		have := &d.actual.Listeners[i]
		if have.Port != want.Port || have.Protocol == alicloud.ProtocolUDP || want.Protocol == alicloud.ProtocolUDP {
			continue
		}
		if d.owner.ownedByOther(have.Description) || d.desired.Reused && !d.owner.owns(have.Description) {
			d.problem(ReasonListenerConflict, "port %d is in use by listener %s (%s)", want.Port, have.ListenerKey, have.Description)
			return false
		}
		d.deleteForReplacement(have)
	}
	return true
}

// recreates: whether an http listener forwards can only be said when it is created.
func recreates(want, have *Listener) bool {
	if want.Protocol != alicloud.ProtocolHTTP {
		return false
	}
	return !sameAttribute("ListenerForward", want.Attributes["ListenerForward"], have.Attributes["ListenerForward"]) ||
		want.Attributes["ForwardPort"] != "" && want.Attributes["ForwardPort"] != have.Attributes["ForwardPort"]
}

func (d *differ) deleteForReplacement(have *Listener) {
	d.replaced = append(d.replaced, have.ListenerKey)
	d.step(Step{
		Op: OpDeleteListener, Target: targetListener(have.ListenerKey), Before: listenerText(have.Attributes),
		listener: alicloud.Listener{ListenerKey: have.ListenerKey},
	})
}

func (d *differ) createListener(want *Listener) {
	attributes := maps.Clone(want.Create)
	if attributes == nil {
		attributes = alicloud.Attributes{}
	}
	maps.Copy(attributes, withAccessList(want.Attributes, d.actual.Access))
	step := Step{
		Op: OpCreateListener, Target: targetListener(want.ListenerKey), After: listenerText(attributes),
		needs: d.listenerNeeds(want), groupName: want.Group,
		listener: alicloud.Listener{ListenerKey: want.ListenerKey, Description: want.Description, Attributes: attributes},
	}
	d.step(step)
	d.startListener(want)
}

// listenerNeeds: a listener cannot be made while its group is missing or another protocol still holds its port.
func (d *differ) listenerNeeds(want *Listener) []string {
	needs := []string{targetGroup(want.Group), targetAccess}
	for _, key := range d.replaced {
		if key.Port == want.Port {
			needs = append(needs, targetListener(key))
		}
	}
	return needs
}

func (d *differ) startListener(want *Listener) {
	d.step(Step{
		Op: OpStartListener, Target: targetListener(want.ListenerKey),
		listener: alicloud.Listener{ListenerKey: want.ListenerKey},
	})
}

func (d *differ) updateListener(want, have *Listener) {
	var before, after []string
	note := func(name, from, to string) {
		before = append(before, fmt.Sprintf("%s=%q", name, from))
		after = append(after, fmt.Sprintf("%s=%q", name, to))
	}
	if have.Description != want.Description {
		note("Description", have.Description, want.Description)
	}
	if group := d.actual.groupByID(have.GroupID); group == nil || group != d.actual.group(want.Group) {
		note("VServerGroup", have.GroupID, want.Group)
	}
	attributes := d.listenerAttributes(want, have)
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if !sameAttribute(name, have.Attributes[name], attributes[name]) {
			note(name, have.Attributes[name], attributes[name])
			if name == attributeProxyProtocol {
				d.problem(ReasonAnnotationChanged, "listener %s switches the PROXY protocol: connections that are open break, and servers must expect it", have.ListenerKey)
			}
		}
	}
	if len(after) > 0 {
		d.step(Step{
			Op: OpSetListener, Target: targetListener(want.ListenerKey),
			Before: strings.Join(before, " "), After: strings.Join(after, " "),
			needs: []string{targetGroup(want.Group), targetAccess}, groupName: want.Group,
			listener: alicloud.Listener{ListenerKey: want.ListenerKey, Description: want.Description, Attributes: attributes},
		})
	}
	if have.Status == alicloud.ListenerStopped {
		d.startListener(want)
	}
}

// deleteListeners removes listeners of ours that nothing wants any more.
func (d *differ) deleteListeners() {
	if !d.managesListeners() {
		return
	}
	for i := range d.actual.Listeners {
		have := &d.actual.Listeners[i]
		if !d.owner.owns(have.Description) || slices.Contains(d.replaced, have.ListenerKey) || d.desired.listener(have.ListenerKey) != nil {
			continue
		}
		d.step(Step{
			Op: OpDeleteListener, Target: targetListener(have.ListenerKey), Before: listenerText(have.Attributes),
			listener: alicloud.Listener{ListenerKey: have.ListenerKey},
		})
	}
}

func listenerText(attributes alicloud.Attributes) string {
	texts := make([]string, 0, len(attributes))
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		texts = append(texts, fmt.Sprintf("%s=%q", name, attributes[name]))
	}
	return strings.Join(texts, " ")
}
