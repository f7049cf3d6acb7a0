package service

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// TestUnsyncedServicesInMetrics: a scrape shows how many Services are not in sync, why, and since when the oldest of them is not; a
// restart does not begin to count anew, and a Service that is in sync again, or gone, leaves nothing behind.
func TestUnsyncedServicesInMetrics(t *testing.T) {
	t.Parallel()
	registerMetrics()
	product := driver.Product{Name: t.Name()}
	u := newUnsynced()
	failing := metav1.Condition{Type: ConditionSynced, Status: metav1.ConditionFalse, Reason: problem.ReasonSyncFailed}
	conflict := metav1.Condition{Type: ConditionSynced, Status: metav1.ConditionFalse, Reason: problem.ReasonListenerConflict}
	fine := metav1.Condition{Type: ConditionSynced, Status: metav1.ConditionTrue, Reason: problem.ReasonEnsured}
	long := time.Now().Add(-time.Hour).Truncate(time.Second)
	old := testkube.Service("old", func(svc *corev1.Service) {
		svc.Status.Conditions = []metav1.Condition{{Type: ConditionSynced, Status: metav1.ConditionFalse,
			LastTransitionTime: metav1.NewTime(long)}}
	})
	young := testkube.Service("young")
	count := func(reason string) int {
		t.Helper()
		if len(u.lags) == 0 && unsyncedServices.Delete(map[string]string{"product": product.Name, "reason": reason}) {
			t.Errorf("%s is still shown", reason)
		}
		return int(valueOf(t, unsyncedServices.WithLabelValues(product.Name, reason)))
	}
	u.observeOutcome(old, product, failing, true)
	u.observeOutcome(young, product, failing, true)
	if got := count(problem.ReasonSyncFailed); got != 2 {
		t.Errorf("%d Services whose calls fail, want 2", got)
	}
	if got := valueOf(t, unsyncedSince.WithLabelValues(product.Name, problem.ReasonSyncFailed)); got != float64(long.Unix()) {
		t.Errorf("since %v, want %v", got, long.Unix())
	}
	u.observeOutcome(old, product, conflict, true)
	u.observeOutcome(young, product, metav1.Condition{}, false)
	if failed, conflicts, waiting := count(problem.ReasonSyncFailed), count(problem.ReasonListenerConflict), count(reasonWaiting); failed != 0 || conflicts != 1 || waiting != 1 {
		t.Errorf("%d fail, %d conflicts, %d wait; want 0, 1, 1", failed, conflicts, waiting)
	}
	if got := valueOf(t, unsyncedSince.WithLabelValues(product.Name, problem.ReasonListenerConflict)); got != float64(long.Unix()) {
		t.Errorf("since %v with another reason, want %v", got, long.Unix())
	}
	u.observeOutcome(old, product, fine, true)
	u.noteSynced(types.NamespacedName{Namespace: young.Namespace, Name: young.Name})
	for _, reason := range []string{problem.ReasonListenerConflict, reasonWaiting} {
		if unsyncedServices.Delete(map[string]string{"product": product.Name, "reason": reason}) {
			t.Errorf("%s is still shown", reason)
		}
	}
}

// TestFailureLastsWhilePassesWait: passes that fail and passes that wait take turns, for example while the cloud refuses a creation. The
// reason in the metric is that of the condition all the time, so that an alert on it fires.
func TestFailureLastsWhilePassesWait(t *testing.T) {
	t.Parallel()
	registerMetrics()
	product, u := driver.Product{Name: t.Name()}, newUnsynced()
	svc := testkube.Service("web")
	failing := metav1.Condition{Type: ConditionSynced, Status: metav1.ConditionFalse, Reason: problem.ReasonSyncFailed}
	expect := func(reason string) {
		t.Helper()
		if got := u.lags[mark.ServiceName(svc)]; got != (lag{product.Name, reason}) {
			t.Errorf("%+v, want the reason %s", got, reason)
		}
	}
	u.observeOutcome(svc, product, metav1.Condition{}, false)
	expect(reasonWaiting)
	for range 3 {
		u.observeOutcome(svc, product, failing, true)
		svc.Status.Conditions = []metav1.Condition{failing}
		expect(problem.ReasonSyncFailed)
		u.observeOutcome(svc, product, metav1.Condition{}, false)
		expect(problem.ReasonSyncFailed)
	}
	svc.Status.Conditions[0].Reason = problem.ReasonPaused
	u.observeOutcome(svc, product, metav1.Condition{}, false)
	expect(reasonWaiting)
	u.noteUnsynced(mark.ServiceName(svc), lag{product.Name, problem.ReasonCleanFailed}, time.Now())
	u.noteWaiting(mark.ServiceName(svc), product)
	expect(problem.ReasonCleanFailed)
	u.noteSynced(mark.ServiceName(svc))
	u.noteWaiting(mark.ServiceName(svc), product)
	expect(reasonWaiting)
	u.noteSynced(mark.ServiceName(svc))
}

// TestUnchangedLagPublishesNothing: a pass that fails as the one before costs nothing, however many Services fail.
func TestUnchangedLagPublishesNothing(t *testing.T) {
	t.Parallel()
	registerMetrics()
	u, failing, now := newUnsynced(), lag{t.Name(), problem.ReasonSyncFailed}, time.Now()
	oldest := unsyncedSince.WithLabelValues(failing.product, failing.reason)
	key := func(name string) types.NamespacedName { return types.NamespacedName{Name: name} }
	for i, name := range []string{"first", "second", "third"} {
		u.noteUnsynced(key(name), failing, now.Add(time.Duration(i)*time.Second))
	}
	const mark = 1
	oldest.Set(mark)
	u.noteUnsynced(key("first"), failing, now.Add(time.Hour))
	if got := valueOf(t, oldest); got != mark {
		t.Errorf("published %v", got)
	}
	for _, leaves := range []struct {
		name string
		want time.Time
	}{{"third", now}, {"first", now.Add(time.Second)}} {
		u.noteSynced(key(leaves.name))
		if got, want := valueOf(t, oldest), float64(leaves.want.UnixNano())/float64(time.Second); got != want {
			t.Errorf("since %v without the %s, want %v", got, leaves.name, want)
		}
	}
}

func valueOf(t *testing.T, m metrics.GaugeMetric) float64 {
	t.Helper()
	value, err := testutil.GetGaugeMetricValue(m)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
