package sources

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

// NetworkReader is the part of the cloud that finds what addresses of pods belong to.
type NetworkReader interface {
	VPCReader
	DescribeNetworkInterfaces(ctx context.Context, query alicloud.NetworkInterfaceQuery) ([]alicloud.NetworkInterface, error)
}

// VPCReader reads the address blocks of a VPC.
type VPCReader interface {
	DescribeVPCBlocks(ctx context.Context, vpcID string) ([]netip.Prefix, error)
}

// Network finds network interfaces.
type Network struct {
	API NetworkReader
	// VPCID is the VPC of the cluster. Interfaces of other VPCs may have the same addresses.
	VPCID string

	blocks vpcBlocks
}

// ReadInterfaces returns the network interfaces of addresses of pods. A pod keeps its interface for as long as it
// lives, so only those that are not known are read; another pod may have the same address on another interface. With an error, current are
// those that are known. blocks are those of the VPC, when an address has no interface and they can be read.
func (n *Network) ReadInterfaces(
	ctx context.Context, known map[backend.PodAddress]string, pods []backend.PodAddress, refuse RefusesInterface,
) (current map[string]string, blocks []netip.Prefix, err error) {
	current = make(map[string]string, len(pods))
	blocks = n.blocks.rememberedBlocks()
	var unknown []string
	for _, pod := range pods {
		if id, ok := known[pod]; ok {
			current[pod.Address] = id
		} else if backend.MayHaveInterface(blocks, pod.Address) {
			unknown = append(unknown, pod.Address)
		}
	}
	if err := n.findInterfaces(ctx, unknown, current, refuse); err != nil {
		return current, blocks, err
	}
	if len(current) < len(pods) {
		blocks = n.blocksOfVPC(ctx)
	}
	return current, blocks, nil
}

// RefusesInterface reports whether an address on an interface may not be a backend.
type RefusesInterface func(eni alicloud.NetworkInterface, address string) bool

// findInterfaces adds the interfaces of the addresses that have one.
func (n *Network) findInterfaces(ctx context.Context, addresses []string, into map[string]string, refuse RefusesInterface) error {
	ipv6, ipv4 := partition(addresses, func(address string) bool { return strings.Contains(address, ":") })
	for _, query := range []alicloud.NetworkInterfaceQuery{{PrivateIPs: ipv4}, {IPv6s: ipv6}} {
		wanted := slices.Concat(query.PrivateIPs, query.IPv6s)
		if len(wanted) == 0 {
			continue
		}
		query.VPCID = n.VPCID
		found, err := n.API.DescribeNetworkInterfaces(ctx, query)
		if err != nil {
			return fmt.Errorf("find the network interfaces of %d addresses: %w", len(wanted), err)
		}
		for _, eni := range found {
			for _, address := range slices.Concat(eni.PrivateIPs, eni.IPv6s) {
				if slices.Contains(wanted, address) && !refuse(eni, address) {
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

// blocksAge is how long the address blocks of the VPC are used. People add some.
const blocksAge = 10 * time.Minute

// vpcBlocks remembers the address blocks of the VPC. They are read only when an address has no network interface.
type vpcBlocks struct {
	mu     sync.Mutex // guards the rest
	blocks []netip.Prefix
	at     time.Time
}

func (v *vpcBlocks) rememberedBlocks() []netip.Prefix {
	v.mu.Lock()
	defer v.mu.Unlock()
	if time.Since(v.at) > blocksAge {
		return nil
	}
	return v.blocks
}

// blocksOfVPC returns none where they cannot be read: then every address may still get a network interface.
func (n *Network) blocksOfVPC(ctx context.Context) []netip.Prefix {
	if blocks := n.blocks.rememberedBlocks(); blocks != nil {
		return blocks
	}
	blocks, err := n.API.DescribeVPCBlocks(ctx, n.VPCID)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Cannot read the address blocks of the VPC", "vpc", n.VPCID, "err", err)
		blocks = nil
	}
	n.blocks.mu.Lock()
	defer n.blocks.mu.Unlock()
	n.blocks.blocks, n.blocks.at = blocks, time.Now()
	return blocks
}
