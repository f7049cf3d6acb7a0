package diff

import (
	"maps"
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// Deletion returns the plan that deletes a load balancer of ours. Its listeners go with it.
func Deletion(actual *model.Model) model.Plan {
	return model.Plan{Steps: deletionOf(&actual.LoadBalancer, model.TargetLoadBalancer, "")}
}

func deletionOf(lb *alicloud.NLB, target, of string) []model.Step {
	var steps []model.Step
	if lb.DeletionProtection {
		steps = append(steps, model.Step{Op: model.OpSetProtection, Target: target, Of: of, Before: "deletion=on", After: "deletion=off", Want: model.Want{DeleteProtection: new(false)}})
	}
	return append(steps, model.Step{Op: model.OpDeleteLoadBalancer, Target: target, Of: of, Before: lb.Name})
}

// leave removes what the Service has on load balancers that it has left, once it has all its listeners on the other one. Without
// listeners of its own there, nobody can tell when that takes over.
func (d *differ) leave() {
	d.plan.Steps = append(d.plan.Steps, UntagLeft(d.actual)...)
	left, strays := d.actual.Left, d.actual.Strays
	if left == nil && len(strays) == 0 || d.inDoubt() {
		return
	}
	if d.actual.Reused && !d.desired.Override {
		d.problem(problem.ReasonListenersLeftAlone, "what the Service used before is kept (%s): the Service does not manage the listeners of its load balancer, so the manager cannot determine when they serve it", leftText(left, strays))
		return
	}
	var serving []string
	for i := range d.desired.Listeners {
		want := &d.desired.Listeners[i]
		have := d.actual.Listener(want.Key())
		if have == nil || have.Protocol != want.Protocol || !d.owner.OwnsNLB(model.Text(have.Description)) { // the port may be another's
			return
		}
		serving = append(serving, model.TargetListener(want.Key()))
	}
	at := len(d.plan.Steps)
	d.deleteStrays(strays)
	if left != nil {
		d.plan.Steps = append(d.plan.Steps, deletionOf(left, model.TargetLeft(left.ID), left.ID)...)
	}
	for i := range d.plan.Steps[at:] {
		d.plan.Steps[at+i].Needs = serving // a listener whose job is under way may still fail
	}
}

// UntagLeft returns the steps that remove the tags of the Service from existing load balancers that it has left.
func UntagLeft(actual *model.Model) []model.Step {
	var steps []model.Step
	for _, id := range slices.Sorted(maps.Keys(actual.LeftTags)) {
		keys := actual.LeftTags[id]
		steps = append(steps, model.Step{Op: model.OpUntag, Target: model.TargetLeft(id), Of: id, Before: strings.Join(keys, " ") + " on " + id, IDs: keys})
	}
	return steps
}

// deleteStrays deletes listeners on other load balancers than that of the Service.
func (d *differ) deleteStrays(strays []model.Listener) {
	for i := range strays {
		stray := &strays[i]
		d.step(model.Step{Op: model.OpDeleteListener, Target: model.TargetLeft(stray.ID), Of: stray.LoadBalancerID, Before: stray.Protocol + " on " + stray.LoadBalancerID, Listener: *stray})
	}
}

func leftText(left *alicloud.NLB, strays []model.Listener) string {
	var ids []string
	if left != nil {
		ids = append(ids, left.ID)
	}
	for i := range strays {
		ids = append(ids, "listener "+strays[i].ID+" on "+strays[i].LoadBalancerID)
	}
	return problem.Some(ids)
}

// Leftovers returns the plan that deletes the groups and the security group of a Service, which outlive the load balancer.
func Leftovers(actual *model.Model, owner mark.Owner) model.Plan {
	d := &differ{actual: actual, owner: owner, desired: &model.Model{}}
	d.plan.Steps = append(d.plan.Steps, UntagLeft(actual)...)
	d.deleteStrays(actual.Strays)
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
	d.deleteStrays(actual.Strays)
	d.tag(&actual.LoadBalancer, &model.Want{RemoveTags: removeTags})
	for i := range actual.Groups {
		d.dropGroup(&actual.Groups[i])
	}
	return d.plan
}

// Preserving returns the plan that leaves a load balancer of ours to the author of the Service, with its listeners and groups. preserved is the value of
// [mark.TagPreserved].
func Preserving(actual *model.Model, preserved string) model.Plan {
	d := &differ{actual: actual}
	lb := &actual.LoadBalancer
	off, none := false, alicloud.NonProtection
	if lb.DeletionProtection || lb.ModificationProtection == alicloud.ConsoleProtection {
		d.step(model.Step{
			Op: model.OpSetProtection, Target: model.TargetLoadBalancer, After: "deletion=off modification=" + none, Want: model.Want{DeleteProtection: &off, Modification: &none},
		})
	}
	if value, _ := lb.Tag(mark.TagPreserved); value != preserved {
		d.tagPreserved(preserved)
	}
	keys := ownership()
	groups := d.untagGroups(keys) // once the load balancer has no owner, nothing leads to them
	if slices.ContainsFunc(lb.Tags, func(t alicloud.Tag) bool { return slices.Contains(keys, t.Key) }) {
		d.step(model.Step{Op: model.OpUntag, Target: model.TargetLoadBalancer, IDs: keys, Needs: groups})
	}
	return d.plan
}

// PreservingInGroup returns the plan that leaves what a Service has on the load balancer of a group, where others stay, to the author of the Service. The
// load balancer notes it; one Service is enough.
func PreservingInGroup(actual *model.Model, preserved string) model.Plan {
	d := &differ{actual: actual}
	if _, noted := actual.LoadBalancer.Tag(mark.TagPreserved); !noted {
		d.tagPreserved(preserved)
	}
	d.untagGroups(ownership())
	return d.plan
}

// PreservingOnExisting returns the plan that leaves what a Service has on an existing load balancer to the author of the Service: nothing there is bound to this
// program but the server groups.
func PreservingOnExisting(actual *model.Model) model.Plan {
	d := &differ{actual: actual}
	d.untagGroups(ownership())
	return d.plan
}

// ownership are the keys of the tags that bind something to this program.
func ownership() []string { return []string{mark.TagOwner, mark.TagCluster, mark.TagGroup} }

func (d *differ) tagPreserved(preserved string) {
	tags := []alicloud.Tag{{Key: mark.TagPreserved, Value: preserved}}
	d.step(model.Step{Op: model.OpTag, Target: model.TargetLoadBalancer, After: tagsText(tags), Tags: tags})
}

// untagGroups removes tags from the server groups of the Service, and returns the targets of these steps.
func (d *differ) untagGroups(keys []string) []string {
	var targets []string
	for i := range d.actual.Groups {
		if group := &d.actual.Groups[i]; !group.Foreign && slices.ContainsFunc(group.Tags, func(t alicloud.Tag) bool { return slices.Contains(keys, t.Key) }) {
			targets = append(targets, model.TargetGroup(group.ID))
			d.step(model.Step{Op: model.OpUntagGroup, Target: model.TargetGroup(group.ID), Before: group.Name, Group: group.NLBGroup, IDs: keys})
		}
	}
	return targets
}
