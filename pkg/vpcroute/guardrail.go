package vpcroute

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// vSwitchTTL is how long the vSwitches of the VPC are remembered. They change when somebody plans the network anew.
const vSwitchTTL = time.Hour

// reserved is the range of the cloud's own services, which no route may touch:
// https://www.alibabacloud.com/help/en/vpc/user-guide/route-table-overview.
var reserved = netip.MustParsePrefix("100.64.0.0/10")

// guardrail knows the ranges of the VPC, so that no route is asked for that the cloud would refuse, each with an answer of
// its own. It is safe for concurrent use.
type guardrail struct {
	api   API
	vpcID string

	mu        sync.Mutex // guards the fields below
	vSwitches []alicloud.VSwitch
	read      time.Time
}

func newGuardrail(opts Options) *guardrail {
	g := &guardrail{api: opts.API, vpcID: opts.Config.VPCID, vSwitches: opts.VSwitches}
	if len(opts.VSwitches) > 0 {
		g.read = time.Now()
	}
	return g
}

// known returns the vSwitches of the VPC, none where the key may not read them: it can still write routes, and the cloud
// then refuses bad ones itself.
func (g *guardrail) known(ctx context.Context) ([]alicloud.VSwitch, error) {
	g.mu.Lock()
	vSwitches, fresh := g.vSwitches, !g.read.IsZero() && time.Since(g.read) < vSwitchTTL
	g.mu.Unlock()
	if fresh {
		return vSwitches, nil
	}
	vSwitches, err := g.api.DescribeVSwitches(ctx, g.vpcID)
	if err != nil && !alicloud.IsForbidden(err) {
		return nil, fmt.Errorf("read the vSwitches of %s: %w", g.vpcID, err)
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "The VPC's vSwitches cannot be read: pod CIDRs that overlap with them are told by the cloud only", "vpc", g.vpcID)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.vSwitches, g.read = vSwitches, time.Now()
	return vSwitches, nil
}

// ipv6 reports whether the VPC takes IPv6 routes: it does when it has IPv6, which its vSwitches show. Source:
// https://www.alibabacloud.com/help/en/ipv6-gateway/user-guide/create-and-manage-ipv6-routes. Where they cannot be read,
// the cloud is asked with each route.
func (g *guardrail) ipv6(ctx context.Context) (bool, error) {
	vSwitches, err := g.known(ctx)
	return len(vSwitches) == 0 || slices.ContainsFunc(vSwitches, func(v alicloud.VSwitch) bool { return v.IPv6CIDRBlock != "" }), err
}

// allowed reports whether the cloud accepts a route for the CIDR. It tells the node when not.
func (g *guardrail) allowed(ctx context.Context, events *events, node *corev1.Node, cidr netip.Prefix) (bool, error) {
	vSwitches, err := g.known(ctx)
	if err != nil {
		return false, err
	}
	if obstacle := obstacle(vSwitches, cidr); obstacle != "" {
		events.warn(node, reasonInvalidCIDR, "The pod CIDR %s gets no route: it overlaps with %s. Choose a --cluster-cidr that is free in the VPC", cidr, obstacle)
		return false, nil
	}
	return true, nil
}

func obstacle(vSwitches []alicloud.VSwitch, cidr netip.Prefix) string {
	if cidr.Overlaps(reserved) {
		return fmt.Sprintf("%s, the range of the cloud's own services", reserved)
	}
	for i := range vSwitches {
		for _, block := range []string{vSwitches[i].CIDRBlock, vSwitches[i].IPv6CIDRBlock} {
			if prefix, err := netip.ParsePrefix(block); err == nil && prefix.Overlaps(cidr) {
				return fmt.Sprintf("%s of vSwitch %s", prefix, vSwitches[i].ID)
			}
		}
	}
	return ""
}

// unowned asks the cloud for the instances of entries that no node wants and that carry no mark: the official CCM's
// entries of nodes that went away while no program ran. They may be removed when the instance is gone, which an answer
// proves only if it shows a node's instance. It reports whether there are such.
func (p *pass) unowned(ctx context.Context, d *desired, plans []*plan) bool {
	hops := sets.New[string]()
	for _, plan := range plans {
		for _, e := range plan.unowned {
			hops.Insert(e.hop)
		}
	}
	if hops.Len() == 0 || d.instances.Len() == 0 {
		return false
	}
	// A few controls are enough: one that is visible proves that the answer can be trusted.
	const controls = 5
	known := sets.List(d.instances)
	found, err := p.c.opts.API.DescribeInstances(ctx, alicloud.InstanceQuery{IDs: append(known[:min(controls, len(known))], sets.List(hops)...)})
	if err != nil {
		klog.FromContext(ctx).Error(err, "Looking for the instances of unknown routes; they stay", "routes", hops.Len())
		return false
	}
	visible := sets.New[string]()
	for i := range found {
		visible.Insert(found[i].ID)
	}
	if !visible.HasAny(known...) {
		if p.c.events.first(ofCluster, "InstancesNotVisible") {
			klog.FromContext(ctx).Info("Routes of unknown instances stay: DescribeInstances shows no instance, not even of nodes; the key may lack ecs:DescribeInstances",
				"routes", hops.Len())
		}
		return false
	}
	gone := hops.Difference(visible)
	p.c.writer.vanished(gone.UnsortedList())
	d.former = d.former.Union(gone)
	return gone.Len() > 0
}
