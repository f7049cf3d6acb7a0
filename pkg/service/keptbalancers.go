package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// ConditionsKept begins the type of a condition on a Service for each load balancer of a group that stays in the cloud because the Service
// names it by its ID, which is the rest of the type. The last Service of the group has gone, and this one may not be there, and may never
// get there: without the condition, nobody would delete the load balancer once the annotation changes. As each has a condition of its own,
// no two writers overwrite what the other one has noted.
const ConditionsKept = "kept.service.alibabacloud.com/"

// reasonKept is the reason of the [ConditionsKept].
const reasonKept = "StaysForService"

// keptBalancer is what one of the [ConditionsKept] holds, as JSON in its message.
type keptBalancer struct {
	// Product is the name of that of the load balancer.
	Product string `json:"product"`
	// Group is the mark of its group.
	Group string `json:"group"`
	// UID is that of the Service: backup tools restore the status of a Service in another cluster, where the load balancers are not its own.
	UID types.UID `json:"uid"`
}

// keptBy returns what a condition says that is one of the [ConditionsKept] and about this Service.
func keptBy(svc *corev1.Service, condition *metav1.Condition) (id string, found keptBalancer, ok bool) {
	if id, ok = strings.CutPrefix(condition.Type, ConditionsKept); !ok || json.Unmarshal([]byte(condition.Message), &found) != nil ||
		found.UID != svc.UID {
		return "", keptBalancer{}, false
	}
	return id, found, true
}

// KeptFor returns the ids of the load balancers of groups that stay in the cloud because a Service names them, or has named them.
func (p Product) KeptFor(svc *corev1.Service) []string {
	var ids []string
	for i := range svc.Status.Conditions {
		if id, found, ok := keptBy(svc, &svc.Status.Conditions[i]); ok && found.Product == p.Name {
			ids = append(ids, id)
		}
	}
	return ids
}

// IsKeptFor reports whether the load balancer with the id is one of [Product.KeptFor], of any product.
func IsKeptFor(svc *corev1.Service, id string) bool {
	_, ok := keptAs(svc, id)
	return ok
}

// keptAs returns what a Service holds of a load balancer that stays for it, false for any other one.
func keptAs(svc *corev1.Service, id string) (keptBalancer, bool) {
	condition := meta.FindStatusCondition(svc.Status.Conditions, ConditionsKept+id)
	if condition == nil {
		return keptBalancer{}, false
	}
	_, found, ok := keptBy(svc, condition)
	return found, ok
}

// dropKept has a Service hold no more that a load balancer stays for it.
func dropKept(svc *corev1.Service, id string) {
	meta.RemoveStatusCondition(&svc.Status.Conditions, ConditionsKept+id)
}

// noteKept notes on the Services for which a load balancer stays that it does, before the one goes that would delete it.
func (r *Reconciler) noteKept(ctx context.Context, engine Engine, removal Removal) error {
	for _, guest := range removal.KeptFor.Services {
		text, err := json.Marshal(keptBalancer{engine.Product().Name, removal.KeptFor.Group, guest.UID})
		if err != nil {
			return fmt.Errorf("encode why %s stays: %w", removal.ID, err)
		}
		written, err := r.writer.changeService(ctx, guest, func(guest *corev1.Service) {
			if guest.DeletionTimestamp == nil && r.opts.pausedBy(guest) == "" {
				addFinalizer(guest, engine) // or it could go without a pass
			}
			meta.SetStatusCondition(&guest.Status.Conditions, metav1.Condition{
				Type: ConditionsKept + removal.ID, Status: metav1.ConditionTrue, Reason: reasonKept, Message: string(text),
			})
		})
		name := mark.ServiceName(guest)
		switch {
		case err != nil:
			return fmt.Errorf("record that %s stays for Service %s: %w", removal.ID, name, err)
		case written == nil:
			return &problem.WaitError{Reason: fmt.Sprintf("Service %s, for which %s would stay, has gone", name, removal.ID), For: time.Second}
		case written != guest:
			r.wakeAll([]types.NamespacedName{name}) // its annotation may have changed meanwhile
		}
	}
	return nil
}

// unnamedBalancers returns the load balancers of [Product.KeptFor] that a Service which wants a load balancer names no more, and that it
// will not be on: it is not on them, does not leave them, which takes a while, and does not ask for their group.
func (r *Reconciler) unnamedBalancers(svc *corev1.Service, known state) []string {
	ids := known.engine.Product().KeptFor(svc)
	if len(ids) == 0 {
		return nil
	}
	record, _ := RecordOn(svc)
	its := slices.Concat(known.balancer.Recorded(Record{}).Leaving, record.Leaving, []string{known.balancer.ID(), record.LoadBalancerID})
	if known.balancer.ID() == "" {
		its = append(its, svc.Labels[LabelLoadBalancerID])
	}
	group, grouped := AskedGroup(r.opts.Config, svc)
	return slices.DeleteFunc(ids, func(id string) bool {
		noted, _ := keptAs(svc, id)
		return slices.Contains(its, id) || slices.Contains(its, noted.Group) || NamesByID(svc, id) || grouped && noted.Group == group.Mark()
	})
}

// leaveKept deletes load balancers that stay in the cloud for a Service. Those that somebody else uses or names stay. It returns the
// Service as it is then.
func (r *Reconciler) leaveKept(
	ctx context.Context, svc *corev1.Service, ids []string, known state, held *locks,
) (*corev1.Service, state, error) {
	mover, ok := known.balancer.(Mover)
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
			known.kept = map[string]Balancer{}
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

// keptPause is how soon a load balancer that stays in vain is to be deleted again after that failed.
const keptPause = 10 * time.Minute

// leaveUnnamed leaves what stays in the cloud for a Service and what it names no more, unless it is not known where the Service is. What
// fails keeps it from nothing else. It returns after what time it is to be called again, 0 for never.
func (r *Reconciler) leaveUnnamed(ctx context.Context, done ensured, known state, held *locks, syncErr error) (state, time.Duration) {
	svc := done.service
	if known.pausedBy != "" || !done.located && !allConfig(syncErr) {
		return known, 0
	}
	_, known, err := r.leaveKept(alicloud.WithReason(ctx, causeMove), svc, r.unnamedBalancers(svc, known), known, held)
	if err == nil || ctx.Err() != nil {
		known.keptFailure = ""
		return known, 0
	}
	wait, later := waitTime(err)
	if !later {
		wait = keptPause
		if failure := failureSignature(err); failure != known.keptFailure {
			known.keptFailure = failure
			r.emitFailure(svc, problem.ReasonCleanFailed, failure, err)
		}
	}
	return known, wait
}

// keptAfter returns what stays in the cloud for a Service that gives up its load balancer, but for what it was on or was leaving: it may
// have kept its listeners there.
func (p Product) keptAfter(svc *corev1.Service, done Removal) []string {
	record, _ := RecordOn(svc)
	return slices.DeleteFunc(p.KeptFor(svc), func(id string) bool { return id == done.ID || slices.Contains(record.Leaving, id) })
}
