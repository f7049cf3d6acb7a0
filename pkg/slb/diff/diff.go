package diff

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// Diff returns what turns actual into desired. A nil actual means that there is no CLB yet. The owner's marks decide what
// may be changed or removed.
func Diff(desired, actual *model.Model, service types.NamespacedName, clusterID string) model.Plan {
	d := &differ{desired: desired, actual: actual, owner: mark.Owner{Service: service, ClusterID: clusterID}}
	creates := actual == nil || actual.LoadBalancer.ID == ""
	switch {
	case creates && !desired.Creatable():
		return d.plan // a CLB without listeners costs money and serves nobody
	case creates:
		d.actual = &model.Model{Reused: desired.Reused}
		if actual != nil {
			d.actual.Access = actual.Access // outlives its CLB
		}
		d.createLoadBalancer()
	case desired.Reused && !serves(desired, actual):
	case desired.Reused:
		// First of all: without the tag a tear-down would not recognize the CLB as one that may have something of the Service.
		d.tags(desired.LoadBalancer.Tags, &actual.LoadBalancer)
	}
	d.compareGroups()
	d.backendSteps(d.clearBackends)
	d.accessList()
	d.createGroups()
	d.backendSteps(d.addBackends)
	d.listeners()
	d.deleteListeners()
	d.backendSteps(d.removeLastBackends)
	d.deleteGroups()
	d.dropAccessList()
	if !creates {
		d.attributes()
	}
	return d.plan
}

// serves reports whether the Service has, or is to have, anything on an existing CLB.
func serves(desired, actual *model.Model) bool {
	_, marked := actual.LoadBalancer.Tag(mark.TagReused)
	return marked || len(desired.Listeners) > 0
}

type differ struct {
	desired, actual *model.Model
	owner           mark.Owner
	plan            model.Plan
	// replaced holds the keys of listeners that a step of the plan replaces by another one on their ports.
	replaced []alicloud.ListenerKey
	// changes are the differences of the groups that are there already, in the order of the desired ones.
	changes []groupChange
}

func (d *differ) step(step model.Step) { d.plan.Steps = append(d.plan.Steps, step) }

func (d *differ) problem(reason, format string, args ...any) {
	d.plan.Problems = append(d.plan.Problems, problem.Newf(reason, format, args...))
}

func (d *differ) createLoadBalancer() {
	create := d.desired.Create
	d.step(model.Step{
		Op: model.OpCreateLoadBalancer, Target: model.TargetLoadBalancer, After: create.AddressType + " " + create.Name,
		LoadBalancer: create, VSwitchIDs: d.desired.VSwitchIDs,
	})
}

func (d *differ) createGroups() {
	for i := range d.desired.Groups {
		group := &d.desired.Groups[i]
		if d.actual.Group(group.Name) != nil {
			continue
		}
		d.step(d.backendStep(model.OpCreateGroup, group.Name, "", nil, group.Backends))
	}
}

// deleteGroups removes groups of ours that nothing wants any more. A group of others, or with their backend servers, stays.
func (d *differ) deleteGroups() {
	if slices.ContainsFunc(d.desired.Listeners, func(l model.Listener) bool { return l.Blocked }) {
		return // the backend servers of the port that waits may be in any of them
	}
	for i := range d.actual.Groups {
		group := &d.actual.Groups[i]
		switch {
		case d.wanted(group):
		case group.Foreign(), d.owner.Owns(group.Name) && d.hasForeignBackends(group):
			d.leaveGroup(group)
		case d.owner.Owns(group.Name):
			d.step(model.Step{
				Op: model.OpDeleteGroup, Target: model.TargetGroup(group.Name), Before: group.ID, GroupName: group.Name, GroupID: group.ID,
				Needs: d.usersOf(group),
			})
		}
	}
}

// usersOf are the listeners that must have left a group before it goes.
func (d *differ) usersOf(group *model.Group) []string {
	var users []string
	for _, listener := range d.actual.Listeners {
		if listener.GroupID == group.ID {
			users = append(users, model.TargetListener(listener.ListenerKey))
		}
	}
	return users
}

// leaveGroup takes our backend servers out of a group in which somebody else has some too.
func (d *differ) leaveGroup(group *model.Group) {
	var ours []alicloud.Backend
	for _, b := range group.Backends {
		if d.owner.Owns(b.Description) {
			ours = append(ours, b)
		}
	}
	if len(ours) == 0 {
		return
	}
	step := d.backendStep(model.OpRemoveBackends, group.Name, group.ID, ours, nil)
	step.Needs = d.usersOf(group)
	d.step(step)
}

// wanted reports whether the observed group is the one that stands for a wanted group.
func (d *differ) wanted(group *model.Group) bool {
	return slices.ContainsFunc(d.desired.Groups, func(want model.Group) bool { return want.Name == group.Name }) &&
		d.actual.Group(group.Name) == group
}

func (d *differ) hasForeignBackends(group *model.Group) bool {
	return slices.ContainsFunc(group.Backends, func(b alicloud.Backend) bool { return !d.owner.Owns(b.Description) })
}
