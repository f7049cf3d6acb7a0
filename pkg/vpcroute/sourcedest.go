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
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/events"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// readEvery is the least time between two reads of interfaces: nodes that join together become known one after the other,
// and the interfaces of a hundred of them can be read in one call.
const readEvery = 2 * time.Second

// checkState is the state of the source/destination check of an instance's network interface.
type checkState int

const (
	checkUnknown checkState = iota
	checkOff
	checkOn
)

// availability is what the check means for the node: while it is on, the VPC drops packets from and to pod addresses.
func (s checkState) availability() availability {
	switch s {
	case checkOff:
		return up
	case checkOn:
		return down
	default:
		return unknown
	}
}

// sourceDest switches off the source/destination check of nodes. It reads each instance's interface once and writes only where
// the check is on. It is safe for concurrent use.
type sourceDest struct {
	api    API
	vpcID  string
	events *events.Recorder
	paused func() bool

	mu     sync.Mutex // guards the maps
	todo   map[string]*corev1.Node
	states map[string]checkState
}

func newSourceDest(opts Options, recorder *events.Recorder) *sourceDest {
	return &sourceDest{
		api: opts.API, vpcID: opts.Config.VPCID, events: recorder, paused: opts.paused, todo: map[string]*corev1.Node{}, states: map[string]checkState{},
	}
}

// want asks for the checks of the instances to be off, and forgets all others. It reports whether there is something new to do.
func (s *sourceDest) want(instances map[string]*corev1.Node) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	more := false
	for instance, node := range instances {
		if s.states[instance] == checkOff || nodes.InternalIP(node) == "" {
			continue
		}
		_, known := s.todo[instance]
		more = more || !known
		s.todo[instance] = node
	}
	maps.DeleteFunc(s.states, func(instance string, _ checkState) bool { return instances[instance] == nil })
	maps.DeleteFunc(s.todo, func(instance string, _ *corev1.Node) bool { return instances[instance] == nil })
	return more
}

// state returns what is known of the instance's check.
func (s *sourceDest) state(instance string) checkState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.states[instance]
}

// pass reads the interface of every instance that waits, and returns all that went wrong.
func (s *sourceDest) pass(ctx context.Context) error {
	byAddress := s.waiting()
	if len(byAddress) == 0 {
		return nil
	}
	found, err := interfacesOf(ctx, s.api, s.vpcID, byAddress)
	if err != nil {
		s.warnUnread(byAddress, err)
		return err
	}
	s.events.Resolve(ofCluster, reasonSourceDestErr)
	var errs []error
	for _, eni := range found {
		delete(byAddress, eni.address)
		err := s.switchOff(ctx, eni.NetworkInterface)
		if alicloud.IsForbidden(err) || alicloud.IsAuth(err) || ctx.Err() != nil {
			// The others would end alike, each with a call.
			return err
		}
		errs = append(errs, err)
	}
	for address, instance := range byAddress {
		s.warn(instance, "The source/destination check of instance %s is not known: no network interface of it has the node's address %s", instance, address)
		errs = append(errs, fmt.Errorf("instance %s: no network interface of it has the address %s of its node", instance, address))
	}
	return errors.Join(errs...)
}

// waiting returns the instances that wait, by the address of their node.
func (s *sourceDest) waiting() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	byAddress := map[string]string{}
	for instance, node := range s.todo {
		byAddress[nodes.InternalIP(node)] = instance
	}
	return byAddress
}

// nodeInterface is the network interface that carries a node's address.
type nodeInterface struct {
	alicloud.NetworkInterface
	address string
}

// interfacesOf reads the interfaces that carry the addresses for the instances they belong to.
func interfacesOf(ctx context.Context, api API, vpcID string, byAddress map[string]string) ([]nodeInterface, error) {
	addresses := slices.Sorted(maps.Keys(byAddress))
	all, err := api.DescribeNetworkInterfaces(ctx, alicloud.NetworkInterfaceQuery{PrivateIPs: addresses, VPCID: vpcID})
	if err != nil {
		return nil, fmt.Errorf("read the network interfaces of %d nodes: %w", len(addresses), err)
	}
	var found []nodeInterface
	for i := range all {
		for _, address := range all[i].PrivateIPs {
			if instance, ok := byAddress[address]; ok && instance == all[i].InstanceID {
				found = append(found, nodeInterface{NetworkInterface: all[i], address: address})
				break
			}
		}
	}
	return found, nil
}

func (s *sourceDest) switchOff(ctx context.Context, eni alicloud.NetworkInterface) error {
	if eni.SourceDestCheck && s.paused() {
		s.set(eni.InstanceID, checkOn)
		return nil
	}
	if eni.SourceDestCheck {
		logger := klog.FromContext(ctx).WithValues("node", s.nameOf(eni.InstanceID), "instance", eni.InstanceID, "why", "routed pod traffic needs it")
		if err := s.api.DisableSourceDestCheck(klog.NewContext(ctx, logger), eni.ID); err != nil {
			s.set(eni.InstanceID, checkOn)
			s.warn(eni.InstanceID, "Cannot switch off the source/destination check of %s, so pods of this node cannot talk to other nodes: %v", eni.ID, err)
			return err
		}
	}
	s.set(eni.InstanceID, checkOff)
	return nil
}

// nameOf returns the name of the node that waits for its instance, empty where none does.
func (s *sourceDest) nameOf(instance string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if node, ok := s.todo[instance]; ok {
		return node.Name
	}
	return ""
}

func (s *sourceDest) set(instance string, state checkState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.states[instance] = state
	if state == checkOff {
		delete(s.todo, instance)
	}
}

func (s *sourceDest) warn(instance, format string, args ...any) {
	s.mu.Lock()
	node, ok := s.todo[instance]
	s.mu.Unlock()
	if ok {
		s.events.Warnf(node, reasonSourceDestErr, format, args...)
	}
}

// warnUnread emits one event for all nodes that wait.
func (s *sourceDest) warnUnread(byAddress map[string]string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, instance := range byAddress {
		if node, ok := s.todo[instance]; ok {
			s.events.Emit(ofCluster, events.Event{
				Object: node, Type: corev1.EventTypeWarning, Reason: reasonSourceDestErr,
				Message: fmt.Sprintf("The source/destination checks of %d nodes are not known, so new ones stay without network "+
					"(--skip-disable-source-dest-check leaves the checks alone): %v", len(byAddress), err),
			})
			return
		}
	}
}
