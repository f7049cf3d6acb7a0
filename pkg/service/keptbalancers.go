package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/failure"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// reasonKept is the reason of the [driver.ConditionsKept].
const reasonKept = "StaysForService"

// dropKept has a Service hold no more that a load balancer stays for it.
func dropKept(svc *corev1.Service, id string) {
	meta.RemoveStatusCondition(&svc.Status.Conditions, driver.ConditionsKept+id)
}

// noteKept notes on the Services for which a load balancer stays that it does, before the one goes that would delete it.
func (r *Reconciler) noteKept(ctx context.Context, engine driver.Engine, removal driver.Removal) error {
	for _, user := range removal.KeptFor.Services {
		text, err := json.Marshal(driver.KeptBalancer{Product: engine.Product().Name, Group: removal.KeptFor.Group, UID: user.UID})
		if err != nil {
			return fmt.Errorf("encode why %s stays: %w", removal.ID, err)
		}
		written, err := r.writer.changeService(ctx, user, func(user *corev1.Service) {
			if user.DeletionTimestamp == nil && r.opts.pausedBy(user) == "" {
				addFinalizer(user, engine) // or it could go without a pass
			}
			meta.SetStatusCondition(&user.Status.Conditions, metav1.Condition{
				Type: driver.ConditionsKept + removal.ID, Status: metav1.ConditionTrue, Reason: reasonKept, Message: string(text),
			})
		})
		name := mark.ServiceName(user)
		switch {
		case err != nil:
			return fmt.Errorf("record that %s stays for Service %s: %w", removal.ID, name, err)
		case written == nil:
			return &problem.WaitError{Reason: fmt.Sprintf("Service %s, for which %s would stay, has gone", name, removal.ID), For: time.Second}
		case written != user:
			r.wakeAll([]types.NamespacedName{name}) // its annotation may have changed meanwhile
		}
	}
	return nil
}

// unnamedBalancers returns the load balancers of [driver.Product.KeptFor] that a Service which wants a load balancer names no more, and
// that it will not be on: it is not on them, does not leave them, which takes a while, and does not ask for their group.
func (r *Reconciler) unnamedBalancers(svc *corev1.Service, known state) []string {
	ids := known.engine.Product().KeptFor(svc)
	if len(ids) == 0 {
		return nil
	}
	record, _ := driver.RecordOn(svc)
	its := slices.Concat(known.balancer.Recorded(driver.Record{}).Leaving, record.Leaving,
		[]string{known.balancer.ID(), record.LoadBalancerID})
	if known.balancer.ID() == "" {
		its = append(its, svc.Labels[driver.LabelLoadBalancerID])
	}
	group, grouped := driver.AskedGroup(r.opts.Config, svc)
	return slices.DeleteFunc(ids, func(id string) bool {
		noted, _ := driver.KeptAs(svc, id)
		return slices.Contains(its, id) || slices.Contains(its, noted.Group) || driver.NamesByID(svc, id) ||
			grouped && noted.Group == group.Mark()
	})
}

// leaveKept deletes load balancers that stay in the cloud for a Service. Those that somebody else uses or names stay. It returns the
// Service as it is then.
func (r *Reconciler) leaveKept(
	ctx context.Context, svc *corev1.Service, ids []string, known state, held *locks,
) (*corev1.Service, state, error) {
	mover, ok := known.balancer.(driver.Mover)
	if !ok {
		return svc, known, nil
	}
	var errs []error
	for _, id := range ids {
		left := known
		left.record = nil
		if left.balancer, ok = known.kept[id]; !ok {
			left.balancer = mover.Former(id)
		}
		left, gone, err := r.leaveOne(ctx, svc, left, held)
		known.kept = maps.Clone(known.kept)
		if known.kept == nil {
			known.kept = map[string]driver.Balancer{}
		}
		switch known.kept[id] = left.balancer; {
		case err != nil:
		case !gone:
			err = &problem.WaitError{Reason: "something of the Service is still on " + id, For: followSoon}
		default:
			delete(known.kept, id)
			var written *corev1.Service
			if written, err = r.writer.changeService(ctx, svc, func(svc *corev1.Service) { dropKept(svc, id) }); err != nil {
				err = fmt.Errorf("record that %s no longer stays for the Service: %w", id, err)
			} else if written != nil {
				svc = written
			}
		}
		errs = append(errs, err)
	}
	return svc, known, errors.Join(errs...)
}

// leaveUnnamed leaves what stays in the cloud for a Service and what it names no more, unless it is not known where the Service is. What
// fails keeps it from nothing else. It returns after what time it is to be called again, 0 for never.
func (r *Reconciler) leaveUnnamed(ctx context.Context, done ensured, known state, held *locks, syncErr error) (state, time.Duration) {
	svc := done.service
	if known.pausedBy != "" || !done.located && !failure.AllConfig(syncErr) {
		return known, 0
	}
	_, known, err := r.leaveKept(alicloud.WithReason(ctx, causeMove), svc, r.unnamedBalancers(svc, known), known, held)
	if err == nil || ctx.Err() != nil {
		known.keptFailure = ""
		return known, 0
	}
	wait, later := failure.WaitTime(err)
	if !later {
		wait = waits.LeftUndeleted
		if failure := failure.Signature(err); failure != known.keptFailure {
			known.keptFailure = failure
			r.emitFailure(svc, problem.ReasonCleanFailed, failure, err)
		}
	}
	return known, wait
}
