package service

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// gathered is what the wanted state of a Service depends on.
type gathered struct {
	driver.Inputs
	cache backendCache
	// lastValid are the parameters as they were last accepted, each by itself.
	lastValid *annotation.Params
	// readyGraceLeft is when a silent node no longer counts as ready, 0 when none is silent.
	readyGraceLeft time.Duration
	// retryIn is when other Services may have given up nodes that the Service lacks, 0 where it lacks none.
	retryIn time.Duration
	// problems are what was found of the backends before anything was planned.
	problems []problem.Problem
	// slicelessLeft is when the Service counts as one without endpoints because it has no EndpointSlice, 0 where it has one, or counts as
	// such.
	slicelessLeft time.Duration
	// unread says why network interfaces could not be read, nil where all are known.
	unread error
}

// balanceWait is when the next backend of a Service may change its place, where the load balancer has no room for all of them: one does in
// each pass, until a pass writes nothing.
const balanceWait = 5 * time.Second

// gatherInputs returns the inputs of a plan, with the nodes that the Service has chosen.
func (r *Reconciler) gatherInputs(ctx context.Context, in driver.Inputs, known state) (gathered, error) {
	found, err := r.gatherBackends(ctx, in, known)
	if err != nil {
		return found, err
	}
	var wakes []types.NamespacedName
	found.Choice, wakes = r.chooseBackends(in.Service, known, found.Inputs)
	r.wakeAll(wakes)
	found.retryIn = retryIn(found.Choice)
	return found, nil
}

// gatherBackends reads nodes, EndpointSlices and, where backends are addresses of pods, network interfaces. Of readiness gates it takes
// what earlier passes have read: reading hundreds of pods takes longer than whoever has lost a backend can wait.
func (r *Reconciler) gatherBackends(ctx context.Context, in driver.Inputs, known state) (gathered, error) {
	found := gathered{Inputs: in, cache: known.cache}
	found.Now = time.Now()
	var err error
	if found.Nodes, err = r.nodes.NodesAt(r.opts.Nodes.Lister(), r.opts.InstanceID, found.Now); err != nil {
		return found, err
	}
	found.readyGraceLeft = found.Nodes.UntilSilence(found.Now)
	if found.Slices, err = r.endpointSlices(in.Service); err != nil {
		return found, err
	}
	found.withoutSlices(known)
	checked := r.checkEndpoints(ctx, in.Service, known.balancer.Backends(found.Inputs))
	found.Slices, found.problems = checked.slices, checked.problems
	found.cache.gates = known.cache.gates.followEndpoints(r.gateEndpoints(in.Service, known.balancer.Backends(found.Inputs)),
		len(found.Slices) > 0)
	found.Waiting, found.Held = found.cache.gates.waitingAddresses(found.Nodes), found.cache.gates.heldAddresses().Union(checked.held)
	r.findInterfaces(ctx, &found, known)
	if found.unread != nil && known.balancer.ID() == "" {
		return found, found.unread // a new load balancer would have no backend server
	}
	found.cache.gates.noteMissingInterfaces(found.Interfaces, found.Waiting)
	return found, nil
}

// withoutSlices notes since when the Service has no EndpointSlice. In the end it has no endpoints. Where this process has seen none, they
// may be about to come, as those of the control plane, see [waits.SlicesReplaced].
func (g *gathered) withoutSlices(known state) {
	if len(g.Slices) > 0 || !known.balancer.Backends(g.Inputs).UsesEndpoints() {
		g.cache.sliceless = time.Time{}
		return
	}
	grace := waits.SlicesReplaced
	if len(g.Service.Spec.Selector) > 0 || !known.cache.gates.begun {
		grace = waits.SlicesLost
	}
	if g.cache.sliceless.IsZero() {
		g.cache.sliceless = g.Now
	}
	if g.slicelessLeft = grace - g.Now.Sub(g.cache.sliceless); g.slicelessLeft <= 0 {
		g.slicelessLeft, g.Slices = 0, backend.NoEndpoints(g.Service)
	}
}

