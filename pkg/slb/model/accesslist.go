package model

import (
	"maps"
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// OwnAccessList stands for the id of the Service's list, which is known only once the list is made.
const OwnAccessList = "(source ranges)"

// WithAccessList puts the id of the list in its place.
func WithAccessList(attributes alicloud.Attributes, list *alicloud.AccessList) alicloud.Attributes {
	if attributes[alicloud.AttributeACLIDs] != OwnAccessList || list == nil {
		return attributes
	}
	resolved := maps.Clone(attributes)
	resolved[alicloud.AttributeACLIDs] = list.ID
	return resolved
}

// UsesAccessList reports whether an observed listener refers to the list.
func UsesAccessList(listener *Listener, list *alicloud.AccessList) bool {
	return list != nil && slices.Contains(strings.Split(listener.Attributes[alicloud.AttributeACLIDs], ","), list.ID)
}
