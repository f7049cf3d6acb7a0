package provider

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/node"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
)

// clientName names the provider's client in the API server's audit log.
const clientName = "alicloud-cloud-provider"

// Settings come from the command line. The zero value serves a provider that is linked into a stock CCM.
type Settings struct {
	// ClusterCIDRs are those of --cluster-cidr; routes outside of them are never touched.
	ClusterCIDRs []netip.Prefix
	// RoutePeriod is --route-reconciliation-period, the pace of drift repair.
	RoutePeriod time.Duration
	// ServiceWorkers is --concurrent-service-syncs.
	ServiceWorkers int
	// NodeEventWait is how long a Service waits for further nodes to come up. Default: that of [service.Options].
	NodeEventWait time.Duration
	// BackendBatch, RouteBatch and NodeBatch bound what one call takes: backend servers of [alicloud.Options], routes of
	// [vpcroute.Options], instances of [node.Options]. Defaults: theirs.
	BackendBatch int
	RouteBatch   int
	NodeBatch    int
	// SkipSourceDestCheck leaves the source/destination check of the nodes' network interfaces as it is.
	SkipSourceDestCheck bool
	// Network is the middle part of the default endpoints, see [alicloud.Endpoints].
	Network string
	// APIServerAddresses are those by which this program reaches the API server, see [config.Config].
	APIServerAddresses []string
	// ControlPlaneNodes says whether control-plane nodes are backends. Default: only where there are no others.
	ControlPlaneNodes backend.ControlPlanePolicy
	// PrefixedProviderIDs writes new provider IDs with a scheme.
	PrefixedProviderIDs bool
	// NodeIPv6 reports IPv6 addresses of nodes.
	NodeIPv6 bool
	// NodeMonitorPeriod is --node-monitor-period. Default: that of [node.Options].
	NodeMonitorPeriod time.Duration
	// NodeGuard bounds the deletion of Nodes. Defaults: those of [node.GuardOptions].
	NodeGuard node.GuardOptions
	// OnPremises are the addresses of machines outside of Alibaba Cloud, see [node.Options].
	OnPremises []netip.Prefix
	// RouteTableVSwitches and RouteTableTag select route tables by association and by tag, see [vpcroute.Config].
	RouteTableVSwitches []string
	RouteTableTag       *alicloud.Tag
	// CredentialsFile is a file or directory with keys, see [CredentialsOptions].
	CredentialsFile string
	// Endpoints win over those of the environment and of the file.
	Endpoints Endpoints
	// PlainMetadata never asks the metadata service for a token.
	PlainMetadata bool
	// Policy has the fields of --policy, which win over those of the cloud-config.
	Policy policy.Policy
	// WithoutCLB and WithoutNLB leave the Services with a load balancer of this product alone.
	WithoutCLB, WithoutNLB bool
	// Lease is that of the leader election. Only [Cloud.Examine] reads it.
	Lease ElectionLease
	// ControllerIdentities is --use-service-account-credentials. Only [Cloud.Examine] asks for the right that it needs.
	ControllerIdentities bool
}

// Cloud implements [cloudprovider.Interface].
//
// The stock app calls Initialize, then SetInformers, then asks for the engines; nothing is called at the same time.
type Cloud struct {
	config   Config
	env      Environment
	settings Settings
	permits  *node.DeletionPermits

	// Set by Connect.
	metadata    *alicloud.Metadata
	credentials alicloud.CredentialsProvider
	// keySource names where the keys come from, as a user knows it.
	keySource string
	client    *alicloud.Client
	place     place
	vSwitches []alicloud.VSwitch // of the VPC; none where the key may not list them
	// vSwitchesRead is when that was. A standby may become leader long after.
	vSwitchesRead time.Time
	clusterID     string
	// clusterInfo are the addresses of the API server that kubeadm gives new nodes.
	clusterInfo []string
	// endpointSlices is false where the role may not read them.
	endpointSlices bool

	// Set by Initialize.
	ctx  context.Context //nolint:containedctx // the life of the process, which the stock interface gives as a channel
	kube kubernetes.Interface

	// Set by SetInformers.
	engines *engines
	// synced are the caches to be filled; nil before this process leads.
	synced atomic.Pointer[[]cache.InformerSynced]

	pause *pauseSwitch
	// onlyReads says that the client refuses writes, because this is a program that only looks.
	onlyReads   atomic.Bool
	beforeStart func(context.Context)
	running     sync.WaitGroup // the controllers of Go
}

