package slb

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/groups"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sharing"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// roomOf is how many listeners a CLB has room for. What a refusal teaches moves no Service to another CLB as long as each listener can have
// a backend server.
func (e *engine) roomOf(id string) (most, stay int) {
	listeners, backends := e.config.Quotas.Of(quota.ListenersPerCLB, id).Value, e.config.Quotas.Of(quota.BackendsPerCLB, id)
	if backends.Source == quota.Refusal {
		stay = min(listeners, backends.Value)
	}
	return groups.RoomFor(listeners, backends.Value), stay
}

func portOf(listener alicloud.ListenerKey) sharing.Port {
	return sharing.Port{Number: int32(listener.Port), UDP: listener.Protocol == alicloud.ProtocolUDP} //nolint:gosec // a port
}

// sharedWith returns what it means for the Service that it shares its CLB, nil where it does not.
func (c *clb) sharedWith(svc *corev1.Service) (*sharing.Shared, error) {
	var lb *alicloud.LoadBalancer
	if c.ID() != "" {
		lb = &c.loadBalancer.Value
	}
	shared, err := c.shared.Shared(c.group, svc, c.stays, lb, c.hasListener(svc))
	c.taken = shared.TakesPorts()
	c.noteServers(svc)
	return shared, err
}

// hasListener reports whether the Service has a listener on the CLB of its group.
func (c *clb) hasListener(svc *corev1.Service) bool { return len(c.servedPorts(svc)) > 0 }

// servedPorts are those on which the Service has listeners on the CLB of its group.
func (c *clb) servedPorts(svc *corev1.Service) []sharing.Port {
	owner := mark.OwnerOf(svc, c.group.ClusterID)
	var ports []sharing.Port
	for i := range c.listeners.Value {
		if l := &c.listeners.Value[i]; owner.Owns(l.Description) {
			ports = append(ports, portOf(l.ListenerKey))
		}
	}
	return ports
}

// hasOthersListener reports whether somebody else has a listener on the CLB of the group.
func (c *clb) hasOthersListener(svc *corev1.Service) bool {
	owner := mark.OwnerOf(svc, c.group.ClusterID)
	return slices.ContainsFunc(c.listeners.Value, func(l model.Listener) bool { return !owner.Owns(l.Description) })
}

// noteInGroup notes what a plan has done to a CLB of a group, and has passes made over the Services that may have waited for it.
func (c *clb) noteInGroup(svc *corev1.Service, done model.Plan) {
	if c.group.IsZero() {
		return
	}
	ports := c.servedPorts(svc)
	c.shared.Deployed(c.group, svc, groups.Done{
		ID: c.ID(), Ports: ports, Leaves: c.former != "", Removes: done.Has(model.OpDeleteLoadBalancer) && done.Has(model.OpSetProtection),
		Protected: c.loadBalancer.Value.DeleteProtection == alicloud.ProtectionOn, MaybeCreated: c.presence.MaybeCreated(),
		OnlyBackends: done.OnlyBackends(),
	})
	c.noteServers(svc)
	freed := freedBy(done)
	if done.Has(model.OpCreateListener) || len(freed) > 0 || problem.HasReason(done.Problems, problem.ReasonListenerConflict) {
		c.shared.WakeConcerned(c.group, svc, c.ID(), freed)
	}
}

// freedBy returns the ports of the listeners that a plan deletes.
func freedBy(done model.Plan) []sharing.Port {
	var freed []sharing.Port
	for i := range done.Steps {
		if step := &done.Steps[i]; step.Op == model.OpDeleteListener {
			freed = append(freed, portOf(step.Listener.ListenerKey))
		}
	}
	return freed
}
