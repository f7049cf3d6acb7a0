package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/failure"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// podReader knows whether pods may be read: one by one, and only those that may have a gate. A watch would hold every pod of the
// cluster in memory.
type podReader struct {
	// forbidden is when the API server last said that the role may not get pods. Then no gate is known, and none opens.
	forbidden atomic.Pointer[time.Time]
}

func (p *podReader) mayRead() bool {
	at := p.forbidden.Load()
	return at == nil || time.Since(*at) > defaultResyncPeriod
}

// podGates is what is known of the pods that may have a readiness gate of the Service: those whose endpoints are not ready. A pass
// works with its own, see [podGates.followEndpoints].
type podGates struct {
	// begun says that a pass has seen the endpoints.
	begun bool
	pods  map[backend.GateEndpoint]podGate
}

// podGate is what is known of one pod.
type podGate struct {
	// held keeps the pod a backend if it is one, until it was read: when this process saw the Service for the first time it was not
	// ready. A process before this one may have registered it, and it waits for its gate. A pod that is no longer ready later had an
	// open gate or none, so that it can leave before anybody reads it.
	held bool
	// triedAt is when the pod was last read, or a read failed; known says that one succeeded.
	triedAt time.Time
	known   bool
	// gated says that the pod has a gate of the Service, and gate is what it was like. The gates of a pod never change.
	gated bool
	gate  backend.GatedPod
}

// followEndpoints returns what is known of the pods of endpoints that are not ready now. seen says that there are endpoints at all.
func (p podGates) followEndpoints(endpoints []backend.GateEndpoint, seen bool) podGates {
	current := podGates{begun: p.begun || seen}
	if len(endpoints) > 0 {
		current.pods = make(map[backend.GateEndpoint]podGate, len(endpoints))
	}
	for _, endpoint := range endpoints {
		gate, ok := p.pods[endpoint]
		if !ok {
			gate.held = !p.begun
		}
		current.pods[endpoint] = gate
	}
	return current
}

// gateEndpoints returns the endpoints whose pods may have a gate.
func (r *Reconciler) gateEndpoints(svc *corev1.Service, in backend.Input) []backend.GateEndpoint {
	if !r.pods.mayRead() {
		return nil
	}
	return backend.GateEndpoints(in, svc.Spec.PublishNotReadyAddresses)
}

// waitingAddresses returns the addresses of pods that wait for nothing but to be backends.
func (p podGates) waitingAddresses(nodes *backend.NodeSet) sets.Set[string] {
	return p.addressesWhere(func(gate podGate) bool { return gate.gated && gate.gate.Waits(nodes) })
}

// heldAddresses returns the addresses of pods that stay backends if they are.
func (p podGates) heldAddresses() sets.Set[string] {
	return p.addressesWhere(func(gate podGate) bool { return gate.held && !gate.known })
}

func (p podGates) addressesWhere(of func(podGate) bool) sets.Set[string] {
	found := sets.New[string]()
	for endpoint, gate := range p.pods {
		if of(gate) {
			found.Insert(endpoint.Address)
		}
	}
	return found
}

// noteMissingInterfaces notes which of the pods that wait have no network interface.
func (p podGates) noteMissingInterfaces(interfaces map[string]string, waiting sets.Set[string]) {
	for endpoint, gate := range p.pods {
		gate.gate.Unplaced = waiting.Has(endpoint.Address) && interfaces[endpoint.Address] == ""
		p.pods[endpoint] = gate
	}
}

// sortedEndpoints returns the pods in a fixed order.
func (p podGates) sortedEndpoints(order func(a, b podGate) int) []backend.GateEndpoint {
	return slices.SortedFunc(maps.Keys(p.pods), func(a, b backend.GateEndpoint) int {
		return cmp.Or(order(p.pods[a], p.pods[b]), cmp.Compare(a.Address, b.Address))
	})
}

// openGates brings the readiness gates in line with the backends that are registered. Where an address is served all the same, see
// [driver.Deployment.servesAddress], a gate stays as it is.
func (r *Reconciler) openGates(
	ctx context.Context, svc *corev1.Service, gates podGates, registered, served func(address string) bool,
) ([]problem.Problem, error) {
	if registered == nil {
		return nil, nil
	}
	var errs []error
	for _, endpoint := range gates.sortedEndpoints(func(podGate, podGate) int { return 0 }) {
		pod := gates.pods[endpoint]
		if !pod.gated {
			continue
		}
		isRegistered := registered(endpoint.Address)
		condition, wanted := pod.gate.Condition(svc.Name, isRegistered, time.Now())
		if !wanted || !isRegistered && served(endpoint.Address) {
			continue
		}
		switch err := r.setGate(ctx, svc.Namespace, pod.gate, condition); {
		case err == nil:
			pod.gate = pod.gate.With(condition)
			gates.pods[endpoint] = pod
		case apierrors.IsNotFound(err), apierrors.IsConflict(err):
			gates.pods[endpoint] = podGate{known: true, triedAt: time.Now()} // the slices are behind
		case apierrors.IsForbidden(err):
			return []problem.Problem{problem.Newf(problem.ReasonFailedUpdateGate,
				"pods wait for the readiness gate %s%s, and the role may not patch pods/status", backend.GatePrefix, svc.Name)}, errors.Join(errs...)
		default:
			errs = append(errs, fmt.Errorf("set the readiness gate of pod %s: %w", endpoint.Name, err))
		}
	}
	return nil, errors.Join(errs...)
}

