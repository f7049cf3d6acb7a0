package initor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/node"
)

// Finding is what ECS says of one node.
type Finding struct {
	// ProviderID is the node's, if Err is nil.
	ProviderID node.ProviderID
	// Err wraps [ErrNotECS] when ECS shows neither an instance of the VPC with an address of the node nor the instance that its
	// provider ID names; any other error says why nothing is known.
	Err error
}

// Lookup identifies many nodes with one call for each hundred addresses, and one for each hundred provider IDs of nodes without
// an instance in the VPC, whose instances may be in another one. The findings are by node name. The error is one of ECS, or says
// that the key sees no instance at all.
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
	findings, err := s.match(ctx, nodes, listed)
	if err != nil {
		return nil, err
	}
	return findings, s.lookupByID(ctx, nodes, findings)
}

// lookupByID replaces the findings of nodes that are not in the VPC but whose provider ID names an instance that ECS shows.
func (s *ECSSource) lookupByID(ctx context.Context, nodes []*corev1.Node, findings map[string]Finding) error {
	named := map[string][]string{} // node names by instance id
	for _, n := range nodes {
		id, err := node.ParseProviderID(n.Spec.ProviderID)
		if err == nil && id.Region == s.api.Region() && errors.Is(findings[n.Name].Err, ErrNotECS) {
			named[id.InstanceID] = append(named[id.InstanceID], n.Name)
		}
	}
	if len(named) == 0 {
		return nil
	}
	listed, err := s.api.DescribeInstances(ctx, alicloud.InstanceQuery{IDs: slices.Sorted(maps.Keys(named))})
	if err != nil {
		return fmt.Errorf("look up %d instances by id: %w", len(named), err)
	}
	for i := range listed {
		for _, name := range named[listed[i].ID] {
			findings[name] = Finding{ProviderID: node.ProviderID{Region: s.api.Region(), InstanceID: listed[i].ID}}
		}
	}
	return nil
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
