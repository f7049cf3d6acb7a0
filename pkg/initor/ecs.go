package initor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	cloudproviderapi "k8s.io/cloud-provider/api"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/node"
)

// ECSSource looks for the one instance of a VPC that has the node's address. It is for machines whose metadata service is
// switched off or out of reach, and needs an access key that may call DescribeInstances.
type ECSSource struct {
	API *alicloud.Client
	// VPCID is required: private addresses are unique only inside a VPC, and a machine elsewhere may have the address of somebody else's
	// instance.
	VPCID string

	// seesInstances is set once the key has shown that it may see the VPC's instances.
	seesInstances bool
}

// Source returns the source of one node's identity.
func (s *ECSSource) Source() Source { return Source{"ECS", s.identify} }

func (s *ECSSource) identify(ctx context.Context, n *corev1.Node) (node.ProviderID, error) {
	findings, err := s.byAddress(ctx, []*corev1.Node{n})
	if err != nil {
		return node.ProviderID{}, err
	}
	return findings[n.Name].ProviderID, findings[n.Name].Err
}

// absent returns [ErrNotECS] if the key sees other instances of the VPC. A key without permission gets an empty list and no
// error, so an empty list alone says nothing.
func (s *ECSSource) absent(ctx context.Context, addresses []string) error {
	if !s.seesInstances {
		all, err := s.API.DescribeInstances(ctx, alicloud.InstanceQuery{VPCID: s.VPCID, FirstPage: true})
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return fmt.Errorf("no instance of %s in %s is visible: check region, VPC and the access key's permission to call "+
				"ecs:DescribeInstances", s.VPCID, s.API.Region())
		}
		s.seesInstances = true
	}
	return fmt.Errorf("%w: no instance of %s has the address %s", ErrNotECS, s.VPCID, strings.Join(addresses, " or "))
}

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
	findings, err := s.byAddress(ctx, nodes)
	if err != nil {
		return nil, err
	}
	named := map[string][]string{} // node names by instance id
	for _, n := range nodes {
		id, err := node.ParseProviderID(n.Spec.ProviderID)
		if err == nil && id.Region == s.API.Region() && errors.Is(findings[n.Name].Err, ErrNotECS) {
			named[id.InstanceID] = append(named[id.InstanceID], n.Name)
		}
	}
	if len(named) == 0 {
		return findings, nil
	}
	listed, err := s.API.DescribeInstances(ctx, alicloud.InstanceQuery{IDs: slices.Sorted(maps.Keys(named))})
	if err != nil {
		return nil, fmt.Errorf("look up %d instances by id: %w", len(named), err)
	}
	for i := range listed {
		for _, name := range named[listed[i].ID] {
			findings[name] = Finding{ProviderID: node.ProviderID{Region: s.API.Region(), InstanceID: listed[i].ID}}
		}
	}
	return findings, nil
}

// byAddress finds the instances of the VPC that have the nodes' addresses.
func (s *ECSSource) byAddress(ctx context.Context, all []*corev1.Node) (map[string]Finding, error) {
	own := map[string][]string{}
	query := alicloud.InstanceQuery{VPCID: s.VPCID}
	for _, n := range all {
		own[n.Name] = nil
		for _, address := range nodes.OwnAddresses(n) {
			if address.Is4() {
				own[n.Name] = append(own[n.Name], address.String())
			}
		}
		query.PrivateIPs = append(query.PrivateIPs, own[n.Name]...)
	}
	var listed []alicloud.Instance
	if len(query.PrivateIPs) > 0 {
		var err error
		if listed, err = s.API.DescribeInstances(ctx, query); err != nil {
			return nil, fmt.Errorf("look up the instances of %d addresses: %w", len(query.PrivateIPs), err)
		}
	}
	findings := map[string]Finding{}
	for name, addresses := range own {
		var ids []string
		for i := range listed { // the answer is not trusted to hold no others
			if sets.New(listed[i].PrivateIPs...).HasAny(addresses...) && !slices.Contains(ids, listed[i].ID) {
				ids = append(ids, listed[i].ID)
			}
		}
		switch {
		case len(addresses) == 0:
			findings[name] = Finding{Err: errors.New("the node has neither an IPv4 InternalIP nor the annotation " +
				cloudproviderapi.AnnotationAlphaProvidedIPAddr)}
		case len(ids) == 1:
			findings[name] = Finding{ProviderID: node.ProviderID{Region: s.API.Region(), InstanceID: ids[0]}}
		case len(ids) > 1:
			findings[name] = Finding{Err: fmt.Errorf("the node's addresses %s belong to several instances of %s: %s",
				strings.Join(addresses, ", "), s.VPCID, strings.Join(ids, ", "))}
		default:
			err := s.absent(ctx, addresses)
			if !errors.Is(err, ErrNotECS) {
				return nil, err
			}
			findings[name] = Finding{Err: err}
		}
	}
	return findings, nil
}
