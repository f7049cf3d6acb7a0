package vpcroute

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
)

// joinWindow is how long after its registration a node without the condition NetworkUnavailable counts as joining. An older
// one has run without the condition so far, and an outage must not take its place in the scheduler away.
const joinWindow = 10 * time.Minute

// desired is what the nodes say about routes. It is pure: the same nodes give the same result.
type desired struct {
	// routes are the pod CIDRs that are to lead to an instance. They never overlap.
	routes map[netip.Prefix]desiredRoute
	// retained are pod CIDRs of nodes whose instance is not known, or that are not ours to route. Entries for them stay.
	retained sets.Set[netip.Prefix]
	// claims are the pod CIDRs of all nodes, also of those without a route.
	claims claims
	// instances are those of all nodes, also of those without a route.
	instances map[string]*corev1.Node
	// withoutCIDR is when the first of the nodes without a pod CIDR has waited for so long that an event says so, zero for none.
	withoutCIDR time.Time
	// joining are nodes that are new here and have no condition NetworkUnavailable yet.
	joining []*corev1.Node
	// unmanaged are nodes outside of the cloud whose network this program made unavailable before it could know that.
	unmanaged []*corev1.Node
	// problems are what keeps a node from having its route.
	problems []problem
}

type desiredRoute struct {
	node     *corev1.Node
	instance string
}

// problem becomes an event on the node.
type problem struct {
	node            *corev1.Node
	reason, message string
	// keepCondition leaves the node's condition as it is: that this program routes nothing does not mean that nobody does.
	keepCondition bool
}

// desiredOf reads the nodes. The oldest come first, so that of two nodes whose pod CIDRs overlap the one that was there first
// keeps its route.
func desiredOf(all []*corev1.Node, config Config, instanceID func(*corev1.Node) (string, error), now time.Time) *desired {
	d := &desired{
		routes: map[netip.Prefix]desiredRoute{}, retained: sets.New[netip.Prefix](),
		instances: make(map[string]*corev1.Node, len(all)),
	}
	all = slices.Clone(all)
	slices.SortFunc(all, nodes.ByAge)
	for _, node := range all {
		instance, err := instanceID(node)
		routable := err == nil && nodes.ExclusionLabel(node) == ""
		switch {
		case lacksCondition(node, routable, now):
			d.joining = append(d.joining, node)
		case foreign(node) && leftBehind(node):
			d.unmanaged = append(d.unmanaged, node)
		}
		if routable && d.instances[instance] == nil {
			d.instances[instance] = node
		}
		if routable && len(nodes.PodCIDRs(node)) == 0 {
			d.waitForCIDR(node, now)
		}
		for _, text := range nodes.PodCIDRs(node) {
			d.add(node, text, instance, routable, config)
		}
	}
	return d
}

func (d *desired) waitForCIDR(node *corev1.Node, now time.Time) {
	if at := node.CreationTimestamp.Add(waits.PodCIDRMissing); at.After(now) {
		d.withoutCIDR = earliest(d.withoutCIDR, at)
		return
	}
	d.report(problem{node: node, reason: reasonNoCIDR, keepCondition: true},
		"The node has no pod CIDR, so it gets no route. The kube-controller-manager assigns pod CIDRs: it needs "+
			"--allocate-node-cidrs=true and --cluster-cidr, with free ranges left")
}

// joins reports whether the node is new here and is to have a route, now or once it has a provider ID: the network of such a
// node counts as unavailable from its first moment, because without the condition it takes pods.
func joins(node *corev1.Node, routable bool, now time.Time) bool {
	if nodes.Uninitialized(node) {
		return routable || node.Spec.ProviderID == "" && nodes.ExclusionLabel(node) == ""
	}
	return routable && now.Sub(node.CreationTimestamp.Time) < joinWindow
}

// foreign reports whether the node is known to have no instance: somebody has taken its taint off without a provider ID, or a
// label says so.
func foreign(node *corev1.Node) bool {
	return node.Spec.ProviderID == "" && !nodes.Uninitialized(node) || nodes.IsOnPremises(node)
}

