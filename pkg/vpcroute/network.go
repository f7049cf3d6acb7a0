package vpcroute

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

const (
	// vSwitchTTL is how long the vSwitches of the VPC are remembered where no table is chosen by them.
	vSwitchTTL = time.Hour
	// vSwitchRetry is the least time between two attempts to read the vSwitches.
	vSwitchRetry = time.Minute
)

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

// find returns the first vSwitch with a block that matches, and the block.
func (s subnets) find(matches func(netip.Prefix) bool) (*alicloud.VSwitch, netip.Prefix) {
	for i := range s.vSwitches {
		for _, block := range []string{s.vSwitches[i].CIDRBlock, s.vSwitches[i].IPv6CIDRBlock} {
			if prefix, err := netip.ParsePrefix(block); err == nil && matches(prefix) {
				return &s.vSwitches[i], prefix
			}
		}
	}
	return nil, netip.Prefix{}
}

// obstacle names what keeps the cloud from accepting a route for the CIDR, "" for nothing.
func (s subnets) obstacle(cidr netip.Prefix) string {
	if cidr.Overlaps(reserved) {
		return fmt.Sprintf("%s, the range of the cloud's own services", reserved)
	}
	if vSwitch, block := s.find(cidr.Overlaps); vSwitch != nil {
		return fmt.Sprintf("%s of vSwitch %s", block, vSwitch.ID)
	}
	return ""
}

// tableOf returns the route table that the node's vSwitch uses, "" when its vSwitch is not known.
func (s subnets) tableOf(node *corev1.Node) string {
	for _, address := range nodes.OwnAddresses(node) {
		if vSwitch, _ := s.find(func(block netip.Prefix) bool { return block.Contains(address) }); vSwitch != nil {
			return vSwitch.RouteTableID
		}
	}
	return ""
}

// network remembers the vSwitches of the VPC. It is safe for concurrent use.
type network struct {
	api   API
	vpcID string
	// reading is held by whoever calls the cloud; the others wait for its answer.
	reading chan struct{}

	mu   sync.Mutex // guards the fields below
	seen subnets
	// read is when the vSwitches were read, tried when that was last attempted.
	read, tried time.Time
	// unplaced are node addresses that were in no vSwitch when these were read last.
	unplaced map[string]struct{}
}

func newNetwork(opts Options) *network {
	n := &network{
		api: opts.API, vpcID: opts.Config.VPCID, reading: make(chan struct{}, 1), seen: subnets{vSwitches: opts.VSwitches}, unplaced: map[string]struct{}{},
	}
	if len(opts.VSwitches) > 0 {
		n.read = opts.VSwitchesRead
	}
	return n
}

// last returns the vSwitches as they are known, without a call.
func (n *network) last() subnets {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.seen
}

// fresh reports whether a read is not due.
func (n *network) fresh(maxAge time.Duration) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Since(n.read) < maxAge || time.Since(n.tried) < vSwitchRetry
}

// current returns the vSwitches, read within maxAge if the cloud answers.
func (n *network) current(ctx context.Context, maxAge time.Duration) subnets {
	if n.fresh(maxAge) {
		return n.last()
	}
	select {
	case n.reading <- struct{}{}:
		defer func() { <-n.reading }()
	case <-ctx.Done():
		return n.last()
	}
	if n.fresh(maxAge) { // somebody else has read while this caller waited for its turn
		return n.last()
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
		klog.FromContext(ctx).Error(err, "Cannot read the vSwitches of the VPC; using those known so far", "vpc", n.vpcID, "known", len(n.seen.vSwitches))
		n.seen.err = fmt.Errorf("read the vSwitches of %s: %w", n.vpcID, err)
		return n.seen
	}
	n.seen, n.read = subnets{vSwitches: vSwitches}, asked
	clear(n.unplaced)
	return n.seen
}

// place makes the next read due when a node has an address in no known vSwitch: somebody has made a new one.
func (n *network) place(routed map[string]*corev1.Node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.seen.known() {
		return
	}
	for _, node := range routed {
		address := nodes.InternalIP(node)
		if _, known := n.unplaced[address]; known || address == "" || n.seen.tableOf(node) != "" {
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
	if n.seen.err != nil {
		n.read, n.tried = time.Time{}, time.Time{}
	}
}
