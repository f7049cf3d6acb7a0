package lightnode

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/klog/v2"
)

// powerLoop follows the cloud's instances: a running one gets its machine and kubelet, any other loses them.
func (k *Kubelets) powerLoop(ctx context.Context) {
	on := map[string]Instance{}
	for {
		changed := k.Changed()
		k.followInstances(ctx, on)
		select {
		case <-ctx.Done():
			for id := range on {
				k.switchOff(id)
			}
			return
		case <-changed:
		}
	}
}

// followInstances compares the instances with the machines that are on and switches what differs.
func (k *Kubelets) followInstances(ctx context.Context, on map[string]Instance) {
	listed := map[string]Instance{}
	for _, instance := range k.Instances() {
		if instance.Running {
			listed[instance.ID] = instance
		}
	}
	for id, was := range on {
		// A machine whose name or address changed is a machine that was set up anew.
		if now, ok := listed[id]; !ok || now != was {
			k.switchOff(id)
			delete(on, id)
		}
	}
	for id, instance := range listed {
		if _, ok := on[id]; ok {
			continue
		}
		if err := k.switchOn(instance); err != nil {
			klog.FromContext(ctx).Error(err, "Instance does not join")
			continue
		}
		on[id] = instance
	}
}

func (k *Kubelets) switchOn(instance Instance) error {
	addr, err := netip.ParseAddr(instance.PrivateIP)
	if err != nil {
		return fmt.Errorf("private address of instance %s: %w", instance.ID, err)
	}
	machine, err := k.Network.switchOn(instance.ID, NodeName(instance), addr)
	if err != nil {
		return err
	}
	k.queue.Add(item{node: machine.nodeName})
	return nil
}

// switchOff stops a machine and its kubelet: no heartbeats any more. The Node stays as it is, as a dead kubelet cannot change it.
func (k *Kubelets) switchOff(id string) {
	if machine := k.Network.switchOff(id); machine != nil {
		k.leases.remove(machine.nodeName)
	}
	k.mu.Lock()
	delete(k.registered, id)
	k.mu.Unlock()
}

// NodeName is the instance's name in lower case, as a kubelet takes it from the hostname; an instance without a name, or with one that
// no Node can have, goes by its ID.
func NodeName(instance Instance) string {
	name := strings.ToLower(instance.Name)
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return instance.ID
	}
	return name
}
