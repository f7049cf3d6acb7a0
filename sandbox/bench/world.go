package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/controlplane"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/lightnode"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/openkruise"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/podprocess"
)

// Address ranges, inside the emulator's VPC (10.0.0.0/8) and outside its vSwitches.
const (
	podCIDR     = "10.128.0.0/9" // a /24 for each of 32,768 nodes
	serviceCIDR = "10.96.0.0/16"
)

const (
	// heartbeatsPerSecond bounds what the heartbeats of all nodes cost together, as in a sandbox.
	heartbeatsPerSecond = 50
	graceHeartbeats     = 4
)

// world is a sandbox whose cloud has quotas as large as a scenario needs, which those of a new account are not.
type world struct {
	run
	cloud  *emulator.Emulator
	url    string
	client kubernetes.Interface
	config *rest.Config
	// watched are the Nodes as a watch shows them.
	watched corelisters.NodeLister

	manager *manager
	mark    int64 // number of the last call before what is measured
	added   int   // instances so far; their names are not used again

	network  *lightnode.Network
	server   *http.Server
	served   chan error
	plane    *controlplane.ControlPlane
	kruise   *openkruise.Manager // nil without
	log      *os.File
	stopNode context.CancelFunc
	kubelets *errgroup.Group // and the watch of nodes
}

// worldOptions is how the world of a scenario differs from others.
type worldOptions struct {
	settle time.Duration // time that asynchronous states of the cloud take
	nodes  int           // how many nodes there will be at most
	// broadcastJobs makes OpenKruise work there, and pods of provider-initor really run.
	broadcastJobs bool
	// audit makes the API server write down who asks it for what.
	audit bool
}

// newWorld starts a world without nodes. Stop ends it, also when its start failed.
func newWorld(ctx context.Context, r run, opts worldOptions) (*world, error) {
	w := &world{run: r, served: make(chan error, 1)}
	if err := w.start(ctx, opts); err != nil {
		return nil, errors.Join(err, w.stop(ctx))
	}
	w.say("cloud at %s, Kubernetes API at %s", w.url, w.config.Host)
	return w, nil
}

func (w *world) start(ctx context.Context, opts worldOptions) error {
	life := context.WithoutCancel(ctx)
	w.network = lightnode.NewNetwork(life)
	var err error
	if w.cloud, err = emulator.New(emulator.Options{Config: roomyConfig(), Settle: opts.settle, Machines: w.network}); err != nil {
		return fmt.Errorf("start the emulator: %w", err)
	}
	w.network.UseVPC(w.cloud.Fabric().Dial)
	if err := w.serve(ctx); err != nil {
		return err
	}
	if w.log, err = os.Create(w.path("control-plane.log")); err != nil {
		return fmt.Errorf("open the control plane's log: %w", err)
	}
	state := w.path("control-plane")
	if err := os.Mkdir(state, 0o700); err != nil {
		return fmt.Errorf("make a directory for the control plane: %w", err)
	}
	heartbeat := max(time.Second, time.Duration(opts.nodes)*time.Second/heartbeatsPerSecond)
	plane := controlplane.Options{
		Dir: state, ClusterCIDR: podCIDR, ServiceCIDR: serviceCIDR, NodeMonitorGrace: graceHeartbeats * heartbeat, Log: w.log,
	}
	if opts.audit {
		plane.AuditLog = w.path(auditFile)
	}
	w.plane, err = controlplane.Start(ctx, plane)
	if err != nil {
		return err
	}
	if err := w.startKubelets(life, heartbeat, opts.broadcastJobs); err != nil || !opts.broadcastJobs {
		return err
	}
	w.kruise, err = openkruise.Start(ctx, openkruise.Options{
		Build: w.program("kruise"), State: state, Config: w.plane.RESTConfig(), Kubeconfig: w.plane.Kubeconfig(),
	})
	return err
}

