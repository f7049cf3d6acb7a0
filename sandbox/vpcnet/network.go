//go:build linux

package vpcnet

import (
	"context"
	"errors"
	"net/http"
	"net/netip"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
)

// Options configure a network.
type Options struct {
	// Prefix begins the names of all namespaces, so that a later process finds what a killed one left: 1 to 8 lower-case letters and
	// digits. Two networks of one host need different ones.
	Prefix string
	// ControlPlane is the address of the API server's machine. Machines of the VPC, of the premises and the internet client reach it.
	// Default 10.0.0.10, which is in the built-in VPC and outside its vSwitches.
	ControlPlane netip.Addr
}

// Network is the VPC with its machines. It is safe for concurrent use.
type Network struct{}

// ErrNotRoot means that the process may not make network namespaces.
var ErrNotRoot = errors.New("network namespaces need Linux and root")

// New makes a cloud without machines and removes what a killed process left under the same prefix. Close ends it.
func New(_ context.Context, _ Options) (*Network, error) { return nil, ErrNotRoot }

// Cloud is what the network follows; *emulator.Emulator is one.
type Cloud interface {
	Changed() <-chan struct{}
	Instances() []emulator.Instance
	// Handler serves the metadata of each instance.
	Handler() http.Handler
}

// Follow keeps the kernel in line with the cloud: routes, checks, running machines; and serves their metadata. It returns when the
// present state is in the kernel, and goes on until Close.
func (n *Network) Follow(_ context.Context, _ Cloud) error { return ErrNotRoot }

// Close removes every namespace, and with them all links, routes and rules; sockets opened in them are closed.
func (n *Network) Close() error { return nil }

// Place is where an endpoint is attached.
type Place int

const (
	// Instance is an ECS instance: Name is its id. It is connected while the cloud says that it runs, its addresses are those of its
	// network interfaces, and 100.100.100.200 answers with its metadata.
	Instance Place = iota
	// Interface is a network interface of the VPC without an ECS instance behind it: the pod of a virtual node (ECI), or a client in
	// the VPC that is no node. No metadata.
	Interface
	// Premises is a machine outside the cloud: it reaches the control plane and what the internet reaches.
	Premises
	// Internet is a client in the internet: it reaches internet VIPs and the control plane.
	Internet
)

// Endpoint is something to attach to the network.
type Endpoint struct {
	// Name is the id of an Instance, and any unique name otherwise.
	Name    string
	Address netip.Addr
	Place   Place
}

// Attach makes the namespace of an endpoint: eth0 with the address, a default route, forwarding on. Attaching a name twice is an error.
func (n *Network) Attach(_ context.Context, _ Endpoint) (*Namespace, error) { return nil, ErrNotRoot }

// Detach cuts an endpoint off at once and removes its namespace. Processes that run in it keep it alive, without network. An unknown
// name is no error.
func (n *Network) Detach(_ string) error { return nil }

// ControlPlane is the namespace of the API server, at Options.ControlPlane. It reaches machines, pods and the premises.
func (n *Network) ControlPlane() *Namespace { return nil }

// CloudSide is the namespace of the cloud itself: services that machines reach under addresses of 100.64.0.0/10 (the OpenAPI, say)
// listen there.
func (n *Network) CloudSide() *Namespace { return nil }
