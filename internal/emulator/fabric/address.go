package fabric

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
)

// addresses maps addresses of the cloud to loopback addresses of this host: 10.a.b.c stands on 127.a.b.c, everything else
// on the next free address of a pool. The zero value is ready.
type addresses struct {
	mu   sync.Mutex
	pool map[string]string // guarded by mu
	// standsFor is the pool the other way round; guarded by mu.
	standsFor map[netip.Addr]netip.Addr
}

// poolNet is the second octet of the pool's addresses, which no 10.x address is mapped to.
const poolNet = 255

// loopback returns the loopback address for an address of the cloud. It stays the same for the life of the fabric.
func (a *addresses) loopback(ip string) string {
	if addr, err := netip.ParseAddr(ip); err == nil && addr.Is4() {
		b := addr.As4()
		usual := b[0] == 10 && b[1] != poolNet && (b[1] != 0 || b[2] != 0)
		if usual {
			return fmt.Sprintf("127.%d.%d.%d", b[1], b[2], b[3])
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if have, ok := a.pool[ip]; ok {
		return have
	}
	if a.pool == nil {
		a.pool, a.standsFor = map[string]string{}, map[netip.Addr]netip.Addr{}
	}
	// Addresses ending in 0 and 255 are skipped for the sake of tools that take them for networks.
	n := len(a.pool)
	a.pool[ip] = fmt.Sprintf("127.%d.%d.%d", poolNet, n/254, n%254+1)
	if addr, err := netip.ParseAddr(ip); err == nil {
		a.standsFor[netip.MustParseAddr(a.pool[ip])] = addr
	}
	return a.pool[ip]
}

// cloud returns the address of the cloud that a loopback address stands for: that is what access control lists and
// X-Forwarded-For are about. 127.0.0.x stands for itself.
func (a *addresses) cloud(here netip.Addr) netip.Addr {
	here = here.Unmap()
	if !here.Is4() || !here.IsLoopback() {
		return here
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if addr, ok := a.standsFor[here]; ok {
		return addr
	}
	b := here.As4()
	if b[1] == poolNet || (b[1] == 0 && b[2] == 0) {
		return here
	}
	return netip.AddrFrom4([4]byte{10, b[1], b[2], b[3]})
}

// source is the cloud's address of whoever is at the other end of a socket.
func (a *addresses) source(remote net.Addr) netip.AddrPort {
	here, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(a.cloud(here.Addr()), here.Port())
}

// loopbackMachines finds machines on their loopback addresses.
type loopbackMachines struct{ addresses *addresses }

// Dial connects to the loopback address that stands for addr. The instance does not matter: its address says it.
func (m loopbackMachines) Dial(ctx context.Context, _, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	var d net.Dialer
	return d.DialContext(ctx, network, net.JoinHostPort(m.addresses.loopback(host), port))
}

// LoopbackAddress is where an address of the cloud stands on this host; "" where the network is not loopback.
func (f *Fabric) LoopbackAddress(ip string) string {
	if f.addresses == nil {
		return ""
	}
	return f.addresses.loopback(ip)
}
