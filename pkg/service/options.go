package service

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	discoveryinformers "k8s.io/client-go/informers/discovery/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/rights"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sources"
)

// Options are what a [Reconciler], a [Controller] and the adapter need.
type Options struct {
	// Engines are the products; at least one.
	Engines []driver.Engine
	// Elsewhere are the products that another program serves, or nobody. A Service that has a load balancer of one of them, as its
	// finalizer says, is left alone, whatever its class.
	Elsewhere []driver.Product
	// Network finds the network interfaces of pods.
	Network sources.NetworkReader
	Config  config.Config
	// Quotas reads the quotas of the account. nil reads none.
	Quotas QuotaReader
	// Client writes finalizers, labels and status of Services.
	Client   kubernetes.Interface
	Recorder record.EventRecorder

	Services coreinformers.ServiceInformer
	Nodes    coreinformers.NodeInformer
	// EndpointSlices is nil where the role may not list EndpointSlices. Then Endpoints is required and used in their place;
	// otherwise Endpoints is not used.
	EndpointSlices discoveryinformers.EndpointSliceInformer
	Endpoints      coreinformers.EndpointsInformer
	// Pods knows which addresses pods have. It is required where the policy restricts the addresses of backends; nil knows no pod.
	Pods *sources.Pods

	// InstanceID returns the id of the ECS instance that a node is, or an error when it is not one of our region, or not
	// known to be one yet.
	InstanceID func(*corev1.Node) (string, error)

	// Workers is how many Services are worked on at a time. Default 10.
	Workers int
	// NodeDelay collects the events of nodes that come up together into one pass per Service. Nodes that go are not waited
	// for. Default 1 s.
	NodeDelay time.Duration
	// ResyncPeriod is how old the state of a load balancer may grow before it is read again to repair drift. Default 10 minutes;
	// up to a fifth is added at random.
	ResyncPeriod time.Duration
	// MoveGrace is how long a Service stays on the load balancer that it leaves, once its status shows the one that it has moved to. Default
	// 30 s.
	MoveGrace time.Duration
}

const (
	defaultWorkers   = 10
	defaultNodeDelay = time.Second
	// defaultMoveGrace: clients and caches of DNS have some time to follow the status.
	defaultMoveGrace = waits.Moved
	// defaultResyncPeriod: the promise to users is that a listener changed by hand is restored within ten minutes or so.
	defaultResyncPeriod = waits.DriftPeriod
)

func (o Options) withDefaults() Options {
	if o.Workers <= 0 {
		o.Workers = defaultWorkers
	}
	if o.NodeDelay <= 0 {
		o.NodeDelay = defaultNodeDelay
	}
	if o.MoveGrace <= 0 {
		o.MoveGrace = defaultMoveGrace
	}
	if o.ResyncPeriod <= 0 {
		o.ResyncPeriod = defaultResyncPeriod
	}
	if o.Config.ControlPlaneNodes == "" {
		o.Config.ControlPlaneNodes = backend.ControlPlaneAuto
	}
	return o
}

// endpointInformer is the one that endpoints are read from.
func (o Options) endpointInformer() cache.SharedIndexInformer {
	if o.EndpointSlices == nil {
		return o.Endpoints.Informer()
	}
	return o.EndpointSlices.Informer()
}

// Rights are what the service controller needs at the API server. Endpoints are read only where the role has no right to
// EndpointSlices, which this one has.
func Rights() []rights.Right {
	slices := rights.ToWatch("discovery.k8s.io", "endpointslices",
		"backends of load balancers, in place of Endpoints, which end at 1,000 addresses")
	slices.Optional = true
	return []rights.Right{
		rights.ToWatch("", "services", "the Services to serve"),
		{Resource: "services/status", Verbs: []string{"patch"}, Why: "address, conditions, finalizer and label of a Service"},
		rights.ToWatch("", "nodes", "backends of load balancers"),
		{
			Resource: "namespaces", Verbs: []string{"get"}, Rare: []string{"get"}, Optional: true,
			Why: "the annotation paused: it ends for Services that are deleted with their namespace",
		},
		slices,
		{
			Resource: "pods", Verbs: []string{"get"}, Rare: []string{"get"}, Optional: true,
			Why: "readiness gates: endpoints that are not ready and whose addresses are to be backends",
		},
		{
			Resource: "pods", Verbs: []string{"list", "watch"}, Rare: []string{"list", "watch"}, Optional: true,
			Why: "endpointAddresses pods: the addresses of pods in namespaces whose Services have pods as backends",
		},
		{
			Resource: "pods/status", Verbs: []string{"patch"}, Rare: []string{"patch"}, Optional: true,
			Why: "readiness gates of pods that are backends",
		},
		{Resource: "nodes/status", Verbs: []string{"patch"}, Optional: true, Why: "the condition LoadBalancerTraffic"},
	}
}
