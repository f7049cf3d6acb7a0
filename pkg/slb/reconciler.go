package slb

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// Reconciler makes the cloud look as the Services want. It is the only writer: one pass at a time per Service, whoever
// asks for it.
type Reconciler struct {
	opts         Options
	services     keyLock // by namespace/name
	balancers    keyLock // by the id of a CLB that several Services may share; taken after the Service's
	memories     memories
	preloads     preloads
	turns        turns
	certificates certificates
	blocks       vpcBlocks
	pods         podReader
	kube         kubeWriter
}

// NewReconciler returns a reconciler. It asks for the informers that it reads, which may be started later.
func NewReconciler(opts Options) *Reconciler {
	opts = opts.withDefaults()
	opts.Services.Informer()
	opts.Nodes.Informer()
	opts.endpointInformer()
	registerMetrics()
	return &Reconciler{opts: opts, kube: kubeWriter{client: opts.Client}}
}

// outcome is what one pass came to.
type outcome struct {
	// loadBalancerID and status are what the Service is to show; a nil status leaves it as it is.
	loadBalancerID string
	status         *corev1.LoadBalancerStatus
	// service is the Service as it is after what the pass wrote to it, nil when it wrote nothing.
	service  *corev1.Service
	problems []Problem
	// writes counts the calls that changed something.
	writes int
	// applied are the codes of the annotations that the pass applied.
	applied string
	// tags are the digests of the tag keys that the pass wrote.
	tags string
	// domains are the digests of the domains that the pass made extensions for.
	domains []string
	// written is what the Service is to remember of a CLB of its user's, nil to leave that as it is.
	written *written
	// desired is what the pass wants, gates are the readiness gates of its pods, and gateWait is when they are due for
	// another look.
	desired  *Model
	gates    []gatedPod
	gateWait time.Duration
	// repeated says that the pass failed in the same way as the one before.
	repeated bool
	// silence is when a silent node stops to count as ready, 0 when none is silent.
	silence time.Duration
	// reused and preserved tell, after a removal, that the CLB itself still stands.
	reused, preserved bool
}

// ensure makes the CLB of a Service as it is wanted. The caller holds the Service's lock.
func (r *Reconciler) ensure(ctx context.Context, svc *corev1.Service, known *memory) (outcome, error) {
	params, problems := paramsOf(svc)
	out := outcome{problems: problems}
	if err := r.refuse(params); err != nil {
		return out, err
	}
	unlock, err := r.lockShared(ctx, params, known)
	if err != nil {
		return out, err
	}
	defer unlock()
	if err = r.look(ctx, svc, params, known); err != nil {
		return out, err
	}
	out.problems = append(out.problems, placement(known.actual, params)...)
	plan, err := r.plan(ctx, svc, known, params, &out)
	if err != nil {
		return out, err
	}
	known.note(ctx, notes(params, out.desired))
	if svc, err = r.rememberFirst(ctx, svc, known, plan, &out); svc == nil {
		return out, err
	}
	out.service = svc
	if err = r.apply(ctx, svc, known, plan, &out); err == nil {
		known.applied, known.tags, known.domains, known.reclaimed = out.applied, out.tags, out.domains, ""
	}
	known.carriedOut(&out, err)
	known.lookAgain(plan)
	err = errors.Join(err, r.openGates(ctx, svc, known, &out))
	if actual := known.actual; actual != nil && actual.LoadBalancer.ID != "" {
		out.loadBalancerID = actual.LoadBalancer.ID
		if actual.serves() || actual.Reused && !params.overridesListeners() {
			external, problems := r.externalAddresses(ctx, known, params)
			out.problems = append(out.problems, problems...)
			out.status = statusOf(actual, params, external)
		}
	}
	return out, err
}

// lockShared keeps other Services from a CLB that is not this one's alone.
func (r *Reconciler) lockShared(ctx context.Context, params Params, known *memory) (unlock func(), err error) {
	id := params.Get(LoadBalancerID)
	if known.actual != nil && known.actual.Reused {
		id = known.actual.LoadBalancer.ID
	}
	if id == "" {
		return func() {}, nil
	}
	if unlock, err = r.balancers.lock(ctx, id); err != nil {
		return nil, fmt.Errorf("wait for CLB %s: %w", id, err)
	}
	return unlock, nil
}

