package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/fabric"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/controlplane"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/lightnode"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/realnode"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/virtualnode"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/vpcnet"
)

// OpenAPIAddress is where programs on machines find the cloud's OpenAPI, in the range that VPCs keep for services of the cloud.
const OpenAPIAddress = "100.100.0.80"

// controlPlaneAddress is the API server's machine, in the built-in VPC and outside its vSwitches.
var controlPlaneAddress = netip.AddrFrom4([4]byte{10, 0, 0, 10})

// leaseHeartbeats is how many heartbeats a kubelet's Lease lasts: the kubelet decides the one by the other.
const leaseHeartbeats = 4

// realNodes are machines in namespaces of the kernel.
type realNodes struct {
	opts  Options
	files *files
	tools realnode.Tools
	self  string
	// name is one that no other sandbox of this host has, and that this one has again after a restart.
	name   string
	vpc    *vpcnet.Network
	cloud  *Cloud
	server *http.Server // the OpenAPI inside the VPC
	fleet  *realnode.Fleet
	// clients are namespaces without a machine, from which a test or a user can look at load balancers.
	clients map[string]*vpcnet.Namespace
}

// The clients of a real sandbox, by the names that dial knows beside those of instances. The first one is in the VPC, with an address
// outside its vSwitches' ranges of instances; the second one is in the internet.
var realClients = []vpcnet.Endpoint{
	{Name: "vpc-client", Address: netip.AddrFrom4([4]byte{10, 1, 255, 250}), Place: vpcnet.Interface},
	{Name: "internet-client", Address: netip.AddrFrom4([4]byte{203, 0, 113, 10}), Place: vpcnet.Internet},
}

func newRealNodes(ctx context.Context, opts Options, files *files) (nodes, error) {
	tools, err := realnode.FindTools()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	digest := sha256.Sum256([]byte(files.dir))
	n := &realNodes{opts: opts, files: files, tools: tools, self: self, name: "sb" + hex.EncodeToString(digest[:])[:6]}
	n.vpc, err = vpcnet.New(ctx, vpcnet.Options{Prefix: n.name, ControlPlane: controlPlaneAddress})
	if err != nil {
		return nil, err
	}
	return n, nil
}

func (n *realNodes) fabric() (fabric.Machines, fabric.Network) { return nil, n.vpc }

