package service

import (
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// reasonWaiting is the reason in metrics of a Service whose pass waits for the cloud or for the rate limit, unless one failed before. No
// event has it.
const reasonWaiting = "Waiting"

// lag says why a load balancer does not match its Service.
type lag struct{ product, reason string }

// unsynced counts the Services whose load balancers do not match them, for metrics.
type unsynced struct {
	mu    sync.Mutex // guards what follows
	lags  map[types.NamespacedName]lag
	byLag map[lag]*laggards
}

// laggards are the Services with one lag.
type laggards struct {
	since  map[types.NamespacedName]time.Time
	oldest time.Time
}

// behind is that of this process: its metrics are, too.
var behind = newUnsynced()

func newUnsynced() *unsynced {
	return &unsynced{lags: map[types.NamespacedName]lag{}, byLag: map[lag]*laggards{}}
}

// noteUnsynced takes note of a Service that is not in sync, since a time unless it was not before either.
func (u *unsynced) noteUnsynced(key types.NamespacedName, now lag, since time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if before, known := u.lags[key]; known {
		earlier := u.byLag[before].since[key]
		if since.After(earlier) {
			since = earlier
		}
		if before == now && since.Equal(earlier) {
			return
		}
		u.dropLagging(key, before)
	}
	u.addLagging(key, now, since)
}

// noteSynced takes note of a Service that is in sync, or gone.
func (u *unsynced) noteSynced(key types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if before, known := u.lags[key]; known {
		u.dropLagging(key, before)
	}
}

// addLagging adds a Service; u.mu is locked.
func (u *unsynced) addLagging(key types.NamespacedName, of lag, since time.Time) {
	all := u.byLag[of]
	if all == nil {
		all = &laggards{since: map[types.NamespacedName]time.Time{}, oldest: since}
		u.byLag[of] = all
	}
	u.lags[key], all.since[key] = of, since
	if since.Before(all.oldest) {
		all.oldest = since
	}
	all.publishLag(of)
}

// dropLagging removes a Service; u.mu is locked.
func (u *unsynced) dropLagging(key types.NamespacedName, of lag) {
	all := u.byLag[of]
	gone := all.since[key]
	delete(all.since, key)
	delete(u.lags, key)
	if len(all.since) == 0 {
		delete(u.byLag, of)
	} else if gone.Equal(all.oldest) {
		all.oldest = slices.MinFunc(slices.Collect(maps.Values(all.since)), time.Time.Compare)
	}
	all.publishLag(of)
}

// publishLag sets the metrics of one reason.
func (l *laggards) publishLag(of lag) {
	labels := map[string]string{"product": of.product, "reason": of.reason}
	if len(l.since) == 0 {
		unsyncedServices.Delete(labels)
		unsyncedSince.Delete(labels)
		return
	}
	unsyncedServices.With(labels).Set(float64(len(l.since)))
	unsyncedSince.With(labels).Set(float64(l.oldest.UnixNano()) / float64(time.Second))
}

// observeOutcome takes note of the outcome of a pass. A Service that was not in sync before this process started is so since its condition
// says.
func (u *unsynced) observeOutcome(svc *corev1.Service, product driver.Product, condition metav1.Condition, settled bool) {
	key := mark.ServiceName(svc)
	if settled && condition.Status == metav1.ConditionTrue {
		u.noteSynced(key)
		return
	}
	reason, since := condition.Reason, time.Now()
	if !settled {
		reason = reasonWaiting
	}
	if old := meta.FindStatusCondition(svc.Status.Conditions, ConditionSynced); old != nil && old.Status == metav1.ConditionFalse {
		if !settled && old.Reason != problem.ReasonPaused {
			reason = old.Reason // the condition stays, too: after many a failed pass comes one that waits, and an alert would never last
		}
		if !old.LastTransitionTime.IsZero() {
			since = old.LastTransitionTime.Time
		}
	}
	u.noteUnsynced(key, lag{product.Name, reason}, since)
}

// noteWaiting takes note of a deleted Service whose pass waits. It keeps the reason for which a pass failed before.
func (u *unsynced) noteWaiting(key types.NamespacedName, product driver.Product) {
	failed := lag{product.Name, problem.ReasonCleanFailed}
	u.mu.Lock()
	before := u.lags[key]
	u.mu.Unlock()
	if before != failed {
		u.noteUnsynced(key, lag{product.Name, reasonWaiting}, time.Now())
	}
}
