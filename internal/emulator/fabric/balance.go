package fabric

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/pires/go-proxyproto"
)

var (
	// ErrNoBackend means that a listener has nobody to send a connection to.
	ErrNoBackend = errors.New("no backend server of the vServer group can be reached")
	// ErrNotAdmitted means that the access control of a listener refuses the source.
	ErrNotAdmitted = errors.New("the access control list does not admit the source")
)

// trial tries one backend server; again means that another backend server may be tried after the error.
type trial func(member) (again bool, err error)

// attempt calls try for one eligible backend server after another, in the order of the scheduler, until one takes the connection.
// The backend server that took it counts as busy until the caller releases it.
func (f *Fabric) attempt(ctx context.Context, s settings, members []member, source netip.AddrPort, preferred string, try trial) error {
	b, left := f.balancers.of(s.key), f.eligible(s.key, members)
	errs := []error{ErrNoBackend}
	for len(left) > 0 && ctx.Err() == nil {
		m := b.take(s, left, source, preferred, time.Now())
		again, err := try(m)
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
	return fmt.Errorf("listener %s of %s: %w", s.key, s.key.lb, errors.Join(errs...))
}

// balance opens a connection from source to a backend server of a listener's group. A backend server that refuses is skipped and the next
// one tried.
func (f *Fabric) balance(ctx context.Context, key socketKey, source netip.AddrPort) (net.Conn, settings, error) {
	s, members, ok := f.readListener(key)
	if !ok {
		return nil, s, fmt.Errorf("listener %s of %s: %w", key, key.lb, ErrNoBackend)
	}
	if !s.access.admits(source.Addr()) {
		return nil, s, fmt.Errorf("listener %s of %s: %s: %w", key, key.lb, source.Addr(), ErrNotAdmitted)
	}
	var opened net.Conn
	err := f.attempt(ctx, s, members, source, "", func(m member) (bool, error) {
		c, err := f.dialMember(ctx, s, m, source)
		if err != nil {
			return true, err
		}
		opened = c
		return false, nil
	})
	return opened, s, err
}

// dialMember connects to a backend server on behalf of a client and remembers for which listener. Closing the connection releases
// the backend server.
func (f *Fabric) dialMember(ctx context.Context, s settings, m member, client netip.AddrPort) (net.Conn, error) {
	network := transport(s.key.Protocol)
	c, err := f.network.Dial(ctx, m.instanceID, network, m.addr, client)
	if err != nil {
		return nil, fmt.Errorf("dial %s on %s: %w", m.addr, m.instanceID, err)
	}
	b := f.balancers.of(s.key)
	return f.conns.add(&conn{
		Conn: c, instanceID: m.instanceID, listener: s.key, backend: m.backend, release: func() { b.release(m) },
	}), nil
}

// proxyHeader is the PROXY protocol header, version 2, that names the client to a backend server.
func proxyHeader(s settings, source netip.AddrPort) ([]byte, error) {
	vip, err := netip.ParseAddr(s.vips[0].Address)
	if err != nil {
		return nil, fmt.Errorf("PROXY header of %s: %w", s.key.lb, err)
	}
	destination := netip.AddrPortFrom(vip, uint16(s.key.Port)) //nolint:gosec // the attribute table admits 1-65535
	var from, to net.Addr = net.TCPAddrFromAddrPort(source), net.TCPAddrFromAddrPort(destination)
	if s.key.Protocol == "udp" {
		from, to = net.UDPAddrFromAddrPort(source), net.UDPAddrFromAddrPort(destination)
	}
	return proxyproto.HeaderProxyFromAddrs(2, from, to).Format()
}

// introduce writes the PROXY header where the listener wants one, within the time of ctx.
func introduce(ctx context.Context, c net.Conn, s settings, source netip.AddrPort) error {
	if !s.proxyV2 {
		return nil
	}
	header, err := proxyHeader(s, source)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := c.Write(header); err != nil {
		return fmt.Errorf("send the PROXY header: %w", err)
	}
	return nil
}
