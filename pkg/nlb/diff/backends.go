package diff

import (
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// serverChange is how the servers of a group differ from those that are wanted. id is that of the group, empty for one that is missing.
type serverChange struct {
	id             string
	added, changed []alicloud.NLBServer
	// dead are those that leave before others come, removed those that leave afterwards. Each call is a job, for which the next one on the
	// group waits.
	dead, removed []alicloud.NLBServer
}

// compareGroups notes how the servers of all groups differ.
func (d *differ) compareGroups() {
	for i := range d.desired.Groups {
		want := &d.desired.Groups[i]
		have := d.actual.Matching(want)
		if have == nil {
			have = &model.Group{NLBGroup: want.NLBGroup}
		} else {
			d.used[have.ID] = true
		}
		d.changes = append(d.changes, d.compareServers(want, have))
	}
}

// Followed returns the plan that brings in line the servers of groups which are there and lead to ports, also those that listeners have not
// left yet. Nothing else is changed.
func Followed(desired, actual *model.Model, owner mark.Owner) model.Plan {
	there := *desired
	there.Groups = slices.DeleteFunc(slices.Clone(desired.Groups), func(want model.Group) bool { return actual.Matching(&want) == nil })
	d := &differ{desired: &there, actual: actual, owner: owner, used: map[string]bool{}}
	d.compareGroups()
	d.clearGroups()
	d.fillGroups()
	d.removeServers()
	for i := range there.Former {
		d.plan.Steps = append(d.plan.Steps, d.meanwhileSteps(there.Former[i].ID, nil)...)
	}
	return d.plan
}

// clearGroups takes out the servers that are dead, of all groups before any server comes: until then, the cloud may send traffic to them.
func (d *differ) clearGroups() {
	for i := range d.changes {
		d.serverStep(model.OpRemoveServers, &d.desired.Groups[i], d.changes[i].id, d.changes[i].dead)
	}
}

// fillGroups creates the groups that are missing and brings in their servers.
func (d *differ) fillGroups() {
	for i := range d.desired.Groups {
		want, change := &d.desired.Groups[i], &d.changes[i]
		if d.actual.Matching(want) == nil {
			d.createGroup(want)
		}
		d.fillGroup(want, change)
	}
}

func (d *differ) fillGroup(want *model.Group, change *serverChange) {
	d.serverStep(model.OpAddServers, want, change.id, change.added)
	d.serverStep(model.OpUpdateServers, want, change.id, change.changed)
}

// createGroup leaves the check of a UDP group off where no annotation asks for one: the API would check it by TCP.
func (d *differ) createGroup(want *model.Group) {
	group := want.NLBGroup
	if off := false; group.Protocol == alicloud.NLBUDP && group.HealthCheck.Enabled == nil {
		group.HealthCheck.Enabled = &off
	}
	d.addStep(model.Step{Op: model.OpCreateGroup, Target: model.TargetGroup(want.Name), After: group.Type + " " + group.Protocol,
		Group: group})
}

// updateGroups changes the settings of groups that are there. Their servers come first: they change whether the cloud takes the settings or
// not.
func (d *differ) updateGroups() {
	for i := range d.desired.Groups {
		want := &d.desired.Groups[i]
		if have := d.actual.Matching(want); have != nil && !want.Foreign {
			d.updateGroup(want, have)
			d.tagGroup(want, have)
		}
	}
}

// tagGroup gives a group the tags again that somebody removed: once its load balancer is gone, nothing else leads to it.
func (d *differ) tagGroup(want, have *model.Group) {
	missing := slices.DeleteFunc(slices.Clone(want.Tags), func(tag alicloud.Tag) bool {
		_, there := have.Tag(tag.Key)
		return there
	})
	if len(missing) > 0 {
		d.addStep(model.Step{Op: model.OpTagGroup, Target: model.TargetGroup(want.Name), After: mark.TagsText(missing), Group: have.NLBGroup,
			Tags: missing})
	}
}

func (d *differ) updateGroup(want, have *model.Group) {
	settings, changes := groupChanges(&want.NLBGroupSettings, &have.NLBGroupSettings)
	if changes.anyChanges() {
		d.addStep(model.Step{
			Op: model.OpUpdateGroup, Target: model.TargetGroup(want.Name), Before: strings.Join(changes.before, " "),
			After: strings.Join(changes.after, " "),
			Group: have.NLBGroup, Settings: settings,
		})
	}
}

func (d *differ) serverStep(op model.Op, group *model.Group, id string, servers []alicloud.NLBServer) {
	if len(servers) == 0 {
		return
	}
	s := model.Step{Op: op, Target: model.TargetGroup(group.Name), After: model.ServersText(servers), Group: group.NLBGroup, Servers: servers}
	if s.Group.ID = id; op == model.OpRemoveServers {
		s.Before, s.After = s.After, ""
	}
	d.addStep(s)
}

// isOurs reports whether a server was put into a group by us.
func (d *differ) isOurs(group *model.Group, server *alicloud.NLBServer) bool {
	return server.Description == group.Description || d.owner.OwnsNLB(server.Description)
}

// compareServers compares the servers of a group. One that somebody else put in stands for ours, and stays as it is.
func (d *differ) compareServers(want, have *model.Group) serverChange {
	there, leaving := serversIn(have)
	change := serverChange{id: have.ID}
	for i := range want.Servers {
		server := &want.Servers[i]
		present := there[model.ServerKey(server)]
		switch {
		case present == nil && leaving[model.ServerKey(server)]:
			d.plan.Leaving = true
		case present == nil:
			change.added = append(change.added, *server)
		default:
			d.compareServer(&change, want, server, present, false)
		}
	}
	for i := range want.Draining { // nothing new drains
		server := &want.Draining[i]
		if present := there[model.ServerKey(server)]; present != nil {
			d.compareServer(&change, want, server, present, true)
		}
	}
	change.removed = d.surplusServers(want, have, there)
	d.deadFirst(&change, want, there)
	return change
}

// deadFirst has those of the servers that leave first that are dead, if one is there that takes traffic, and stays.
func (d *differ) deadFirst(change *serverChange, want *model.Group, there map[alicloud.NLBServerKey]*alicloud.NLBServer) {
	serves := func(server alicloud.NLBServer) bool {
		present := there[model.ServerKey(&server)]
		return present != nil && present.Weight > 0 && server.Weight > 0 && !d.isDead(&server)
	}
	if len(change.removed) == 0 || !slices.ContainsFunc(want.Servers, serves) {
		return
	}
	var others []alicloud.NLBServer
	for i := range change.removed {
		if server := &change.removed[i]; d.isDead(server) {
			change.dead = append(change.dead, *server)
		} else {
			others = append(others, *server)
		}
	}
	change.removed = others
}

// isDead reports whether a server counts as one that takes no traffic.
func (d *differ) isDead(server *alicloud.NLBServer) bool {
	return server.Type == alicloud.NLBServerECS && d.desired.Dead.Has(server.ID)
}

// serversIn returns the servers that are in a group, and those on their way out. These are not there for any step: where one is wanted it
// is added again, but only once it is gone. Until then the cloud would refuse the whole call, with all other servers in it.
func serversIn(group *model.Group) (there map[alicloud.NLBServerKey]*alicloud.NLBServer, leaving map[alicloud.NLBServerKey]bool) {
	there, leaving = make(map[alicloud.NLBServerKey]*alicloud.NLBServer, len(group.Servers)), map[alicloud.NLBServerKey]bool{}
	for i := range group.Servers {
		if server := &group.Servers[i]; server.Status != alicloud.NLBServerRemoving {
			there[model.ServerKey(server)] = server
		} else {
			leaving[model.ServerKey(server)] = true
		}
	}
	return there, leaving
}

// compareServer notes a server of ours that has to change.
func (d *differ) compareServer(change *serverChange, group *model.Group, server, present *alicloud.NLBServer, drains bool) {
	if !d.isOurs(group, present) {
		return
	}
	is := backend.Weight{Value: present.Weight, Mark: present.Description}
	next := is.Next(backend.Weight{Value: server.Weight, Mark: server.Description}, drains, group.KeepWeights)
	if next != is {
		wanted := *server
		wanted.Weight, wanted.Description = next.Value, next.Mark
		change.changed = append(change.changed, wanted)
	}
}

// surplusServers returns the servers of ours that nothing asks for any more. While it is in doubt what the backends are, only those go that
// are known to be gone.
func (d *differ) surplusServers(want, have *model.Group, there map[alicloud.NLBServerKey]*alicloud.NLBServer) []alicloud.NLBServer {
	kept := map[alicloud.NLBServerKey]bool{}
	for _, servers := range [][]alicloud.NLBServer{want.Servers, want.Draining} {
		for i := range servers {
			kept[model.ServerKey(&servers[i])] = true
		}
	}
	var surplus []alicloud.NLBServer
	for i := range have.Servers {
		server := &have.Servers[i]
		held := want.Held.Has(server.IP) || want.Held.Has(server.ID) || want.Doubt && !want.Gone.Has(server.ID)
		if there[model.ServerKey(server)] == server && !kept[model.ServerKey(server)] && !held && d.isOurs(want, server) {
			surplus = append(surplus, *server)
		}
	}
	return surplus
}

// removeServers takes servers out, after others are in.
func (d *differ) removeServers() {
	for i := range d.changes {
		d.serverStep(model.OpRemoveServers, &d.desired.Groups[i], d.changes[i].id, d.changes[i].removed)
	}
}

// emptyGroups takes servers out, and deletes groups that no port has any more.
func (d *differ) emptyGroups() {
	d.removeServers()
	for i := range d.actual.Groups {
		if have := &d.actual.Groups[i]; !d.used[have.ID] && !d.inDoubt() {
			d.dropGroup(have)
		}
	}
}

// inDoubt reports whether a port stays as it is of which nobody knows the group, so that any may be its. Where only the settings of a
// listener are not known, it moves to its group all the same, see [differ.followListeners].
func (d *differ) inDoubt() bool {
	return d.desired.HoldListeners || slices.ContainsFunc(d.desired.Listeners, func(l model.Listener) bool {
		return l.Blocked != "" && !slices.ContainsFunc(d.desired.Groups, func(g model.Group) bool { return g.Name == l.Group })
	})
}

// dropGroup deletes a group of ours, and takes our servers out of one of others. A group with servers of others stays, and so does one to
// which a listener of others leads: the cloud would refuse its deletion for as long as that is there.
func (d *differ) dropGroup(have *model.Group) {
	var ours []alicloud.NLBServer
	for i := range have.Servers {
		if d.owner.OwnsNLB(have.Servers[i].Description) || have.Servers[i].Description == have.Name {
			ours = append(ours, have.Servers[i])
		}
	}
	target, needs, strangers := model.TargetGroup(have.ID), d.usersOf(have), d.strangersOn(have)
	switch {
	case have.Foreign:
	case len(strangers) > 0:
		d.addProblem(problem.ReasonKeptInUse,
			"server group %s, which the Service does not need any more, is kept without the servers of the Service, because others use it: %s; "+
				"if nobody needs it, delete it", have.ID, problem.Some(strangers))
	case len(ours) < len(have.Servers):
		d.addProblem(problem.ReasonKeptInUse,
			"server group %s, which the Service does not need any more, is kept, because it has servers of others; if nobody needs it, delete it",
			have.ID)
	default:
		d.addStep(model.Step{Op: model.OpDeleteGroup, Target: target, Before: have.Name, Group: have.NLBGroup, Needs: needs})
		return
	}
	if len(ours) > 0 {
		d.addStep(model.Step{Op: model.OpRemoveServers, Target: target, Before: model.ServersText(ours), Group: have.NLBGroup, Servers: ours,
			Needs: needs})
	}
}

// strangersOn are the listeners of others that use a group.
func (d *differ) strangersOn(have *model.Group) []string {
	strangers := slices.Clone(have.Strangers)
	for i := range d.actual.Listeners {
		if l := &d.actual.Listeners[i]; model.Text(l.ServerGroupID) == have.ID && !d.owner.OwnsNLB(model.Text(l.Description)) &&
			l.Status != alicloud.NLBListenerDeleting {
			strangers = append(strangers, "listener "+l.ID+" of "+d.actual.LoadBalancer.ID)
		}
	}
	return strangers
}

// usersOf returns the targets that may still use a group: the cloud refuses its deletion until they are gone.
func (d *differ) usersOf(have *model.Group) []string {
	users := []string{model.TargetLoadBalancer} // a listener that is being deleted still uses its group
	for i := range d.actual.Listeners {
		if model.Text(d.actual.Listeners[i].ServerGroupID) == have.ID {
			users = append(users, model.TargetListener(d.actual.Listeners[i].Key()))
		}
	}
	return users
}
