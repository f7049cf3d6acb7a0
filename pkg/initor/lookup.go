package initor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/node"
)

// Finding is what ECS says of one node.
type Finding struct {
	// ProviderID is the node's, if Err is nil.
	ProviderID node.ProviderID
	// Err wraps [ErrNotECS] when no instance has an address of the node; any other error says why it could not be told.
	Err error
}

// Lookup identifies many nodes with one call for each hundred addresses. The findings are by node name. The error is one of
// ECS, or says that the key sees no instance at all.
func (s *ECSSource) Lookup(ctx context.Context, nodes []*corev1.Node) (map[string]Finding, error) {
	var addresses []string
	for _, n := range nodes {
		addresses = append(addresses, ownIPv4(n)...)
	}
	if len(addresses) == 0 {
		return s.match(ctx, nodes, nil)
	}
	listed, err := s.api.DescribeInstances(ctx, alicloud.InstanceQuery{PrivateIPs: addresses, VPCID: s.vpcID})
	if err != nil {
		return nil, fmt.Errorf("look up the instances of %d addresses: %w", len(addresses), err)
	}
	return s.match(ctx, nodes, listed)
}

func (s *ECSSource) match(ctx context.Context, nodes []*corev1.Node, listed []alicloud.Instance) (map[string]Finding, error) {
	findings := map[string]Finding{}
	for _, n := range nodes {
		addresses := ownIPv4(n)
		if len(addresses) == 0 {
			findings[n.Name] = Finding{Err: errors.New("the node has no IPv4 InternalIP to look it up by")}
			continue
		}
		switch ids := instancesWith(listed, addresses); len(ids) {
		case 1:
			findings[n.Name] = Finding{ProviderID: node.ProviderID{Region: s.api.Region(), InstanceID: ids[0]}}
		case 0:
			err := s.absent(ctx, addresses)
			if !errors.Is(err, ErrNotECS) {
				return nil, err
			}
			findings[n.Name] = Finding{Err: err}
		default:
			findings[n.Name] = Finding{Err: fmt.Errorf("several instances have the node's addresses: %s", strings.Join(ids, ", "))}
		}
	}
	return findings, nil
}
