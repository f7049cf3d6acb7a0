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
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/build"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/diff"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/observe"
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
	problems []problem.Problem
	// writes counts the calls that changed something.
	writes int
	// record is what is applied once the plan is carried out, and then what the Service holds; nil to leave that as it is.
	record *Record
	// refused are annotations that the cloud refused to apply.
	refused []string
	// desired is what the pass wants, gates are the readiness gates of its pods, and gateWait is when they are due for
	// another look.
	desired  *model.Model
	gates    []backend.GatedPod
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
	params, problems := annotation.Of(svc)
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
	known.note(ctx, build.Ineffective(params, out.desired))
	if svc, err = r.recordIntent(ctx, svc, known, plan, &out); svc == nil {
		return out, err
	}
	out.service = svc
	if err = r.apply(ctx, svc, known, plan, &out); err == nil {
		known.reclaimed = ""
	}
	known.recordApplied(&out, err)
	known.lookAgain(plan)
	err = errors.Join(err, r.openGates(ctx, svc, known, &out))
	if actual := known.actual; actual != nil && actual.LoadBalancer.ID != "" {
		out.loadBalancerID = actual.LoadBalancer.ID
		if actual.Serves() || actual.Reused && !params.OverridesListeners() {
			external, problems := r.externalAddresses(ctx, known, params)
			out.problems = append(out.problems, problems...)
			out.status = statusOf(actual, params, external)
		}
	}
	return out, err
}

