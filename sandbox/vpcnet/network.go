//go:build linux

package vpcnet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"regexp"
	"sync"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/fabric"
)

// Options configure a network.
type Options struct {
	// Prefix begins the names of all namespaces, so that a later process finds what a killed one left: 1 to 8 lower-case letters and
	// digits. Two networks of one host need different ones.
	Prefix string
	// ControlPlane is the address of the API server's machine. Machines of the VPC, of the premises and the internet client reach it.
	// Default 10.0.0.10, which is in the built-in VPC and outside its vSwitches.
	ControlPlane netip.Addr
	// VPC is the id of the VPC that the network is; default the first one of the cloud.
	VPC string
}

// Cloud is what the network follows; *emulator.Emulator is one.
type Cloud interface {
	// Changed returns a channel that is closed at the next change.
	Changed() <-chan struct{}
	Topology(vpcID string) emulator.Topology
	// Handler serves the metadata of each instance.
	Handler() http.Handler
}

// Network is the VPC with its machines. It is safe for concurrent use.
type Network struct {
	options Options
	cloud   *Namespace
	control *Namespace
	kernel  *kernel
	// metadata serves /metadata/<instance>/; nil until Follow.
	metadata http.Handler

	// mu guards what the plan is made from and serializes its carrying out.
	mu       sync.Mutex
	ports    map[string]*port   // by endpoint name
	vips     map[fabric.VIP]int // open sockets on each
	topology emulator.Topology
	numbers  map[string]int // kernel table by route table id
	made     int            // links made so far; names are not used twice
	closed   bool

	stop func()        // ends following
	done chan struct{} // closed when following ended
	err  error         // why; set before done is closed
}

// ErrNotRoot means that the process may not make network namespaces.
var ErrNotRoot = errors.New("network namespaces need root")

var prefixes = regexp.MustCompile(`^[a-z0-9]{1,8}$`)

// New makes a cloud without machines and removes what a killed process left under the same prefix. Close ends it.
func New(ctx context.Context, o Options) (*Network, error) {
	switch {
	case os.Geteuid() != 0:
		return nil, fmt.Errorf("uid %d: %w", os.Geteuid(), ErrNotRoot)
	case !prefixes.MatchString(o.Prefix):
		return nil, fmt.Errorf("prefix %q: want 1 to 8 lower-case letters and digits", o.Prefix)
	}
	if !o.ControlPlane.IsValid() {
		o.ControlPlane = netip.AddrFrom4([4]byte{10, 0, 0, 10})
	}
	n := &Network{
		options: o, ports: map[string]*port{}, vips: map[fabric.VIP]int{}, numbers: map[string]int{},
		stop: func() {}, done: make(chan struct{}),
	}
	if err := n.build(ctx); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func (n *Network) build(ctx context.Context) error {
	if err := RemoveLeftovers(n.options.Prefix); err != nil {
		return err
	}
	var err error
	if n.cloud, err = makeNamespace(n.options.Prefix + "-cloud"); err != nil {
		return err
	}
	if n.kernel, err = newKernel(n.cloud); err != nil {
		return err
	}
	n.control, err = n.Attach(ctx, Endpoint{Name: "control-plane", Address: n.options.ControlPlane, Place: controlPlane})
	return err
}

// ControlPlane is the namespace of the API server, at Options.ControlPlane. It reaches machines, pods and the premises.
func (n *Network) ControlPlane() *Namespace { return n.control }

// CloudSide is the namespace of the cloud itself: services that machines reach under addresses of 100.64.0.0/10 (the OpenAPI, say)
// listen there.
func (n *Network) CloudSide() *Namespace { return n.cloud }

// Close removes every namespace, and with them all links, routes and rules. Close the emulator first: the sockets of its listeners
// are in the cloud's namespace. What else was opened in a namespace keeps it alive, without name and without links.
func (n *Network) Close() error {
	n.stop()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil
	}
	n.closed = true
	var errs []error
	for name := range n.ports {
		errs = append(errs, n.unplug(name))
	}
	if n.kernel != nil {
		n.kernel.close()
	}
	if n.cloud != nil {
		errs = append(errs, n.cloud.remove())
	}
	return errors.Join(errs...)
}