// refuse returns why nothing may be done for a Service.
func (r *Reconciler) refuse(params Params) error {
	if r.opts.Config.DisablePublicSLB && !params.Has(LoadBalancerID) && params.addressType() == alicloud.AddressInternet {
		return &ConfigError{Field: "disablePublicSLB", Reason: "public CLBs are switched off in the cloud config; ask for one with the annotation " +
			string(AddressType) + ": intranet"}
	}
	return nil
}

// look makes sure that what is remembered may be trusted, and reads the cloud where it may not.
func (r *Reconciler) look(ctx context.Context, svc *corev1.Service, params Params, known *memory) error {
	due := !time.Now().Before(known.due)
	known.drift = known.fresh && due
	if known.fresh && !due && !known.asksForGroups(params) {
		return r.lookFurther(ctx, svc, params, known)
	}
	known.accessRead, known.extensionsRead = false, false
	known.groupsAsked = params.Get(VGroupPort)
	if pre, ok := r.preloads.take(DefaultName(svc.UID)); ok && known.actual == nil {
		actual, err := pre.observe(ctx, r.opts.API, svc)
		if err != nil {
			return err
		}
		r.trust(known, actual)
		return r.lookFurther(ctx, svc, params, known)
	}
	found, err := r.locate(ctx, svc, params, known)
	if err != nil {
		return err
	}
	var actual *Model
	if found.lb != nil {
		if actual, err = observe(ctx, r.opts.API, *found.lb, nameOf(svc), found.reused); err != nil {
			return err
		}
	}
	r.trust(known, actual)
	return r.lookFurther(ctx, svc, params, known)
}

// lookFurther reads what few Services have.
func (r *Reconciler) lookFurther(ctx context.Context, svc *corev1.Service, params Params, known *memory) error {
	known.recall(svc)
	if !known.extensionsRead && mayHaveExtensions(params, known) {
		if err := observeExtensions(ctx, r.opts.API, known.actual, nameOf(svc)); err != nil {
			return err
		}
		known.extensionsRead = true
	}
	return r.lookForAccess(ctx, svc, params, known)
}

// lookForAccess reads the list of the source ranges where there may be one that is not known yet.
func (r *Reconciler) lookForAccess(ctx context.Context, svc *corev1.Service, params Params, known *memory) error {
	if known.accessRead || !mayHaveAccessList(svc, params, known.actual) {
		return nil
	}
	list, err := observeAccessList(ctx, r.opts.API, svc)
	if err != nil {
		return err
	}
	known.access, known.accessRead = list, true
	if known.actual != nil {
		known.actual.Access = list
	}
	return nil
}

// trust remembers what was just read.
func (r *Reconciler) trust(known *memory, actual *Model) {
	known.actual, known.fresh, known.interfaces, known.eips = actual, true, nil, nil
	if actual != nil {
		known.charge.correct(&actual.LoadBalancer, time.Now())
	}
	known.due = time.Now().Add(r.opts.ResyncPeriod + rand.N(r.opts.ResyncPeriod/5+1))
}

// plan compares what is wanted with what is there.
func (r *Reconciler) plan(ctx context.Context, svc *corev1.Service, known *memory, params Params, out *outcome) (Plan, error) {
	if params.invalid && known.actual == nil {
		return Plan{}, nil
	}
	params = known.lastValid(params)
	history := appliedHistory(known, params, len(askedRanges(svc)) > 0 || known.access != nil)
	in, gates, err := r.input(ctx, svc, known, history.params)
	if err != nil {
		return Plan{}, err
	}
	out.gates, out.silence = gates, untilSilence(in.Nodes, time.Now())
	in.Applied, out.applied = history.tag, history.codes
	if in.Tags, err = r.writtenTags(svc, known, params); err != nil {
		return Plan{}, err
	}
	in.Domains = writtenDomains(known, params)
	out.tags, out.domains = in.Tags.digests, in.Domains.now
	in.Certificates, in.UsedCertificates, in.Now = r.readCertificates(ctx, params), usedCertificates(known.actual), time.Now()
	desired, problems := Build(in)
	out.desired = desired
	actual := known.actual
	if actual == nil && known.access != nil {
		actual = &Model{Access: known.access}
	}
	known.protectAgain(desired)
	plan := Diff(desired, actual, nameOf(svc), in.ClusterID)
	out.problems = append(append(out.problems, problems...), plan.Problems...)
	switch {
	case hasInvalid(out.problems):
		plan = plan.membersOnly()
	case in.Reused:
		wanted := writtenFor(actual.LoadBalancer.ID, params)
		out.written = &wanted
	}
	return plan, nil
}

