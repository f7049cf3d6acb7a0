package vpcroute

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/instruments"
)

const metricsSubsystem = "route"

var (
	entriesGauge = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Namespace: instruments.Namespace, Subsystem: metricsSubsystem, Name: "table_entries",
		Help:           "Custom entries of a managed route table, foreign ones included, as read last.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"table"})
	quotaGauge = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Namespace: instruments.Namespace, Subsystem: metricsSubsystem, Name: "table_entries_quota",
		Help:           "Custom entries that a managed route table may hold, as configured.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"table"})
	conflictsGauge = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Namespace: instruments.Namespace, Subsystem: metricsSubsystem, Name: "table_conflicts",
		Help:           "Pod CIDRs of nodes that a foreign entry of a managed route table holds.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"table"})
	changes = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: instruments.Namespace, Subsystem: metricsSubsystem, Name: "changes_total",
		Help:           "Route entries that were to be created or deleted, by operation and error code; the code is empty on success.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"operation", "code"})
	passErrors = metrics.NewCounter(&metrics.CounterOpts{
		Namespace: instruments.Namespace, Subsystem: metricsSubsystem, Name: "pass_errors_total",
		Help:           "Comparisons of nodes and route tables that ended in an error.",
		StabilityLevel: metrics.ALPHA,
	})
)

// latency has no metric of ours beside it that measures the same.
var latency = instruments.NewOfficialLatency("route", "create is the time until the cloud has accepted a route, "+
	"reconcile that of one comparison of nodes and route tables.", "verb")

func observeLatency(verb string, began time.Time) {
	latency.WithLabelValues(verb).Observe(float64(time.Since(began).Milliseconds()))
}

// Metrics are those of this package.
func Metrics() []metrics.Registerable {
	return []metrics.Registerable{entriesGauge, quotaGauge, conflictsGauge, changes, passErrors, latency}
}

var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(Metrics()...) })

func observeTable(t *table, quota int) {
	entriesGauge.WithLabelValues(t.id).Set(float64(t.custom))
	quotaGauge.WithLabelValues(t.id).Set(float64(quota))
}

func observeChange(c *change) {
	operation, code := "delete", ""
	if c.create != nil {
		operation = "create"
	}
	if c.err != nil {
		code = codeOf(c.err)
	}
	changes.WithLabelValues(operation, code).Inc()
}
