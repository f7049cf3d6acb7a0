package slb

import "github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"

// codeLoadBalancerGone is the code of calls on a CLB that does not exist.
// Source: https://www.alibabacloud.com/help/en/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-errorcodes.
const codeLoadBalancerGone = "InvalidLoadBalancerId.NotFound"

// goneListener: a CLB that is gone is not the same as a listener that is gone; the first must be noticed.
func goneListener(err error) bool {
	return alicloud.IsNotFound(err) && !alicloud.HasCode(err, codeLoadBalancerGone)
}
