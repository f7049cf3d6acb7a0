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
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// sourceDest switches off the source/destination check of routed nodes: while it is on, the VPC drops packets from and to
// pod addresses. It looks at each instance once and writes only where the check is on.
type sourceDest struct {
	api    API
	vpcID  string
	events *events
	kick   chan struct{}

	mu   sync.Mutex // guards the maps
	todo map[string]*corev1.Node
	done map[string]struct{}
}

// readEvery is the least time between two reads of interfaces: nodes that join together become known one after the other,
// and the interfaces of a hundred of them can be read in one call.
const readEvery = 2 * time.Second

func newSourceDest(api API, vpcID string, events *events) *sourceDest {
	return &sourceDest{
		api: api, vpcID: vpcID, events: events, kick: make(chan struct{}, 1),
		todo: map[string]*corev1.Node{}, done: map[string]struct{}{},
	}
}

// want asks for the check of the view's routed nodes to be off.
func (s *sourceDest) want(v *view) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range v.wanted {
		_, done := s.done[w.instance]
		_, known := s.todo[w.instance]
		if done || internalIP(w.node) == "" {
			continue
		}
		s.todo[w.instance] = w.node
		if !known {
			signal(s.kick)
		}
	}
	gone := func(instance string) bool { return !v.instances.Has(instance) }
	maps.DeleteFunc(s.done, func(instance string, _ struct{}) bool { return gone(instance) })
	maps.DeleteFunc(s.todo, func(instance string, _ *corev1.Node) bool { return gone(instance) })
}

// run works until the context ends.
func (s *sourceDest) run(ctx context.Context) {
	var last time.Time
	for wait := firstBackoff; ; {
		select {
		case <-ctx.Done():
			return
		case <-s.kick:
		}
		if sleep(ctx, readEvery-time.Since(last)) != nil {
			return
		}
		last = time.Now()
		err := s.pass(ctx)
		if err == nil {
			wait = firstBackoff
			continue
		}
		if ctx.Err() != nil {
			return
		}
		utilruntime.HandleErrorWithContext(ctx, err, "Switching off source/destination checks")
		if sleep(ctx, wait) != nil {
			return
		}
		wait = min(2*wait, maxBackoff)
		signal(s.kick)
	}
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