func (d *desired) add(node *corev1.Node, text, instance string, routable bool, config Config) {
	parsed, err := netip.ParsePrefix(text)
	if err != nil {
		d.report(problem{node: node, reason: reasonInvalidCIDR, keepCondition: true}, "Cannot parse the pod CIDR %q", text)
		return
	}
	cidr := parsed.Masked()
	switch {
	case !routable:
		if _, taken := d.claims.overlapping(cidr); !taken {
			d.claims.add(cidr, node)
		}
		d.retained.Insert(cidr)
	case cidr.Addr().Is6() && !config.routesIPv6():
		d.report(problem{node: node, reason: reasonIPv6}, "The pod CIDR %s gets no route: --cluster-cidr of this program has no IPv6 range", cidr)
	case config.isClusterCIDR(cidr):
		d.report(problem{node: node, reason: reasonInvalidCIDR}, "The pod CIDR %s gets no route: it is the whole cluster CIDR, so packets for "+
			"all pods would go to this node", cidr)
	case !config.covers(cidr):
		d.report(problem{node: node, reason: reasonInvalidCIDR, keepCondition: true},
			"The pod CIDR %s gets no route: it is not inside the cluster CIDR %v. Set "+
				"--cluster-cidr of this program and of the kube-controller-manager to the same value", cidr, config.ClusterCIDRs)
	default:
		d.want(node, cidr, instance)
	}
}

func (d *desired) want(node *corev1.Node, cidr netip.Prefix, instance string) {
	older, taken := d.claims.overlapping(cidr)
	if !taken {
		d.claims.add(cidr, node)
		d.routes[cidr] = desiredRoute{node: node, instance: instance}
		return
	}
	if older.cidr == cidr && d.routes[cidr].instance == instance {
		return // two Node objects of one machine
	}
	d.report(problem{node: node, reason: reasonConflict},
		"The pod CIDR %s gets no route: it overlaps with the pod CIDR %s of node %s, which is older and keeps "+
			"its route. Give this node another pod CIDR", cidr, older.cidr, older.node.Name)
}

// routed returns the nodes with routes by instance.
func (d *desired) routed() map[string]*corev1.Node {
	routed := make(map[string]*corev1.Node, len(d.routes))
	for _, want := range d.routes {
		routed[want.instance] = want.node
	}
	return routed
}

// giveUpIPv6 takes IPv6 out of what is wanted, in a VPC that has none. The nodes' other routes do not wait for it.
func (d *desired) giveUpIPv6(vpcID string) {
	for cidr, route := range d.routes {
		if cidr.Addr().Is6() {
			delete(d.routes, cidr)
			d.retained.Insert(cidr)
			d.report(problem{node: route.node, reason: reasonIPv6},
				"The pod CIDR %s gets no route: no vSwitch of %s has IPv6. Enable IPv6 for the VPC and "+
					"for the nodes' vSwitches, or remove the IPv6 range from --cluster-cidr", cidr, vpcID)
		}
	}
}

func (d *desired) report(p problem, format string, args ...any) {
	p.message = fmt.Sprintf(format, args...)
	d.problems = append(d.problems, p)
}

// newest returns the routed node that was registered last, nil when there is none.
func (d *desired) newest() *corev1.Node {
	var newest *corev1.Node
	for _, route := range d.routes {
		if newest == nil || nodes.ByAge(newest, route.node) < 0 {
			newest = route.node
		}
	}
	return newest
}

// claims are pod CIDRs that do not overlap, in the order of their addresses, and the nodes that own them.
type claims []claim

type claim struct {
	cidr netip.Prefix
	node *corev1.Node
}

// overlapping returns a claim that overlaps with the CIDR. As claims do not overlap with each other, that is the last one that begins
// before the CIDR or the first one that does not.
func (c claims) overlapping(cidr netip.Prefix) (claim, bool) {
	at := c.position(cidr)
	for _, near := range c[max(0, at-1):min(len(c), at+1)] {
		if near.cidr.Overlaps(cidr) {
			return near, true
		}
	}
	return claim{}, false
}

func (c claims) position(cidr netip.Prefix) int {
	at, _ := slices.BinarySearchFunc(c, cidr.Addr(), func(each claim, addr netip.Addr) int { return each.cidr.Addr().Compare(addr) })
	return at
}

// add records the node's claim, which must overlap with no other.
func (c *claims) add(cidr netip.Prefix, node *corev1.Node) {
	*c = slices.Insert(*c, c.position(cidr), claim{cidr, node})
}