// roomyConfig is the built-in configuration with quotas that no scenario reaches. What one call takes stays as it is.
func roomyConfig() *emulator.Config {
	config := cloud.DefaultConfig()
	config.Quotas = cloud.Limits{
		LoadBalancers: 10_000, LBsPerInstance: 10_000, BackendsPerLB: 10_000, RouteEntriesPerTable: 10_000,
	}
	return config
}

func (w *world) serve(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the emulator: %w", err)
	}
	w.url = "http://" + listener.Addr().String()
	w.server = &http.Server{Handler: w.cloud.Handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() { w.served <- w.server.Serve(listener) }()
	return nil
}

func (w *world) startKubelets(life context.Context, heartbeat time.Duration, runPods bool) error {
	w.config = w.plane.RESTConfig()
	w.config.QPS = -1 // it stands for as many clients as there are nodes
	w.config.ContentType = "application/vnd.kubernetes.protobuf"
	var err error
	if w.client, err = kubernetes.NewForConfig(w.config); err != nil {
		return fmt.Errorf("make a client of the API server: %w", err)
	}
	var runner lightnode.Runner
	if runPods {
		if runner, err = podprocess.New(podprocess.Options{
			BinDir: w.binDir, Client: w.client, Config: w.config, Dir: w.dir, CloudURL: w.url,
			Metadata: func(instanceID string) string { return w.url + "/metadata/" + instanceID },
		}); err != nil {
			return err
		}
	}
	kubelets, err := lightnode.NewKubelets(lightnode.Options{
		Client: w.client, Instances: w.instances, Changed: w.cloud.Changed, Network: w.network, Heartbeat: heartbeat, NodeIP: true,
		Runner: runner,
	})
	if err != nil {
		return err
	}
	var running context.Context
	running, w.stopNode = context.WithCancel(life)
	w.kubelets = &errgroup.Group{}
	w.kubelets.Go(func() error { return kubelets.Run(running) })
	factory := informers.NewSharedInformerFactory(w.client, 0)
	w.watched = factory.Core().V1().Nodes().Lister()
	factory.Start(running.Done())
	w.kubelets.Go(func() error {
		<-running.Done()
		factory.Shutdown()
		return nil
	})
	return nil
}

// instances lists the cloud's instances for the kubelets.
func (w *world) instances() []lightnode.Instance {
	var all []lightnode.Instance
	for _, i := range w.cloud.Instances() {
		all = append(all, lightnode.Instance{ID: i.ID, Name: i.Name, PrivateIP: i.PrivateIP, Running: i.Status == cloud.Running})
	}
	return all
}

// stop ends everything, clients before their servers. It also ends a start that failed half-way.
func (w *world) stop(ctx context.Context) error {
	var errs []error
	if w.manager != nil {
		errs = append(errs, w.manager.stop(ctx))
	}
	if w.kruise != nil {
		errs = append(errs, w.kruise.Stop())
	}
	if w.stopNode != nil {
		w.stopNode()
		errs = append(errs, w.kubelets.Wait())
	}
	if w.plane != nil {
		errs = append(errs, w.plane.Stop())
	}
	if w.server != nil {
		errs = append(errs, w.server.Close())
		if err := <-w.served; !errors.Is(err, http.ErrServerClosed) {
			errs = append(errs, err)
		}
	}
	if w.cloud != nil {
		errs = append(errs, w.cloud.Close())
	}
	errs = append(errs, w.network.Close())
	if w.log != nil {
		errs = append(errs, w.log.Close())
	}
	return errors.Join(errs...)
}

// run is what every scenario gets.
type run struct {
	binDir, dir string
	progress    io.Writer
	start       time.Time
	// steadyWindow is how long the steady state is watched, as asked for.
	steadyWindow time.Duration
}

func (r run) path(name string) string { return filepath.Join(r.dir, name) }

func (r run) program(name string) string { return filepath.Join(r.binDir, name) }

// say drops write errors: a reader of the progress that has gone is no reason to stop.
func (r run) say(format string, args ...any) {
	_, _ = fmt.Fprintf(r.progress, "[%5.1fs] %s\n", time.Since(r.start).Seconds(), fmt.Sprintf(format, args...))
}
