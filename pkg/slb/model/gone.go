package model

import "github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"

// CodeLoadBalancerGone is the code of calls on a CLB that does not exist.
// Source: https://www.alibabacloud.com/help/en/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-errorcodes.
const CodeLoadBalancerGone = "InvalidLoadBalancerId.NotFound"

// ListenerGone reports whether a call failed because the listener does not exist. That the whole CLB does not exist is another answer,
// which must not pass unnoticed.
func ListenerGone(err error) bool {
	return alicloud.IsNotFound(err) && !alicloud.HasCode(err, CodeLoadBalancerGone)
}
