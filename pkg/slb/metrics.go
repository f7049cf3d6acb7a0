package slb

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const metricsNamespace, metricsSubsystem = "alicloud", "slb"

var (
	passDuration = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: "reconcile_duration_seconds",
		Help: "Duration of passes over Services by operation (ensure, delete) and result (ok, waiting, failed). " +
			"Waiting means that the cloud was busy or the rate limit used up.",
		Buckets:        []float64{.001, .01, .05, .1, .5, 1, 2, 5, 10, 30, 60, 120, 300},
		StabilityLevel: metrics.ALPHA,
	}, []string{"operation", "result"})

	planSteps = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: "plan_steps_total",
		Help:           "Steps of plans that were begun, by operation.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"operation"})
)

var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(passDuration, planSteps) })

// observePass notes a pass; waiting says that err only means "not now".
func observePass(operation string, start time.Time, err error, waiting bool) {
	result := "ok"
	switch {
	case err != nil && waiting:
		result = "waiting"
	case err != nil:
		result = "failed"
	}
	passDuration.WithLabelValues(operation, result).Observe(time.Since(start).Seconds())
}

func observePlan(plan Plan) {
	for _, step := range plan.Steps {
		planSteps.WithLabelValues(string(step.Op)).Inc()
	}
}
