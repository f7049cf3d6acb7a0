package nlb

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

var _ driver.Described = plan{}

// Describe implements driver.Described.
func (p plan) Describe(svc *corev1.Service) (listeners []driver.Listening, owned bool) {
	owned = p.nlb.ID() != "" && driver.OwnedBy(svc, p.nlb.lb.Value.Tags)
	if p.desired == nil {
		return nil, owned
	}
	actual := p.nlb.wholeModel()
	for i := range p.desired.Listeners {
		want := &p.desired.Listeners[i]
		found := driver.Listening{Listener: want.Key()}
		if have := actual.Listener(want.Key()); have != nil {
			found.Status = have.Status
		}
		for k := range p.desired.Groups {
			group := &p.desired.Groups[k]
			if group.Name != want.Group {
				continue
			}
			found.Wanted, found.Draining, found.Doubt = serverIDs(group.Servers), serverIDs(group.Draining), group.Doubt
			if have := actual.Matching(group); have != nil {
				found.Registered = serverIDs(have.Servers)
			}
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
		ids = append(ids, serverIDs(p.desired.Groups[i].Servers)...)
	}
	return ids
}

// serverIDs are those by which [driver.Listening] knows backend servers: addresses of pods, and of nodes in groups of addresses.
func serverIDs(servers []alicloud.NLBServer) []string {
	ids := make([]string, 0, len(servers))
	for i := range servers {
		if server := &servers[i]; server.Type == alicloud.NLBServerECS {
			ids = append(ids, server.ID)
		} else {
			ids = append(ids, server.IP)
		}
	}
	return ids
}
