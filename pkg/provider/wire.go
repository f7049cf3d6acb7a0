package provider

import (
	"context"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/record"
	cloudprovider "k8s.io/cloud-provider"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/node"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sources"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/vpcroute"
)

// Event sources, by the names that the official CCM's users filter on.
const (
	serviceEvents = "service-controller"
	routeEvents   = "route-controller"
	nodeEvents    = "node-controller"
	// credentialsEvents has no counterpart there.
	credentialsEvents = "cloud-controller-manager"
)

// engines are what acts on the cloud, and the adapters through which the stock interface reaches it.
type engines struct {
	services *service.Reconciler
	routeOps *vpcroute.Writer

	serviceOptions service.Options
	routeOptions   vpcroute.Options

	instances    *node.Instances
	loadBalancer cloudprovider.LoadBalancer
	routes       cloudprovider.Routes
}

// newBroadcaster sends events to the API server, which keeps them for an hour, and to the log.
func newBroadcaster(ctx context.Context, kube kubernetes.Interface) record.EventBroadcaster {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartStructuredLogging(0)
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: kube.CoreV1().Events("")})
	return broadcaster
}

func recorderOf(broadcaster record.EventBroadcaster) func(source string) record.EventRecorder {
	return func(source string) record.EventRecorder {
		return broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: source})
	}
}

// routeQuota is the quota of route entries as pkg/vpcroute knows it.
func routeQuota(book *quota.Book) vpcroute.Quota {
	limit := book.Limit(quota.RouteEntries)
	return vpcroute.Quota{Value: limit.Value, Origin: limit.Origin(0), Advice: limit.Advice(), Assumed: limit.Assumed}
}

func (c *Cloud) wire(factory informers.SharedInformerFactory) *engines {
	recorder := recorderOf(newBroadcaster(c.ctx, c.kube))
	reportBadCredentials(c.ctx, c.credentials, c.kube, recorder(credentialsEvents))
	nodes := factory.Core().V1().Nodes()
	instanceID := node.InstanceIDOf(c.client.Region())

	services := c.serviceConfig()
	services.FindAPIServer = c.apiServers(factory, instanceID)
	served, elsewhere := c.products(services, factory.Core().V1().Services().Lister())
	e := &engines{
		serviceOptions: service.Options{
			Engines: served, Elsewhere: elsewhere,
			Network: c.client, Config: services, Client: c.kube, Recorder: recorder(serviceEvents),
			Services: factory.Core().V1().Services(), Nodes: nodes,
			InstanceID: instanceID, Workers: c.serviceWorkers(), NodeDelay: c.settings.NodeEventWait,
		},
		routeOptions: vpcroute.Options{
			API: c.client, Config: c.routeConfig(), Client: c.kube, Recorder: recorder(routeEvents), Nodes: nodes,
			InstanceID: instanceID, SkipSourceDestCheck: c.settings.SkipSourceDestCheck, VSwitches: c.vSwitches, VSwitchesRead: c.vSwitchesRead,
			Quota:     func() vpcroute.Quota { return routeQuota(services.Quotas) },
			BatchSize: c.settings.RouteBatch, Paused: c.pause.active,
		},
		instances: node.NewInstances(node.Options{
			API: c.client, Region: c.client.Region(), VPCID: c.place.vpcID, Nodes: nodes, Recorder: recorder(nodeEvents),
			PrefixedProviderIDs: c.settings.PrefixedProviderIDs, IPv6: c.settings.NodeIPv6 || c.config.NodeIPv6,
			MonitorPeriod: c.settings.NodeMonitorPeriod, BatchSize: c.settings.NodeBatch,
			OnPremises: c.settings.OnPremises, Permits: c.permits, Guard: c.settings.NodeGuard, Paused: c.pause.active,
		}),
	}
	if c.readsQuotas() {
		e.serviceOptions.Quotas = c.client
	}
	if services.Policy.RestrictsAddresses() {
		e.serviceOptions.Pods = sources.NewPods(c.ctx, c.kube)
	}
	if c.endpointSlices {
		e.serviceOptions.EndpointSlices = factory.Discovery().V1().EndpointSlices()
	} else {
		e.serviceOptions.Endpoints = factory.Core().V1().Endpoints()
	}
	e.services = service.NewReconciler(e.serviceOptions)
	e.loadBalancer = service.NewLoadBalancer(e.services)
	e.routeOps = vpcroute.NewWriter(e.routeOptions)
	e.routes = vpcroute.NewRoutes(e.routeOps)
	return e
}

