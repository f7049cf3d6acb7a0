package diff

import (
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// Deletion deletes a CLB of ours; its listeners and vServer groups go with it. One that lacks the owner tag gets these tags first: without
// them, nothing is deleted.
func Deletion(actual *model.Model, owner ...alicloud.Tag) model.Plan {
	var plan model.Plan
	if _, tagged := actual.LoadBalancer.Tag(mark.TagOwner); !tagged && len(owner) > 0 {
		plan.Steps = append(plan.Steps,
			model.Step{Op: model.OpTag, Target: model.TargetLoadBalancer, After: mark.TagsText(owner), LoadBalancer: alicloud.LoadBalancer{Tags: owner}})
	}
	plan.Steps = append(plan.Steps, unprotectSteps(actual)...)
	plan.Steps = append(plan.Steps,
		model.Step{Op: model.OpDeleteLoadBalancer, Target: model.TargetLoadBalancer, Before: actual.LoadBalancer.ID,
			Needs: []string{string(model.OpTag), string(model.OpSetProtection)}})
	if actual.Access != nil {
		plan.Steps = append(plan.Steps, deleteAccessStep(actual.Access))
	}
	return plan
}

// AccessListDeletion deletes the access control list of a CLB that no longer exists.
func AccessListDeletion(list *alicloud.AccessList) model.Plan {
	return model.Plan{Steps: []model.Step{deleteAccessStep(list)}}
}

// unprotectSteps is the step that a deletion needs first, none where the delete protection is off.
func unprotectSteps(actual *model.Model) []model.Step {
	if actual.LoadBalancer.DeleteProtection == alicloud.ProtectionOff {
		return nil
	}
	return []model.Step{{
		Op: model.OpSetProtection, Target: model.TargetLoadBalancer, Before: actual.LoadBalancer.DeleteProtection, After: alicloud.ProtectionOff,
		LoadBalancer: alicloud.LoadBalancer{DeleteProtection: alicloud.ProtectionOff},
	}}
}

// Preserving changes nothing that carries traffic. preserved is the value of [mark.TagPreserved].
func Preserving(actual *model.Model, preserved string) model.Plan {
	plan := model.Plan{Steps: unprotectSteps(actual)}
	if value, _ := actual.LoadBalancer.Tag(mark.TagPreserved); value != preserved {
		plan.Steps = append(plan.Steps, tagPreserved(actual, preserved)...)
	}
	if actual.LoadBalancer.ModificationProtection != alicloud.NonProtection {
		plan.Steps = append(plan.Steps, model.Step{
			Op: model.OpSetModification, Target: model.TargetLoadBalancer, Before: actual.LoadBalancer.ModificationProtection,
			After:        alicloud.NonProtection,
			LoadBalancer: alicloud.LoadBalancer{ModificationProtection: alicloud.NonProtection},
		})
	}
	keys := presentTags(&actual.LoadBalancer, []string{mark.TagOwner, mark.TagCluster, mark.TagGroup})
	if len(keys) > 0 {
		plan.Steps = append(plan.Steps, model.Step{
			// Last: without them the CLB is not found again.
			Op: model.OpUntag, Target: model.TargetLoadBalancer, Before: strings.Join(keys, " "), TagKeys: keys,
			Needs: []string{string(model.OpTag), string(model.OpSetProtection), string(model.OpSetModification)},
		})
	}
	return plan
}

// PreservingOnShared only notes on a CLB that others may use that a Service has left something there on purpose. One Service is enough.
func PreservingOnShared(actual *model.Model, preserved string) model.Plan {
	if _, noted := actual.LoadBalancer.Tag(mark.TagPreserved); noted {
		return model.Plan{}
	}
	return model.Plan{Steps: tagPreserved(actual, preserved)}
}

// tagPreserved is the step that sets [mark.TagPreserved], none where the CLB cannot have another tag.
func tagPreserved(actual *model.Model, preserved string) []model.Step {
	if len(actual.LoadBalancer.Tags) >= annotation.MaxTags {
		return nil
	}
	return []model.Step{{
		Op: model.OpTag, Target: model.TargetLoadBalancer, After: mark.TagPreserved + "=" + preserved,
		LoadBalancer: alicloud.LoadBalancer{Tags: []alicloud.Tag{{Key: mark.TagPreserved, Value: preserved}}},
	}}
}
