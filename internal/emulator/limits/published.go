package limits

import (
	"slices"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
)

// Published returns the quotas of the vendor's documents. CLB actions that the documents do not list get the quota of
// their family (90 writes or 3000 reads a minute). For most of VPC and ECS no figures are published, and none are made up.
// NLB: 200 writes a minute and 20 reads a second, also where the page names no figure.
// Sources: https://help.aliyun.com/en/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-quota,
// https://help.aliyun.com/en/slb/network-load-balancer/developer-reference/api-nlb-2022-04-30-quota and
// https://help.aliyun.com/zh/vpc/developer-reference/api-vpc-2016-04-28-quota and
// https://www.alibabacloud.com/help/en/quota-center/developer-reference/api-quotas-2020-05-10-quota
func Published(product, action string, kind api.Kind) (Quota, bool) {
	switch product {
	case "slb":
		return publishedCLB(action, kind), true
	case "nlb":
		return publishedNLB(action, kind), true
	case "sts":
		if action == "AssumeRole" {
			return Quota{100, time.Second}, true
		}
	case "quotas":
		return Quota{15, time.Second}, true
	}
	return Quota{}, false
}

// Quotas returns the quota of an action; false means that it has none.
type Quotas func(product, action string, kind api.Kind) (Quota, bool)

// Unlimited gives no action a quota.
func Unlimited(string, string, api.Kind) (Quota, bool) { return Quota{}, false }

// Replaced returns quotas in which own, by "product:Action", come before those of base.
func Replaced(base Quotas, own map[string]Quota) Quotas {
	return func(product, action string, kind api.Kind) (Quota, bool) {
		if q, ok := own[product+":"+action]; ok {
			return q, true
		}
		return base(product, action, kind)
	}
}

func publishedCLB(action string, kind api.Kind) Quota {
	switch {
	case action == "CreateLoadBalancer":
		return Quota{60, time.Minute}
	case action == "ListTagResources":
		return Quota{10, time.Second}
	case action == "UntagResources":
		return Quota{5, time.Second}
	case slices.Contains([]string{"SetLoadBalancerModificationProtection", "SetDomainExtensionAttribute"}, action):
		return Quota{400, time.Minute}
	case kind == api.Read:
		return Quota{3000, time.Minute}
	default:
		return Quota{90, time.Minute}
	}
}

func publishedNLB(action string, kind api.Kind) Quota {
	switch {
	case action == "UpdateLoadBalancerProtection":
		return Quota{300, time.Minute}
	case action == "GetListenerHealthStatus":
		return Quota{10, time.Second}
	case kind == api.Read:
		return Quota{20, time.Second}
	default:
		return Quota{200, time.Minute}
	}
}
