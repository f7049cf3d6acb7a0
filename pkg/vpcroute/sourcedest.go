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
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
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

// sourceDest switches off the source/destination check of nodes. It reads each instance's interface when the node joins and once per
// period, for somebody may switch the check on again, and writes only where it is on. What is missing for one instance is tried again
// for that instance. It is safe for concurrent use.
type sourceDest struct {
	opts   Options
	events *events.Recorder
	// kick holds a token when something may be due earlier than run knows.
	kick chan struct{}

	mu     sync.Mutex // guards the fields below
	checks map[string]*check
	// drift is when all interfaces are read again, together, and read when some were read last.
	drift, read time.Time
}

// check is what is known of one instance.
type check struct {
	node    *corev1.Node
	address netip.Addr // by which its interface is found
	state   checkState
	// attempts counts those in vain since the check was last known to be off.
	attempts int
	due      time.Time
}

func newSourceDest(opts Options, recorder *events.Recorder) *sourceDest {
	return &sourceDest{opts: opts, events: recorder, kick: make(chan struct{}, 1), checks: map[string]*check{}}
}

// run reads what is due and switches off what is on until the context ends. It calls done after each time.
func (s *sourceDest) run(ctx context.Context, done func()) {
	for ctx.Err() == nil {
		next := s.next()
		if wait := time.Until(next); wait > 0 || next.IsZero() {
			if next.IsZero() {
				wait = s.opts.Config.Period
			}
			select {
			case <-ctx.Done():
			case <-s.kick:
			case <-time.After(wait):
			}
			continue
		}
		if err := s.pass(ctx); err != nil && ctx.Err() == nil {
			utilruntime.HandleErrorWithContext(ctx, err, "Switching source/destination checks off")
		}
		done()
	}
}

// want asks for the checks of the instances to be off, and forgets all others.
func (s *sourceDest) want(instances map[string]*corev1.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for instance, node := range instances {
		address := nodes.FirstAddress(nodes.OwnAddresses(node))
		if known := s.checks[instance]; known == nil || known.address != address {
			s.checks[instance] = &check{address: address}
		}
		s.checks[instance].node = node
		if !address.IsValid() && time.Since(node.CreationTimestamp.Time) >= cidrGrace {
			s.warn(*s.checks[instance], "The source/destination check of instance %s is not known: the node has no InternalIP to find its network interface by", instance)
		}
	}
	maps.DeleteFunc(s.checks, func(instance string, _ *check) bool { return instances[instance] == nil })
	s.wake()
}

func (s *sourceDest) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// next returns when the next interface is to be read, zero for never. The time may be over.
func (s *sourceDest) next() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	var next time.Time
	found := false
	for _, c := range s.checks {
		if c.address.IsValid() && (!found || c.due.Before(next)) {
			next, found = c.due, true
		}
	}
	if earliest := s.read.Add(readEvery); found && next.Before(earliest) {
		next = earliest
	}
	return next
}

// availability is what the check means for the node: while it is on, the VPC drops packets from and to pod addresses.
func (s *sourceDest) availability(instance string) availability {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.checks[instance]
	switch {
	case s.opts.SkipSourceDestCheck, c != nil && c.state == checkOff:
		return up
	case c != nil && c.state == checkOn:
		return down
	}
	return unknown
}

// resync makes everything due that is not known to be off.
func (s *sourceDest) resync() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.checks {
		if c.state != checkOff {
			c.due, c.attempts = time.Time{}, 0
		}
	}
	s.wake()
}

// pass reads the interface of every instance that is due, and returns all that went wrong.
func (s *sourceDest) pass(ctx context.Context) error {
	var errs []error
	for _, family := range byFamily(s.takeDue(time.Now())) {
		errs = append(errs, s.switchAll(ctx, family))
	}
	return errors.Join(errs...)
}

