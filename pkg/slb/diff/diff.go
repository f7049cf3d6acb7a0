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
	case desired.Reused && !servesExisting(desired, actual):
	case desired.Reused:
		// First of all: without the tag a tear-down would not recognize the CLB as one that may have something of the Service.
		d.tagSteps(desired.LoadBalancer.Tags, &actual.LoadBalancer)
	}
	d.compareGroups()
	d.backendSteps(d.clearBackends)
	d.accessList()
	d.createGroups()
	d.backendSteps(d.addBackends)
	d.listenerSteps()
	d.deleteListeners()
	d.backendSteps(d.removeLastBackends)
	d.deleteGroups()
	d.dropAccessList()
	if !creates {
		d.attributeSteps()
	}
	return d.plan
}

// servesExisting reports whether the Service has, or is to have, anything on an existing CLB.
func servesExisting(desired, actual *model.Model) bool {
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

func (d *differ) addStep(step model.Step) { d.plan.Steps = append(d.plan.Steps, step) }

func (d *differ) addProblem(reason, format string, args ...any) {
	d.plan.Problems = append(d.plan.Problems, problem.Newf(reason, format, args...))
}

func (d *differ) createLoadBalancer() {
	create := d.desired.Create
	d.addStep(model.Step{
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
		d.addStep(d.backendStep(model.OpCreateGroup, group.Name, "", nil, group.Backends))
	}
}

// deleteGroups removes groups of ours that nothing wants any more. A group of others, or with their backend servers, stays.
func (d *differ) deleteGroups() {
	if slices.ContainsFunc(d.desired.Listeners, func(l model.Listener) bool { return l.Blocked }) {
		return // the backend servers of the port that waits may be in any of them
	}
	for i := range d.actual.Groups {
		group := &d.actual.Groups[i]
		users := d.usersOf(group)
		switch {
		case d.isWanted(group):
		case group.Foreign(), d.owner.Owns(group.Name) && d.hasForeignBackends(group):
			d.leaveGroup(group, users.leave)
		case !d.owner.Owns(group.Name):
		case len(users.others) > 0:
			d.leaveGroup(group, users.leave)
			d.addProblem(problem.ReasonKeptInUse,
				"vServer group %s (%s) stays, without backend servers of this Service: it is used by %s, which this Service does not manage; once nothing uses the group, delete it",
				group.ID, group.Name, problem.Some(users.others))
		case len(users.ours) > 0: // the cloud would refuse to delete it for as long
		case d.desired.InUse.Has(group.ID):
			d.leaveGroup(group, users.leave)
			d.addProblem(problem.ReasonKeptInUse,
				"vServer group %s (%s) stays, without backend servers of this Service: the cloud says that something else uses it, for example a forwarding rule; once nothing does, delete the group",
				group.ID, group.Name)
		default:
			d.addStep(model.Step{
				Op: model.OpDeleteGroup, Target: model.TargetGroup(group.Name), Before: group.ID, GroupName: group.Name, GroupID: group.ID,
				Needs: users.leave,
			})
		}
	}
}

// users are the listeners that use a group.
type users struct {
	// leave are the targets of those that leave it in this plan, which must have happened before the group goes.
	leave []string
	// ours are those of the Service that stay in it, and others those that the Service does not manage.
	ours, others []string
}

func (d *differ) usersOf(group *model.Group) users {
	var found users
	for i := range d.actual.Listeners {
		listener := &d.actual.Listeners[i]
		switch {
		case listener.GroupID != group.ID:
		case d.leavesGroup(listener):
			found.leave = append(found.leave, model.TargetListener(listener.ListenerKey))
		case d.managesListeners() && d.owner.Owns(listener.Description):
			found.ours = append(found.ours, listener.String())
		default:
			found.others = append(found.others, "listener "+listener.String())
		}
	}
	return found
}

// leavesGroup reports whether the plan takes a listener out of the group that it uses, which nothing wants any more.
func (d *differ) leavesGroup(listener *model.Listener) bool {
	target := model.TargetListener(listener.ListenerKey)
	return slices.ContainsFunc(d.plan.Steps, func(s model.Step) bool {
		return s.Replaced == listener ||
			s.Target == target && (s.Op == model.OpDeleteListener || s.Op == model.OpSetListener && s.GroupName != "")
	})
}

// leaveGroup takes our backend servers out of a group that somebody else uses, once the listeners of ours have left it.
func (d *differ) leaveGroup(group *model.Group, users []string) {
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
	step.Needs = users
	d.addStep(step)
}

// isWanted reports whether the observed group is the one that stands for a wanted group.
func (d *differ) isWanted(group *model.Group) bool {
	return slices.ContainsFunc(d.desired.Groups, func(want model.Group) bool { return want.Name == group.Name }) &&
		d.actual.Group(group.Name) == group
}

func (d *differ) hasForeignBackends(group *model.Group) bool {
	return slices.ContainsFunc(group.Backends, func(b alicloud.Backend) bool { return !d.owner.Owns(b.Description) })
}
