package slb

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/diff"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/observe"
)

// remove tears down what the Service has. It is a success when there is nothing.
func (r *Reconciler) remove(ctx context.Context, svc *corev1.Service, known *memory) (outcome, error) {
	var out outcome
	if !known.fresh || known.actual == nil {
		if err := r.lookForRemoval(ctx, svc, known); err != nil {
			return out, err
		}
		if known.actual == nil {
			known.forget(known.lost)
			out.loadBalancerID = known.removing
			return out, r.removeAccess(ctx, svc, known, &out)
		}
	}
	id := known.actual.LoadBalancer.ID
	out.loadBalancerID, known.removing = id, id
	out.reused, out.preserved = known.actual.Reused, preserved(svc)
	plan, err := r.removalPlan(svc, known)
	if err != nil {
		return out, err
	}
	err = r.apply(ctx, svc, known, plan, &out)
	if err != nil && known.actual != nil { // nil: a call said that the CLB is gone
		return out, err
	}
	known.forget(id)
	if out.reused {
		known.lost = ""
	}
	if known.access == nil {
		return out, nil
	}
	return out, r.removeAccess(ctx, svc, known, &out)
}

// removeAccess deletes the list of the source ranges of a CLB that is gone.
func (r *Reconciler) removeAccess(ctx context.Context, svc *corev1.Service, known *memory, out *outcome) error {
	if preserved(svc) {
		return nil
	}
	list, err := observe.AccessList(ctx, r.opts.API, svc)
	if err != nil || list == nil {
		return err
	}
	known.access = list
	return r.apply(ctx, svc, known, diff.AccessListDeletion(list), out)
}

// lookForRemoval finds what is to be removed. What the annotations ask for counts less than what is there: they may
// be invalid, and deletion must work all the same.
func (r *Reconciler) lookForRemoval(ctx context.Context, svc *corev1.Service, known *memory) error {
	known.actual = nil
	params, _ := annotation.Parse(svc.Annotations)
	lb, err := observe.Find(ctx, r.opts.API, svc, true)
	if err != nil {
		return err
	}
	if lb != nil {
		known.actual, known.accessRead = &model.Model{LoadBalancer: *lb}, false
		return r.lookForAccess(ctx, svc, params, known)
	}
	tried := ""
	for _, id := range []string{svc.Labels[LabelLoadBalancerID], params.Get(annotation.LoadBalancerID)} {
		if id == "" || id == tried {
			continue
		}
		tried = id
		if lb, err = r.formerlyReused(ctx, id); err != nil {
			return err
		}
		if lb == nil {
			continue
		}
		if known.actual, err = observe.All(ctx, r.opts.API, *lb, mark.ServiceName(svc), true); err != nil {
			return err
		}
		known.actual.Access, err = observe.AccessList(ctx, r.opts.API, svc)
		return err
	}
	return nil
}

// removalPlan deletes a CLB of ours; its listeners and groups go with it. Of a CLB that its user made it deletes what
// carries our mark. A CLB that its user wants to keep only loses what binds it to us.
func (r *Reconciler) removalPlan(svc *corev1.Service, known *memory) (model.Plan, error) {
	actual := known.actual
	record := loadRecord(known.record, svc, actual)
	switch {
	case actual.Reused && preserved(svc):
		return model.Plan{}, nil
	case actual.Reused:
		tags, err := r.tagsToRemove(svc, record, Record{})
		nothing := &model.Model{Reused: true, Override: true, RemoveTags: tags}
		return diff.Diff(nothing, actual, mark.ServiceName(svc), clusterIDOn(actual, svc, r.opts.Config.ClusterID)), err
	case preserved(svc):
		return diff.Preserving(actual), nil
	}
	return diff.Deletion(actual), nil
}

// preserved reports whether the user wants to keep the CLB. Any value but "false" and "off" says so, as it does with the
// vendor's own controller.
func preserved(svc *corev1.Service) bool {
	params, _ := annotation.Parse(svc.Annotations)
	switch params.Get(annotation.PreserveOnDelete) {
	case "", "false", "off":
		return false
	}
	return true
}
