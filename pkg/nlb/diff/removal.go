package diff

import (
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// Deletion returns the plan that deletes a load balancer of ours. Its listeners go with it. One that lacks the owner tag gets these tags
// first: without them, nothing is deleted.
func Deletion(actual *model.Model, owner ...alicloud.Tag) model.Plan {
	lb, steps := &actual.LoadBalancer, []model.Step(nil)
	if _, tagged := lb.Tag(mark.TagOwner); !tagged && len(owner) > 0 {
		steps = append(steps, model.Step{Op: model.OpTag, Target: model.TargetLoadBalancer, After: mark.TagsText(owner), Tags: owner})
	}
	if lb.DeletionProtection {
		steps = append(steps, model.Step{
			Op: model.OpSetProtection, Target: model.TargetLoadBalancer, Before: "deletion=on", After: "deletion=off",
			Want: model.Want{DeleteProtection: new(false)},
		})
	}
	return model.Plan{Steps: append(steps, model.Step{Op: model.OpDeleteLoadBalancer, Target: model.TargetLoadBalancer, Before: lb.Name})}
}

// Leftovers returns the plan that deletes the groups and the security group of a Service, which outlive the load balancer.
func Leftovers(actual *model.Model, owner mark.Owner) model.Plan {
	d := &differ{actual: actual, owner: owner, desired: &model.Model{}}
	for i := range actual.Groups {
		d.dropGroup(&actual.Groups[i])
	}
	if actual.Access != nil {
		d.addStep(model.Step{Op: model.OpDeleteAccess, Target: model.TargetAccess, Before: actual.Access.Name, Access: *actual.Access})
	}
	return d.plan
}

// Leaving returns the plan that removes from an existing load balancer what is the Service's.
func Leaving(actual *model.Model, owner mark.Owner, removeTags []string) model.Plan {
	d := &differ{actual: actual, owner: owner, desired: &model.Model{}}
	for _, listener := range d.unwantedListeners() {
		d.deleteListener(listener)
	}
	d.tagSteps(&actual.LoadBalancer, &model.Want{RemoveTags: removeTags})
	for i := range actual.Groups {
		d.dropGroup(&actual.Groups[i])
	}
	return d.plan
}

// Preserving returns the plan that leaves a load balancer of ours to the author of the Service, with its listeners and groups. preserved is
// the value of [mark.TagPreserved].
func Preserving(actual *model.Model, preserved string) model.Plan {
	d := &differ{actual: actual}
	lb := &actual.LoadBalancer
	off, none := false, alicloud.NonProtection
	if lb.DeletionProtection || lb.ModificationProtection == alicloud.ConsoleProtection {
		d.addStep(model.Step{
			Op: model.OpSetProtection, Target: model.TargetLoadBalancer, After: "deletion=off modification=" + none,
			Want: model.Want{DeleteProtection: &off, Modification: &none},
		})
	}
	keys := ownerTagKeys()
	groups := d.untagGroups(keys) // once the load balancer has no owner, nothing leads to them
	if value, _ := lb.Tag(mark.TagPreserved); value != preserved {
		d.tagPreserved(preserved)
	}
	if slices.ContainsFunc(lb.Tags, func(t alicloud.Tag) bool { return slices.Contains(keys, t.Key) }) {
		d.addStep(model.Step{Op: model.OpUntag, Target: model.TargetLoadBalancer, IDs: keys, Needs: groups})
	}
	return d.plan
}

// PreservingInGroup returns the plan that leaves what a Service has on the load balancer of a group, where others stay, to the author of
// the Service. The load balancer notes it; one Service is enough.
func PreservingInGroup(actual *model.Model, preserved string) model.Plan {
	d := &differ{actual: actual}
	if _, noted := actual.LoadBalancer.Tag(mark.TagPreserved); !noted {
		d.tagPreserved(preserved)
	}
	d.untagGroups(ownerTagKeys())
	return d.plan
}

// PreservingOnExisting returns the plan that leaves what a Service has on an existing load balancer to the author of the Service: nothing
// there is bound to this program but the server groups.
func PreservingOnExisting(actual *model.Model) model.Plan {
	d := &differ{actual: actual}
	d.untagGroups(ownerTagKeys())
	return d.plan
}

// ownerTagKeys are the keys of the tags that bind something to this program.
func ownerTagKeys() []string { return []string{mark.TagOwner, mark.TagCluster, mark.TagGroup} }

// tagPreserved notes on the load balancer that it was preserved. That is for people: no Service stays in deletion because of it.
func (d *differ) tagPreserved(preserved string) {
	tags := []alicloud.Tag{{Key: mark.TagPreserved, Value: preserved}}
	d.addStep(model.Step{Op: model.OpTag, Target: model.TargetLoadBalancer, After: mark.TagsText(tags), Tags: tags, Optional: true})
}

// untagGroups removes tags from the server groups of the Service, and returns the targets of these steps.
func (d *differ) untagGroups(keys []string) []string {
	var targets []string
	for i := range d.actual.Groups {
		if group := &d.actual.Groups[i]; !group.Foreign && slices.ContainsFunc(group.Tags, func(t alicloud.Tag) bool {
			return slices.Contains(keys, t.Key)
		}) {
			targets = append(targets, model.TargetGroup(group.ID))
			d.addStep(model.Step{Op: model.OpUntagGroup, Target: model.TargetGroup(group.ID), Before: group.Name, Group: group.NLBGroup, IDs: keys})
		}
	}
	return targets
}
