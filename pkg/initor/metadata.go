package initor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/node"
)

// productFile is where Linux shows the machine's product name below /sys, and ecsProduct is what it reads on ECS.
const (
	productFile = "class/dmi/id/product_name"
	ecsProduct  = "Alibaba Cloud ECS"
)

// metadataSource asks the metadata service of the machine that this process runs on.
type metadataSource struct {
	api *alicloud.Metadata
	sys fs.FS
}

// NewMetadataSource returns a source that reads api. The node that it is asked about must be the machine that this process runs on: where
// the service describes an instance without any address of the node, that is an error. sys is the file system at /sys: where the metadata
// service does not answer, the machine's product name distinguishes an ECS instance, on which that is a failure, from a machine elsewhere,
// on which it is how things are.
func NewMetadataSource(api *alicloud.Metadata, sys fs.FS) Source {
	return Source{"metadata service", metadataSource{api, sys}.identify}
}

func (s metadataSource) identify(ctx context.Context, n *corev1.Node) (node.ProviderID, error) {
	instance, err := s.api.InstanceID(ctx)
	if err != nil {
		return node.ProviderID{}, s.classify(ctx, err)
	}
	region, err := s.api.RegionID(ctx)
	if err != nil {
		// It knew the instance a moment ago: this is an ECS instance, whatever the reason.
		return node.ProviderID{}, err
	}
	// Something else may have answered on the same address, with a page of its own. What goes into the node for good must at
	// least read as a provider ID.
	id, err := node.ParseProviderID(node.ProviderID{Region: region, InstanceID: instance}.String())
	if err != nil {
		return node.ProviderID{}, fmt.Errorf("region %q and instance id %q do not form a provider ID: %w", region, instance, err)
	}
	if err := s.sameMachine(ctx, n, instance); err != nil {
		return node.ProviderID{}, err
	}
	return id, nil
}

// sameMachine compares the addresses of the instance with those of the node. Behind the NAT of an ECS host, as in kind or a
// nested virtual machine, the service describes the host, and every node there would get the host's provider ID for good.
func (s metadataSource) sameMachine(ctx context.Context, n *corev1.Node, instance string) error {
	own := nodes.OwnAddresses(n)
	if len(own) == 0 { // the kubelet has reported none yet
		return nil
	}
	read := s.api.PrivateIPv4s
	if !slices.ContainsFunc(own, netip.Addr.Is4) {
		read = s.api.IPv6s
	}
	addresses, err := read(ctx)
	if err != nil {
		return err
	}
	for _, text := range addresses {
		if address, err := netip.ParseAddr(text); err == nil && slices.Contains(own, address) {
			return nil
		}
	}
	return fmt.Errorf("it describes instance %s with the addresses %s, but the node has %v: the node is another machine, such as a "+
		"container or a virtual machine on that instance", instance, strings.Join(addresses, ", "), own)
}

// classify turns "nobody answers" and "no such instance" into [ErrNotECS], unless the machine itself says that it is ECS.
func (s metadataSource) classify(ctx context.Context, err error) error {
	var noAnswer *url.Error
	absent := errors.As(err, &noAnswer) || errors.Is(err, alicloud.ErrNotFound)
	product, _ := fs.ReadFile(s.sys, productFile)
	if !absent || ctx.Err() != nil || strings.TrimSpace(string(product)) == ecsProduct {
		return err
	}
	return fmt.Errorf("%w: %w", ErrNotECS, err)
}
