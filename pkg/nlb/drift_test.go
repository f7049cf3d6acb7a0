package nlb

import (
	"testing"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
)

// TestDriftIsCounted: what somebody changed by hand is counted once, when a read for drift finds it. No other test may find drift beside
// it.
func TestDriftIsCounted(t *testing.T) { //nolint:paralleltest // the metric is that of the process
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkube.TCP(80))
		found := func() float64 {
			t.Helper()
			w.later(15 * time.Minute)
			w.converge("web")
			return counted(t, "alicloud_slb_drift_found_total", w.engine.Product().Name)
		}
		before := found()
		if again := found(); again != before {
			t.Errorf("drift found %v times although nobody changed anything", again-before)
		}
		w.deleteListeners()
		if after := found(); after != before+1 {
			t.Errorf("drift found %v times, want once", after-before)
		}
		if left := w.listeners(w.balancer("web").ID); len(left) != 1 {
			t.Errorf("listeners %v: the drift stayed", left)
		}
	})
}

// counted returns the value of a counter of passes with these labels.
func counted(t *testing.T, name string, labels ...string) float64 {
	t.Helper()
	for _, m := range service.Metrics() {
		if counter, ok := m.(*metrics.CounterVec); ok && counter.FQName() == name {
			return testkit.Must(testutil.GetCounterMetricValue(counter.WithLabelValues(labels...)))(t)
		}
	}
	t.Fatalf("there is no counter %s", name)
	return 0
}
