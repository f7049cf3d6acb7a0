package cluster

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/fabric"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/controlplane"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/lightnode"
)

// NodeKind is what the nodes of a sandbox are.
type NodeKind string

const (
	// Light nodes are kubelets in this process, without containers; they need no rights.
	Light NodeKind = "light"
	// Real nodes are machines with kubelet, containerd and kube-proxy in namespaces of the kernel; they need root on Linux.
	Real NodeKind = "real"
)

// Images that every real machine has. The names are those of manifests that users have, of this project's own, and short ones for tests.
const (
	// The test server also goes by the name nginx, which the demo's Deployments ask for.
	TestServerImage = "docker.io/library/testserver:v1"
	ManagerImage    = "ghcr.io/alicloud-ccm/cloud-controller-manager:sandbox"
	InitorImage     = "ghcr.io/alicloud-ccm/provider-initor:sandbox"
)

// nodes are the machines behind the cloud's instances, with the network between them. The methods are called in the order in which they
// stand here.
type nodes interface {
	// fabric is what the emulator's load balancers run over: one of the two is nil.
	fabric() (fabric.Machines, fabric.Network)
	// join connects the network to the cloud.
	join(ctx context.Context, cloud *Cloud) error
	// access is the network for the control plane, nil when that is this host's.
	access() *controlplane.Network
	// start makes nodes of the cloud's instances: the returned function does until its context ends.
	start(c *Cluster, heartbeat time.Duration) (run func(context.Context) error, err error)
	// dial opens a connection from a machine, as a program that runs there would.
	dial(ctx context.Context, instanceID, network, addr string) (net.Conn, error)
	// serve adds to the sandbox's own HTTP paths.
	serve(mux *http.ServeMux)
	// close ends the network. What the function of start runs has ended before.
	close() error
}

// newNodes makes the network of the nodes that opts ask for.
func newNodes(ctx context.Context, opts Options, files *files) (nodes, error) {
	switch opts.NodeKind {
	case "", Light:
		if opts.VirtualNodes > 0 {
			return nil, fmt.Errorf("%d virtual nodes beside light ones: they need the kind %s", opts.VirtualNodes, Real)
		}
		return &lightNodes{network: lightnode.NewNetwork(context.WithoutCancel(ctx)), opts: opts}, nil
	case Real:
		return newRealNodes(ctx, opts, files)
	default:
		return nil, fmt.Errorf("kind of nodes is %q: %s and %s are accepted", opts.NodeKind, Light, Real)
	}
}

// lightNodes are light.
type lightNodes struct {
	network *lightnode.Network
	opts    Options
	cloud   *Cloud
}

func (n *lightNodes) fabric() (fabric.Machines, fabric.Network) { return n.network, nil }

func (n *lightNodes) join(_ context.Context, cloud *Cloud) error {
	n.cloud = cloud
	n.network.UseVPC(cloud.Fabric().Dial)
	return nil
}

func (n *lightNodes) access() *controlplane.Network { return nil }

func (n *lightNodes) start(c *Cluster, heartbeat time.Duration) (func(context.Context) error, error) {
	runner, err := c.runner(n.opts)
	if err != nil {
		return nil, err
	}
	kubelets, err := lightnode.NewKubelets(lightnode.Options{
		Client: c.Client, Instances: func() []lightnode.Instance { return append(n.cloud.lightInstances(), onPremises(n.opts.OnPremises)...) },
		Changed: n.cloud.Changed, Network: n.network, Heartbeat: heartbeat, NodeIP: n.opts.NodeIP, Runner: runner,
	})
	if err != nil {
		return nil, err
	}
	return kubelets.Run, nil
}

func (n *lightNodes) dial(ctx context.Context, instanceID, network, addr string) (net.Conn, error) {
	return n.cloud.Fabric().Dial(ctx, instanceID, network, addr)
}

func (n *lightNodes) serve(*http.ServeMux) {}

func (n *lightNodes) close() error { return n.network.Close() }