// products are the engines of the products that are served, and the products that are not.
func (c *Cloud) products(config config.Config, services corelisters.ServiceLister) (served []driver.Engine, elsewhere []driver.Product) {
	for _, engine := range []struct {
		driver.Engine
		off bool
	}{{slb.NewEngine(c.client, config, services), c.settings.WithoutCLB}, {nlb.NewEngine(c.client, config, services), c.settings.WithoutNLB}} {
		if engine.off {
			elsewhere = append(elsewhere, engine.Product())
			continue
		}
		served = append(served, engine.Engine)
	}
	return served, elsewhere
}

func (c *Cloud) serviceConfig() config.Config {
	return config.Config{
		ClusterID: c.clusterID, VPCID: c.place.vpcID, VSwitchIDs: c.place.vSwitchIDs, ResourceGroupID: c.config.ResourceGroupID,
		DisablePublicSLB: c.config.DisablePublicSLB, DefaultBackendENI: c.config.BackendENI || c.env.BackendENI,
		ControlPlaneNodes: c.settings.ControlPlaneNodes, Region: c.client.Region(), TypeAnnotation: c.config.TypeAnnotation,
		APIServerAddresses: c.settings.APIServerAddresses, Policy: c.policy(), Paused: c.pause.active,
		IPMode: c.config.IPMode, DefaultNLB: c.config.DefaultNLB, NLBZoneMaps: c.config.NLBZoneMaps,
		BackendSubset: c.config.BackendSubset, Quotas: quota.NewBook(c.config.Quotas),
	}
}

// policy is that of the command line, and for what it leaves open that of the cloud-config.
func (c *Cloud) policy() policy.Policy { return c.config.Policy.With(c.settings.Policy) }

func (c *Cloud) routeConfig() vpcroute.Config {
	return vpcroute.Config{
		ClusterCIDRs: c.settings.ClusterCIDRs, TableIDs: c.config.RouteTableIDs, VPCID: c.place.vpcID, ClusterID: c.clusterID,
		Period: c.settings.RoutePeriod, VSwitchIDs: c.settings.RouteTableVSwitches, TableTag: c.settings.RouteTableTag,
	}
}

// serviceWorkers takes the file's number before the flag's, as the official CCM does.
func (c *Cloud) serviceWorkers() int {
	if c.config.ServiceWorkers > 0 {
		return c.config.ServiceWorkers
	}
	return c.settings.ServiceWorkers
}

// GuardDeletions returns a transport that deletes a Node only as the object whose instance was found to be gone. The client of
// the stock node-lifecycle controller needs it, which deletes by name.
func (c *Cloud) GuardDeletions(next http.RoundTripper) http.RoundTripper {
	return c.permits.Transport(next)
}

// NodeController returns the controller that stands beside the stock one for nodes. It compares every Node once per period.
func (c *Cloud) NodeController(period time.Duration) (*node.Controller, error) {
	return node.NewController(c.engines.instances, c.kube, period)
}

// ServiceController returns the controller that replaces the stock one for Services.
func (c *Cloud) ServiceController() (*service.Controller, error) {
	controller, err := service.NewController(c.engines.serviceOptions, c.engines.services)
	if err == nil {
		c.pause.follow(controller.Resync)
	}
	return controller, err
}

// RouteController returns the controller that replaces the stock one for routes.
func (c *Cloud) RouteController() (*vpcroute.Controller, error) {
	controller, err := vpcroute.NewController(c.engines.routeOptions, c.engines.routeOps)
	if err == nil {
		c.pause.follow(controller.Resync)
	}
	return controller, err
}

// LeftOutController returns the controller that clears up after the route controller where another program may run one.
func (c *Cloud) LeftOutController() (*vpcroute.Controller, error) {
	return vpcroute.NewLeftOutController(c.engines.routeOptions)
}

// UnroutedController returns the controller that takes the route controller's place where routes are switched off.
func (c *Cloud) UnroutedController() (*vpcroute.Controller, error) {
	return vpcroute.NewController(c.engines.routeOptions, nil)
}
