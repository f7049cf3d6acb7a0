package vpcroute

import (
	"errors"
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/instruments"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
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
	missingRoutes = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Namespace: instruments.Namespace, Subsystem: metricsSubsystem, Name: "table_missing_routes",
		Help:           "Routes of nodes that are not available in a managed route table.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"table"})
	tableReadable = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Namespace: instruments.Namespace, Subsystem: metricsSubsystem, Name: "table_readable",
		Help:           "Whether a managed route table could be read at the last attempt: 1 or 0.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"table"})
	withheldRemovals = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Namespace: instruments.Namespace, Subsystem: metricsSubsystem, Name: "withheld_removals",
		Help: "Routes without a node that are not removed, because there are too many of them at once and nothing proves that their " +
			"instances are gone.",
		StabilityLevel: metrics.ALPHA,
	}, nil)
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
	return []metrics.Registerable{entriesGauge, quotaGauge, conflictsGauge, missingRoutes, tableReadable, withheldRemovals, changes, passErrors, latency}
}

var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(Metrics()...) })

func observeTable(t *table, quota int) {
	entriesGauge.WithLabelValues(t.id).Set(float64(t.custom))
	quotaGauge.WithLabelValues(t.id).Set(float64(quota))
}

// observePlan sets the figures of a table that was compared.
func observePlan(p *plan) {
	conflictsGauge.WithLabelValues(p.table).Set(float64(len(p.conflicts)))
	missingRoutes.WithLabelValues(p.table).Set(float64(p.missing()))
}

// forgetTable drops the figures of a table that is no longer managed.
func forgetTable(id string) {
	for _, gauge := range []*metrics.GaugeVec{entriesGauge, quotaGauge, conflictsGauge, missingRoutes, tableReadable} {
		gauge.Delete(map[string]string{"table": id})
	}
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

// codeOf returns the cloud's code, for a metric label.
func codeOf(err error) string {
	var answer *alicloud.Error
	if errors.As(err, &answer) && answer.Code != "" {
		return answer.Code
	}
	return "none"
}