// setGate writes the condition. The patch names the UID, so that the API server refuses it on a new pod of the same name.
func (r *Reconciler) setGate(ctx context.Context, namespace string, pod backend.GatedPod, condition corev1.PodCondition) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status":   map[string]any{"conditions": []corev1.PodCondition{condition}},
	})
	if err != nil {
		return fmt.Errorf("encode the condition: %w", err)
	}
	_, err = r.opts.Client.CoreV1().Pods(namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// maxGateReads is how many pods one pass reads, after everything that it writes. At the usual limit of 20 requests per second to the
// API server that takes a second at most.
const maxGateReads = 20

// dueAt returns when a pod is read again; false is never.
func (g podGate) dueAt(endpoint backend.GateEndpoint, now time.Time) (time.Time, bool) {
	switch {
	case g.triedAt.IsZero() && !g.known:
		return now, true
	case !g.known:
		return g.triedAt.Add(backend.MinGateWait), true
	case g.gated:
		return g.triedAt.Add(g.gate.GateWait(g.triedAt)), true
	}
	return g.triedAt.Add(backend.MaxGateWait), endpoint.UID == "" // another pod may get the name
}

// dueReads returns the pods to read: first those that are held, then those that were never read, then those whose last read is the oldest.
func (p podGates) dueReads(now time.Time) []backend.GateEndpoint {
	var due []backend.GateEndpoint
	for _, endpoint := range p.sortedEndpoints(func(a, b podGate) int {
		if a.known != b.known {
			return cmp.Compare(gaugeValue(a.known), gaugeValue(b.known))
		}
		return cmp.Or(cmp.Compare(gaugeValue(b.held), gaugeValue(a.held)), a.triedAt.Compare(b.triedAt))
	}) {
		if at, ok := p.pods[endpoint].dueAt(endpoint, now); ok && !at.After(now) {
			due = append(due, endpoint)
		}
	}
	return due
}

func gaugeValue(condition bool) int {
	if condition {
		return 1
	}
	return 0
}

// readGates reads pods that are due, up to a limit. It returns after what time the Service is due for another pass, 0 for none: at once
// when anything was learned that a pass depends on.
func (r *Reconciler) readGates(
	ctx context.Context, svc *corev1.Service, gates podGates, limit int, registered func(address string) bool,
) time.Duration {
	due := gates.dueReads(time.Now())
	learned := false
	for _, endpoint := range due[:min(limit, len(due))] {
		before := gates.pods[endpoint]
		after, err := r.readGate(ctx, svc, endpoint, before)
		gates.pods[endpoint] = after
		learned = learned || after.changesPass(before)
		switch {
		case err != nil && !r.pods.mayRead():
			return failure.AtOnce // no gate keeps a pod any more
		case err != nil && !learned:
			return backend.MinGateWait // the others would most likely fail, too, and each may take long
		case err != nil:
			return failure.AtOnce
		}
	}
	if learned {
		return failure.AtOnce
	}
	return gates.nextReadIn(time.Now(), registered)
}

// readGate reads one pod. A failure is no reason to let the other backends wait: what was known of the pod stands, and it is read again
// soon.
func (r *Reconciler) readGate(ctx context.Context, svc *corev1.Service, endpoint backend.GateEndpoint, before podGate) (podGate, error) {
	pod, err := r.opts.Client.CoreV1().Pods(svc.Namespace).Get(ctx, endpoint.Name, metav1.GetOptions{})
	after := before
	after.triedAt = time.Now()
	switch {
	case apierrors.IsNotFound(err) || err == nil && endpoint.UID != "" && pod.UID != endpoint.UID:
		after.known, after.gated = true, false // the slices are behind
		return after, nil
	case apierrors.IsForbidden(err):
		r.pods.forbidden.Store(&after.triedAt)
		klog.FromContext(ctx).Info("Readiness gates of pods stay closed: the role may not get pods", "gate", backend.GatePrefix+svc.Name)
		return after, err
	case err != nil:
		klog.FromContext(ctx).Error(err, "A pod that may have a readiness gate cannot be read", "pod", endpoint.Name)
		return after, err
	}
	after.known = true
	after.gate, after.gated = backend.GateOf(pod, svc.Name, endpoint)
	return after, nil
}

// changesPass reports whether a pass depends on what a read has changed.
func (g podGate) changesPass(before podGate) bool {
	switch {
	case !g.known:
		return false
	case !before.known:
		return g.held || g.gated && g.gate.Matters()
	}
	return g.gated != before.gated || g.gated && !g.gate.Same(before.gate)
}

// nextReadIn returns after what time the next pods are due that are no backends yet: their containers become ready without any event. 0 is
// for none.
func (p podGates) nextReadIn(now time.Time, registered func(address string) bool) time.Duration {
	var wait time.Duration
	for endpoint, gate := range p.pods {
		at, ok := gate.dueAt(endpoint, now)
		if !ok || gate.known && registered(endpoint.Address) {
			continue
		}
		left := max(at.Sub(now), backend.MinGateWait)
		if !gate.known && gate.triedAt.IsZero() {
			left = failure.AtOnce
		}
		if wait == 0 || left < wait {
			wait = left
		}
	}
	return wait
}
