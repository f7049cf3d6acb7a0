package model

import "github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"

// CodeLoadBalancerGone is the code of calls on a CLB that does not exist.
// Source: https://www.alibabacloud.com/help/en/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-errorcodes.
const CodeLoadBalancerGone = "InvalidLoadBalancerId.NotFound"

// ListenerGone: a CLB that is gone is not the same as a listener that is gone; the first must be noticed.
func ListenerGone(err error) bool {
	return alicloud.IsNotFound(err) && !alicloud.HasCode(err, CodeLoadBalancerGone)
}
