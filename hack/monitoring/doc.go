// Package monitoring tests the alerts and the dashboard of the chart with the parser and the query engine of Prometheus: on series by hand,
// one scene for each alert, and on those that record.sh recorded of a real manager in a sandbox. Run record.sh again after a change of
// metrics or panels.
package monitoring
