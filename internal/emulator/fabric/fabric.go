// Package fabric is the network of the emulated cloud: it carries connections from clients to the listeners of load
// balancers, from there to machines, and between machines as the VPC's route tables say.
//
// It reads the store and never changes it. Where its sockets stand is behind the Network interface.
package fabric

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"golang.org/x/time/rate"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// Machines reaches what runs on a machine. addr is "ip:port"; the ip is the machine's own address or one that the VPC
// routed to it (a pod). Implementations are called by many goroutines at once.
type Machines interface {
	Dial(ctx context.Context, instanceID, network, addr string) (net.Conn, error)
}

// Options configure a fabric.
type Options struct {
	Store *cloud.Store
	// Network opens the sockets; nil means loopback addresses of this host.
	Network Network
	// Machines is what runs on the instances of the loopback network; nil means sockets on loopback addresses.
	Machines Machines
	// Listen opens real sockets for the listeners of active load balancers and checks the health of their backend servers. Without
	// it only Dial and DialVIP reach listeners, and every backend server counts as healthy.
	Listen bool
	// Holds notes that a fact about the cloud decides about traffic, and reports whether it holds. Nil means that all hold.
	Holds func(fact string) bool
}

// Fabric is safe for concurrent use.
type Fabric struct {
	store     *cloud.Store
	network   Network
	addresses *addresses // nil where the network is not loopback
	listen    bool
	holds     func(fact string) bool
	balancers balancers
	conns     conns
	health    health
	selfMade  selfMade
	// pace spreads the health checks.
	pace *rate.Limiter

	// syncing serializes what opens and closes sockets, which can take the network as long as the kernel is busy.
	syncing sync.Mutex
	// mu is held for moments only: whoever describes a load balancer takes it under the store's lock, and everybody else would
	// wait for that one.
	mu        sync.Mutex
	frontends map[cloud.ListenerID]*frontend // guarded by mu; changed only under syncing
	// verdict informs follow that a backend server became healthy or failed.
	verdict chan struct{}

	// turn is which address of a name is tried first.
	turn atomic.Uint32

	// ctx ends with the fabric. The connections that its sockets accept belong to no call whose context they could take.
	ctx    context.Context //nolint:containedctx // the lifetime of the fabric's own goroutines
	cancel context.CancelFunc
	wait   sync.WaitGroup
}

// New makes a fabric. With Listen it follows the store until Close.
func New(o Options) *Fabric {
	f := &Fabric{
		store: o.Store, network: o.Network, listen: o.Listen, holds: o.Holds,
		pace:      rate.NewLimiter(probesPerSecond, probesAtOnce),
		frontends: map[cloud.ListenerID]*frontend{}, verdict: make(chan struct{}, 1),
	}
	f.ctx, f.cancel = context.WithCancel(context.Background()) //nolint:forbidigo // ended by Close
	if f.holds == nil {
		f.holds = func(string) bool { return true }
	}
	if f.network == nil {
		f.addresses = &addresses{}
		if o.Machines == nil {
			o.Machines = loopbackMachines{f.addresses}
		}
		f.network = loopbackNetwork{f.addresses, o.Machines}
	}
	f.wait.Go(f.follow)
	return f
}

// follow brings the sockets in line after every change, also those that no call makes: a listener that was starting runs.
func (f *Fabric) follow() {
	for {
		changed := f.store.Changed()
		f.Sync()
		select {
		case <-changed:
		case <-f.verdict:
		case <-f.ctx.Done():
			return
		}
	}
}

// wake makes follow read the state again. A wake-up that is due already is enough.
func (f *Fabric) wake() {
	select {
	case f.verdict <- struct{}{}:
	default:
	}
}

// Close closes every socket and connection and waits for their goroutines.
func (f *Fabric) Close() error {
	f.cancel()
	f.syncing.Lock()
	var errs []error
	for _, key := range f.opened() {
		front := f.find(key)
		f.put(key, nil)
		errs = append(errs, front.close())
	}
	f.syncing.Unlock()
	f.conns.closeWhere(func(string) bool { return true })
	f.wait.Wait()
	return errors.Join(errs...)
}
