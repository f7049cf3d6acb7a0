package slb

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/events"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/diff"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/observe"
)

// tearDown removes the CLB, then the finalizer.
func (r *Reconciler) tearDown(ctx context.Context, svc *corev1.Service) (time.Duration, error) {
	known := r.states.of(svc)
	if known.removal.released {
		return 0, nil // the cache has not seen it yet
	}
	defer func() { r.states.commit(svc, known) }()
	measured := pass{passDelete, time.Now()}
	turn, end := r.takeTurn(ctx, mark.ServiceName(svc), known.backoff)
	known, done, err := r.remove(turn, svc, known)
	known.backoff.waitingSince = end(err)
	wait, retryLater := waitTime(err)
	retryLater = retryLater && known.backoff.patient()
	measured.end(err, retryLater, true)
	switch {
	case err != nil && retryLater:
		return wait, nil
	case err != nil:
		known.failure = signature(err)
		r.emitFailure(svc, problem.ReasonCleanFailed, known.failure, err)
		return 0, err
	}
	if _, err := r.writer.change(ctx, svc, release); err != nil {
		err = fmt.Errorf("remove the finalizer: %w", err)
		known.failure = r.emitUnwritten(svc, problem.ReasonFailedRemoveFinalizer, err)
		return 0, err
	}
	known.failure, known.removal.released = "", true
	r.events.Retain(events.Of(svc))
	r.emitRemoved(svc, done)
	return 0, nil
}

func (r *Reconciler) emitRemoved(svc *corev1.Service, done removed) {
	switch {
	case done.loadBalancerID == "":
	case done.preserved:
		r.opts.Recorder.Eventf(svc, corev1.EventTypeWarning, problem.ReasonPreservedOnDelete, "CLB %s stays with its listeners, as the annotation %s asks", done.loadBalancerID, annotation.PreserveOnDelete)
	case done.reused:
		r.opts.Recorder.Eventf(svc, corev1.EventTypeNormal, problem.ReasonCleaned, "Removed this Service's listeners and vServer groups from CLB %s", done.loadBalancerID)
	default:
		r.opts.Recorder.Eventf(svc, corev1.EventTypeNormal, problem.ReasonCleaned, "Deleted CLB %s", done.loadBalancerID)
	}
}

// removed is what a removal came to.
type removed struct {
	loadBalancerID string
	// reused and preserved say that the CLB itself still stands.
	reused, preserved bool
}

// remove tears down what the Service has in the cloud. It is a success when there is nothing. The caller holds the Service's lock
// and commits the state.
func (r *Reconciler) remove(ctx context.Context, svc *corev1.Service, known state) (state, removed, error) {
	var err error
	if !known.clb.trusted() || known.clb.model() == nil {
		if known.clb, err = r.clb.refreshForRemoval(ctx, svc, known.clb, known.record); err != nil {
			return known, removed{}, err
		}
	}
	clb := known.clb.model()
	if clb == nil {
		known, err = r.removeAccess(ctx, svc, known)
		return known, removed{loadBalancerID: known.removal.of}, err
	}
	done := removed{loadBalancerID: clb.LoadBalancer.ID, reused: clb.Reused, preserved: preserved(svc)}
	known.removal.of = done.loadBalancerID
	plan, err := r.clb.removalPlan(svc, known.clb, known.record)
	if err != nil {
		return known, done, err
	}
	deployed := r.clb.deploy(ctx, svc, known.clb, plan, false)
	known = known.deployed(deployed)
	if deployed.err != nil && known.clb.model() != nil { // nil: a call said that the CLB is gone
		return known, done, deployed.err
	}
	known.clb = observed{presence: unknown{lastID: done.loadBalancerID}, access: known.clb.access}
	if done.reused {
		known.clb.presence = unknown{}
	}
	if known.clb.access.value == nil && known.clb.access.doubt == "" {
		return known, done, nil
	}
	known, err = r.removeAccess(ctx, svc, known)
	return known, done, err
}

// removeAccess deletes the access control list of a CLB that is gone.
func (r *Reconciler) removeAccess(ctx context.Context, svc *corev1.Service, known state) (state, error) {
	if preserved(svc) {
		return known, nil
	}
	list, err := observe.AccessList(ctx, r.opts.API, svc)
	if err != nil || list == nil {
		return known, err
	}
	known.clb.access.set(list)
	deployed := r.clb.deploy(ctx, svc, known.clb, diff.AccessListDeletion(list), false)
	return known.deployed(deployed), deployed.err
}

// refreshForRemoval reads what is to be removed. A CLB of ours goes with everything on it, so that its listeners are not read.
func (e *engine) refreshForRemoval(ctx context.Context, svc *corev1.Service, known observed, record *Record) (observed, error) {
	found, err := e.locateForRemoval(ctx, svc, known)
	if err != nil {
		return known, err
	}
	clb := observed{presence: found.presence, access: part[*alicloud.AccessList]{value: known.access.value}}
	if clb.model() == nil {
		return clb, nil
	}
	clb.loadBalancer.set(found.lb)
	if clb.reused() {
		model, err := observe.All(ctx, e.api, found.lb, mark.ServiceName(svc), true)
		if err != nil {
			return clb, err
		}
		clb.setObserved(model)
		list, err := observe.AccessList(ctx, e.api, svc)
		clb.access.set(list)
		return clb, err
	}
	params, _ := annotation.Parse(svc.Annotations)
	clb.access, err = e.refreshAccess(ctx, svc, params, clb, loadRecord(record, svc, clb.model()))
	return clb, err
}

// removalPlan deletes a CLB of ours; its listeners and groups go with it. From an existing CLB it deletes what carries our mark.
// A CLB that its user wants to keep only loses what binds it to us.
func (e *engine) removalPlan(svc *corev1.Service, clb observed, known *Record) (model.Plan, error) {
	actual := clb.model()
	record := loadRecord(known, svc, actual)
	switch {
	case actual.Reused && preserved(svc):
		return model.Plan{}, nil
	case actual.Reused:
		tags, err := e.removableTags(svc, record, Record{})
		nothing := &model.Model{Reused: true, Override: true, RemoveTags: tags}
		return diff.Diff(nothing, actual, mark.ServiceName(svc), clusterIDOn(actual, svc, e.config.ClusterID)), err
	case preserved(svc):
		return diff.Preserving(actual), nil
	}
	return diff.Deletion(actual), nil
}

// preserved reports whether the user wants to keep the CLB. Any value but "false" and "off" says so, as for the official CCM.
func preserved(svc *corev1.Service) bool {
	params, _ := annotation.Parse(svc.Annotations)
	switch params.Get(annotation.PreserveOnDelete) {
	case "", "false", "off":
		return false
	}
	return true
}
