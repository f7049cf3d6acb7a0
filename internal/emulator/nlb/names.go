package nlb

import (
	"regexp"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// wellNamed is the form of names:
// https://www.alibabacloud.com/help/en/slb/network-load-balancer/developer-reference/api-nlb-2022-04-30-createloadbalancer.
var wellNamed = regexp.MustCompile(`^\p{L}[\p{L}0-9._-]*$`)

// checkNames checks the name and the tags that a call gives.
func checkNames(c *api.Call, name string) *api.Error {
	if value := c.Str(name); value != "" && !wellNamed.MatchString(value) {
		return illegal(name, "%q does not begin with a letter, or has other characters than letters, digits, dots, underscores and hyphens",
			value)
	}
	return checkTags(c)
}

// checkTags checks the keys of the tags that a call gives. No document names the code.
func checkTags(c *api.Call) *api.Error {
	for _, tag := range cloud.TagsIn(c) {
		key := strings.ToLower(tag.Key)
		if strings.HasPrefix(key, "aliyun") || strings.HasPrefix(key, "acs:") || strings.Contains(key, "http://") ||
			strings.Contains(key, "https://") {
			return illegal("TagKey", "%q is reserved", tag.Key)
		}
	}
	return nil
}
