package deploy

import (
	"errors"
	"net/http"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
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

// refusesServers reports whether a call was refused, for sure and for good, for what it says about its backend servers, or for their
// number. The cloud documents no complete list of such codes, so it is every refusal that does not say that the call as a whole came at the
// wrong time, from the wrong caller, twice, or at a resource that is gone. A group of one bad server would otherwise never get another one.
func refusesServers(err error) bool {
	var refused *alicloud.Error
	if !errors.As(err, &refused) || alicloud.IsNoCredentials(err) {
		return false
	}
	if alicloud.IsBadServer(err) || alicloud.IsQuota(err) || alicloud.IsServersPerCall(err) {
		return true
	}
	if refused.Status < http.StatusBadRequest || refused.Status >= http.StatusInternalServerError {
		return false
	}
	for _, other := range []func(error) bool{
		alicloud.IsAmbiguous, alicloud.IsThrottled, alicloud.IsBusy, alicloud.IsAuth, alicloud.IsForbidden, alicloud.IsNotFound,
		alicloud.IsDuplicate,
	} {
		if other(err) {
			return false
		}
	}
	return true
}
