package slb

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

var _ driver.Described = plan{}

// Describe implements driver.Described.
func (p plan) Describe(svc *corev1.Service) (listeners []driver.Listening, owned bool) {
	owned = p.clb.ID() != "" && driver.OwnedBy(svc, p.clb.loadBalancer.Value.Tags)
	if p.desired == nil {
		return nil, owned
	}
	actual := p.clb.wholeModel()
	if actual == nil {
		actual = &model.Model{}
	}
	for i := range p.desired.Listeners {
		want := &p.desired.Listeners[i]
		found := driver.Listening{Listener: model.TargetListener(want.ListenerKey), Redirects: want.Group == ""}
		if have := actual.Listener(want.ListenerKey); have != nil {
			found.Status = have.Status
		}
		for k := range p.desired.Groups {
			if group := &p.desired.Groups[k]; group.Name == want.Group {
				found.Wanted, found.Draining, found.Doubt = serverIDs(group.Backends), serverIDs(group.Draining), group.Doubt
			}
		}
		if have := actual.Group(want.Group); have != nil {
			found.Registered = serverIDs(have.Backends)
		}
		listeners = append(listeners, found)
	}
	return listeners, owned
}

// Wanted implements driver.Described.
func (p plan) Wanted() (ids []string) {
	if p.desired == nil {
		return nil
	}
	for i := range p.desired.Groups {
		ids = append(ids, serverIDs(p.desired.Groups[i].Backends)...)
	}
	return ids
}

// serverIDs are those by which [driver.Listening] knows backend servers.
func serverIDs(servers []alicloud.Backend) []string {
	ids := make([]string, 0, len(servers))
	for i := range servers {
		ids = append(ids, entryOf(&servers[i], true).ID)
	}
	return ids
}
