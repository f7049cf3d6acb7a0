package build

import (
	"fmt"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// Defaults in seconds of what a check waits, as the cloud has them.
const (
	defaultCheckInterval = 2
	defaultCheckTimeout  = 5
)

// Ineffective returns what only the log reports: annotations of health checks that act on no listener, and timeouts that the cloud does not
// use as written. They make no event, because frameworks for game servers put all annotations of health checks on every Service.
func Ineffective(params annotation.Params, model *model.Model) []string {
	if params.Invalid || model == nil || len(model.Listeners) == 0 {
		return nil // that is reported first
	}
	return append(params.IdleChecks(model.Protocols()), shortTimeouts(params, model)...)
}

// shortTimeouts: where a check would wait less than the interval, the cloud waits for the interval.
// Source: https://www.alibabacloud.com/help/en/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-createloadbalancertcplistener.
func shortTimeouts(params annotation.Params, model *model.Model) []string {
	var found []string
	interval := params.Int(annotation.HealthCheckInterval, defaultCheckInterval)
	for _, check := range []struct {
		suffix    annotation.Suffix
		protocols []string
	}{{annotation.HealthCheckConnectTimeout, annotation.Layer4}, {annotation.HealthCheckTimeout, annotation.Layer7}} {
		timeout := params.Int(check.suffix, defaultCheckTimeout)
		if timeout < interval && model.Listens(check.protocols) {
			found = append(found,
				fmt.Sprintf("%s: %d s is below %s: %d s, so the cloud waits %d s", check.suffix, timeout, annotation.HealthCheckInterval, interval,
					interval))
		}
	}
	return found
}
