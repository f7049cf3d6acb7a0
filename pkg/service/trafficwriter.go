package service

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/sleep"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/workers"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/failure"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

const (
	// trafficDelay collects changes of many Services: each passes over its own load balancer after an event of a node.
	trafficDelay = time.Second
	// trafficPeriod is how often Nodes are compared without any change while something is not confirmed: it becomes Unknown with time.
	// Otherwise trafficIdlePeriod repairs what somebody else wrote.
	trafficPeriod     = 10 * time.Second
	trafficIdlePeriod = time.Minute
	// A Node that shows something else than what is known is not to do so for long once the API server answers again.
	minTrafficBackoff, maxTrafficBackoff = 100 * time.Millisecond, time.Minute
	// trafficWorkers is how many conditions are written at the same time.
	trafficWorkers = 4
	// trafficShown is when the cache shows at the latest what was written, or that it was not.
	trafficShown = time.Minute
	// announceTime is how long a plan waits at most until Nodes are told of it: an API server that does not answer keeps nobody from backends.
	announceTime = 30 * time.Second
)

// trafficWriter writes [ConditionTraffic] to the Nodes.
type trafficWriter struct {
	traffic // its lock guards the rest, too

	opts  Options
	wake  func(types.NamespacedName)
	queue workqueue.TypedRateLimitingInterface[string]

	// unread are the Services that may have any node: what they have was never confirmed, be it because they had no pass since the start.
	unread []types.NamespacedName
	// foreign says that another program may serve some Services. Then no Node has the condition: nobody knows of all load balancers.
	foreign bool
	// pending is since when the way out of a node is not confirmed. shownOut are the Nodes that show False, or may soon, by their IDs and
	// addresses.
	pending  map[string]time.Time
	shownOut map[string]shownOut
}

// shownOut is a Node that shows False. until is when the cache is sure to show whether it does, zero where it does so.
type shownOut struct {
	node  string
	until time.Time
}

func newTrafficWriter(opts Options, wake func(types.NamespacedName)) *trafficWriter {
	return &trafficWriter{
		traffic: newTraffic(), opts: opts, wake: wake, pending: map[string]time.Time{}, shownOut: map[string]shownOut{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](minTrafficBackoff, maxTrafficBackoff)),
	}
}

// run writes until the context ends.
func (w *trafficWriter) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { workers.Run(ctx, w.queue, trafficWorkers, w.write) })
	period := trafficPeriod
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-w.changed:
			_ = sleep.For(ctx, trafficDelay) //nolint:errcheck // the context is looked at
		case <-time.After(period):
		}
		if period = trafficIdlePeriod; w.compare(time.Now()) {
			period = trafficPeriod
		}
	}
}

