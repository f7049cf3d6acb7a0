package node

import (
	"sync"

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

var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(deletionsConfirmed, deletionsRefused) })
