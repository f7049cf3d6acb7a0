package service

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/instruments"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

const (
	metricsSubsystem = "slb"
	quotaSubsystem   = "quota"
)

var (
	passDuration = instruments.NewHistogramVec(metricsSubsystem, "reconcile_duration_seconds",
		"Duration of passes over Services by product (CLB, NLB), operation (ensure, delete) and result (ok, waiting, failed). "+
			"Waiting means that the cloud was busy or the rate limit used up.", []float64{.001, .01, .05, .1, .5, 1, 2, 5, 10, 30, 60, 120, 300},
		"product", "operation", "result")

	planSteps = instruments.NewCounterVec(metricsSubsystem, "plan_steps_total",
		"Steps of plans that the manager started, by product and operation.", "product", "operation")

	unsyncedServices = instruments.NewGaugeVec(metricsSubsystem, "unsynced_services",
		"Services whose load balancer does not match them, by product and reason: that of the condition LoadBalancerSynced, or \"Waiting\" for the cloud or the rate limit.",
		"product", "reason")
	unsyncedSince = instruments.NewGaugeVec(metricsSubsystem, "unsynced_since_timestamp_seconds",
		"Since when the load balancer of the oldest of these Services does not match it, in seconds since 1970, by product and reason.",
		"product", "reason")

	driftFound = instruments.NewCounterVec(metricsSubsystem, "drift_found_total",
		"Load balancers that differed from what the manager had written, found by a read for drift, by product.", "product")

	quotaUsed = instruments.NewGaugeVec(quotaSubsystem, "used",
		"Usage of a quota of the cloud, by its code in the Quota Center. For a quota of each load balancer or instance, that of the one that uses the largest share. "+
			"Includes the usage of others in the account if the Quota Center reports it.", "quota")
	quotaLimit = instruments.NewGaugeVec(quotaSubsystem, "limit",
		"Value of a quota of the cloud, by its code in the Quota Center: configured, from the Quota Center, known from a rejected call for that load balancer or instance, or published; of CLBs, "+
			"30 as published for the international site, or 60 if there are more. No value if more is in use than a value that nobody has configured: the quota is then larger, and unknown.", "quota")
	quotaNearlyUsedUp = instruments.NewGaugeVec(quotaSubsystem, "nearly_used_up",
		"Whether a quota is nearly used up: 1 from a usage of 80% until it is below 70%, otherwise 0. For a quota of each load balancer or instance, 1 if any of them is affected. "+
			"Backends do not count if the manager chooses which nodes they are, and listeners not where a load balancer group opens another load balancer.", "quota")

	passPanics = instruments.NewCounter(metricsSubsystem, "reconcile_panics_total",
		"Passes over Services that ended because of a bug in this program. The Service gets an event, and the log has the stack.")
)

// The metrics of the official CCM.
var (
	latency = instruments.NewOfficialLatency(metricsSubsystem,
		"reconcile is the duration of any pass over a Service, Creation, Update and Deletion "+
			"that of a pass that wrote for a Service without an address, for one with an address, and for one that no longer needs a CLB.", "type",
		"verb")
	operationResult = instruments.NewOfficialCounter(metricsSubsystem, "operation_result",
		"passes that wrote or failed, by verb (Creation, Update, Deletion) and status (Success, Fail).", "type", "verb", "status")
)

// Metrics are those of this package.
func Metrics() []metrics.Registerable {
	return []metrics.Registerable{passDuration, planSteps, latency, operationResult, passPanics, unsyncedServices, unsyncedSince, driftFound,
		quotaUsed, quotaLimit, quotaNearlyUsedUp}
}

var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(Metrics()...) })

// What passes do, in our words and in those of the official CCM.
type passKind struct{ operation, verb string }

var (
	passDelete = passKind{"delete", "Deletion"}
	passCreate = passKind{"ensure", "Creation"}
	passUpdate = passKind{"ensure", "Update"}
)

// ensureKind is the kind of a pass for a Service that wants a load balancer.
func ensureKind(svc *corev1.Service) passKind {
	if len(svc.Status.LoadBalancer.Ingress) == 0 {
		return passCreate
	}
	return passUpdate
}

// pass measures one pass over a Service from its start.
type pass struct {
	passKind
	product driver.Product
	start   time.Time
}

// measurePass starts to measure a pass.
func measurePass(kind passKind, product driver.Product) pass {
	return pass{passKind: kind, product: product, start: time.Now()}
}

// endPass notes how it ended; waiting says that err only means "not now".
func (p pass) endPass(err error, waiting, wrote bool) {
	result, status := "ok", "Success"
	switch {
	case err != nil && waiting:
		result = "waiting"
	case err != nil:
		result, status = "failed", "Fail"
	}
	took := time.Since(p.start)
	passDuration.WithLabelValues(p.product.Name, p.operation, result).Observe(took.Seconds())
	if result == "waiting" {
		return // the official CCM has no such outcome: a later pass counts
	}
	latency.WithLabelValues(p.product.MetricType, "reconcile").Observe(float64(took.Milliseconds()))
	if wrote || err != nil {
		latency.WithLabelValues(p.product.MetricType, p.verb).Observe(float64(took.Milliseconds()))
		operationResult.WithLabelValues(p.product.MetricType, p.verb, status).Inc()
	}
}

func observePlan(product driver.Product, plan driver.Plan) {
	for _, step := range plan.Steps() {
		planSteps.WithLabelValues(product.Name, step.Op).Inc()
	}
}
