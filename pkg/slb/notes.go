package slb

import (
	"fmt"
	"strings"
)

// Defaults in seconds of what a check waits, as the cloud has them.
const (
	defaultCheckInterval = 2
	defaultCheckTimeout  = 5
)

// notes are what only the log is told: annotations that act on no listener, and timeouts that the cloud does not use as
// they read. They make no event, because frameworks for game servers put all annotations of health checks on every Service.
func notes(params Params, model *Model) []string {
	if params.invalid || model == nil || len(model.Listeners) == 0 {
		return nil // that is told first
	}
	var found []string
	for _, row := range listenerAnnotations() {
		if row.Attribute != "" && params.Has(row.Suffix) && !model.listens(row.Protocols) {
			found = append(found, fmt.Sprintf("%s has no effect: no port is served by %s", row.Suffix, strings.Join(row.Protocols, " or ")))
		}
	}
	return append(found, shortTimeouts(params, model)...)
}

// shortTimeouts: where a check would wait less than the interval, the cloud waits for the interval.
// Source: https://www.alibabacloud.com/help/en/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-createloadbalancertcplistener.
func shortTimeouts(params Params, model *Model) []string {
	var found []string
	interval := params.integer(HealthCheckInterval, defaultCheckInterval)
	for _, check := range []struct {
		suffix    Suffix
		protocols []string
	}{{HealthCheckConnectTimeout, layer4}, {HealthCheckTimeout, layer7}} {
		timeout := params.integer(check.suffix, defaultCheckTimeout)
		if timeout < interval && model.listens(check.protocols) {
			found = append(found, fmt.Sprintf("%s: %d s is below %s: %d s, so that the cloud waits %d s", check.suffix, timeout, HealthCheckInterval, interval, interval))
		}
	}
	return found
}
