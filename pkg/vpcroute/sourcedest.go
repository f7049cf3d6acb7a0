package vpcroute

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// readEvery is the least time between two reads of interfaces: nodes that join together become known one after the other,
// and the interfaces of a hundred of them can be read in one call.
const readEvery = 2 * time.Second

// sourceDest switches off the source/destination check of nodes. It reads each instance's interface when the node joins and once per
// period, for somebody may switch the check on again, and writes only where it is on. What is missing for one instance is tried again
// for that instance. It is safe for concurrent use.
type sourceDest struct {
	opts   Options
	report reporter
	// schedule asks for a pass at a time.
	schedule func(time.Time)

	mu      sync.Mutex // guards the fields below
	checks  map[string]*check
	backoff workqueue.TypedRateLimiter[any] // by instance, until the check is off
	// drift is when all interfaces are read again, together, and read when some were read last.
	drift, read time.Time
}

// check is what is known of one instance.
type check struct {
	node    *corev1.Node
	address netip.Addr // by which its interface is found
	// state is what the check means for the node: while it is on, the VPC drops packets from and to pod addresses.
	state availability
	due   time.Time
}

func newSourceDest(opts Options, report reporter, schedule func(time.Time)) *sourceDest {
	return &sourceDest{opts: opts, report: report, schedule: schedule, checks: map[string]*check{}, backoff: newBackoff()}
}

// want asks for the checks of the instances to be off, and forgets all others.
func (s *sourceDest) want(instances map[string]*corev1.Node) {
	defer s.scheduleNext()
	s.mu.Lock()
	defer s.mu.Unlock()
	for instance, node := range instances {
		address := nodes.FirstAddress(nodes.OwnAddresses(node))
		if known := s.checks[instance]; known == nil || known.address != address {
			s.backoff.Forget(instance)
			s.checks[instance] = &check{address: address, state: unknown}
		}
		s.checks[instance].node = node
		if !address.IsValid() && time.Since(node.CreationTimestamp.Time) >= waits.PodCIDRMissing {
			s.report.events.Warnf(node, reasonSourceDestErr,
				"The source/destination check of instance %s is not known: the node has no InternalIP to find its network interface by", instance)
		}
	}
	for instance := range s.checks {
		if instances[instance] == nil {
			s.backoff.Forget(instance)
			delete(s.checks, instance)
		}
	}
}

// next returns when the next interface is to be read, zero for never. The time may be over.
func (s *sourceDest) next() (next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	soonest := s.read.Add(readEvery)
	for _, c := range s.checks {
		switch {
		case !c.address.IsValid():
		case c.due.Before(soonest):
			next = earliest(next, soonest)
		default:
			next = earliest(next, c.due)
		}
	}
	return next
}

func (s *sourceDest) scheduleNext() {
	if next := s.next(); !next.IsZero() {
		s.schedule(next)
	}
}

func (s *sourceDest) availability(instance string) availability {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch c := s.checks[instance]; {
	case s.opts.SkipSourceDestCheck:
		return up
	case c == nil:
		return unknown
	default:
		return c.state
	}
}

// pass reads the interface of every instance that is due, switches its check off, and returns all that went wrong.
func (s *sourceDest) pass(ctx context.Context) error {
	defer s.scheduleNext()
	due := s.takeDue(time.Now())
	if len(due) == 0 {
		return nil
	}
	found, err := interfacesOf(ctx, s.opts.API, s.opts.Config.VPCID, due)
	warning := ""
	if err != nil {
		warning = fmt.Sprintf("The source/destination checks of %d nodes are not known, so new ones stay without network "+
			"(--skip-disable-source-dest-check leaves the checks alone): %v", len(due), err)
	}
	s.report.state(ofCluster, due[slices.Min(slices.Collect(maps.Keys(due)))].node, reasonSourceDestErr, warning)
	errs := []error{err}
	var refused error // the last write
	for instance, c := range due {
		eni, shown := found[instance]
		state := unknown
		switch {
		case !shown && err != nil, ctx.Err() != nil:
		case !shown:
			err := fmt.Errorf("no network interface of instance %s has the node's address %s", instance, c.address)
			s.report.events.Warnf(c.node, reasonSourceDestErr, "The source/destination check is not known: %v", err)
			errs = append(errs, err)
		case !eni.SourceDestCheck:
			state = up
		case refusesAll(refused), s.opts.paused(): // the call would end as the one before, or is to wait
			state = down
		default:
			state = up
			if refused = s.switchOff(ctx, eni, c); refused != nil {
				state = down
			}
			errs = append(errs, refused)
		}
		s.note(instance, state)
	}
	return errors.Join(errs...)
}

