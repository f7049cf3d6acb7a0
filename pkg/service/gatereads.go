package service

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
)

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
			return atOnce // no gate keeps a pod any more
		case err != nil && !learned:
			return backend.MinGateWait // the others would most likely fail, too, and each may take long
		case err != nil:
			return atOnce
		}
	}
	if learned {
		return atOnce
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
			left = atOnce
		}
		if wait == 0 || left < wait {
			wait = left
		}
	}
	return wait
}
