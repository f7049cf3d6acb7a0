package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/fabric"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/controlplane"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/imagetar"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/lightnode"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/realnode"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/vpcnet"
)

// httpPort is the port of what the cloud serves inside the VPC.
const httpPort = 80

// OpenAPIAddress is where programs on machines find the cloud's OpenAPI, in the range that VPCs keep for services of the cloud.
const OpenAPIAddress = "100.100.0.80"

// registry is where machines find a registry with the images, in a range for documentation: like those of vendors it is in the internet.
var registry = fabric.VIP{Address: "203.0.113.80", Internet: true}

// controlPlaneAddress is the API server's machine, in the built-in VPC and outside its vSwitches.
var controlPlaneAddress = netip.AddrFrom4([4]byte{10, 0, 0, 10})

// realNodes are machines in namespaces of the kernel, in a VPC of their own.
type realNodes struct {
	*machines
	vpc    *vpcnet.Network
	cloud  *Cloud
	server *http.Server // the OpenAPI inside the VPC
	// images is a registry with the images of the machines, which pulls serves.
	images *imagetar.Registry
	pulls  *http.Server
	// clients are namespaces without a machine, from which a test or a user can reach load balancers.
	clients map[string]*vpcnet.Namespace
}

// The clients of a real sandbox, by the names that dial knows beside those of instances. The first one is in the VPC, with an address
// outside its vSwitches' ranges of instances; the second one is in the internet.
var realClients = []vpcnet.Endpoint{
	{Name: "vpc-client", Address: netip.AddrFrom4([4]byte{10, 1, 255, 250}), Place: vpcnet.Interface},
	{Name: "internet-client", Address: netip.AddrFrom4([4]byte{203, 0, 113, 10}), Place: vpcnet.Internet},
}

func newRealNodes(ctx context.Context, opts Options, files *files) (nodes, error) {
	machines, err := newMachines(opts, files)
	if err != nil {
		return nil, err
	}
	n := &realNodes{machines: machines}
	n.vpc, err = vpcnet.New(ctx, vpcnet.Options{Prefix: n.name, ControlPlane: controlPlaneAddress})
	if err != nil {
		return nil, errors.Join(err, n.end())
	}
	return n, nil
}

func (n *realNodes) fabric() (fabric.Machines, fabric.Network) { return nil, n.vpc }

// join lets the network follow the cloud and serves the OpenAPI and the images inside the VPC.
func (n *realNodes) join(ctx context.Context, c *Cloud) error {
	n.cloud = c
	if err := n.vpc.Follow(ctx, c.Emulator); err != nil {
		return err
	}
	listener, err := n.vpc.CloudSide().Listen(ctx, net.JoinHostPort(OpenAPIAddress, strconv.Itoa(httpPort)))
	if err != nil {
		return fmt.Errorf("listen for the OpenAPI inside the VPC: %w", err)
	}
	n.server = &http.Server{Handler: c.Emulator.Handler(), ReadHeaderTimeout: requestTimeout}
	go func() { _ = n.server.Serve(listener) }() // ends with close
	if err = n.serveImages(ctx); err != nil {
		return err
	}
	n.clients = map[string]*vpcnet.Namespace{}
	for _, client := range realClients {
		if n.clients[client.Name], err = n.vpc.Attach(ctx, client); err != nil {
			return err
		}
	}
	return nil
}

func (n *realNodes) access() *controlplane.Network {
	side := n.vpc.ControlPlane()
	return &controlplane.Network{Address: controlPlaneAddress, Listen: side.Listen, Dial: side.Dial}
}

func (n *realNodes) start(c *Cluster, heartbeat time.Duration) (func(context.Context) error, error) {
	n.fleet = realnode.NewFleet(realnode.FleetOptions{
		Program: n.program, Tools: n.tools, Log: n.files.log, Dir: n.files.statePath(machinesDir), Cgroup: "/" + n.name,
		Images: n.archives, Registry: "http://" + registry.Address, Instances: n.instances, Changed: n.cloud.Changed, Attach: n.attach,
		Detach: n.vpc.Detach, Node: func(instance realnode.Instance) (realnode.Node, error) { return n.node(c, instance, heartbeat) },
	})
	return func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return n.fleet.Run(ctx) })
		group.Go(func() error { return n.vpc.Wait(ctx) })
		for i := range n.opts.VirtualNodes {
			group.Go(func() error { return n.runVirtual(ctx, c, fmt.Sprintf("virtual-%d", i+1), heartbeat) })
		}
		return group.Wait()
	}, nil
}