var (
	_ cloudprovider.Interface    = (*Cloud)(nil)
	_ cloudprovider.InformerUser = (*Cloud)(nil)
)

// New returns a provider. It makes no call.
func New(config Config, env Environment) *Cloud {
	return &Cloud{config: config, env: env, permits: node.NewDeletionPermits(), pause: newPauseSwitch(config)}
}

// Configure sets what the command line says. It must be called before Connect.
func (c *Cloud) Configure(settings Settings) { c.settings = settings }

// BeforeStart has Initialize call f first, with the life of the process, and wait for its return: the stock app starts the
// controllers after it. It must be called before Initialize.
func (c *Cloud) BeforeStart(f func(context.Context)) { c.beforeStart = f }

// Go runs a controller, for [Cloud.Wait] to wait for.
func (c *Cloud) Go(run func()) { c.running.Go(run) }

// Wait waits until the controllers of [Cloud.Go] have ended, and reports whether they did so in time.
func (c *Cloud) Wait(limit time.Duration) bool {
	ended := make(chan struct{})
	go func() {
		c.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return true
	case <-time.After(limit):
		return false
	}
}

// Initialize implements [cloudprovider.Interface]. It connects where that has not been done, which is so when the
// provider is linked into a stock CCM, and ends the process when the cloud cannot be used: the interface has no error.
func (c *Cloud) Initialize(builder cloudprovider.ControllerClientBuilder, stop <-chan struct{}) {
	c.kube = builder.ClientOrDie(clientName)
	c.ctx = wait.ContextForChannel(stop)
	if c.beforeStart != nil {
		c.beforeStart(c.ctx)
	}
	if c.client == nil {
		if err := c.Connect(c.ctx, c.kube); err != nil {
			klog.ErrorS(err, "Cannot connect to the cloud")
			klog.FlushAndExit(klog.ExitFlushTimeout, 1)
		}
	}
	go alicloud.KeepFresh(c.ctx, c.credentials)
	c.pause.begin(c.ctx)
}

// SetInformers implements [cloudprovider.InformerUser].
func (c *Cloud) SetInformers(factory informers.SharedInformerFactory) {
	if err := trimCaches(factory, c.endpointSlices); err != nil {
		// The informers have been started by somebody else.
		klog.ErrorS(err, "Cannot reduce the objects in the caches, which now need more memory")
	}
	c.engines = c.wire(factory)
	c.follow(c.engines)
}

// LoadBalancer implements [cloudprovider.Interface].
func (c *Cloud) LoadBalancer() (cloudprovider.LoadBalancer, bool) {
	return c.engines.loadBalancer, true
}

// InstancesV2 implements [cloudprovider.Interface].
func (c *Cloud) InstancesV2() (cloudprovider.InstancesV2, bool) {
	return routedInstances{InstancesV2: c.engines.instances, begin: c.beginJoining}, true
}

// Routes implements [cloudprovider.Interface].
func (c *Cloud) Routes() (cloudprovider.Routes, bool) { return c.engines.routes, true }

// Instances implements [cloudprovider.Interface]; InstancesV2 replaces it.
func (*Cloud) Instances() (cloudprovider.Instances, bool) { return nil, false }

// Zones implements [cloudprovider.Interface]; InstancesV2 replaces it.
func (*Cloud) Zones() (cloudprovider.Zones, bool) { return nil, false }

// Clusters implements [cloudprovider.Interface]; no controller asks for it.
func (*Cloud) Clusters() (cloudprovider.Clusters, bool) { return nil, false }

// ProviderName implements [cloudprovider.Interface].
func (*Cloud) ProviderName() string { return Name }

// HasClusterID implements [cloudprovider.Interface]. There is always one, see [Cloud.Connect].
func (*Cloud) HasClusterID() bool { return true }
