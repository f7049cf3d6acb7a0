package slb

import (
	"iter"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// NodesReadAt implements driver.Balancer.
func (c clb) NodesReadAt() time.Time {
	switch {
	case c.Known.Moves():
	case c.Presence.Gone():
		return time.Now()
	case c.Presence.Present() && c.groups.Trusted():
		return c.groups.ReadAt
	}
	return time.Time{}
}

// Nodes implements driver.Balancer. Where nobody can tell whose marks are on the CLB, all of its backend servers count.
func (c clb) Nodes(in driver.Inputs) iter.Seq2[string, bool] {
	if !c.Presence.Present() && !c.Presence.Gone() {
		return nil
	}
	clusterID, proven := c.markedOn(in.Service, serverOf(in))
	owner := mark.OwnerOf(in.Service, clusterID)
	return func(yield func(string, bool) bool) {
		for i := range c.groups.Value {
			group := &c.groups.Value[i]
			whole := !proven || owner.Owns(group.Name)
			for k := range group.Backends {
				server := &group.Backends[k]
				if server.Type != alicloud.BackendENI && (whole || owner.Owns(server.Description)) && !yield(server.ServerID, server.Weight > 0) {
					return
				}
			}
		}
	}
}

// InvalidateBackends implements driver.Balancer.
func (c clb) InvalidateBackends(reason string) driver.Balancer {
	c.groups.Invalidate(reason)
	return c
}
