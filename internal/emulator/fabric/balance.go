package fabric

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

var (
	// ErrNoBackend means that a listener has nobody to send a connection to.
	ErrNoBackend = errors.New("no backend server of the group can be reached")
	// ErrNotAdmitted means that the access control of a listener, or a security group of its load balancer, refuses the source.
	ErrNotAdmitted = errors.New("access control does not admit the source")
)

// trial tries one backend server; again means that another backend server may be tried after the error.
type trial func(backend) (again bool, err error)

// attempt calls try for one eligible backend server after another, in the order of the scheduler, until one takes the connection.
// The backend server that took it counts as busy until the caller releases it.
func (f *Fabric) attempt(ctx context.Context, s settings, backends []backend, a arrival, preferred cloud.BackendID, try trial) error {
	b, left := f.balancers.of(s.turnsOf(a.vip)), f.eligible(s, a.vip, backends)
	errs := []error{ErrNoBackend}
	for len(left) > 0 && ctx.Err() == nil {
		m := b.take(s, left, a.source, preferred, time.Now())
		again, err := try(m.at(a.port))
		if err == nil {
			return nil
		}
		b.release(m)
		if !again {
			return err
		}
		errs = append(errs, err)
		left = without(left, m)
	}
	return fmt.Errorf("listener %s of %s: %w", s.key, s.key.LoadBalancerID, errors.Join(errs...))
}

// balance opens a connection to a backend server of a listener's group. One that refuses is skipped and the next one tried.
func (f *Fabric) balance(ctx context.Context, a arrival) (net.Conn, settings, error) {
	s, backends, ok := f.readListener(a.listener)
	if !ok {
		return nil, s, fmt.Errorf("listener %s of %s: %w", a.listener, a.listener.LoadBalancerID, ErrNoBackend)
	}
	if !s.admits(a) {
		return nil, s, refused(a)
	}
	var opened net.Conn
	err := f.attempt(ctx, s, backends, a, cloud.BackendID{}, func(m backend) (bool, error) {
		c, err := f.dialBackend(ctx, s, m, a)
		if err != nil {
			return true, err
		}
		opened = c
		return false, nil
	})
	return opened, s, err
}

func refused(a arrival) error {
	return fmt.Errorf("listener %s of %s: %s: %w", a.listener, a.listener.LoadBalancerID, a.source.Addr(), ErrNotAdmitted)
}

// ownSource is where a backend server sees connections from that are not a client's: the zero value is an address of the cloud's own.
func (f *Fabric) ownSource(s settings, v VIP) netip.AddrPort {
	if !s.isNLB() || f.holds("network.nlb-check-source") {
		return netip.AddrPort{}
	}
	// The alternative is an address of the load balancer itself.
	own, err := netip.ParseAddr(s.inner(v).Address)
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(own, 0)
}

// dialBackend connects to a backend server on behalf of a client and remembers for which listener. Closing the connection releases
// the backend server.
func (f *Fabric) dialBackend(ctx context.Context, s settings, m backend, a arrival) (net.Conn, error) {
	client := a.source
	if !s.preserveClient {
		client = f.ownSource(s, a.vip)
	}
	c, err := f.network.Dial(ctx, m.instanceID, transport(s.key.Protocol), m.addr, client)
	if err != nil {
		return nil, fmt.Errorf("dial %s on %s: %w", m.addr, m.instanceID, err)
	}
	b := f.balancers.of(s.turnsOf(a.vip))
	return f.conns.add(&conn{
		Conn: c, instanceID: m.instanceID, listener: s.key, backend: m.id, release: func() { b.release(m) },
	}), nil
}
