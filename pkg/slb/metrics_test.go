package slb

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics/testutil"
)

// TestMetricsCount reads counters that other tests raise too, so it only asks for growth.
func TestMetricsCount(t *testing.T) {
	t.Parallel()
	count := func() (passes uint64, steps float64) {
		t.Helper()
		passes, err := testutil.GetHistogramMetricCount(passDuration.WithLabelValues("delete", "ok"))
		if err != nil {
			t.Fatal(err)
		}
		steps, err = testutil.GetCounterMetricValue(planSteps.WithLabelValues(string(OpDeleteLoadBalancer)))
		if err != nil {
			t.Fatal(err)
		}
		return passes, steps
	}
	w := settled(t, testService("web", 80))
	passes, steps := count()
	w.change("web", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP })
	w.mustPass("web")
	if p, s := count(); p <= passes || s <= steps {
		t.Errorf("passes %d to %d, steps %v to %v; want both to grow", passes, p, steps, s)
	}
}
