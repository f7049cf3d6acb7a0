package vpcroute

import (
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/instruments"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

const metricsSubsystem = "route"

var (
	entriesGauge = instruments.NewGaugeVec(metricsSubsystem, "table_entries",
		"Custom entries of a managed route table, including those that the manager did not create, as of the last read.", "table")
	quotaGauge = instruments.NewGaugeVec(metricsSubsystem, "table_entries_quota",
		"Quota of custom entries of a managed route table: configured, from the Quota Center, or published. While the table holds more than a value that nobody has configured, the quota "+
			"is larger, and has no value here.", "table")
	conflictsGauge = instruments.NewGaugeVec(metricsSubsystem, "table_conflicts",
		"Pod CIDRs of nodes for which a managed route table has an entry that the manager did not create.", "table")
	missingRoutes = instruments.NewGaugeVec(metricsSubsystem, "table_missing_routes",
		"Routes of nodes that are not available in a managed route table.", "table")
	tableReadable = instruments.NewGaugeVec(metricsSubsystem, "table_readable",
		"Whether a managed route table could be read at the last attempt: 1 or 0.", "table")
	tableReadAt = instruments.NewGaugeVec(metricsSubsystem, "table_last_read_timestamp_seconds",
		"When a managed route table was last read with success, in seconds since 1970.", "table")
	driftFound = instruments.NewCounter(metricsSubsystem, "drift_found_total",
		"Route entries that a read for drift detection found missing or superfluous.")
	withheldRemovals = instruments.NewGaugeVec(metricsSubsystem, "withheld_removals",
		"Routes without a node that are not removed, because there are too many of them at once and nothing proves that their "+
			"instances are gone.")
	changes = instruments.NewCounterVec(metricsSubsystem, "changes_total",
		"Route entries that the manager tried to create or delete, by operation and error code; the code is empty on success.", "operation",
		"code")
	passErrors = instruments.NewCounter(metricsSubsystem, "pass_errors_total",
		"Comparisons of nodes and route tables that ended in an error.")
)

// latency has no metric of ours beside it that measures the same.
var latency = instruments.NewOfficialLatency("route", "create is the time until the cloud has accepted a route, "+
	"reconcile that of one comparison of nodes and route tables.", "verb")

func observeLatency(verb string, began time.Time) {
	latency.WithLabelValues(verb).Observe(float64(time.Since(began).Milliseconds()))
}

// Metrics are those of this package.
func Metrics() []metrics.Registerable {
	return []metrics.Registerable{entriesGauge, quotaGauge, conflictsGauge, missingRoutes, tableReadable, tableReadAt, driftFound,
		withheldRemovals, changes, passErrors, latency}
}

var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(Metrics()...) })

// forgetTables drops the figures of tables that are no longer managed.
func forgetTables(before, now []string) {
	for _, id := range before {
		if slices.Contains(now, id) {
			continue
		}
		for _, gauge := range []*metrics.GaugeVec{entriesGauge, quotaGauge, conflictsGauge, missingRoutes, tableReadable, tableReadAt} {
			gauge.Delete(map[string]string{"table": id})
		}
	}
}

func observeChange(c *change) {
	operation, code := "create", ""
	if c.remove != nil {
		operation = "delete"
	}
	if answer := (*alicloud.Error)(nil); errors.As(c.err, &answer) && answer.Code != "" {
		code = answer.Code
	} else if c.err != nil {
		code = "none"
	}
	changes.WithLabelValues(operation, code).Inc()
}
