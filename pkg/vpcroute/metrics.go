package vpcroute

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const (
	metricsNamespace = "alicloud"
	metricsSubsystem = "route"
)

var (
	tableEntries = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: "table_entries",
		Help:           "Custom entries of a managed route table, foreign ones included, as read last.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"table"})
	tableQuota = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: "table_entries_quota",
		Help:           "Custom entries that a managed route table may hold, as configured.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"table"})
	tableConflicts = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: "table_conflicts",
		Help:           "Pod CIDRs of nodes that a foreign entry of a managed route table holds.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"table"})
	changes = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: "changes_total",
		Help:           "Route entries that were to be created or deleted, by operation and error code; the code is empty on success.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"operation", "code"})
	passErrors = metrics.NewCounter(&metrics.CounterOpts{
		Namespace: metricsNamespace, Subsystem: metricsSubsystem, Name: "pass_errors_total",
		Help:           "Comparisons of nodes and route tables that ended in an error.",
		StabilityLevel: metrics.ALPHA,
	})
)

// latency is the official CCM's metric, name, label and buckets, so that dashboards made for it go on. There is no other
// measure of the same.
var latency = metrics.NewHistogramVec(&metrics.HistogramOpts{
	Namespace: "ccm", Subsystem: "route", Name: "latencies_duration_milliseconds",
	Help: "As in the official CCM, by verb: create is the time until the cloud has accepted a route, reconcile that of one " +
		"comparison of nodes and route tables.",
	Buckets: []float64{
		500, 700, 1000, 1500, 2000, 3000, 4000, 5000, 7000, 8000, 9000, 10000, 30000, 60000, 100000, 150000, 200000, 300000,
		600000, 700000, 800000,
	},
	StabilityLevel: metrics.ALPHA,
}, []string{"verb"})

func observeLatency(verb string, began time.Time) {
	latency.WithLabelValues(verb).Observe(float64(time.Since(began).Milliseconds()))
}

var registerMetrics = sync.OnceFunc(func() {
	legacyregistry.MustRegister(tableEntries, tableQuota, tableConflicts, changes, passErrors, latency)
})

func observeTable(t *table, quota int) {
	tableEntries.WithLabelValues(t.id).Set(float64(t.custom))
	tableQuota.WithLabelValues(t.id).Set(float64(quota))
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
