package slb

import (
	"maps"
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// ownAccessList stands for the id of the Service's list, which is known only once the list is made.
const ownAccessList = "(source ranges)"

// withAccessList puts the id of the list in its place.
func withAccessList(attributes alicloud.Attributes, list *alicloud.AccessList) alicloud.Attributes {
	if attributes["AclId"] != ownAccessList || list == nil {
		return attributes
	}
	resolved := maps.Clone(attributes)
	resolved["AclId"] = list.ID
	return resolved
}

// usesAccessList reports whether an observed listener refers to the list.
func usesAccessList(listener *Listener, list *alicloud.AccessList) bool {
	return list != nil && slices.Contains(strings.Split(listener.Attributes["AclId"], ","), list.ID)
}