// findInterfaces finds the network interfaces of pods, where they are backends by those, or where only Pods may be backends. A pod that is
// one by its address alone needs none.
func (r *Reconciler) findInterfaces(ctx context.Context, found *gathered, known state) {
	in, refused := known.balancer.Backends(found.Inputs), sets.New[string]()
	pods := backend.PodAddresses(in)
	if !in.ByAddress || r.opts.Config.Policy.RestrictsAddresses() {
		found.Interfaces, found.Blocks, found.unread = r.network.ReadInterfaces(ctx, known.cache.interfaces, pods,
			func(eni alicloud.NetworkInterface, address string) bool {
				if !r.isForeignMachine(found, eni, address) {
					return false
				}
				refused.Insert(address)
				found.problems = append(found.problems, problem.Newf(problem.ReasonSkipSyncBackends,
					"%s is the address of the ECS instance %s, which is no node, and no rule of allowedAddresses accepts it", address, eni.InstanceID))
				return true
			})
	}
	found.InterfacesUnread = found.unread != nil
	found.cache.interfaces = make(map[backend.PodAddress]string, len(found.Interfaces))
	for _, pod := range pods {
		if id, ok := found.Interfaces[pod.Address]; ok {
			found.cache.interfaces[pod] = id
		}
	}
	if !in.ByAddress {
		return
	}
	read := found.Interfaces
	found.Interfaces = make(map[string]string, len(pods))
	for _, pod := range pods {
		if _, ok := read[pod.Address]; ok || found.unread == nil && !refused.Has(pod.Address) {
			found.Interfaces[pod.Address] = pod.Address
		}
	}
}

// isForeignMachine reports whether an address that a Pod shows is that of a machine which is no node, where only Pods may be backends:
// whoever can write the status of a Pod can have it show any address.
func (r *Reconciler) isForeignMachine(found *gathered, eni alicloud.NetworkInterface, address string) bool {
	rules := r.opts.Config.Policy
	if !rules.RestrictsAddresses() || !eni.IsPrimary || address != eni.PrimaryIP || found.Nodes.HasInstance(eni.InstanceID) {
		return false
	}
	parsed, err := netip.ParseAddr(address)
	return err != nil || !rules.AllowsAddress(found.Service.Namespace, parsed)
}

// endpointSlices returns all EndpointSlices of the Service.
func (r *Reconciler) endpointSlices(svc *corev1.Service) ([]*discoveryv1.EndpointSlice, error) {
	if r.opts.EndpointSlices == nil {
		return r.projectedSlices(svc)
	}
	objects, err := r.opts.EndpointSlices.Informer().GetIndexer().ByIndex(slicesOfService, mark.ServiceName(svc).String())
	if err != nil {
		return nil, fmt.Errorf("list the endpoint slices: %w", err)
	}
	found := make([]*discoveryv1.EndpointSlice, 0, len(objects))
	for _, object := range objects {
		if slice, ok := object.(*discoveryv1.EndpointSlice); ok {
			found = append(found, slice)
		}
	}
	return found, nil
}

// slicesOfService is the index of EndpointSlices by their Service. A namespace may have thousands of slices.
const slicesOfService = "service"

// indexSlices adds the index to the informer, unless another reconciler has done so.
func (o Options) indexSlices() {
	if o.EndpointSlices == nil {
		return
	}
	informer := o.EndpointSlices.Informer()
	if _, ok := informer.GetIndexer().GetIndexers()[slicesOfService]; ok {
		return
	}
	err := informer.AddIndexers(cache.Indexers{slicesOfService: func(object any) ([]string, error) {
		return []string{serviceOf(object).String()}, nil
	}})
	if err != nil { // the informer was stopped; the passes say that the index is missing
		klog.Background().Error(err, "Cannot index the EndpointSlices by their Service")
	}
}

// projectedSlices returns what the Endpoints object of the Service says; without one nothing is known.
func (r *Reconciler) projectedSlices(svc *corev1.Service) ([]*discoveryv1.EndpointSlice, error) {
	endpoints, err := r.opts.Endpoints.Lister().Endpoints(svc.Namespace).Get(svc.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the Endpoints of the Service: %w", err)
	}
	return backend.FromEndpoints(endpoints), nil
}

// MaxPorts is how many ports a Service may have. No load balancer has as many listeners (the quota of a CLB is 50, and may be raised), and
// what is built for each port and each backend would take the memory of the manager.
const MaxPorts = 250

// checkBounds fails for a Service that nothing is built for.
func checkBounds(svc *corev1.Service) error {
	if n := len(svc.Spec.Ports); n > MaxPorts {
		return &problem.ConfigError{Field: "spec.ports", Reason: fmt.Sprintf("%d ports; accepted: at most %d", n, MaxPorts),
			Event: problem.ReasonFeatureNotSupported}
	}
	return nil
}

// withinBounds returns the Service with the ports that it had before it got too many, and why: what serves goes on to follow the nodes and
// pods. The Service is nil where nobody knows which ports these are.
func (s state) withinBounds(svc *corev1.Service) (*corev1.Service, state, error) {
	err := checkBounds(svc)
	switch {
	case err == nil:
		s.ports = svc.Spec.Ports
	case s.ports == nil:
		return nil, s, err
	default:
		bounded := *svc
		bounded.Spec.Ports = s.ports
		svc = &bounded
	}
	return svc, s, err
}
