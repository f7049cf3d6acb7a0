package vpcroute

import (
	"sync"

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

var registerMetrics = sync.OnceFunc(func() {
	legacyregistry.MustRegister(tableEntries, tableQuota, tableConflicts, changes, passErrors)
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
