package model

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// AccessListPrefix begins the names of the access control lists that the manager creates.
const AccessListPrefix = "k8s-clb-"

// AccessListName is the name of the access control list of a Service. No other list has it.
func AccessListName(service types.UID) string { return AccessListPrefix + mark.DefaultName(service) }

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

// IsAccess reports whether an attribute of a listener says who may connect.
func IsAccess(attribute string) bool {
	return attribute == alicloud.AttributeACLStatus || attribute == alicloud.AttributeACLType || attribute == alicloud.AttributeACLIDs
}

// UsesAccessList reports whether an observed listener refers to the list.
func UsesAccessList(listener *Listener, list *alicloud.AccessList) bool {
	return list != nil && slices.Contains(listener.Attributes.ACLIDs(), list.ID)
}
