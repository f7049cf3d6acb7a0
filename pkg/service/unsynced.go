package service

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// reasonWaiting is the reason in metrics of a Service whose pass waits for the cloud or for the rate limit. No event has it.
const reasonWaiting = "Waiting"

// lag says why a load balancer does not match its Service.
type lag struct{ product, reason string }

// unsynced counts the Services whose load balancers do not match them, for metrics.
type unsynced struct {
	mu    sync.Mutex // guards what follows
	lags  map[types.NamespacedName]lag
	since map[types.NamespacedName]time.Time
}

// behind is that of this process: its metrics are, too.
var behind = &unsynced{lags: map[types.NamespacedName]lag{}, since: map[types.NamespacedName]time.Time{}}

// note takes note of a Service that is not in sync, since a time unless it was not before either.
func (u *unsynced) note(key types.NamespacedName, now lag, since time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	before, known := u.lags[key]
	u.lags[key] = now
	if earlier, ok := u.since[key]; !ok || since.Before(earlier) {
		u.since[key] = since
	}
	if known && before != now {
		u.publish(before)
	}
	u.publish(now)
}

// resolve takes note of a Service that is in sync, or gone.
func (u *unsynced) resolve(key types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	before, known := u.lags[key]
	if !known {
		return
	}
	delete(u.lags, key)
	delete(u.since, key)
	u.publish(before)
}

// publish sets the metrics of one reason; u.mu is locked.
func (u *unsynced) publish(of lag) {
	count, oldest := 0, time.Time{}
	for key, have := range u.lags {
		if have != of {
			continue
		}
		count++
		if since := u.since[key]; oldest.IsZero() || since.Before(oldest) {
			oldest = since
		}
	}
	labels := map[string]string{"product": of.product, "reason": of.reason}
	if count == 0 {
		unsyncedServices.Delete(labels)
		unsyncedSince.Delete(labels)
		return
	}
	unsyncedServices.With(labels).Set(float64(count))
	unsyncedSince.With(labels).Set(float64(oldest.UnixNano()) / float64(time.Second))
}

// observe takes note of the outcome of a pass. A Service that was not in sync before this process started is so since its condition says.
func (u *unsynced) observe(svc *corev1.Service, product Product, condition metav1.Condition, settled bool) {
	key := mark.ServiceName(svc)
	reason := condition.Reason
	switch {
	case settled && condition.Status == metav1.ConditionTrue:
		u.resolve(key)
		return
	case !settled:
		reason = reasonWaiting
	}
	since := time.Now()
	if old := meta.FindStatusCondition(svc.Status.Conditions, ConditionSynced); old != nil && old.Status == metav1.ConditionFalse && !old.LastTransitionTime.IsZero() {
		since = old.LastTransitionTime.Time
	}
	u.note(key, lag{product.Name, reason}, since)
}
