package slb

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// TestMetricsCount takes a Service through its life. Other tests raise the same metrics, so each step only asks for growth.
func TestMetricsCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	all := service.Metrics()
	passDuration, planSteps, latency, operationResult := all[0].(*metrics.HistogramVec), all[1].(*metrics.CounterVec), all[2].(*metrics.HistogramVec), all[3].(*metrics.CounterVec)
	interval := func(seconds string) func(*corev1.Service) {
		return func(svc *corev1.Service) { annotate(svc, annotation.HealthCheckInterval, seconds) }
	}
	for _, step := range []struct {
		name      string
		do        func()
		operation string // of the project's own metrics
		result    string
		op        model.Op // a step of the plan, or none
		verb      string
		status    string
	}{
		{"create", func() { w.put(testService("web", 80)); w.mustPass("web") }, "ensure", "ok", model.OpCreateLoadBalancer, "Creation",
			"Success"},
		{"change", func() { w.change("web", interval("7")); w.mustPass("web") }, "ensure", "ok", model.OpSetListener, "Update", "Success"},
		{"refused", func() {
			w.fault(map[string]any{"action": "SetLoadBalancerTCPListenerAttribute", "status": 400, "code": "OperationDenied", "times": 1})
			w.change("web", interval("8"))
			if err := w.pass("web"); err == nil {
				t.Error("no error from a refused change")
			}
		}, "ensure", "failed", model.OpSetListener, "Update", "Fail"},
		{"delete", func() {
			w.change("web", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP })
			w.mustPass("web")
		}, "delete", "ok", model.OpDeleteLoadBalancer, "Deletion", "Success"},
	} {
		read := func() [5]float64 {
			return [5]float64{
				observations(t, passDuration.WithLabelValues(Product.Name, step.operation, step.result)),
				observations(t, latency.WithLabelValues("CLBType", "reconcile")),
				observations(t, latency.WithLabelValues("CLBType", step.verb)),
				counted(t, operationResult.WithLabelValues("CLBType", step.verb, step.status)),
				counted(t, planSteps.WithLabelValues(Product.Name, string(step.op))),
			}
		}
		before := read()
		step.do()
		for i, after := range read() {
			if after <= before[i] {
				t.Errorf("%s: metric %d: %v after %v, want growth", step.name, i, after, before[i])
			}
		}
	}
}

func observations(t *testing.T, m metrics.ObserverMetric) float64 {
	t.Helper()
	n, err := testutil.GetHistogramMetricCount(m)
	if err != nil {
		t.Fatal(err)
	}
	return float64(n)
}

func counted(t *testing.T, m metrics.CounterMetric) float64 {
	t.Helper()
	n, err := testutil.GetCounterMetricValue(m)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
