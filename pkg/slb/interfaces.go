package slb

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
)

// interfaces returns the network interfaces of addresses of pods. An address keeps its interface for as long as it is an
// endpoint, so only those that are not known are read. blocks are those of the VPC, when an address has no interface and they
// can be read.
func (e *engine) interfaces(ctx context.Context, known map[string]string, addresses []string) (current map[string]string, blocks []netip.Prefix, err error) {
	current = make(map[string]string, len(addresses))
	blocks = e.blocks.remembered()
	var unknown []string
	for _, address := range addresses {
		if id, ok := known[address]; ok {
			current[address] = id
		} else if backend.MayHaveInterface(blocks, address) {
			unknown = append(unknown, address)
		}
	}
	if err := e.findInterfaces(ctx, unknown, current); err != nil {
		return nil, nil, err
	}
	if len(current) < len(addresses) {
		blocks = e.blocksOfVPC(ctx)
	}
	return current, blocks, nil
}

// findInterfaces adds the interfaces of the addresses that have one.
func (e *engine) findInterfaces(ctx context.Context, addresses []string, into map[string]string) error {
	ipv6, ipv4 := partition(addresses, func(address string) bool { return strings.Contains(address, ":") })
	for _, query := range []alicloud.NetworkInterfaceQuery{{PrivateIPs: ipv4}, {IPv6s: ipv6}} {
		wanted := slices.Concat(query.PrivateIPs, query.IPv6s)
		if len(wanted) == 0 {
			continue
		}
		query.VPCID = e.config.VPCID
		found, err := e.api.DescribeNetworkInterfaces(ctx, query)
		if err != nil {
			return fmt.Errorf("find the network interfaces of %d addresses: %w", len(wanted), err)
		}
		for _, eni := range found {
			for _, address := range slices.Concat(eni.PrivateIPs, eni.IPv6s) {
				if slices.Contains(wanted, address) {
					into[address] = eni.ID
				}
			}
		}
	}
	return nil
}

func partition(all []string, first func(string) bool) (yes, no []string) {
	for _, element := range all {
		if first(element) {
			yes = append(yes, element)
		} else {
			no = append(no, element)
		}
	}
	return yes, no
}

// vpcBlocks remembers the address blocks of the VPC. They are read only when an address has no network interface.
type vpcBlocks struct {
	mu     sync.Mutex // guards the rest
	blocks []netip.Prefix
	at     time.Time
}

func (v *vpcBlocks) remembered() []netip.Prefix {
	v.mu.Lock()
	defer v.mu.Unlock()
	if time.Since(v.at) > defaultResyncPeriod {
		return nil // a VPC may get further blocks
	}
	return v.blocks
}

// blocksOfVPC returns none where they cannot be read: then every address may still get a network interface.
func (e *engine) blocksOfVPC(ctx context.Context) []netip.Prefix {
	if blocks := e.blocks.remembered(); blocks != nil {
		return blocks
	}
	blocks, err := e.api.DescribeVPCBlocks(ctx, e.config.VPCID)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Cannot read the address blocks of the VPC", "vpc", e.config.VPCID, "err", err)
		blocks = nil
	}
	e.blocks.mu.Lock()
	defer e.blocks.mu.Unlock()
	e.blocks.blocks, e.blocks.at = blocks, time.Now()
	return blocks
}
