// Package cluster starts a sandbox: a control plane, the emulated cloud, and light nodes on the cloud's instances, all in the calling
// process and in one directory.
//
// It does not install anything into the cluster: nodes stay tainted and Services stay pending until somebody runs this project's
// programs against it.
package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/child"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/controlplane"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/openkruise"
)

// Address ranges of a sandbox. All lie inside the emulator's VPC (10.0.0.0/8) and outside its vSwitches, as a VPC route table wants.
const (
	PodCIDR     = "10.244.0.0/16" // a /24 for each of 256 nodes
	widePodCIDR = "10.128.0.0/9"  // a /24 for each of 32,768 nodes
	serviceCIDR = "10.96.0.0/16"
)

// wideFrom is the number of first nodes from which the wide range is used; it leaves room for nodes that join later.
const wideFrom = 200

const (
	// graceHeartbeats is how many heartbeats a node may miss before it is Ready=Unknown. Four keep a busy two-core machine from
	// declaring nodes dead that are only late.
	graceHeartbeats = 4
	// heartbeatsPerSecond bounds what the heartbeats of all nodes cost together: with more nodes each one's come less often.
	heartbeatsPerSecond = 50
	minHeartbeat        = time.Second
	// realHeartbeat is for real kubelets: processes of a busy machine are later than one loop for all.
	realHeartbeat = 2 * time.Second
)

// Options configures Start.
type Options struct {
	// Dir takes everything the sandbox writes; it is made when it does not exist. One sandbox at a time can use it.
	Dir string
	// Nodes is the number of ECS instances to begin with, 0 or more.
	Nodes int
	// ExpectedNodes is how many nodes there will be at most, where more join than the Nodes to begin with: with many nodes each one's
	// heartbeats come less often.
	ExpectedNodes int
	// NodeKind is what the nodes are; Light when empty.
	NodeKind NodeKind
	// PodCIDR is the range that the nodes' pod CIDRs are cut from, a /24 each; with a comma and a range of IPv6 behind it, a /64 of that, too
	// (light nodes). Default: a range of IPv4 with room for a few hundred nodes, or for thousands where there are so many.
	PodCIDR string
	// NodeIP starts light kubelets as with --node-ip: Nodes then have an InternalIP before the cloud controller manager has seen them.
	// Real ones are always started so.
	NodeIP bool
	// OnPremises is the number of machines that are in no cloud.
	OnPremises int
	// VirtualNodes is a number of further nodes beside real ones, whose pods are container instances with a network interface each.
	VirtualNodes int
	// Images are archives of container images, as imagetar and `docker save` write them, that real machines have beside their own. They
	// are read by the machines: absolute paths, and none below /etc, /run, /var/lib or /var/log, of which each machine has its own.
	Images []string
	// Published is a directory with the OCI archives of hack/image. Real machines then run the project's programs from these images; "" for
	// images that the sandbox makes of the programs in BinDir.
	Published string
	// ClusterDNS is the address of a name server for the pods of real nodes; "" for none. The sandbox runs none: whoever sets it
	// installs one as a Service.
	ClusterDNS string
	// BinDir holds this project's programs; pods of these then really run. Empty for pods that only look as if.
	BinDir string
	// Kubernetes is the directory that hack/kubernetes/build.sh made, for a control plane of another release of Kubernetes.
	Kubernetes string
	// OpenKruise is the directory that hack/kruise/build.sh made, if the cluster is to have OpenKruise.
	OpenKruise string
	// Emulator sets how the cloud behaves.
	Emulator CloudOptions
	// AuditLog is a file that takes a line for each request of a service account to the API server; "" for none.
	AuditLog string
	// Progress takes one line for each part that has come up; nil for none.
	Progress io.Writer
}

// Cluster is a running sandbox.
type Cluster struct {
	// Cloud is the emulated cloud behind it.
	Cloud *Cloud
	// Client and Config are the administrator's.
	Client kubernetes.Interface
	Config *rest.Config

	files    *files
	nodes    nodes
	plane    *controlplane.ControlPlane
	kruise   *child.Process // nil without OpenKruise
	podCIDR  string         // of all nodes
	kubelets *errgroup.Group
	stop     context.CancelFunc
	failed   context.Context //nolint:containedctx // not for calls: it ends when the kubelets do
}

