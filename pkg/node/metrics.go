package node

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	deletionsConfirmed = metrics.NewCounter(&metrics.CounterOpts{
		Namespace: "alicloud", Subsystem: "node", Name: "deletions_confirmed_total",
		Help:           "Times that a node's instance was reported as gone, after which Kubernetes deletes the Node.",
		StabilityLevel: metrics.ALPHA,
	})
	deletionsRefused = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: "alicloud", Subsystem: "node", Name: "deletions_refused_total",
		Help:           "Times that a missing instance was not reported as gone, by reason: no_control, never_seen, unconfirmed, capped.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"reason"})
)

// latency is the official CCM's metric, name, label and buckets, so that dashboards made for it go on. There is no other
// measure of the same.
var latency = metrics.NewHistogramVec(&metrics.HistogramOpts{
	Namespace: "ccm", Subsystem: "node", Name: "latencies_duration_milliseconds",
	Help: "As in the official CCM, by verb: reconcile is the time to find out what a Node is to show of its instance, " +
		"remove_taint the time from a Node's creation until that was found out for the first time.",
	Buckets: []float64{
		500, 700, 1000, 1500, 2000, 3000, 4000, 5000, 7000, 8000, 9000, 10000, 30000, 60000, 100000, 150000, 200000, 300000,
		600000, 700000, 800000,
	},
	StabilityLevel: metrics.ALPHA,
}, []string{"verb"})

func observeMetadata(node *corev1.Node, began time.Time) {
	latency.WithLabelValues("reconcile").Observe(float64(time.Since(began).Milliseconds()))
	if uninitialized(node) && !node.CreationTimestamp.IsZero() {
		latency.WithLabelValues("remove_taint").Observe(float64(time.Since(node.CreationTimestamp.Time).Milliseconds()))
	}
}

var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(deletionsConfirmed, deletionsRefused, latency) })
