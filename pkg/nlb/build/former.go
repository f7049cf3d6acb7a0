package build

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// addFormerGroups adds the groups that the listeners on a port use and are to leave. Until the group that the port is to have takes
// traffic, the listener stays where it is, and what it has there follows the endpoints.
func (b *builder) addFormerGroups(port corev1.ServicePort, wanted *model.Listener, group *model.Group) {
	stays := wanted.Blocked == problem.ReasonSkipSyncBackends
	if b.model.Reused && !b.model.Override || b.unknownBackends() {
		return
	}
	for i := range b.observed.Listeners {
		have := &b.observed.Listeners[i]
		if !have.Overlaps(wanted) || !b.owner.OwnsNLB(model.Text(have.Description)) {
			continue
		}
		old := b.observed.GroupByID(model.Text(have.ServerGroupID))
		if old != nil && (stays || old != b.observed.Matching(group)) && b.model.FormerGroup(old.ID) == nil {
			b.formerGroup(port, old)
		}
	}
}

func (b *builder) formerGroup(port corev1.ServicePort, have *model.Group) {
	old := model.Group{NLBGroup: have.NLBGroup, Foreign: have.Foreign,
		KeepWeights: b.in.Params.Get(annotation.IgnoreWeightUpdate) == "on" || backend.WeightsUndecided(b.in.Params)}
	nodes := !b.in.usesPods()
	if have.Type == alicloud.NLBIPGroup {
		nodes = slices.ContainsFunc(have.Servers, func(s alicloud.NLBServer) bool { return b.in.Nodes.HasAddress(s.IP) })
	}
	var there []backend.Backend
	for i := range have.Servers {
		server := &have.Servers[i]
		if server.Description != have.Name && !b.owner.OwnsNLB(server.Description) || server.Status == alicloud.NLBServerRemoving {
			continue
		}
		old.Description, _, _ = mark.Undrained(server.Description)
		there = append(there, b.backendOf(server, nodes))
	}
	if len(there) == 0 {
		return
	}
	set := backend.Former(b.in.Backends(), port, there, old.Description)
	old.Doubt, old.Gone, old.Held = set.Doubt, set.Gone, set.Held
	old.Servers, old.Draining = serversOf(&set, func(from backend.Backend) (alicloud.NLBServer, bool) { return serverOf(from, &old) })
	b.divideWeight(&old)
	b.model.Former = append(b.model.Former, old)
}

// backendOf returns the backend that a server is. That of a group of addresses may be a node or a pod.
func (b *builder) backendOf(server *alicloud.NLBServer, nodes bool) backend.Backend {
	from := backend.Backend{Kind: backend.KindInstance, ID: server.ID, Port: server.Port}
	switch {
	case server.Type == alicloud.NLBServerENI:
		from.Kind, from.IP = backend.KindInterface, server.IP
	case server.Type == alicloud.NLBServerIP && !nodes:
		from.Kind, from.IP = backend.KindInterface, server.IP
		if id := b.in.Interfaces[server.IP]; id != "" {
			from.ID = id
		}
	}
	return from
}