// serveImages makes the images of the machines a registry that all of them reach, for pods whose images are always to be pulled.
func (n *realNodes) serveImages(ctx context.Context) error {
	var err error
	if n.images, err = imagetar.OpenRegistry(n.archives...); err != nil {
		return err
	}
	listener, err := n.vpc.Listen(ctx, registry, httpPort)
	if err != nil {
		return fmt.Errorf("listen for the registry: %w", err)
	}
	n.pulls = &http.Server{Handler: n.images, ReadHeaderTimeout: requestTimeout}
	go func() { _ = n.pulls.Serve(listener) }() // ends with close
	return nil
}

// runVirtual runs a virtual node, whose pods have network interfaces of the cloud.
func (n *realNodes) runVirtual(ctx context.Context, c *Cluster, name string, heartbeat time.Duration) error {
	return lightnode.RunVirtual(ctx, lightnode.VirtualNode{
		Name: name, Client: c.Client, Heartbeat: heartbeat,
		Attach: func(ctx context.Context, id string) (netip.Addr, lightnode.Listen, error) {
			eni, err := n.cloud.PutInterface("eni-"+id, cloud.ContainerSpec{InstanceID: id})
			if err != nil {
				return netip.Addr{}, nil, err
			}
			side, err := n.vpc.Attach(ctx, vpcnet.Endpoint{Name: id, Address: eni.Addresses[0], Place: vpcnet.Interface})
			if err != nil {
				n.cloud.ReleaseInterface("eni-" + id)
				return netip.Addr{}, nil, err
			}
			return eni.Addresses[0], side.Listen, nil
		},
		Detach: func(id string) error {
			n.cloud.ReleaseInterface("eni-" + id)
			return n.vpc.Detach(id)
		},
	})
}

// instances lists the cloud's instances as machines.
func (n *realNodes) instances() []realnode.Instance {
	var machines []realnode.Instance
	add := func(instance lightnode.Instance, onPremises bool) {
		machines = append(machines, realnode.Instance{
			ID: instance.ID, Name: lightnode.NodeName(instance), Address: instance.PrivateIP, Running: instance.Running, OnPremises: onPremises,
		})
	}
	for _, instance := range n.cloud.lightInstances() {
		add(instance, false)
	}
	for _, instance := range onPremises(n.opts.OnPremises) {
		add(instance, true)
	}
	return machines
}

func (n *realNodes) attach(ctx context.Context, instance realnode.Instance) (realnode.Namespace, error) {
	address, err := netip.ParseAddr(instance.Address)
	if err != nil {
		return nil, fmt.Errorf("address of instance %s: %w", instance.ID, err)
	}
	place := vpcnet.Instance
	if instance.OnPremises {
		place = vpcnet.Premises
	}
	side, err := n.vpc.Attach(ctx, vpcnet.Endpoint{Name: instance.ID, Address: address, Place: place})
	if err != nil {
		return nil, err // a nil *Namespace would not be nil to the fleet
	}
	return side, nil
}

// namespace is the network of an instance or a client.
func (n *realNodes) namespace(name string) (*vpcnet.Namespace, error) {
	if client := n.clients[name]; client != nil {
		return client, nil
	}
	if side, ok := n.fleet.Network(name).(*vpcnet.Namespace); ok {
		return side, nil
	}
	return nil, fmt.Errorf("%q is neither an instance that runs nor a client (%s, %s)", name, realClients[0].Name, realClients[1].Name)
}

func (n *realNodes) dial(ctx context.Context, from, network, addr string) (net.Conn, error) {
	side, err := n.namespace(from)
	if err != nil {
		return nil, err
	}
	return side.Dial(ctx, network, addr)
}

// serve answers what only real nodes know: where the network of an instance or a client is, and orders to the programs of a machine.
func (n *realNodes) serve(mux *http.ServeMux) {
	mux.HandleFunc("GET /_sandbox/namespace", func(w http.ResponseWriter, r *http.Request) {
		side, err := n.namespace(r.URL.Query().Get("of"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, side.Path+"\n") // the asker is gone when this fails
	})
	n.servePrograms(mux)
}

func (n *realNodes) close() error {
	var errs []error
	if n.server != nil {
		errs = append(errs, n.server.Close())
	}
	if n.pulls != nil {
		errs = append(errs, n.pulls.Close())
	}
	if n.images != nil {
		errs = append(errs, n.images.Close())
	}
	return errors.Join(append(errs, n.vpc.Close(), n.end())...)
}
