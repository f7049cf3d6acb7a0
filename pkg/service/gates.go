package service

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

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
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

// readGates returns the pods with a gate of the Service that are not known to be ready, and those that are known to have no gate.
func (r *Reconciler) readGates(ctx context.Context, svc *corev1.Service, known sets.Set[types.UID], in backend.Input) (gates []backend.GatedPod, ungated sets.Set[types.UID]) {
	ungated = sets.New[types.UID]()
	for _, endpoint := range backend.GateEndpoints(in, svc.Spec.PublishNotReadyAddresses) {
		switch {
		case !r.pods.mayRead():
			return nil, known
		case known.Has(endpoint.UID):
			ungated.Insert(endpoint.UID) // the gates of a pod never change
			continue
		}
		gate, found := r.readGate(ctx, svc, endpoint)
		switch {
		case found:
			gates = append(gates, gate)
		case gate.UID != "":
			ungated.Insert(gate.UID)
		}
	}
	return gates, ungated
}

// readGate reads one pod. A failure is no reason to let the other backends wait: the pod counts as not ready and is read
// again soon.
func (r *Reconciler) readGate(ctx context.Context, svc *corev1.Service, endpoint backend.GateEndpoint) (backend.GatedPod, bool) {
	pod, err := r.opts.Client.CoreV1().Pods(svc.Namespace).Get(ctx, endpoint.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && endpoint.UID != "" && pod.UID != endpoint.UID:
		return backend.GatedPod{}, false // the slices are behind
	case apierrors.IsForbidden(err):
		now := time.Now()
		r.pods.forbidden.Store(&now)
		klog.FromContext(ctx).Info("Readiness gates of pods stay closed: the role may not get pods", "gate", backend.GatePrefix+svc.Name)
		return backend.GatedPod{}, false
	case err != nil:
		klog.FromContext(ctx).Error(err, "A pod that may have a readiness gate cannot be read", "pod", endpoint.Name)
		return backend.GatedPod{Name: endpoint.Name, UID: endpoint.UID, Address: endpoint.Address, Since: time.Now()}, true
	}
	gate, found := backend.GateOf(pod, svc.Name, endpoint.Address)
	if !found {
		gate.UID = pod.UID
	}
	return gate, found
}

// opened is what [Reconciler.openGates] found.
type opened struct {
	problems []problem.Problem
	// wait is when pods that are not registered yet are due again, 0 for none.
	wait time.Duration
}

// openGates brings the readiness gates in line with the backends that are registered.
func (r *Reconciler) openGates(ctx context.Context, svc *corev1.Service, gates []backend.GatedPod, registered func(address string) bool) (opened, error) {
	var errs []error
	for _, change := range backend.GateChanges(svc.Name, gates, registered, time.Now()) {
		err := r.setGate(ctx, svc.Namespace, change)
		switch {
		case apierrors.IsForbidden(err):
			return opened{problems: []problem.Problem{problem.Newf(problem.ReasonFailedUpdateGate,
				"pods wait for the readiness gate %s%s, and the role may not patch pods/status", backend.GatePrefix, svc.Name)}}, errors.Join(errs...)
		case err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err):
			errs = append(errs, fmt.Errorf("set the readiness gate of pod %s: %w", change.Name, err))
		}
	}
	return opened{wait: backend.GateWait(gates, registered, time.Now())}, errors.Join(errs...)
}

// setGate writes the condition. The patch names the UID, so that the API server refuses it on a new pod of the same name.
func (r *Reconciler) setGate(ctx context.Context, namespace string, change backend.GateChange) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": change.UID},
		"status":   map[string]any{"conditions": []corev1.PodCondition{change.Condition}},
	})
	if err != nil {
		return fmt.Errorf("encode the condition: %w", err)
	}
	_, err = r.opts.Client.CoreV1().Pods(namespace).Patch(ctx, change.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
