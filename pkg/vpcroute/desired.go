package vpcroute

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// desired is what the nodes say about routes.
type desired struct {
	// wanted holds the pod CIDRs that are to lead to an instance.
	routes map[netip.Prefix]desiredRoute
	// retained are pod CIDRs of nodes whose instance is not known, or that are not ours to route. Entries for them stay.
	retained sets.Set[netip.Prefix]
	// instances are those of all nodes.
	instances sets.Set[string]
	// former are instances that were nodes, or that the cloud says are gone. Their entries are ours to remove.
	former sets.Set[string]
	// withoutCIDR are nodes of ours that wait for a pod CIDR.
	withoutCIDR []*corev1.Node
	// problems are what keeps a node from having its route.
	problems []problem
}

type desiredRoute struct {
	node     *corev1.Node
	instance string
}

// problem is told as an event on the node.
type problem struct {
	node            *corev1.Node
	reason, message string
}

// desiredOf reads the nodes. They are handled oldest first, so that of two nodes with the same pod CIDR the one that was
// there first keeps it.
func desiredOf(nodes []*corev1.Node, config Config, instanceID func(*corev1.Node) (string, error)) *desired {
	d := &desired{routes: map[netip.Prefix]desiredRoute{}, retained: sets.New[netip.Prefix](), instances: sets.New[string]()}
	nodes = slices.Clone(nodes)
	slices.SortFunc(nodes, func(a, b *corev1.Node) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, node := range nodes {
		d.add(node, config, instanceID)
	}
	return d
}

func (d *desired) add(node *corev1.Node, config Config, instanceID func(*corev1.Node) (string, error)) {
	instance, err := instanceID(node)
	if err == nil {
		d.instances.Insert(instance)
		if len(podCIDRs(node)) == 0 {
			d.withoutCIDR = append(d.withoutCIDR, node)
		}
	}
	for _, text := range podCIDRs(node) {
		cidr, parseErr := netip.ParsePrefix(text)
		switch {
		case parseErr != nil:
			d.report(node, reasonInvalidCIDR, "The pod CIDR %q cannot be read", text)
		case err != nil:
			d.retained.Insert(cidr.Masked())
		case cidr.Addr().Is6() && !config.ipv6():
			d.report(node, reasonIPv6, "The pod CIDR %s gets no route: --cluster-cidr of this program has no IPv6 range", cidr)
		case !config.covers(cidr):
			d.report(node, reasonInvalidCIDR, "The pod CIDR %s is not inside the cluster CIDR %v; make --cluster-cidr of this program "+
				"and of the kube-controller-manager the same", cidr, config.ClusterCIDRs)
		default:
			d.want(node, cidr.Masked(), instance)
		}
	}
}

func (d *desired) want(node *corev1.Node, cidr netip.Prefix, instance string) {
	if other, taken := d.routes[cidr]; taken && other.instance != instance {
		d.report(node, reasonConflict, "The pod CIDR %s is also that of node %s, which keeps its route", cidr, other.node.Name)
		return
	}
	d.routes[cidr] = desiredRoute{node: node, instance: instance}
}

func (d *desired) wantsIPv6() bool {
	for cidr := range d.routes {
		if cidr.Addr().Is6() {
			return true
		}
	}
	return false
}

// giveUpIPv6 takes IPv6 out of what is wanted, in a VPC that has none. The nodes' other routes are not held up by it.
func (d *desired) giveUpIPv6(vpcID string) {
	for cidr, w := range d.routes {
		if cidr.Addr().Is6() {
			delete(d.routes, cidr)
			d.retained.Insert(cidr)
			d.report(w.node, reasonIPv6, "The pod CIDR %s gets no route: no vSwitch of %s has IPv6. Enable IPv6 for the VPC and for the nodes' "+
				"vSwitches, or leave the IPv6 range out of --cluster-cidr", cidr, vpcID)
		}
	}
}

func (d *desired) report(node *corev1.Node, reason, format string, args ...any) {
	d.problems = append(d.problems, problem{node: node, reason: reason, message: fmt.Sprintf(format, args...)})
}

func podCIDRs(node *corev1.Node) []string {
	if len(node.Spec.PodCIDRs) == 0 && node.Spec.PodCIDR != "" {
		return []string{node.Spec.PodCIDR}
	}
	return node.Spec.PodCIDRs
}
