package node

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/instruments"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
)

var (
	deletionsConfirmed = instruments.NewCounter("node", "deletions_confirmed_total",
		"Times that a node's instance was reported as gone, after which Kubernetes deletes the Node.")
	deletionsRefused = instruments.NewCounterVec("node", "deletions_refused_total",
		"Times that a missing instance was not reported as gone, by reason: no_control, never_seen, unconfirmed, capped, changed, paused.", "reason")
)

var uninitialized = instruments.NewGaugeVec("node", "uninitialized",
	"Nodes that keep the taint node.cloudprovider.kubernetes.io/uninitialized after an attempt to initialize them, by reason: that of the event on the Node, or "+
		"\"CallFailed\" if a call to ECS failed, or \"NoAddress\" if the node has no internal address.", "reason")

// latency has no metric of ours beside it that measures the same.
var latency = instruments.NewOfficialLatency("node", "reconcile is the time to determine the metadata of a Node from its instance, "+
	"remove_taint the time from the creation of a Node until this has succeeded for the first time.", "verb")

func observeMetadata(node *corev1.Node, began time.Time) {
	latency.WithLabelValues("reconcile").Observe(float64(time.Since(began).Milliseconds()))
	if nodes.Uninitialized(node) && !node.CreationTimestamp.IsZero() {
		latency.WithLabelValues("remove_taint").Observe(float64(time.Since(node.CreationTimestamp.Time).Milliseconds()))
	}
}

// Metrics are those of this package.
func Metrics() []metrics.Registerable {
	return []metrics.Registerable{deletionsConfirmed, deletionsRefused, uninitialized, latency}
}

var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(Metrics()...) })
