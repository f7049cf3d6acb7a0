package build

import (
	"maps"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// accessList asks for the list of the Service's source ranges.
func (b *builder) accessList() {
	if len(annotation.SourceRangesOf(b.in.Service)) == 0 {
		b.model.KeepAccess = slices.ContainsFunc(accessAnnotations, b.in.Params.Refused)
		return
	}
	if b.observed.Reused && !b.model.Override {
		b.addProblem(problem.ReasonFeatureNotSupported,
			"loadBalancerSourceRanges are not supported here: the listeners of the CLB are managed by its owner")
		return
	}
	if b.asksForAccessLists() {
		b.model.KeepAccess = true
		b.addProblem(problem.ReasonInvalidAnnotation, "loadBalancerSourceRanges and %s, %s or %s exclude each other", annotation.ACLStatus,
			annotation.ACLID, annotation.ACLType)
		return
	}
	family := b.in.ipVersion()
	blocks, problems := annotation.ParseSourceRanges(b.in.Service, family)
	b.problems = append(b.problems, problems...)
	b.model.KeepAccess = problem.HasInvalid(problems)
	if len(blocks) == 0 {
		return
	}
	b.model.Access = &alicloud.AccessList{
		Name: model.AccessListName(b.in.Service.UID), IPVersion: family, Entries: blocks,
		ResourceGroupID: b.in.Params.Or(annotation.ResourceGroupID, b.in.Config.ResourceGroupID), Tags: mark.Tags(b.in.Service, b.in.ClusterID),
	}
}

// accessAnnotations name access control lists of the user.
var accessAnnotations = []annotation.Suffix{annotation.ACLStatus, annotation.ACLID, annotation.ACLType}

// asksForAccessLists reports whether annotations name access control lists of the user.
func (b *builder) asksForAccessLists() bool {
	return slices.ContainsFunc(accessAnnotations, func(s annotation.Suffix) bool {
		return b.in.Params.Has(s) && !b.in.Params.Reverted[s] || b.in.Params.Refused(s)
	})
}

// restrictAccess makes a listener admit the source ranges only. While it is not known who may connect, what the listener has stays.
func (b *builder) restrictAccess(attributes alicloud.Attributes) {
	switch {
	case b.model.KeepAccess:
		maps.DeleteFunc(attributes, func(name, _ string) bool { return model.IsAccess(name) })
	case b.model.Access != nil:
		maps.Copy(attributes,
			alicloud.Attributes{alicloud.AttributeACLStatus: "on", alicloud.AttributeACLType: "white",
				alicloud.AttributeACLIDs: model.OwnAccessList})
	}
}