// input collects what the wanted state depends on.
func (r *Reconciler) input(ctx context.Context, svc *corev1.Service, known *memory, params Params) (Input, []gatedPod, error) {
	in := Input{
		Service: svc, Params: params, Config: r.opts.Config, ClusterID: clusterIDOn(known.actual, svc, r.opts.Config.ClusterID),
		Reused: known.actual != nil && known.actual.Reused,
	}
	if known.actual != nil {
		in.Exists, in.IPVersion, in.HTTPSPorts = true, known.actual.LoadBalancer.AddressIPVersion, known.actual.httpsPorts()
	}
	if in.Reused {
		in.ForeignGroups = known.actual.foreignGroups()
	}
	nodes, err := r.opts.Nodes.Lister().List(labels.Everything())
	if err != nil {
		return in, nil, fmt.Errorf("list the nodes: %w", err)
	}
	in.Nodes = NodesOf(nodes, r.opts.InstanceID, time.Now())
	if in.Slices, err = r.slices(svc); err != nil {
		return in, nil, err
	}
	gates := r.gates(ctx, svc, known, in)
	in.Waiting = waitingAddresses(gates)
	in.Interfaces, in.Blocks, err = r.interfaces(ctx, known, podAddresses(in.backends()))
	for i := range gates {
		gates[i].placed = in.Interfaces[gates[i].address] != ""
	}
	return in, gates, err
}

// slices returns all EndpointSlices of the Service.
func (r *Reconciler) slices(svc *corev1.Service) ([]*discoveryv1.EndpointSlice, error) {
	if r.opts.EndpointSlices == nil {
		return r.projectedSlices(svc)
	}
	selector := labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: svc.Name})
	found, err := r.opts.EndpointSlices.Lister().EndpointSlices(svc.Namespace).List(selector)
	if err != nil {
		return nil, fmt.Errorf("list the endpoint slices: %w", err)
	}
	return found, nil
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
	return slicesOf(endpoints), nil
}

// apply carries the plan out and updates what is remembered.
func (r *Reconciler) apply(ctx context.Context, svc *corev1.Service, known *memory, plan Plan, out *outcome) error {
	if plan.Empty() {
		known.busy = 0
		return nil
	}
	if known.actual == nil {
		known.actual, known.extensionsRead = &Model{Access: known.access}, true // a new listener has no extensions
	}
	observePlan(plan)
	applier := newApplier(r.opts.API, known.actual, func(lb alicloud.LoadBalancer) string { return clientToken(svc.UID, known.lost, lb) })
	applier.drift = known.drift
	err := applier.run(ctx, plan)
	out.writes += applier.writes
	known.access = known.actual.Access
	if applier.charge.asked != "" {
		known.charge = applier.charge
	}
	r.settle(known, applier, err)
	return err
}

// settle decides how far what is remembered may be trusted after a plan was carried out.
func (r *Reconciler) settle(known *memory, applier *applier, err error) {
	if known.actual.LoadBalancer.ID == "" {
		known.actual = nil // nothing was made; whether that is certain, doubt says
	}
	if applier.lost != "" && known.actual != nil && known.actual.Reused {
		known.actual, known.fresh = nil, false
		return
	}
	if applier.lost != "" {
		known.forget(applier.lost)
		known.recreating = applier.lost
		return
	}
	if applier.doubt || applier.refusedServer {
		known.interfaces = nil
	}
	if applier.doubt {
		known.doubt()
		known.unsettled = time.Now().Add(longestCall)
	}
	if applier.interrupted {
		return
	}
	if err == nil {
		known.busy = 0
		return
	}
	if known.busy++; known.busy%maxBusyInRow == 0 {
		known.doubt()
	}
}
