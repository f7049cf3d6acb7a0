package service

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// ConditionKept on a Service holds, as JSON in its message, which load balancers of groups stay in the cloud because the Service names them by their IDs. The last Service of
// the group has gone, and this one may never get there: without the condition, nobody would delete them once its annotation changes.
const ConditionKept = "service.alibabacloud.com/LoadBalancerKept"

// reasonKept is the reason of [ConditionKept].
const reasonKept = "NamedByAnnotation"

// kept is what [ConditionKept] holds.
type kept struct {
	LoadBalancers []string `json:"loadBalancers"`
	// UID is that of the Service: backup tools restore the status of a Service in another cluster, where the load balancers are not its own.
	UID types.UID `json:"uid"`
}

// KeptFor returns the ids of the load balancers of groups that stay in the cloud because a Service names them, or has named them.
func KeptFor(svc *corev1.Service) []string {
	condition := meta.FindStatusCondition(svc.Status.Conditions, ConditionKept)
	if condition == nil {
		return nil
	}
	var found kept
	if err := json.Unmarshal([]byte(condition.Message), &found); err != nil || found.UID != svc.UID {
		return nil
	}
	return found.LoadBalancers
}

// KeptInVain returns those of [KeptFor] that the Service names no more, or that it names without asking for a load balancer of the product.
func (p Product) KeptInVain(config config.Config, svc *corev1.Service) []string {
	return slices.DeleteFunc(KeptFor(svc), func(id string) bool { return p.AskedBy(config, svc) && NamesByID(svc, id) })
}

// storeKept has a Service hold which load balancers are kept for it.
func storeKept(svc *corev1.Service, ids []string) {
	if len(ids) == 0 {
		meta.RemoveStatusCondition(&svc.Status.Conditions, ConditionKept)
		return
	}
	slices.Sort(ids)
	text, err := json.Marshal(kept{slices.Compact(ids), svc.UID})
	if err != nil {
		return // strings can always be encoded
	}
	meta.SetStatusCondition(&svc.Status.Conditions, metav1.Condition{Type: ConditionKept, Status: metav1.ConditionTrue, Reason: reasonKept, Message: string(text)})
}

// dropKept drops what was kept for a Service in vain, which is gone by now or somebody else's.
func dropKept(svc *corev1.Service, config config.Config, product Product) {
	vain := product.KeptInVain(config, svc)
	storeKept(svc, slices.DeleteFunc(KeptFor(svc), func(id string) bool { return slices.Contains(vain, id) }))
}

// dropKept has a Service hold no more what was kept for it in vain, and what it has deleted by now, unless somebody else uses it.
func (r *Reconciler) dropKept(ctx context.Context, svc *corev1.Service, product Product) error {
	if _, err := r.writer.change(ctx, svc, func(svc *corev1.Service) { dropKept(svc, r.opts.Config, product) }); err != nil {
		return fmt.Errorf("record that nothing stays for the Service: %w", err)
	}
	return nil
}

// noteKept notes on the Services for which a load balancer stays that it does, before the one goes that would delete it.
func (r *Reconciler) noteKept(ctx context.Context, engine Engine, removal Removal) error {
	for _, guest := range removal.KeptFor {
		written, err := r.writer.change(ctx, guest, func(guest *corev1.Service) {
			if guest.DeletionTimestamp == nil {
				addFinalizer(guest, engine) // or it could go without a pass
			}
			storeKept(guest, append(KeptFor(guest), removal.ID))
		})
		name := mark.ServiceName(guest)
		switch {
		case err != nil:
			return fmt.Errorf("record that %s stays for Service %s: %w", removal.ID, name, err)
		case written == nil:
			return &problem.WaitError{Reason: fmt.Sprintf("Service %s, for which %s would stay, is being deleted", name, removal.ID), For: time.Second}
		}
		r.wakeAll([]types.NamespacedName{name}) // its annotation may have changed meanwhile
	}
	return nil
}