// takeDue returns what is to be read now.
func (s *sourceDest) takeDue(now time.Time) map[string]check {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = now
	if !now.Before(s.drift) {
		s.drift = now.Add(jittered(s.opts.Config.Period))
	}
	due := map[string]check{}
	for instance, c := range s.checks {
		if c.address.IsValid() && !now.Before(c.due) {
			due[instance] = *c
		}
	}
	return due
}

// note takes in how an attempt ended: what the check means now, unknown for the same as before. Until it is off the next attempt comes
// after growing waits.
func (s *sourceDest) note(instance string, state availability) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.checks[instance]
	if c == nil {
		return
	}
	if state == up {
		c.due = s.drift
		s.backoff.Forget(instance)
	} else {
		c.due = time.Now().Add(s.backoff.When(instance))
	}
	if state != unknown {
		c.state = state
	}
}

// interfacesOf returns the network interfaces by which the instances have the addresses of their nodes. A call takes addresses of one
// family; what is found of the one is returned also if the other cannot be read.
func interfacesOf(ctx context.Context, api API, vpcID string, wanted map[string]check) (map[string]alicloud.NetworkInterface, error) {
	found := map[string]alicloud.NetworkInterface{}
	var errs []error
	families := map[bool][]netip.Addr{} // by whether they are of IPv6
	for _, instance := range slices.Sorted(maps.Keys(wanted)) {
		address := wanted[instance].address
		families[address.Is6()] = append(families[address.Is6()], address)
	}
	for _, ipv6 := range []bool{false, true} { // in one order: errors in another one would be another text
		addresses := families[ipv6]
		if len(addresses) == 0 {
			continue
		}
		all, err := readInterfaces(ctx, api, vpcID, addresses)
		if err != nil {
			errs = append(errs, fmt.Errorf("read the network interfaces of %d nodes: %w", len(addresses), err))
		}
		for i := range all {
			for _, text := range slices.Concat(all[i].PrivateIPs, all[i].IPv6s) {
				address, err := netip.ParseAddr(text)
				if c, ok := wanted[all[i].InstanceID]; err == nil && ok && c.address == address {
					found[all[i].InstanceID] = all[i]
				}
			}
		}
	}
	return found, errors.Join(errs...)
}

// readInterfaces reads the interfaces with the addresses. Where the cloud refuses a call for what it asks, the halves are read alone, so
// that no address keeps the others from being read; it is an error only if all fail.
func readInterfaces(ctx context.Context, api API, vpcID string, addresses []netip.Addr) ([]alicloud.NetworkInterface, error) {
	query := alicloud.NetworkInterfaceQuery{VPCID: vpcID}
	for _, address := range addresses {
		if address.Is4() {
			query.PrivateIPs = append(query.PrivateIPs, address.String())
		} else {
			query.IPv6s = append(query.IPv6s, address.String())
		}
	}
	all, err := api.DescribeNetworkInterfaces(ctx, query)
	if len(addresses) < 2 || !alicloud.IsRefusedParameter(err) {
		return all, err
	}
	for half := range slices.Chunk(addresses, (len(addresses)+1)/2) {
		part, halfErr := readInterfaces(ctx, api, vpcID, half)
		all = append(all, part...)
		if halfErr == nil {
			err = nil // those that are not found have an attempt and an event of their own
		}
	}
	return all, err
}

// switchOff switches the check off.
func (s *sourceDest) switchOff(ctx context.Context, eni alicloud.NetworkInterface, c check) error {
	logger := klog.FromContext(ctx).WithValues("node", c.node.Name, "instance", eni.InstanceID, "why", "routed pod traffic needs it")
	err := s.opts.API.DisableSourceDestCheck(klog.NewContext(ctx, logger), eni.ID)
	if err != nil {
		s.report.events.Warnf(c.node, reasonSourceDestErr,
			"Cannot switch off the source/destination check of %s, so pods of this node cannot talk to other nodes: %v", eni.ID, err)
	}
	return err
}
