package slb

import (
	"maps"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// accessListPrefix begins the names of the access control lists of ours.
const accessListPrefix = "k8s-clb-"

// accessList asks for the list of the Service's source ranges.
func (b *builder) accessList() {
	if len(askedRanges(b.in.Service)) == 0 {
		return
	}
	if b.in.Reused && !b.model.Override {
		b.problem(ReasonFeatureNotSupported, "loadBalancerSourceRanges are not supported here: the listeners of the CLB are its user's")
		return
	}
	if b.asksForAccessLists() {
		b.problem(ReasonInvalidAnnotation, "loadBalancerSourceRanges and %s, %s or %s exclude each other", ACLStatus, ACLID, ACLType)
		return
	}
	family := b.in.ipVersion()
	blocks, problems := sourceRanges(b.in.Service, family)
	b.problems = append(b.problems, problems...)
	if len(blocks) == 0 {
		return
	}
	b.model.Access = &alicloud.AccessList{
		Name: accessListPrefix + DefaultName(b.in.Service.UID), IPVersion: family, Entries: blocks,
		ResourceGroupID: b.in.Params.or(ResourceGroupID, b.in.Config.ResourceGroupID), Tags: ownerTags(b.in.Service, b.in.ClusterID),
	}
}

// asksForAccessLists reports whether annotations name access control lists of the user.
func (b *builder) asksForAccessLists() bool {
	return slices.ContainsFunc([]Suffix{ACLStatus, ACLID, ACLType}, func(s Suffix) bool { return b.in.Params.Has(s) && !b.in.Params.reverted[s] })
}

// restrict makes a listener admit the source ranges only.
func (b *builder) restrict(attributes alicloud.Attributes) {
	if b.model.Access != nil {
		maps.Copy(attributes, alicloud.Attributes{"AclStatus": "on", "AclType": "white", "AclId": ownAccessList})
	}
}
