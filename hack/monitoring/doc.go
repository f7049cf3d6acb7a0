// Package monitoring tests the alerts and the dashboard of the chart with the parser and the query engine of Prometheus.
package monitoring