// lockShared keeps other Services from a CLB that is not this one's alone.
func (r *Reconciler) lockShared(ctx context.Context, params annotation.Params, known *memory) (unlock func(), err error) {
	id := params.Get(annotation.LoadBalancerID)
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
func (r *Reconciler) refuse(params annotation.Params) error {
	if r.opts.Config.DisablePublicSLB && !params.Has(annotation.LoadBalancerID) && params.AddressType() == alicloud.AddressInternet {
		return &problem.ConfigError{Field: "disablePublicSLB", Reason: "public CLBs are switched off in the cloud config; ask for one with the annotation " +
			string(annotation.AddressType) + ": intranet"}
	}
	return nil
}

// look makes sure that what is remembered may be trusted, and reads the cloud where it may not.
func (r *Reconciler) look(ctx context.Context, svc *corev1.Service, params annotation.Params, known *memory) error {
	due := !time.Now().Before(known.due)
	known.drift = known.fresh && due
	if known.fresh && !due && !known.asksForGroups(params) {
		return r.lookFurther(ctx, svc, params, known)
	}
	known.accessRead, known.extensionsRead = false, false
	known.groupsAsked = params.Get(annotation.VGroupPort)
	if pre, ok := r.preloads.take(mark.DefaultName(svc.UID)); ok && known.actual == nil {
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
	var actual *model.Model
	if found.lb != nil {
		if actual, err = observe.All(ctx, r.opts.API, *found.lb, mark.ServiceName(svc), found.reused); err != nil {
			return err
		}
	}
	r.trust(known, actual)
	return r.lookFurther(ctx, svc, params, known)
}

// lookFurther reads what few Services have.
func (r *Reconciler) lookFurther(ctx context.Context, svc *corev1.Service, params annotation.Params, known *memory) error {
	record := loadRecord(known.record, svc, known.actual)
	if !known.extensionsRead && mayHaveExtensions(params, known.actual, record) {
		if err := observe.Extensions(ctx, r.opts.API, known.actual, mark.ServiceName(svc)); err != nil {
			return err
		}
		known.extensionsRead = true
	}
	record = record.resolveDomains(known.actual, params)
	known.record = &record
	return r.lookForAccess(ctx, svc, params, known)
}

// lookForAccess reads the list of the source ranges where there may be one that is not known yet.
func (r *Reconciler) lookForAccess(ctx context.Context, svc *corev1.Service, params annotation.Params, known *memory) error {
	if known.accessRead || !mayHaveAccessList(svc, params, known.actual, loadRecord(known.record, svc, known.actual)) {
		return nil
	}
	list, err := observe.AccessList(ctx, r.opts.API, svc)
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
func (r *Reconciler) trust(known *memory, actual *model.Model) {
	known.actual, known.fresh, known.interfaces, known.eips = actual, true, nil, nil
	if actual != nil {
		known.charge.Correct(&actual.LoadBalancer, time.Now())
	}
	known.due = time.Now().Add(r.opts.ResyncPeriod + rand.N(r.opts.ResyncPeriod/5+1))
}

// plan compares what is wanted with what is there.
func (r *Reconciler) plan(ctx context.Context, svc *corev1.Service, known *memory, params annotation.Params, out *outcome) (model.Plan, error) {
	if params.Invalid && known.actual == nil {
		return model.Plan{}, nil
	}
	params = known.lastValid(params)
	before := *known.record
	record := recordOf(before.LoadBalancerID, params, known.actual != nil && known.actual.Reused, len(annotation.SourceRangesOf(svc)) > 0 || known.access != nil)
	reverted := params
	if !params.Invalid && (known.actual == nil || !known.actual.Reused || params.OverridesListeners()) {
		reverted = params.Revert(before.Annotations)
	}
	in, gates, err := r.input(ctx, svc, known, reverted)
	if err != nil {
		return model.Plan{}, err
	}
	out.gates, out.silence = gates, backend.UntilSilence(in.Nodes, time.Now())
	if in.RemoveTags, err = r.tagsToRemove(svc, before, record); err != nil {
		return model.Plan{}, err
	}
	in.RemoveDomains = diff.NotIn(before.Domains, record.Domains)
	in.Certificates, in.UsedCertificates, in.Now = r.readCertificates(ctx, params), usedCertificates(known.actual), time.Now()
	desired, problems := build.Build(in)
	out.desired = desired
	actual := known.actual
	if actual == nil && known.access != nil {
		actual = &model.Model{Access: known.access}
	}
	known.protectAgain(desired)
	plan := diff.Diff(desired, actual, mark.ServiceName(svc), in.ClusterID)
	out.problems = append(append(out.problems, problems...), plan.Problems...)
	if problem.HasInvalid(out.problems) {
		return plan.MembersOnly(), nil
	}
	out.record = &record
	return plan, nil
}

// tagsToRemove returns the keys that left the annotation. On an existing CLB those stay that another Service asks for.
func (r *Reconciler) tagsToRemove(svc *corev1.Service, before, wanted Record) ([]string, error) {
	gone := diff.NotIn(before.TagKeys, wanted.TagKeys)
	if len(gone) == 0 {
		return nil, nil
	}
	services, err := r.opts.Services.Lister().List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list the Services: %w", err)
	}
	for _, other := range services {
		if mark.ServiceName(other) == mark.ServiceName(svc) || !wantsLoadBalancer(r.opts.Config, other) {
			continue
		}
		if params, _ := annotation.Parse(other.Annotations); params.Get(annotation.LoadBalancerID) == before.LoadBalancerID {
			gone = diff.NotIn(gone, recordOf(before.LoadBalancerID, params, true, false).TagKeys)
		}
	}
	return gone, nil
}

// recordIntent writes to the Service the tags and domains that a plan is about to write, before it does. It returns the
// Service as it is then, nil when it is gone.
func (r *Reconciler) recordIntent(ctx context.Context, svc *corev1.Service, known *memory, plan model.Plan, out *outcome) (*corev1.Service, error) {
	if out.record == nil || plan.Empty() {
		return svc, nil
	}
	if known.record.covers(out.record.intent()) {
		return svc, nil
	}
	both := known.record.and(out.record.intent())
	changed, err := r.kube.change(ctx, svc, both.store())
	if err != nil {
		return nil, fmt.Errorf("record what is about to be written: %w", err)
	}
	known.record = &both
	return changed, nil
}

// recordApplied notes what came of a plan.
func (m *memory) recordApplied(out *outcome, err error) {
	if m.actual == nil || out.record == nil {
		out.record = nil
		return
	}
	record := m.record.after(*out.record, err != nil, out.refused).of(m.actual)
	m.record, out.record = &record, &record
}

// input collects what the wanted state depends on.
func (r *Reconciler) input(ctx context.Context, svc *corev1.Service, known *memory, params annotation.Params) (build.Input, []backend.GatedPod, error) {
	in := build.Input{
		Service: svc, Params: params, Config: r.opts.Config, ClusterID: clusterIDOn(known.actual, svc, r.opts.Config.ClusterID),
		Reused: known.actual != nil && known.actual.Reused,
	}
	if known.actual != nil {
		in.Exists, in.IPVersion, in.HTTPSPorts = true, known.actual.LoadBalancer.AddressIPVersion, known.actual.HttpsPorts()
	}
	if in.Reused {
		in.ForeignGroups = known.actual.ForeignGroups()
	}
	nodes, err := r.opts.Nodes.Lister().List(labels.Everything())
	if err != nil {
		return in, nil, fmt.Errorf("list the nodes: %w", err)
	}
	in.Nodes = backend.Nodes(nodes, r.opts.InstanceID, time.Now())
	if in.Slices, err = r.slices(svc); err != nil {
		return in, nil, err
	}
	gates := r.gates(ctx, svc, known, in)
	in.Waiting = backend.WaitingAddresses(gates)
	in.Interfaces, in.Blocks, err = r.interfaces(ctx, known, backend.PodAddresses(in.Backends()))
	for i := range gates {
		gates[i].Placed = in.Interfaces[gates[i].Address] != ""
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
	return backend.FromEndpoints(endpoints), nil
}

// apply carries the plan out and updates what is remembered.
func (r *Reconciler) apply(ctx context.Context, svc *corev1.Service, known *memory, plan model.Plan, out *outcome) error {
	if plan.Empty() {
		known.busy = 0
		return nil
	}
	if known.actual == nil {
		known.actual, known.extensionsRead = &model.Model{Access: known.access}, true // a new listener has no extensions
	}
	observePlan(plan)
	applier := deploy.New(r.opts.API, known.actual, func(lb alicloud.LoadBalancer) string { return deploy.Token(svc.UID, known.lost, lb) })
	applier.Drift = known.drift
	err := applier.Run(ctx, plan)
	out.refused = applier.RefusedAnnotations()
	out.writes += applier.Writes
	known.access = known.actual.Access
	if applier.Charge.Asked != "" {
		known.charge = applier.Charge
	}
	r.settle(known, applier, err)
	return err
}

// settle decides how far what is remembered may be trusted after a plan was carried out.
func (r *Reconciler) settle(known *memory, applier *deploy.Applier, err error) {
	if known.actual.LoadBalancer.ID == "" {
		known.actual = nil // nothing was made; whether that is certain, doubt says
	}
	if applier.Lost != "" && known.actual != nil && known.actual.Reused {
		known.actual, known.fresh = nil, false
		return
	}
	if applier.Lost != "" {
		known.forget(applier.Lost)
		known.recreating = applier.Lost
		return
	}
	if applier.Doubt || applier.RefusedServer {
		known.interfaces = nil
	}
	if applier.Doubt {
		known.doubt()
		known.unsettled = time.Now().Add(longestCall)
	}
	if applier.Interrupted {
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