// byFamily splits checks by the family of their addresses, for a call takes addresses of one.
func byFamily(all map[string]check) map[bool]map[string]check {
	families := map[bool]map[string]check{}
	for instance, c := range all {
		ipv6 := c.address.Is6()
		if families[ipv6] == nil {
			families[ipv6] = map[string]check{}
		}
		families[ipv6][instance] = c
	}
	return families
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

// switchAll reads the interfaces of instances, all by addresses of one family, and switches their checks off.
func (s *sourceDest) switchAll(ctx context.Context, due map[string]check) error {
	found, err := interfacesOf(ctx, s.opts.API, s.opts.Config.VPCID, due)
	if err == nil {
		s.events.Resolve(ofCluster, reasonSourceDestErr)
	} else {
		s.warnUnread(due, err)
	}
	errs := []error{err}
	for instance, c := range due {
		eni, shown := found[instance]
		switch {
		case found == nil, ctx.Err() != nil:
			s.note(instance, checkUnknown)
		case !shown:
			s.note(instance, checkUnknown)
			s.warn(c, "The source/destination check of instance %s is not known: no network interface of it has the node's address %s", instance, c.address)
			errs = append(errs, fmt.Errorf("instance %s: no network interface of it has the address %s of its node", instance, c.address))
		case refusesAll(err) && eni.SourceDestCheck: // the call would end as the one before
			s.note(instance, checkOn)
		default:
			if refused := s.switchOff(ctx, eni, c); refused != nil {
				err = refused
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// note takes in how an attempt ended: the state of the check, unknown for that of before. Until it is off the next attempt comes after
// growing waits.
func (s *sourceDest) note(instance string, state checkState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.checks[instance]
	switch {
	case c == nil:
		return
	case state == checkOff:
		c.due, c.attempts = s.drift, 0
	default:
		c.due = time.Now().Add(backoff(c.attempts, firstBackoff, maxBackoff))
		c.attempts++
	}
	if state != checkUnknown {
		c.state = state
	}
}

// interfacesOf reads the network interfaces by which the instances have the addresses of their nodes. Where the cloud refuses a call for
// what it asks, the halves are read alone, so that no address keeps the others from being read.
func interfacesOf(ctx context.Context, api API, vpcID string, wanted map[string]check) (map[string]alicloud.NetworkInterface, error) {
	owner := map[string]string{}
	query := alicloud.NetworkInterfaceQuery{VPCID: vpcID}
	for _, instance := range slices.Sorted(maps.Keys(wanted)) {
		address := wanted[instance].address
		owner[address.String()] = instance
		if address.Is4() {
			query.PrivateIPs = append(query.PrivateIPs, address.String())
		} else {
			query.IPv6s = append(query.IPv6s, address.String())
		}
	}
	all, err := api.DescribeNetworkInterfaces(ctx, query)
	found := map[string]alicloud.NetworkInterface{}
	if instances := slices.Sorted(maps.Keys(wanted)); len(instances) > 1 && alicloud.IsRefusedParameter(err) {
		for half := range slices.Chunk(instances, (len(instances)+1)/2) {
			some := maps.Clone(wanted)
			maps.DeleteFunc(some, func(instance string, _ check) bool { return !slices.Contains(half, instance) })
			part, halfErr := interfacesOf(ctx, api, vpcID, some)
			maps.Copy(found, part)
			if halfErr == nil {
				err = nil // those that are not found have an attempt and an event of their own
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read the network interfaces of %d nodes: %w", len(wanted), err)
	}
	for i := range all {
		for _, text := range slices.Concat(all[i].PrivateIPs, all[i].IPv6s) {
			address, err := netip.ParseAddr(text)
			if instance := owner[address.String()]; err == nil && instance != "" && instance == all[i].InstanceID {
				found[instance] = all[i]
			}
		}
	}
	return found, nil
}

// switchOff switches the check off if it is on. While everything is paused it waits for its next attempt, as after a failure.
func (s *sourceDest) switchOff(ctx context.Context, eni alicloud.NetworkInterface, c check) error {
	if eni.SourceDestCheck && s.opts.paused() {
		s.note(eni.InstanceID, checkOn)
		return nil
	}
	if eni.SourceDestCheck {
		logger := klog.FromContext(ctx).WithValues("node", c.node.Name, "instance", eni.InstanceID, "why", "routed pod traffic needs it")
		if err := s.opts.API.DisableSourceDestCheck(klog.NewContext(ctx, logger), eni.ID); err != nil {
			s.note(eni.InstanceID, checkOn)
			s.warn(c, "Cannot switch off the source/destination check of %s, so pods of this node cannot talk to other nodes: %v", eni.ID, err)
			return err
		}
	}
	s.note(eni.InstanceID, checkOff)
	return nil
}

func (s *sourceDest) warn(c check, format string, args ...any) {
	s.events.Warnf(c.node, reasonSourceDestErr, format, args...)
}

// warnUnread emits one event for all nodes that wait.
func (s *sourceDest) warnUnread(due map[string]check, err error) {
	for _, c := range due {
		s.events.Emit(ofCluster, events.Event{
			Object: c.node, Type: corev1.EventTypeWarning, Reason: reasonSourceDestErr,
			Message: fmt.Sprintf("The source/destination checks of %d nodes are not known, so new ones stay without network "+
				"(--skip-disable-source-dest-check leaves the checks alone): %v", len(due), err),
		})
		return
	}
}
