package slb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
)

// podReader reads pods one by one, and only those that may have a gate: a watch would hold every pod of the cluster in
// memory.
type podReader struct {
	// forbidden is when the API server last said that the role may not get pods. Then no gate is known, and none opens.
	forbidden atomic.Pointer[time.Time]
}

func (p *podReader) mayRead() bool {
	at := p.forbidden.Load()
	return at == nil || time.Since(*at) > defaultResyncPeriod
}

// gates returns the pods with a gate of the Service that are not known to be ready.
func (r *Reconciler) gates(ctx context.Context, svc *corev1.Service, known *memory, in Input) []gatedPod {
	var gates []gatedPod
	ungated := sets.New[types.UID]()
	for _, endpoint := range gateEndpoints(in.backends(), svc.Spec.PublishNotReadyAddresses) {
		switch {
		case !r.pods.mayRead():
			return nil
		case known.ungated.Has(endpoint.uid):
			ungated.Insert(endpoint.uid) // the gates of a pod never change
			continue
		}
		gate, found := r.readGate(ctx, svc, endpoint)
		switch {
		case found:
			gates = append(gates, gate)
		case gate.uid != "":
			ungated.Insert(gate.uid)
		}
	}
	known.ungated = ungated
	return gates
}

// readGate reads one pod. A failure is no reason to let the other members wait: the pod counts as not ready and is looked
// at again soon.
func (r *Reconciler) readGate(ctx context.Context, svc *corev1.Service, endpoint gateEndpoint) (gatedPod, bool) {
	pod, err := r.opts.Client.CoreV1().Pods(svc.Namespace).Get(ctx, endpoint.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && endpoint.uid != "" && pod.UID != endpoint.uid:
		return gatedPod{}, false // the slices are behind
	case apierrors.IsForbidden(err):
		now := time.Now()
		r.pods.forbidden.Store(&now)
		klog.FromContext(ctx).Info("Readiness gates of pods stay closed: the role may not get pods", "gate", gatePrefix+svc.Name)
		return gatedPod{}, false
	case err != nil:
		klog.FromContext(ctx).Error(err, "A pod that may have a readiness gate cannot be read", "pod", endpoint.name)
		return gatedPod{name: endpoint.name, uid: endpoint.uid, address: endpoint.address, since: time.Now()}, true
	}
	gate, found := gateOf(pod, svc.Name, endpoint.address)
	if !found {
		gate.uid = pod.UID
	}
	return gate, found
}

// openGates brings the gates in line with the members that stand.
func (r *Reconciler) openGates(ctx context.Context, svc *corev1.Service, known *memory, out *outcome) error {
	var errs []error
	registered := func(address string) bool { return isMember(address, out.desired, known.actual) }
	for _, change := range gateChanges(svc.Name, out.gates, registered, time.Now()) {
		err := r.setGate(ctx, svc.Namespace, change)
		switch {
		case apierrors.IsForbidden(err):
			out.problems = append(out.problems, problemf(ReasonFailedUpdateGate,
				"pods wait for the readiness gate %s%s, and the role may not patch pods/status", gatePrefix, svc.Name))
			return errors.Join(errs...)
		case err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err):
			errs = append(errs, fmt.Errorf("set the readiness gate of pod %s: %w", change.name, err))
		}
	}
	out.gateWait = gateWait(out.gates, registered, time.Now())
	return errors.Join(errs...)
}

// setGate writes the condition. The patch names the UID, so that the API server refuses it on a new pod of the same name.
func (r *Reconciler) setGate(ctx context.Context, namespace string, change gateChange) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": change.uid},
		"status":   map[string]any{"conditions": []corev1.PodCondition{change.condition}},
	})
	if err != nil {
		return fmt.Errorf("encode the condition: %w", err)
	}
	_, err = r.opts.Client.CoreV1().Pods(namespace).Patch(ctx, change.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
