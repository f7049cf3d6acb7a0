package rollout

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type deleting func() error

func (d deleting) Delete(context.Context, string, metav1.DeleteOptions) error { return d() }

// TestTransientErrorOfReplacementIsTriedAgain: it does not end the run, and the pod is deleted the next time.
func TestTransientErrorOfReplacementIsTriedAgain(t *testing.T) {
	t.Parallel()
	pods, jobs, r := []*corev1.Pod{podOf("job", evicted)}, owners{"job": "BroadcastJob"}, newReplaced()
	left, err := r.remove(t.Context(), deleting(func() error { return apierrors.NewServiceUnavailable("restarting") }), pods, jobs)
	if err != nil || len(left) != 1 {
		t.Errorf("after an API server that restarts: %d pods left and %v, want the pod to stay", len(left), err)
	}
	left, err = r.remove(t.Context(), deleting(func() error { return nil }), pods, jobs)
	if err != nil || len(left) != 0 {
		t.Errorf("the next time: %d pods left and %v, want none", len(left), err)
	}
	denied := deleting(func() error { return apierrors.NewForbidden(corev1.Resource("pods"), "pod", nil) })
	if _, err := newReplaced().remove(t.Context(), denied, pods, jobs); !apierrors.IsForbidden(err) {
		t.Errorf("without the permission: %v, want it reported", err)
	}
}
