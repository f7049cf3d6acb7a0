package build

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// addFormerGroups adds the groups that the listener on a port uses and is to leave. Until the group that the port is to have takes traffic,
// the listener stays where it is, and what it has there follows the endpoints.
func (b *builder) addFormerGroups(port corev1.ServicePort, wanted *model.Listener) {
	if wanted.Blocked || wanted.Group == "" {
		return
	}
	for i := range b.observed.Listeners {
		have := &b.observed.Listeners[i]
		if !b.isOn(port, have) {
			continue
		}
		group := b.observed.GroupByID(have.GroupID)
		if group == nil || group == b.observed.Group(wanted.Group) || b.model.FormerGroup(group.ID) != nil {
			continue
		}
		if former, ok := b.formerGroup(port, group); ok {
			b.model.Former = append(b.model.Former, former)
		}
	}
}

// followWhatIsThere brings in line what the listeners on a port use that stays as it is, because what it needs is missing: its backends
// come and go all the same. It says false where there is no listener.
func (b *builder) followWhatIsThere(port corev1.ServicePort) bool {
	found := false
	for i := range b.observed.Listeners {
		have := &b.observed.Listeners[i]
		if !b.isOn(port, have) {
			continue
		}
		found = true
		if group := b.observed.GroupByID(have.GroupID); group != nil {
			if follows, ok := b.formerGroup(port, group); ok {
				b.addGroup(follows)
			}
		}
	}
	return found
}

// isOn reports whether a listener is one of the Service on a port, whatever its protocol.
func (b *builder) isOn(port corev1.ServicePort, have *model.Listener) bool {
	sameTransport := (have.Protocol == alicloud.ProtocolUDP) == (port.Protocol == corev1.ProtocolUDP)
	return have.Port == int(port.Port) && sameTransport && b.owner.Owns(have.Description)
}

// formerGroup returns what a group of a listener on the port is to have that is not the one of the port, and false where nothing is known
// of that.
func (b *builder) formerGroup(port corev1.ServicePort, have *model.Group) (model.Group, bool) {
	var there []backend.Backend
	text := ""
	for _, server := range have.Backends {
		if !b.owner.Owns(server.Description) {
			continue
		}
		kind := backend.KindInstance
		if server.Type == alicloud.BackendENI {
			kind = backend.KindInterface
		}
		text, _, _ = mark.Undrained(server.Description)
		there = append(there, backend.Backend{Kind: kind, ID: server.ServerID, IP: server.ServerIP, Port: server.Port})
	}
	if len(there) == 0 {
		return model.Group{}, false
	}
	set := backend.Former(b.in.Backends(), port, there, text)
	group := model.Group{
		ID: have.ID, Name: have.Name, Backends: serversOf(set.All, set.Len(), text),
		Draining: serversOf(slices.Values(set.Draining), len(set.Draining), text),
		Doubt:    set.Doubt, Gone: set.Gone, Held: set.Held, Counted: set.Counted && !b.in.defaultChanged(),
		KeepWeights: b.in.Params.Get(annotation.IgnoreWeightUpdate) == "on",
	}
	b.divideWeight(&group)
	return group, !b.keepUndecided(&group)
}
