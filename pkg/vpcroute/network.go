package vpcroute

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// vSwitchTTL is how long the vSwitches of the VPC are remembered where no table is chosen by them.
const vSwitchTTL = time.Hour

// neverRead, as the greatest age, asks for what is known without a read.
const neverRead = time.Duration(math.MaxInt64)

// vSwitchRetry is the least time between two attempts to read the vSwitches.
const vSwitchRetry = time.Minute

// reserved is the range of the cloud's own services, which no route may touch:
// https://www.alibabacloud.com/help/en/vpc/user-guide/route-table-overview.
var reserved = netip.MustParsePrefix("100.64.0.0/10")

// subnets are the vSwitches of the VPC, as far as they are known.
type subnets struct {
	vSwitches []alicloud.VSwitch
	// err says why they are not known, or not as they are now.
	err error
}

// known reports whether there is anything to go by.
func (s subnets) known() bool { return len(s.vSwitches) > 0 }

// hasIPv6 reports whether the VPC takes IPv6 routes: it does when it has IPv6, which its vSwitches show. Source:
// https://www.alibabacloud.com/help/en/ipv6-gateway/user-guide/create-and-manage-ipv6-routes. Where they are not known, the
// cloud is asked with each route.
func (s subnets) hasIPv6() bool {
	return !s.known() || slices.ContainsFunc(s.vSwitches, func(v alicloud.VSwitch) bool { return v.IPv6CIDRBlock != "" })
}

// obstacle names what keeps the cloud from accepting a route for the CIDR, "" for nothing.
func (s subnets) obstacle(cidr netip.Prefix) string {
	if cidr.Overlaps(reserved) {
		return fmt.Sprintf("%s, the range of the cloud's own services", reserved)
	}
	for i := range s.vSwitches {
		for _, block := range []string{s.vSwitches[i].CIDRBlock, s.vSwitches[i].IPv6CIDRBlock} {
			if prefix, err := netip.ParsePrefix(block); err == nil && prefix.Overlaps(cidr) {
				return fmt.Sprintf("%s of vSwitch %s", prefix, s.vSwitches[i].ID)
			}
		}
	}
	return ""
}

// tableOf returns the route table that the node's vSwitch uses, "" when its vSwitch is not known.
func (s subnets) tableOf(node *corev1.Node) string {
	address, err := netip.ParseAddr(nodes.InternalIP(node))
	if err != nil {
		return ""
	}
	for i := range s.vSwitches {
		for _, block := range []string{s.vSwitches[i].CIDRBlock, s.vSwitches[i].IPv6CIDRBlock} {
			if prefix, err := netip.ParsePrefix(block); err == nil && prefix.Contains(address) {
				return s.vSwitches[i].RouteTableID
			}
		}
	}
	return ""
}

// network remembers the vSwitches of the VPC. It is safe for concurrent use.
type network struct {
	api   API
	vpcID string
	// slot holds one token, which whoever calls the cloud takes.
	slot chan struct{}

	mu   sync.Mutex // guards the fields below
	last subnets
	// read is when the vSwitches were read, tried when that was last attempted.
	read, tried time.Time
	// unplaced are node addresses that were in no vSwitch when these were read last.
	unplaced map[string]struct{}
}

func newNetwork(opts Options) *network {
	n := &network{
		api: opts.API, vpcID: opts.Config.VPCID, slot: make(chan struct{}, 1), last: subnets{vSwitches: opts.VSwitches}, unplaced: map[string]struct{}{},
	}
	if len(opts.VSwitches) > 0 {
		n.read = opts.VSwitchesRead
	}
	return n
}

// current returns the vSwitches, read within maxAge if the cloud answers.
func (n *network) current(ctx context.Context, maxAge time.Duration) subnets {
	if last, fresh := n.remembered(maxAge); fresh {
		return last
	}
	select {
	case n.slot <- struct{}{}:
	case <-ctx.Done():
		last, _ := n.remembered(neverRead)
		return last
	}
	defer func() { <-n.slot }()
	// Somebody else may have read while this caller waited for its turn.
	if last, fresh := n.remembered(maxAge); fresh {
		return last
	}
	asked := time.Now()
	vSwitches, err := n.api.DescribeVSwitches(ctx, n.vpcID)
	if err == nil && len(vSwitches) == 0 {
		err = errors.New("the VPC shows no vSwitch")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tried = asked
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot read the vSwitches of the VPC; using those known so far", "vpc", n.vpcID, "known", len(n.last.vSwitches))
		n.last.err = fmt.Errorf("read the vSwitches of %s: %w", n.vpcID, err)
		return n.last
	}
	n.last, n.read = subnets{vSwitches: vSwitches}, asked
	clear(n.unplaced)
	return n.last
}

// remembered returns the vSwitches as they are known, and whether a read is not due.
func (n *network) remembered(maxAge time.Duration) (last subnets, fresh bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	return n.last, maxAge == neverRead || now.Sub(n.read) < maxAge || now.Sub(n.tried) < vSwitchRetry
}

// place makes the next read due when a node has an address in no known vSwitch: somebody has made a new one.
func (n *network) place(routed map[string]*corev1.Node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.last.known() {
		return
	}
	for _, node := range routed {
		address := nodes.InternalIP(node)
		if _, known := n.unplaced[address]; known || address == "" || n.last.tableOf(node) != "" {
			continue
		}
		n.unplaced[address] = struct{}{}
		n.read = time.Time{}
	}
}

// invalidate makes the next read due.
func (n *network) invalidate() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.read = time.Time{}
}

// retry makes a read due that failed.
func (n *network) retry() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.last.err != nil {
		n.read, n.tried = time.Time{}, time.Time{}
	}
}
