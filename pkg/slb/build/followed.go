package build

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// Followed returns the groups that the ports of a Service have on a CLB which it leaves, with their ids, as they have to be while it goes
// on to show that. Nothing else there is wanted or unwanted.
func Followed(in Input) *model.Model {
	b := newBuilder(in)
	for _, port := range in.Service.Spec.Ports {
		if _, ok := backend.CheckPort(port); !ok {
			continue
		}
		for i := range b.observed.Groups {
			have := &b.observed.Groups[i]
			if b.model.GroupByID(have.ID) != nil || !b.isGroupOf(port, have) {
				continue
			}
			if group, ok := b.followedGroup(port, have); ok {
				b.model.Groups = append(b.model.Groups, group)
			}
		}
	}
	return b.model
}

// isGroupOf reports whether a group is that of a port: a listener of the port leads to it, or it has the mark of the port. The listeners of
// an existing CLB may be its owner's.
func (b *builder) isGroupOf(port corev1.ServicePort, have *model.Group) bool {
	for _, mark := range []string{b.owner.PortMark(port.NodePort), b.owner.Mark(backend.TargetPort(port))} {
		if have.Name == mark || slices.ContainsFunc(have.Backends, func(server alicloud.Backend) bool { return server.Description == mark }) {
			return true
		}
	}
	return slices.ContainsFunc(b.observed.Listeners, func(l model.Listener) bool { return l.GroupID == have.ID && b.isOn(port, &l) })
}

// isWanted reports whether a port has a group of that name. After an edit of its node port or target port, no port has: what the group
// leads to answers no more.
func (b *builder) isWanted(name string) bool {
	return slices.ContainsFunc(b.in.Service.Spec.Ports, func(port corev1.ServicePort) bool {
		wanted, ok := b.buildGroup(port)
		return ok && wanted.Name == name
	})
}

// followedGroup returns what a group of a port is to have, and false where that is not known. Several ports may have joined one group of
// others: what is one's there, only a listener says.
func (b *builder) followedGroup(port corev1.ServicePort, have *model.Group) (model.Group, bool) {
	texts := map[string]bool{}
	for i := range have.Backends {
		if text, _, _ := mark.Undrained(have.Backends[i].Description); b.owner.Owns(text) {
			texts[text] = true
		}
	}
	wanted, ok := b.buildGroup(port)
	switch {
	case len(texts) > 1:
		return model.Group{}, false
	case ok && b.owner.Owns(have.Name) && (len(texts) == 0 || have == b.observed.Group(wanted.Name) || !b.isWanted(have.Name)):
		wanted.ID, wanted.Name = have.ID, have.Name
		b.divideWeight(&wanted)
		return wanted, !b.keepUndecided(&wanted)
	}
	return b.formerGroup(port, have)
}
