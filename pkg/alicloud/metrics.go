package alicloud

import (
	"errors"
	"strings"
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/instruments"
)

var (
	callDuration = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Namespace: instruments.Namespace, Name: "api_request_duration_seconds",
		Help:           "Duration of OpenAPI calls by action and error code; actions of NLB are spelled as in RAM policies (\"nlb:CreateListener\"); the code is empty on success and \"none\" if no response arrived.",
		Buckets:        []float64{.02, .05, .1, .2, .5, 1, 2, 5, 10, 20},
		StabilityLevel: metrics.ALPHA,
	}, []string{"action", "code"})

	credentialsFetched = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: instruments.Namespace, Name: "credentials_fetches_total",
		Help:           "Times that keys were fetched from their source or read from a changed file, by source and result (\"success\", \"error\").",
		StabilityLevel: metrics.ALPHA,
	}, []string{"source", "result"})

	limiterWait = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Namespace: instruments.Namespace, Name: "api_request_wait_seconds",
		Help:           "Time that OpenAPI calls waited for their rate limit, by action.",
		Buckets:        []float64{.001, .1, 1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600},
		StabilityLevel: metrics.ALPHA,
	}, []string{"action"})

	callsWaiting = instruments.NewGaugeVec("api", "requests_waiting", "OpenAPI calls that currently wait for their rate limit, by action.",
		"action")

	credentialsExpiry = instruments.NewGaugeVec("credentials", "expiration_timestamp_seconds",
		"Expiration time of the temporary keys in use, in seconds since 1970, by source. Absent for keys that do not expire.", "source")

	callSize = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Namespace: instruments.Namespace, Name: "api_call_size",
		Help: "Number of elements per OpenAPI call, by kind: backend servers of a vServer group in a call (\"backends\", 40 or 20), of a server group of NLB (\"servers\", 200 or 40), " +
			"route entries in a page (\"route_entries\", 500 or 100). It decreases permanently if the cloud rejects the larger size.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"kind"})
)

// Kinds of [callSize].
const (
	sizeBackends  = "backends"
	sizeServers   = "servers"
	sizeRoutePage = "route_entries"
)

func observeSize(kind string, size int) { callSize.WithLabelValues(kind).Set(float64(size)) }

// Metrics are those of this package.
func Metrics() []metrics.Registerable {
	return []metrics.Registerable{callDuration, limiterWait, callSize, callsWaiting, credentialsFetched, credentialsExpiry}
}

var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(Metrics()...) })

func observeCall(action string, err error, took time.Duration) {
	code := ""
	if e, ok := errors.AsType[*Error](err); ok {
		if code = e.Code; code == "" {
			code = "none"
		}
	}
	callDuration.WithLabelValues(action, code).Observe(took.Seconds())
}

func observeWait(action string, took time.Duration) {
	limiterWait.WithLabelValues(action).Observe(took.Seconds())
}

func observeCredentials(source string, err error) {
	result := "success"
	if err != nil {
		result = "error"
	}
	credentialsFetched.WithLabelValues(source, result).Inc()
}

// isRead reports whether the action or operation only reads. The OpenAPI has no other reading verbs.
func isRead(operation string) bool {
	action := operation[strings.Index(operation, operationSeparator)+1:]
	for _, verb := range []string{"Describe", "List", "Check", "Get"} {
		if strings.HasPrefix(action, verb) {
			return true
		}
	}
	return false
}
