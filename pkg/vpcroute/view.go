package vpcroute

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// view is what the nodes say about routes.
type view struct {
	// wanted holds the pod CIDRs that are to lead to an instance.
	wanted map[netip.Prefix]want
	// held are pod CIDRs of nodes whose instance is not known, or that are not ours to route. Entries for them stay.
	held sets.Set[netip.Prefix]
	// instances are those of all nodes.
	instances sets.Set[string]
	// former are instances that were nodes, or that the cloud says are gone. Their entries are ours to remove.
	former sets.Set[string]
	// withoutCIDR are nodes of ours that wait for a pod CIDR.
	withoutCIDR []*corev1.Node
	// problems are what keeps a node from having its route.
	problems []problem
}

type want struct {
	node     *corev1.Node
	instance string
}

// problem is told as an event on the node.
type problem struct {
	node            *corev1.Node
	reason, message string
}

// viewOf reads the nodes. They are handled oldest first, so that of two nodes with the same pod CIDR the one that was
// there first keeps it.
func viewOf(nodes []*corev1.Node, config Config, instanceID func(*corev1.Node) (string, error)) *view {
	v := &view{wanted: map[netip.Prefix]want{}, held: sets.New[netip.Prefix](), instances: sets.New[string]()}
	nodes = slices.Clone(nodes)
	slices.SortFunc(nodes, func(a, b *corev1.Node) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, node := range nodes {
		v.add(node, config, instanceID)
	}
	return v
}

func (v *view) add(node *corev1.Node, config Config, instanceID func(*corev1.Node) (string, error)) {
	instance, err := instanceID(node)
	if err == nil {
		v.instances.Insert(instance)
		if len(podCIDRs(node)) == 0 {
			v.withoutCIDR = append(v.withoutCIDR, node)
		}
	}
	for _, text := range podCIDRs(node) {
		cidr, parseErr := netip.ParsePrefix(text)
		switch {
		case parseErr != nil:
			v.report(node, reasonInvalidCIDR, "The pod CIDR %q cannot be read", text)
		case err != nil:
			v.held.Insert(cidr.Masked())
		case cidr.Addr().Is6() && !config.ipv6():
			v.report(node, reasonIPv6, "The pod CIDR %s gets no route: --cluster-cidr of this program has no IPv6 range", cidr)
		case !config.covers(cidr):
			v.report(node, reasonInvalidCIDR, "The pod CIDR %s is not inside the cluster CIDR %v; make --cluster-cidr of this program "+
				"and of the kube-controller-manager the same", cidr, config.ClusterCIDRs)
		default:
			v.want(node, cidr.Masked(), instance)
		}
	}
}

func (v *view) want(node *corev1.Node, cidr netip.Prefix, instance string) {
	if other, taken := v.wanted[cidr]; taken && other.instance != instance {
		v.report(node, reasonConflict, "The pod CIDR %s is also that of node %s, which keeps its route", cidr, other.node.Name)
		return
	}
	v.wanted[cidr] = want{node: node, instance: instance}
}

func (v *view) wantsIPv6() bool {
	for cidr := range v.wanted {
		if cidr.Addr().Is6() {
			return true
		}
	}
	return false
}

// giveUpIPv6 takes IPv6 out of what is wanted, in a VPC that has none. The nodes' other routes are not held up by it.
func (v *view) giveUpIPv6(vpcID string) {
	for cidr, w := range v.wanted {
		if cidr.Addr().Is6() {
			delete(v.wanted, cidr)
			v.held.Insert(cidr)
			v.report(w.node, reasonIPv6, "The pod CIDR %s gets no route: no vSwitch of %s has IPv6. Enable IPv6 for the VPC and for the nodes' "+
				"vSwitches, or leave the IPv6 range out of --cluster-cidr", cidr, vpcID)
		}
	}
}

func (v *view) report(node *corev1.Node, reason, format string, args ...any) {
	v.problems = append(v.problems, problem{node: node, reason: reason, message: fmt.Sprintf(format, args...)})
}

func podCIDRs(node *corev1.Node) []string {
	if len(node.Spec.PodCIDRs) == 0 && node.Spec.PodCIDR != "" {
		return []string{node.Spec.PodCIDR}
	}
	return node.Spec.PodCIDRs
}
