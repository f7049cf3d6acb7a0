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
		a.pool = map[string]string{}
	}
	// Addresses ending in 0 and 255 are skipped for the sake of tools that take them for networks.
	n := len(a.pool)
	a.pool[ip] = fmt.Sprintf("127.%d.%d.%d", poolNet, n/254, n%254+1)
	return a.pool[ip]
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

// LoopbackAddress is where an address of the cloud stands on this host.
func (f *Fabric) LoopbackAddress(ip string) string { return f.addresses.loopback(ip) }
