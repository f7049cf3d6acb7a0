package deploy

import (
	"errors"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/refusal"
)

// isRefusal reports whether the cloud refused what a call asks for, and will for a while: it does not say that it came at the wrong time,
// or that what is there differs from what is known.
func isRefusal(err error) bool {
	var refused *alicloud.Error
	if !errors.As(err, &refused) || refused.Code == "" {
		return false
	}
	return !alicloud.IsAmbiguous(err) && !alicloud.IsThrottled(err) && !alicloud.IsBusy(err) && !alicloud.IsNotFound(err) &&
		!alicloud.IsDuplicate(err)
}

// refusesServers reports whether a call was refused for what it says about its backend servers, or for their number.
func refusesServers(err error) bool {
	ofThem := alicloud.IsBadServer(err) || alicloud.IsQuota(err) || alicloud.IsServersPerCall(err)
	return ofThem && !alicloud.IsNoCredentials(err) || refusal.OfServers(err, alicloud.IsNotFound, alicloud.IsDuplicate)
}