// Start brings a sandbox up and returns when its nodes are Ready. ctx bounds the start only; Stop ends what was started and removes
// what was written.
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	c := &Cluster{}
	if err := c.start(ctx, opts); err != nil {
		if ctx.Err() == nil {
			if logs := c.KeepLogs(); logs != "" {
				err = fmt.Errorf("%w\n%s", err, logs)
			}
		}
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, opts Options) error {
	var err error
	progress := newProgress(opts.Progress)
	if c.files, err = openDir(opts.Dir); err != nil {
		return err
	}
	if c.nodes, err = newNodes(ctx, opts, c.files); err != nil {
		return err
	}
	if err = c.startCloud(ctx, opts); err != nil {
		return err
	}
	progress.say("cloud emulator at %s with %d instances of this cluster", c.Cloud.URL, opts.Nodes)
	heartbeat := heartbeatOf(opts.NodeKind, max(opts.Nodes, opts.ExpectedNodes))
	c.podCIDR = opts.PodRange()
	c.plane, err = controlplane.Start(ctx, controlplane.Options{
		Dir: c.files.state, ClusterCIDR: c.podCIDR, ServiceCIDR: serviceCIDR,
		NodeMonitorGrace: graceHeartbeats * heartbeat, Network: c.nodes.access(), AuditLog: opts.AuditLog, Log: c.files.log,
		Programs: opts.Kubernetes, Trouble: &c.Cloud.outages.controlPlane,
	})
	if err != nil {
		return err
	}
	c.Config = c.plane.RESTConfig()
	progress.say("Kubernetes API at %s", c.Config.Host)
	if err = c.startNodes(ctx, heartbeat); err != nil {
		return err
	}
	joining := opts.AllNodes()
	if err = waitUsable(ctx, c.Client, joining); err != nil {
		return err
	}
	progress.say("%d nodes ready", joining)
	if opts.OpenKruise != "" {
		if c.kruise, err = openkruise.Start(ctx, openkruise.Options{
			Build: opts.OpenKruise, State: c.files.state, Config: c.plane.RESTConfig(), Kubeconfig: c.plane.Kubeconfig(),
		}); err != nil {
			return err
		}
		progress.say("OpenKruise manager ready")
	}
	config, err := cloudConfig(opts, c.Cloud.URL)
	if err != nil {
		return err
	}
	return c.files.publish(c.plane.Kubeconfig(), config, c.Cloud.URL)
}

// startCloud makes a cloud with the first instances.
func (c *Cluster) startCloud(ctx context.Context, opts Options) error {
	var err error
	if c.Cloud, err = startCloud(ctx, c.nodes, opts.Emulator); err != nil {
		return err
	}
	if err := c.nodes.join(ctx, c.Cloud); err != nil {
		return err
	}
	for i := range opts.Nodes {
		if err := c.Cloud.AddNode(i); err != nil {
			return err
		}
	}
	return nil
}

// startNodes runs the kubelets. Their client has no rate limit: it stands for as many clients as there are nodes.
func (c *Cluster) startNodes(ctx context.Context, heartbeat time.Duration) error {
	c.Config.QPS = -1
	c.Config.ContentType = "application/vnd.kubernetes.protobuf"
	var err error
	if c.Client, err = kubernetes.NewForConfig(c.Config); err != nil {
		return fmt.Errorf("make a client of the API server: %w", err)
	}
	kubelets, err := c.nodes.start(c, heartbeat)
	if err != nil {
		return err
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	c.kubelets, c.failed = errgroup.WithContext(run)
	c.kubelets.Go(func() error { return kubelets(run) })
	return nil
}

// Dir is the directory in which the sandbox was started, as an absolute path.
func (c *Cluster) Dir() string { return c.files.dir }

// Kubeconfig is the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.files.path(kubeconfigFile) }

// CloudConfig is the path of the cloud-config for a cloud controller manager.
func (c *Cluster) CloudConfig() string { return c.files.path(cloudConfigFile) }

// PodCIDR is the range, or two with a comma between them, of the pod CIDRs of nodes.
func (c *Cluster) PodCIDR() string { return c.podCIDR }

// Wait returns when ctx ends, with nil, or when a part of the sandbox has failed, with the reason.
func (c *Cluster) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-c.plane.Done():
		return c.plane.Err()
	case <-c.kruiseDone():
		return c.kruise.Failed()
	case <-c.failed.Done():
		return c.kubelets.Wait()
	}
}

// Stop ends everything, clients before their servers, and removes what the sandbox has written. It also ends a start that failed
// half-way.
func (c *Cluster) Stop() error {
	var errs []error
	if c.kruise != nil {
		c.kruise.Stop()
	}
	if c.stop != nil {
		c.stop()
		errs = append(errs, c.kubelets.Wait())
	}
	if c.plane != nil {
		errs = append(errs, c.plane.Stop())
	}
	if c.Cloud != nil {
		errs = append(errs, c.Cloud.close())
	}
	if c.nodes != nil {
		errs = append(errs, c.nodes.close())
	}
	if c.files != nil {
		errs = append(errs, c.files.remove())
	}
	return errors.Join(errs...)
}

// kruiseDone never ends without OpenKruise.
func (c *Cluster) kruiseDone() <-chan struct{} {
	if c.kruise == nil {
		return nil
	}
	return c.kruise.Done()
}

// AllNodes is how many nodes of all kinds there are to begin with.
func (o Options) AllNodes() int { return o.Nodes + o.OnPremises + o.VirtualNodes }

// PodRange is the range that the pod CIDRs of nodes are cut from: PodCIDR, or its default.
func (o Options) PodRange() string { return cmp.Or(o.PodCIDR, podCIDROf(o.AllNodes())) }

// podCIDROf is the range that so many nodes get their pod CIDRs from.
func podCIDROf(nodes int) string {
	if nodes > wideFrom {
		return widePodCIDR
	}
	return PodCIDR
}

// heartbeatOf is how often each of so many nodes renews its Lease.
func heartbeatOf(kind NodeKind, nodes int) time.Duration {
	if kind == Real {
		return realHeartbeat
	}
	return max(minHeartbeat, time.Duration(nodes)*time.Second/heartbeatsPerSecond)
}
