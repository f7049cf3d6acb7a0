package diff

import (
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// Deletion returns the plan that deletes a load balancer of ours. Its listeners go with it.
func Deletion(actual *model.Model) model.Plan {
	d := &differ{actual: actual}
	if off := false; actual.LoadBalancer.DeletionProtection {
		d.step(model.Step{Op: model.OpSetProtection, Target: model.TargetLoadBalancer, Before: "deletion=on", After: "deletion=off", Want: model.Want{DeleteProtection: &off}})
	}
	d.step(model.Step{Op: model.OpDeleteLoadBalancer, Target: model.TargetLoadBalancer, Before: actual.LoadBalancer.Name})
	return d.plan
}

// Leftovers returns the plan that deletes the groups and the security group of a Service, which outlive the load balancer.
func Leftovers(actual *model.Model, owner mark.Owner) model.Plan {
	d := &differ{actual: actual, owner: owner, desired: &model.Model{}}
	for i := range actual.Groups {
		d.dropGroup(&actual.Groups[i])
	}
	if actual.Access != nil {
		d.step(model.Step{Op: model.OpDeleteAccess, Target: model.TargetAccess, Before: actual.Access.Name, Access: *actual.Access})
	}
	return d.plan
}

// Leaving returns the plan that removes from an existing load balancer what is the Service's.
func Leaving(actual *model.Model, owner mark.Owner, removeTags []string) model.Plan {
	d := &differ{actual: actual, owner: owner, desired: &model.Model{}}
	for _, listener := range d.unwanted() {
		d.deleteListener(listener)
	}
	d.tag(&actual.LoadBalancer, &model.Want{RemoveTags: removeTags})
	for i := range actual.Groups {
		d.dropGroup(&actual.Groups[i])
	}
	return d.plan
}

// Preserving returns the plan that leaves a load balancer of ours to its user, with its listeners and groups.
func Preserving(actual *model.Model) model.Plan {
	d := &differ{actual: actual}
	lb := &actual.LoadBalancer
	off, none := false, alicloud.NonProtection
	if lb.DeletionProtection || lb.ModificationProtection == alicloud.ConsoleProtection {
		d.step(model.Step{
			Op: model.OpSetProtection, Target: model.TargetLoadBalancer, After: "deletion=off modification=" + none, Want: model.Want{DeleteProtection: &off, Modification: &none},
		})
	}
	keys := []string{mark.TagOwner, mark.TagCluster}
	for i := range actual.Groups {
		if group := &actual.Groups[i]; !group.Foreign && slices.ContainsFunc(group.Tags, func(t alicloud.Tag) bool { return slices.Contains(keys, t.Key) }) {
			d.step(model.Step{Op: model.OpUntagGroup, Target: model.TargetGroup(group.ID), Before: group.Name, Group: group.NLBGroup, IDs: keys})
		}
	}
	if slices.ContainsFunc(lb.Tags, func(t alicloud.Tag) bool { return slices.Contains(keys, t.Key) }) {
		d.step(model.Step{Op: model.OpUntag, Target: model.TargetLoadBalancer, IDs: keys})
	}
	return d.plan
}
