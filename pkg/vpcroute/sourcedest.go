package vpcroute

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// sourceDest switches off the source/destination check of routed nodes: while it is on, the VPC drops packets from and to
// pod addresses. It looks at each instance once and writes only where the check is on.
type sourceDest struct {
	api    API
	vpcID  string
	events *events

	mu   sync.Mutex // guards the maps
	todo map[string]*corev1.Node
	done map[string]struct{}
}

// readEvery is the least time between two reads of interfaces: nodes that join together become known one after the other,
// and the interfaces of a hundred of them can be read in one call.
const readEvery = 2 * time.Second

func newSourceDest(api API, vpcID string, events *events) *sourceDest {
	return &sourceDest{
		api: api, vpcID: vpcID, events: events,
		todo: map[string]*corev1.Node{}, done: map[string]struct{}{},
	}
}

// want asks for the check of the routed nodes to be off. It reports whether there is something new to do.
func (s *sourceDest) want(d *desired) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	more := false
	for _, route := range d.routes {
		_, done := s.done[route.instance]
		if done || internalIP(route.node) == "" {
			continue
		}
		_, known := s.todo[route.instance]
		more = more || !known
		s.todo[route.instance] = route.node
	}
	maps.DeleteFunc(s.done, func(instance string, _ struct{}) bool { return !d.instances.Has(instance) })
	maps.DeleteFunc(s.todo, func(instance string, _ *corev1.Node) bool { return !d.instances.Has(instance) })
	return more
}

// pass looks at every instance that waits, and returns all that went wrong.
func (s *sourceDest) pass(ctx context.Context) error {
	s.mu.Lock()
	byAddress := map[string]string{}
	var addresses []string
	for instance, node := range s.todo {
		address := internalIP(node)
		byAddress[address] = instance
		addresses = append(addresses, address)
	}
	s.mu.Unlock()
	slices.Sort(addresses)

	found, err := s.api.DescribeNetworkInterfaces(ctx, alicloud.NetworkInterfaceQuery{PrivateIPs: addresses, VPCID: s.vpcID})
	if err != nil {
		return fmt.Errorf("read the network interfaces of %d nodes: %w", len(addresses), err)
	}
	var errs []error
	for i := range found {
		address, ok := addressOf(found[i], byAddress)
		if !ok {
			continue
		}
		delete(byAddress, address)
		err := s.settle(ctx, found[i])
		if alicloud.IsForbidden(err) || alicloud.IsAuth(err) || ctx.Err() != nil {
			// The others would end alike, each with a call.
			return err
		}
		errs = append(errs, err)
	}
	for address, instance := range byAddress {
		errs = append(errs, fmt.Errorf("instance %s: no network interface of it has the address %s of its node", instance, address))
	}
	return errors.Join(errs...)
}

// addressOf returns the node address that the interface carries for the instance it belongs to.
func addressOf(eni alicloud.NetworkInterface, byAddress map[string]string) (string, bool) {
	for _, address := range eni.PrivateIPs {
		if instance, ok := byAddress[address]; ok && instance == eni.InstanceID {
			return address, true
		}
	}
	return "", false
}

func (s *sourceDest) settle(ctx context.Context, eni alicloud.NetworkInterface) error {
	if eni.SourceDestCheck {
		if err := s.api.DisableSourceDestCheck(ctx, eni.ID); err != nil {
			s.warn(eni, err)
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done[eni.InstanceID] = struct{}{}
	delete(s.todo, eni.InstanceID)
	return nil
}

func (s *sourceDest) warn(eni alicloud.NetworkInterface, err error) {
	s.mu.Lock()
	node, ok := s.todo[eni.InstanceID]
	s.mu.Unlock()
	if ok {
		s.events.warn(node, reasonSourceDestErr, "The source/destination check of %s cannot be switched off, so pods of this node "+
			"cannot talk to other nodes: %v", eni.ID, err)
	}
}

func internalIP(node *corev1.Node) string {
	for i := range node.Status.Addresses {
		if node.Status.Addresses[i].Type == corev1.NodeInternalIP {
			return node.Status.Addresses[i].Address
		}
	}
	return ""
}
