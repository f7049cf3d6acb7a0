package initor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/node"
)

// productFile is where Linux shows the machine's product name below /sys, and ecsProduct is what it reads on ECS.
const (
	productFile = "class/dmi/id/product_name"
	ecsProduct  = "Alibaba Cloud ECS"
)

// MetadataAPI is what [MetadataSource] reads. *[alicloud.Metadata] satisfies it.
type MetadataAPI interface {
	InstanceID(ctx context.Context) (string, error)
	RegionID(ctx context.Context) (string, error)
}

// MetadataSource asks the metadata service of the machine that this process runs on. The node that it is asked about must
// be that machine.
type MetadataSource struct {
	api MetadataAPI
	sys fs.FS
}

// NewMetadataSource returns a source that reads api. sys is the file system at /sys: where the metadata service does not
// answer, the machine's product name tells an ECS instance, on which that is a failure, from a machine elsewhere, on
// which it is how things are.
func NewMetadataSource(api MetadataAPI, sys fs.FS) *MetadataSource {
	return &MetadataSource{api: api, sys: sys}
}

// Name implements [Source].
func (*MetadataSource) Name() string { return "metadata service" }

// Identify implements [Source].
func (s *MetadataSource) Identify(ctx context.Context, _ *corev1.Node) (node.ProviderID, error) {
	instance, err := s.api.InstanceID(ctx)
	if err != nil {
		return node.ProviderID{}, s.judge(ctx, err)
	}
	region, err := s.api.RegionID(ctx)
	if err != nil {
		// It knew the instance a moment ago: this is an ECS instance, whatever the reason.
		return node.ProviderID{}, err
	}
	// What answered may be a stranger on the same address, with a page of its own: what goes into the node for good must
	// at least read as a provider ID.
	id, err := node.ParseProviderID(node.ProviderID{Region: region, InstanceID: instance}.String())
	if err != nil {
		return node.ProviderID{}, fmt.Errorf("region %q and instance id %q make no provider ID: %w", region, instance, err)
	}
	return id, nil
}

// judge turns "nobody answers" and "no such instance" into [ErrNotECS], unless the machine itself says that it is ECS.
func (s *MetadataSource) judge(ctx context.Context, err error) error {
	var noAnswer *url.Error
	absent := errors.As(err, &noAnswer) || errors.Is(err, alicloud.ErrNotFound)
	if !absent || ctx.Err() != nil || s.isECS() {
		return err
	}
	return fmt.Errorf("%w: %w", ErrNotECS, err)
}

func (s *MetadataSource) isECS() bool {
	product, err := fs.ReadFile(s.sys, productFile)
	return err == nil && strings.TrimSpace(string(product)) == ecsProduct
}
