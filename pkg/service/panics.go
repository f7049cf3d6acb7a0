package service

import (
	"context"
	"fmt"
	"runtime/debug"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// panicError is a panic of a pass. It is an error of that Service alone: if it ended the process, it would end the work on all
// other Services, at each start anew.
type panicError struct{ value any }

// Error implements error.
func (e *panicError) Error() string {
	return fmt.Sprintf("a bug in this program ended the pass: %v; the log of the program has the stack", e.value)
}

// panicAsError returns a panic as an error; value is what recover returned, nil for no panic.
func panicAsError(ctx context.Context, value any) error {
	if value == nil {
		return nil
	}
	passPanics.Inc()
	err := &panicError{value: value}
	klog.FromContext(ctx).Error(err, "A pass ended in a panic", "stack", string(debug.Stack()))
	return err
}

// failAfterPanic returns a panic outside of the stages as an error of the Service, and drops its state, which may be half of a change.
func (r *Reconciler) failAfterPanic(ctx context.Context, svc *corev1.Service, value any) error {
	err := panicAsError(ctx, value)
	if err != nil {
		r.states.dropState(mark.ServiceName(svc))
		r.emitFailure(svc, problem.ReasonSyncFailed, failureSignature(err), err)
	}
	return err
}