// compare has those Nodes written whose condition is to be another one, and backends read again that nodes wait for. It reports whether
// time alone may change a condition.
func (w *trafficWriter) compare(now time.Time) bool {
	all, _ := w.opts.Nodes.Lister().List(labels.Everything())         //nolint:errcheck // it reads memory
	services, _ := w.opts.Services.Lister().List(labels.Everything()) //nolint:errcheck // it reads memory
	if w.prepare(all, services, now) {
		for _, key := range w.ask(now) {
			w.wake(key)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, node := range all {
		if _, due := w.conditionOf(node, now); due && w.queue.NumRequeues(node.Name) == 0 { // else it is written again after a pause
			w.queue.Add(node.Name)
		}
	}
	return len(w.pending)+len(w.unread)+len(w.shownOut) > 0
}

// prepare notes what conditions depend on beside what passes find. It reports whether the way out of a node is not confirmed.
func (w *trafficWriter) prepare(all []*corev1.Node, services []*corev1.Service, now time.Time) (waits bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.foreign, w.unread = false, nil
	for _, svc := range services {
		w.foreign = w.foreign || w.opts.servedElsewhere(svc)
		known, passed := w.of(svc)
		if w.opts.hasFinalizer(svc) && !known.known && (!passed || showsBalancer(svc)) {
			w.unread = append(w.unread, mark.ServiceName(svc))
		}
	}
	before := w.pending
	w.pending = map[string]time.Time{}
	maps.DeleteFunc(w.shownOut, func(_ string, out shownOut) bool { return !now.Before(out.until) })
	for _, node := range all {
		ids, status := w.idsOf(node), trafficStatus(node)
		to := w.toNode(ids)
		switch {
		case status == corev1.ConditionFalse:
			w.noteShownOut(ids, shownOut{node: node.Name})
		case !to.serves && (to.held || len(w.unread) > 0) && (status != "" || to.drains):
			waits = true
			if w.pending[node.Name] = now; !before[node.Name].IsZero() {
				w.pending[node.Name] = before[node.Name]
			}
		}
	}
	return waits
}

func (w *trafficWriter) noteShownOut(ids []string, out shownOut) {
	for _, id := range ids {
		w.shownOut[id] = out
	}
}

func trafficStatus(node *corev1.Node) corev1.ConditionStatus {
	return ptr.Deref(nodes.Condition(node, ConditionTraffic), corev1.NodeCondition{}).Status
}

// showsBalancer reports whether anything of a Service says that it has a load balancer, or may have. One that shows nothing after a pass has
// none: an author whose Service is refused keeps no node from being out.
func showsBalancer(svc *corev1.Service) bool {
	record, _ := driver.RecordOn(svc)
	return len(svc.Status.LoadBalancer.Ingress) > 0 || svc.Labels[driver.LabelLoadBalancerID] != "" || record.LoadBalancerID != "" ||
		record.Made != "" || record.Creation != nil || len(record.Leaving) > 0
}

// idsOf are by what load balancers know a node. Labels that keep this program from it do not take it out.
func (w *trafficWriter) idsOf(node *corev1.Node) []string {
	unlabeled := *node
	unlabeled.Labels = nil
	id, err := w.opts.InstanceID(&unlabeled)
	if err != nil {
		id = ""
	}
	return slices.DeleteFunc([]string{id, nodes.InternalIP(node)}, func(id string) bool { return id == "" })
}

// conditionOf returns the condition that a Node is to have, without a type for none, and whether it has another one. The caller holds the
// lock.
func (w *trafficWriter) conditionOf(node *corev1.Node, now time.Time) (wanted corev1.NodeCondition, due bool) {
	current := ptr.Deref(nodes.Condition(node, ConditionTraffic), corev1.NodeCondition{})
	if w.foreign {
		return wanted, current.Type != ""
	}
	ids := w.idsOf(node)
	to := w.toNode(ids)
	to.unknown = len(w.unread) > 0
	if since, pending := w.pending[node.Name]; pending && now.Sub(since) >= waits.TrafficUnconfirmed {
		seen := backend.NodeOf(node, w.opts.InstanceID, now)
		to.leaving = seen.Leaving || seen.Cordoned || !seen.Candidate
	}
	status, reason := to.conditionAfter(current.Status)
	if reason == "" || status == current.Status && reason == current.Reason {
		return wanted, false
	}
	at := metav1.NewTime(now)
	if status == current.Status {
		at = current.LastTransitionTime
	}
	message := map[string]string{
		TrafficServing:      "At least one load balancer sends new connections to the node",
		TrafficDraining:     "No load balancer has sent new connections to the node since %s; it keeps those that it has",
		TrafficRemoved:      "No load balancer has had the node as a backend since %s",
		TrafficNotConfirmed: "It is not confirmed that no load balancer sends new connections to the node: Service %s may",
	}[reason]
	switch status {
	case corev1.ConditionFalse:
		message = fmt.Sprintf(message, at.UTC().Format(time.RFC3339))
	case corev1.ConditionUnknown:
		message = fmt.Sprintf(message, w.unconfirmed(ids))
	}
	return trafficCondition(status, reason, message, at), true
}

func trafficCondition(status corev1.ConditionStatus, reason, message string, at metav1.Time) corev1.NodeCondition {
	return corev1.NodeCondition{
		Type: ConditionTraffic, Status: status, Reason: reason, Message: message, LastHeartbeatTime: metav1.Now(), LastTransitionTime: at,
	}
}

// unconfirmed returns a Service that keeps a node from being out. The caller holds the lock.
func (w *trafficWriter) unconfirmed(ids []string) types.NamespacedName {
	for key, known := range w.services {
		if known.held.HasAny(ids...) {
			return key
		}
	}
	return w.unread[0]
}

// write brings the condition of a Node in line. The API server refuses it where the Node has changed since: it may be another condition then.
func (w *trafficWriter) write(ctx context.Context, name string) error {
	node, err := w.opts.Nodes.Lister().Get(name)
	if err != nil {
		return nil //nolint:nilerr // it is gone
	}
	condition, due := w.toWrite(node, time.Now())
	if !due {
		return nil
	}
	return w.patch(ctx, node, condition, node.ResourceVersion)
}

// toWrite is [trafficWriter.conditionOf] for a Node that is written now. A plan that is announced from now on finds that it may show False.
func (w *trafficWriter) toWrite(node *corev1.Node, now time.Time) (condition corev1.NodeCondition, due bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if condition, due = w.conditionOf(node, now); due && condition.Status == corev1.ConditionFalse {
		w.noteShownOut(w.idsOf(node), shownOut{node.Name, now.Add(trafficShown)})
	}
	return condition, due
}

// patch writes a condition of a Node, or removes it if it has no type. The API server refuses it where the Node has another version, if any
// is given.
func (w *trafficWriter) patch(ctx context.Context, node *corev1.Node, condition corev1.NodeCondition, version string) error {
	patch, err := nodes.ConditionPatch(node, condition, version)
	if condition.Type == "" {
		patch, err = nodes.ConditionRemoval(node, ConditionTraffic)
	}
	if err == nil {
		_, err = w.opts.Client.CoreV1().Nodes().PatchStatus(ctx, node.Name, patch)
	}
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	if ctx.Err() == nil && !apierrors.IsConflict(err) && w.queue.NumRequeues(node.Name) == 0 {
		klog.FromContext(ctx).Error(err, "Writing the condition of a Node failed; retrying", "condition", ConditionTraffic, "node", node.Name)
	}
	return fmt.Errorf("set condition %s of node %s: %w", ConditionTraffic, node.Name, err)
}

// announce notes which nodes a plan is about to give connections, before it does. Nodes that show False are told so first: a process that
// ends after a call, and before the answer, would else leave them False for as long as nobody reads what the call has done. They are told
// whatever their version is: a write of False that is under way has the one from before, and fails.
func (w *trafficWriter) announce(ctx context.Context, svc *corev1.Service, plan driver.Plan, toPods func() bool) {
	described, ok := plan.(driver.Described)
	if w == nil || !ok || len(plan.Steps()) == 0 || toPods() { // pods may have the addresses of their nodes
		return
	}
	wanted := sets.New(described.Wanted()...)
	w.hold(svc, wanted)
	ctx, cancel := context.WithTimeout(ctx, announceTime)
	defer cancel()
	for _, name := range w.takeShownOut(wanted) {
		node, err := w.opts.Nodes.Lister().Get(name)
		if err != nil {
			continue
		}
		if w.patch(ctx, node, trafficCondition(corev1.ConditionTrue, TrafficServing,
			"A load balancer is about to send new connections to the node", metav1.Now()), "") != nil {
			w.queue.AddRateLimited(name)
		}
	}
}

// takeShownOut returns those of the nodes that show False, each once.
func (w *trafficWriter) takeShownOut(ids sets.Set[string]) (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, out := range w.shownOut {
		if ids.Has(id) {
			delete(w.shownOut, id)
			names = append(names, out.node)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// forget drops a Service that has nothing in the cloud any more.
func (w *trafficWriter) forget(key types.NamespacedName) {
	if w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.put(key, serviceTraffic{})
	}
}

// isNew reports whether nothing is known of a Service yet.
func (w *trafficWriter) isNew(svc *corev1.Service) bool {
	if w == nil {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, passed := w.of(svc)
	return !passed
}

// noteOutcome notes what a pass that had a plan, or failed, has come to. A process before this one may have begun what the Service does not
// show yet: a first pass that could not look for it says nothing.
func (r *Reconciler) noteOutcome(svc *corev1.Service, known state, adopted bool, done ensured, err error) {
	unsought := adopted && !done.located && !failure.AllConfig(err)
	if done.planned || err != nil && !(unsought && r.traffic.isNew(svc)) {
		r.noteTraffic(svc, known, done.planned)
	}
}

// noteTraffic notes to which nodes the load balancer of a Service sends, see [traffic.note].
func (r *Reconciler) noteTraffic(svc *corev1.Service, known state, wrote bool) {
	if r.traffic == nil {
		return
	}
	balancer, engine, accepted := known.balancer, known.engine, known.lastValid
	r.traffic.note(svc, balancer.NodesReadAt(), wrote, known.settledAt, func() iter.Seq2[string, bool] {
		params, _ := engine.Params(svc)
		in := driver.Inputs{Service: svc, Params: params.WithLast(accepted)}
		in.Nodes, _ = r.nodes.NodesAt(r.opts.Nodes.Lister(), r.opts.InstanceID, time.Now()) //nolint:errcheck // it reads memory
		return balancer.Nodes(in)
	})
}

// readForNodes has the backends read again that nodes wait for which leave.
func (r *Reconciler) readForNodes(svc *corev1.Service, known state) state {
	if r.traffic != nil && r.traffic.asks(svc) {
		known.balancer = known.balancer.InvalidateBackends("nodes leave, and an earlier call may have changed them")
	}
	return known
}
