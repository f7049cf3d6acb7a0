package slb

import (
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

// current is what is known of the CLB, for what it has in common with other products.
func (c clb) current() groups.Current[alicloud.LoadBalancer] {
	return groups.CurrentOf(c.Known, &c.loadBalancer.Value, c.former)
}

// sharedWith returns what it means for the Service that it shares its CLB, nil where it does not.
func (c *clb) sharedWith(svc *corev1.Service) (*sharing.Shared, error) {
	shared, err := c.shared.Shared(svc, c.current(), c.hasListener(svc))
	c.taken = shared.TakesPorts()
	c.noteServers(svc)
	return shared, err
}

// hasListener reports whether the Service has a listener on the CLB of its group.
func (c *clb) hasListener(svc *corev1.Service) bool { return len(c.servedPorts(svc)) > 0 }

// servedPorts are those on which the Service has listeners on the CLB of its group.
func (c *clb) servedPorts(svc *corev1.Service) []sharing.Port {
	return groups.PortsOf(mark.OwnerOf(svc, c.Group.ClusterID), c.allListeners)
}

// hasOthersListener reports whether somebody else has a listener on the CLB of the group.
func (c *clb) hasOthersListener(svc *corev1.Service) bool {
	return groups.HasOthers(mark.OwnerOf(svc, c.Group.ClusterID), c.allListeners)
}

func (c *clb) allListeners(yield func(groups.Listener) bool) {
	for i := range c.listeners.Value {
		if l := &c.listeners.Value[i]; !yield(listenerOf(l.ListenerKey, l.Description)) {
			return
		}
	}
}

func listenerOf(key alicloud.ListenerKey, description string) groups.Listener {
	listener := groups.Listener{Port: portOf(key)}
	listener.Service, listener.ClusterID, _ = mark.Parse(description)
	return listener
}

// noteInGroup notes what a plan has done to a CLB of a group.
func (c *clb) noteInGroup(svc *corev1.Service, done model.Plan) {
	if c.Group.IsZero() {
		return
	}
	c.noteServers(svc)
	c.shared.Deployed(svc, c.current(), groups.Done{
		Removes:   done.Has(model.OpDeleteLoadBalancer) && done.Has(model.OpSetProtection),
		Protected: c.loadBalancer.Value.DeleteProtection == alicloud.ProtectionOn, OnlyBackends: done.OnlyBackends(),
		Ports: c.servedPorts(svc), Freed: freedBy(done),
		Listens: done.Has(model.OpCreateListener) || problem.HasReason(done.Problems, problem.ReasonListenerConflict),
	})
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
