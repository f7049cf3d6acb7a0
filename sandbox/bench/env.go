package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// podCIDR has a /24 for each of 32,768 nodes.
const podCIDR = "10.128.0.0/9"

// env is a sandbox whose cloud has quotas as large as a scenario needs, which those of a new account are not.
type env struct {
	run
	sandbox *cluster.Cluster
	cloud   *emulator.Emulator
	url     string
	client  kubernetes.Interface
	config  *rest.Config
	// watched are the Nodes as a watch shows them.
	watched   corelisters.NodeLister
	stopWatch func()

	// product is what Services of the scenario get, productCLB or productNLB.
	product string
	manager *manager
	mark    int64 // number of the last call before what is measured
	added   int   // instances so far; their names are not used again
	// vSwitches are those of the cloud: instances are spread over them.
	vSwitches []string
}

// envOptions is how the env of a scenario differs from others.
type envOptions struct {
	product string        // what Services get; productCLB if empty
	settle  time.Duration // time that asynchronous states of the cloud take
	nodes   int           // how many nodes there will be at most
	// broadcastJobs makes OpenKruise work there, and pods of provider-initor really run.
	broadcastJobs bool
	// config is the configuration of the cloud; nil is one with quotas that no scenario reaches.
	config *emulator.Config
	// rateLimits makes the cloud refuse calls beyond the published rate limits. The manager observes them anyway.
	rateLimits bool
	// audit makes the API server log the requests of service accounts.
	audit bool
}

// newEnv starts an env without nodes. Stop ends it.
func newEnv(ctx context.Context, r run, opts envOptions) (*env, error) {
	if opts.config == nil {
		opts.config = roomyConfig()
	}
	sandbox := cluster.Options{
		Dir: r.path("sandbox"), PodCIDR: podCIDR, NodeIP: true, ExpectedNodes: opts.nodes,
		Emulator: cluster.CloudOptions{Config: opts.config, Settle: opts.settle, NoListeners: true},
	}
	if opts.rateLimits {
		sandbox.Emulator.RateLimits = emulator.RateLimitsPublished
	}
	if opts.broadcastJobs {
		sandbox.OpenKruise, sandbox.BinDir = r.program("kruise"), r.binDir
	}
	if opts.audit {
		sandbox.AuditLog = r.path(auditFile)
	}
	started, err := cluster.Start(ctx, sandbox)
	if err != nil {
		return nil, err
	}
	e := &env{
		run: r, product: cmp.Or(opts.product, productCLB), sandbox: started, cloud: started.Cloud.Emulator, url: started.Cloud.URL, client: started.Client,
		config: started.Config,
	}
	for _, vSwitch := range opts.config.VSwitches {
		e.vSwitches = append(e.vSwitches, vSwitch.ID)
	}
	e.watchNodes(ctx)
	e.say("cloud at %s, Kubernetes API at %s", e.url, e.config.Host)
	return e, nil
}

// roomyConfig is the built-in configuration with quotas that no scenario reaches. What one call takes stays as it is.
func roomyConfig() *emulator.Config {
	config := cloud.DefaultConfig()
	config.Quotas = cloud.Limits{
		LoadBalancers: 10_000, LBsPerInstance: 10_000, BackendsPerLB: 10_000, RouteEntriesPerTable: 10_000,
		NLBs: 10_000, NLBGroups: 10_000, NLBGroupsPerServer: 10_000,
	}
	return config
}

// publishedConfig is an account with the published quotas but for those that are given, and for that of routes, since each node has one.
func publishedConfig(raised cloud.Limits) *emulator.Config {
	config := cloud.DefaultConfig()
	config.Quotas = raised
	config.Quotas.RouteEntriesPerTable = 10_000
	return config
}

func (e *env) watchNodes(ctx context.Context) {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	factory := informers.NewSharedInformerFactory(e.client, 0)
	e.watched = factory.Core().V1().Nodes().Lister()
	factory.Start(running.Done())
	e.stopWatch = func() {
		stop()
		factory.Shutdown()
	}
}

// stop ends everything, clients before their servers.
func (e *env) stop() error {
	if e.manager != nil {
		e.manager.Stop()
	}
	e.stopWatch()
	return e.sandbox.Stop()
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
