package vpcroute

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

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

// network remembers the vSwitches of the VPC.
type network struct {
	subnets
	// read is when the vSwitches were read, tried when that was last attempted.
	read, tried time.Time
}

// readVSwitches reads the vSwitches of the VPC, unless that was done not long ago. Where they choose the tables, one of the nodes with an
// address in no known vSwitch shows that somebody has made a new one.
func (w *Writer) readVSwitches(ctx context.Context, of map[string]*corev1.Node) {
	n, config := &w.network, w.opts.Config
	fresh := n.known() && time.Since(n.read) < config.choiceAge()
	for _, node := range of {
		fresh = fresh && (!config.usesNodeTables() || nodes.InternalIP(node) == "" || n.tableOf(node) != "")
	}
	if fresh || time.Since(n.tried) < vSwitchRetry {
		return
	}
	asked := time.Now()
	vSwitches, err := w.opts.API.DescribeVSwitches(ctx, config.VPCID)
	if err == nil && len(vSwitches) == 0 {
		err = errors.New("the VPC shows no vSwitch")
	}
	n.tried = asked
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot read the vSwitches of the VPC; using those known so far", "vpc", config.VPCID, "known",
			len(n.subnets.vSwitches))
		n.err = fmt.Errorf("read the vSwitches of %s: %w", config.VPCID, err)
		return
	}
	n.subnets, n.read = subnets{vSwitches: vSwitches}, asked
}
