package alicloud

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
)

// riskControl refuses an account, and no policy helps.
const riskControl = "Forbidden.RiskControl"

// quotas say what there is too much of, by the code that refuses more. Sources: those of the tables of codes.
var quotas = []struct {
	codes sets.Set[string]
	of    string
}{
	{sets.New("ListenerNumberOverLimit", "VipTooManyListeners", "QuotaExceeded.ListenersNum"), "listeners of the load balancer"},
	{sets.New("InstanceBackendServerNumberOverLimit", "TooManyBackendServers"), "backend servers of the load balancer"},
	{sets.New("ORDER.QUOTA_EXCEEDED", "ORDER.QUANTITY_INVALID", "QuotaExceeded.LoadBalancersNum"), "load balancers of the account"},
	{sets.New("AuthorizationLimitExceed"), "rules of the security group"},
	{sets.New("QuotaExceeded.RouteEntry", "QuotaExceeded.RouteEntries"), "custom entries of the route table"},
}

// noFreeAddress is among the codes of quotas, and no quota.
const noFreeAddress = "VSwitchAvailableIpNotExist"

// IsVSwitchFull reports whether a vSwitch has no free address. Another one may have some.
func IsVSwitchFull(err error) bool { return HasCode(err, noFreeAddress) }

// advice is what the account's owner can do about a refusal, empty where the code does not show that.
func (e *Error) advice() string {
	switch {
	case forbiddenCodes.Has(e.Code) && e.Code != riskControl && e.Product != "":
		action := e.Product + operationSeparator + e.Action
		return fmt.Sprintf(`; grant %s to the RAM user or role of the access key, for example with the policy `+
			`{"Version":"1","Statement":[{"Effect":"Allow","Action":%q,"Resource":"*"}]}`, action, action)
	case e.Code == noFreeAddress:
		return "; the vSwitch has no free address: free one, or use another vSwitch"
	case !IsQuota(e):
		return ""
	}
	for _, quota := range quotas {
		if quota.codes.Has(e.Code) {
			return fmt.Sprintf("; the quota of %s is used up: delete some, or request a higher quota in the Quota Center", quota.of)
		}
	}
	return "; a quota is used up: delete what is not needed, or request a higher one in the Quota Center"
}
