// Package instruments holds what the metrics of all packages share.
package instruments

import "k8s.io/component-base/metrics"

// Namespace begins the names of this project's own metrics.
const Namespace = "alicloud"

// officialNamespace begins the names of the official CCM's metrics.
const officialNamespace = "ccm"

// NewCounter returns a counter without labels, which is 0 from the start.
func NewCounter(subsystem, name, help string) *metrics.Counter {
	return metrics.NewCounter(&metrics.CounterOpts{Namespace: Namespace, Subsystem: subsystem, Name: name, Help: help,
		StabilityLevel: metrics.ALPHA})
}

// NewCounterVec returns a counter with labels.
func NewCounterVec(subsystem, name, help string, labels ...string) *metrics.CounterVec {
	opts := metrics.CounterOpts{Namespace: Namespace, Subsystem: subsystem, Name: name, Help: help, StabilityLevel: metrics.ALPHA}
	return metrics.NewCounterVec(&opts, labels)
}

// NewGauge returns a gauge without labels, which is 0 from the start.
func NewGauge(subsystem, name, help string) *metrics.Gauge {
	return metrics.NewGauge(&metrics.GaugeOpts{Namespace: Namespace, Subsystem: subsystem, Name: name, Help: help,
		StabilityLevel: metrics.ALPHA})
}

// NewGaugeVec returns a gauge with labels.
func NewGaugeVec(subsystem, name, help string, labels ...string) *metrics.GaugeVec {
	opts := metrics.GaugeOpts{Namespace: Namespace, Subsystem: subsystem, Name: name, Help: help, StabilityLevel: metrics.ALPHA}
	return metrics.NewGaugeVec(&opts, labels)
}

// NewHistogramVec returns a histogram with labels.
func NewHistogramVec(subsystem, name, help string, buckets []float64, labels ...string) *metrics.HistogramVec {
	return metrics.NewHistogramVec(&metrics.HistogramOpts{
		Namespace: Namespace, Subsystem: subsystem, Name: name, Help: help, Buckets: buckets, StabilityLevel: metrics.ALPHA,
	}, labels)
}

// NewOfficialLatency returns one of the official CCM's histograms, ccm_SUBSYSTEM_latencies_duration_milliseconds, with its name, labels
// and buckets, so that dashboards made for it go on. Help says what each verb measures.
func NewOfficialLatency(subsystem, help string, labels ...string) *metrics.HistogramVec {
	return metrics.NewHistogramVec(&metrics.HistogramOpts{
		Namespace: officialNamespace, Subsystem: subsystem, Name: "latencies_duration_milliseconds",
		Help: "As in the official CCM, by verb: " + help,
		Buckets: []float64{
			500, 700, 1000, 1500, 2000, 3000, 4000, 5000, 7000, 8000, 9000, 10000, 30000, 60000, 100000, 150000, 200000, 300000,
			600000, 700000, 800000,
		},
		StabilityLevel: metrics.ALPHA,
	}, labels)
}

// NewOfficialCounter returns one of the official CCM's counters, ccm_SUBSYSTEM_NAME.
func NewOfficialCounter(subsystem, name, help string, labels ...string) *metrics.CounterVec {
	return metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: officialNamespace, Subsystem: subsystem, Name: name,
		Help:           "As in the official CCM: " + help,
		StabilityLevel: metrics.ALPHA,
	}, labels)
}