// join lets the network follow the cloud and serves the OpenAPI inside the VPC.
func (n *realNodes) join(ctx context.Context, c *Cloud) error {
	n.cloud = c
	if err := n.vpc.Follow(ctx, c.Emulator); err != nil {
		return err
	}
	listener, err := n.vpc.CloudSide().Listen(ctx, net.JoinHostPort(OpenAPIAddress, "80"))
	if err != nil {
		return fmt.Errorf("listen for the OpenAPI inside the VPC: %w", err)
	}
	n.server = &http.Server{Handler: c.Emulator.Handler(), ReadHeaderTimeout: requestTimeout}
	go func() { _ = n.server.Serve(listener) }() // ends with close
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
	archive := n.files.statePath("images.tar")
	if err := writeImages(archive, cmp.Or(n.opts.BinDir, filepath.Dir(n.self))); err != nil {
		return nil, err
	}
	var err error
	n.fleet, err = realnode.NewFleet(realnode.FleetOptions{
		Self: n.self, Tools: n.tools, Dir: n.files.statePath("machines"), Cgroup: "/" + n.name, Log: n.files.log,
		Images:    append([]string{archive}, n.opts.Images...),
		Instances: n.instances, Changed: n.cloud.Changed, Detach: n.vpc.Detach,
		Attach: func(ctx context.Context, instance realnode.Instance) (realnode.Namespace, error) {
			return n.attach(ctx, instance)
		},
		Node: func(instance realnode.Instance) (realnode.Node, error) { return n.node(c, instance, heartbeat) },
	})
	if err != nil {
		return nil, err
	}
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

// runVirtual runs a virtual node, whose pods have network interfaces of the cloud.
func (n *realNodes) runVirtual(ctx context.Context, c *Cluster, name string, heartbeat time.Duration) error {
	return virtualnode.Run(ctx, virtualnode.Options{
		Name: name, Client: c.Client, Heartbeat: heartbeat, Log: n.files.log,
		Attach: func(ctx context.Context, id string) (string, virtualnode.Listen, error) {
			eni, err := n.cloud.PutInterface("eni-"+id, cloud.ContainerSpec{InstanceID: id})
			if err != nil {
				return "", nil, err
			}
			side, err := n.vpc.Attach(ctx, vpcnet.Endpoint{Name: id, Address: eni.Addresses[0], Place: vpcnet.Interface})
			if err != nil {
				n.cloud.ReleaseInterface("eni-" + id)
				return "", nil, err
			}
			return eni.Addresses[0].String(), side.Listen, nil
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
	add := func(all []lightnode.Instance, onPremises bool) {
		for _, instance := range all {
			machines = append(machines, realnode.Instance{
				ID: instance.ID, Name: lightnode.NodeName(instance), Address: instance.PrivateIP, Running: instance.Running, OnPremises: onPremises,
			})
		}
	}
	add(n.cloud.lightInstances(), false)
	add(onPremises(n.opts.OnPremises), true)
	return machines
}

func (n *realNodes) attach(ctx context.Context, instance realnode.Instance) (*vpcnet.Namespace, error) {
	address, err := netip.ParseAddr(instance.Address)
	if err != nil {
		return nil, fmt.Errorf("address of instance %s: %w", instance.ID, err)
	}
	place := vpcnet.Instance
	if instance.OnPremises {
		place = vpcnet.Premises
	}
	return n.vpc.Attach(ctx, vpcnet.Endpoint{Name: instance.ID, Address: address, Place: place})
}

// node is what an instance is to the cluster, with the identities that a bootstrap would have given it.
func (n *realNodes) node(c *Cluster, instance realnode.Instance, heartbeat time.Duration) (realnode.Node, error) {
	address, err := netip.ParseAddr(instance.Address)
	if err != nil {
		return realnode.Node{}, fmt.Errorf("address of instance %s: %w", instance.ID, err)
	}
	node := realnode.Node{
		Name: instance.Name, Address: address, CloudProvider: "external", ClusterCIDR: c.podCIDR, ClusterDNS: n.opts.ClusterDNS,
		CA: c.plane.CA(), LeaseDuration: leaseHeartbeats * heartbeat,
	}
	if strings.HasPrefix(instance.ID, windowsPrefix) {
		node.Labels = map[string]string{corev1.LabelOSStable: "windows"}
		node.Taints = []string{"os=windows:NoSchedule"}
	}
	if node.Kubeconfig, err = c.plane.MachineKubeconfig("system:node:"+instance.Name, "system:nodes"); err != nil {
		return realnode.Node{}, err
	}
	node.ProxyKubeconfig, err = c.plane.MachineKubeconfig("system:kube-proxy")
	return node, err
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
	for verb, do := range map[string]func(*realnode.Machine, string) error{
		"stop": (*realnode.Machine).StopProgram, "start": (*realnode.Machine).StartProgram,
	} {
		mux.HandleFunc("POST /_sandbox/machines/{instance}/"+verb+"/{program}", func(w http.ResponseWriter, r *http.Request) {
			machine := n.fleet.Machine(r.PathValue("instance"))
			if machine == nil {
				http.Error(w, fmt.Sprintf("instance %q does not run", r.PathValue("instance")), http.StatusNotFound)
				return
			}
			if err := do(machine, r.PathValue("program")); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
			}
		})
	}
}

func (n *realNodes) close() error {
	var errs []error
	if n.server != nil {
		errs = append(errs, n.server.Close())
	}
	return errors.Join(append(errs, n.vpc.Close())...)
}
