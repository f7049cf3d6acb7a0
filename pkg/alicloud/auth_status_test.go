package alicloud_test

import (
	"fmt"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// TestRefusedKeyWhateverTheStatus: the pages disagree about the status of a refused key. With each, it says nothing about a resource, least
// of all that it is gone, and nothing was written.
func TestRefusedKeyWhateverTheStatus(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	for _, code := range []string{
		"InvalidAccessKeyId.NotFound", "InvalidAccessKeyId.Inactive", "SignatureDoesNotMatch", "MissingSecurityToken",
		"InvalidSecurityToken.Malformed", "InvalidSecurityToken.MismatchWithAccessKey", "InvalidSecurityToken.Expired",
		"InvalidTimeStamp.Expired",
		"InvalidTimeStamp.Format", "IllegalTimestamp",
	} {
		for _, status := range []int{400, 401, 403, 404} {
			c.Fault(fmt.Sprintf(`{"action":"DescribeLoadBalancers","code":%q,"status":%d}`, code, status))
			_, err := c.DescribeLoadBalancers(t.Context(), alicloud.LoadBalancerQuery{})
			if !alicloud.IsAuth(err) {
				t.Errorf("%s with status %d is not taken for a refused key: %v", code, status, err)
			}
			if alicloud.IsNotFound(err) || alicloud.IsAmbiguous(err) || alicloud.IsForbidden(err) || alicloud.IsBusy(err) || alicloud.IsQuota(err) {
				t.Errorf("%s with status %d is taken for something else, too: %v", code, status, err)
			}
			c.ClearFaults()
		}
	}
}
