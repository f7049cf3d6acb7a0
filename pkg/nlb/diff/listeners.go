package diff

import (
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// listenerSteps makes the steps on listeners. New ones come before others go, but for those whose ports they need. Where the Service does
// not manage the listeners of an existing load balancer, only one of its own goes, with its port: it would lead to the Service that gets
// the node port next.
func (d *differ) listenerSteps() {
	if d.desired.HoldListeners {
		return
	}
	gone := d.unwantedListeners()
	if !d.actual.Reused || d.desired.Override {
		gone = d.placeListeners(gone)
	}
	for _, listener := range gone {
		d.deleteListener(listener)
	}
}

// placeListeners makes the steps on the listeners of ports, and returns the rest of those that go.
func (d *differ) placeListeners(gone []*model.Listener) []*model.Listener {
	for i := range d.desired.Listeners {
		want := &d.desired.Listeners[i]
		have := d.actual.Listener(want.Key())
		switch {
		case d.mayMove(want, have):
			d.updateListener(want, have)
		case want.Blocked != "":
			d.followListeners(want)
		case have != nil && have.Protocol == want.Protocol:
			if d.mayWrite(want, have) {
				d.updateListener(want, have)
			}
		case have == nil || d.mayReplace(want, have):
			gone = d.placeListener(want, have, gone)
		}
	}
	return gone
}

// mayMove reports whether a listener of ours whose settings nobody knows follows its port to another group, and takes the certificate that
// is asked for.
func (d *differ) mayMove(want, have *model.Listener) bool {
	return want.Blocked == problem.ReasonInvalidAnnotation && have != nil && have.Protocol == want.Protocol &&
		d.owner.OwnsNLB(model.Text(have.Description)) &&
		slices.ContainsFunc(d.desired.Groups, func(g model.Group) bool { return g.Name == want.Group })
}

// placeListener creates a listener after it deleted those on its ports: the one that it replaces, nil for none, and those of gone. It
// returns the rest of gone. On a port of any other listener it creates nothing, and those of ours that it would replace stay.
func (d *differ) placeListener(want, have *model.Listener, gone []*model.Listener) []*model.Listener {
	for i := range d.actual.Listeners {
		if other := &d.actual.Listeners[i]; other != have && other.Overlaps(want) && !slices.Contains(gone, other) {
			d.addProblem(problem.ReasonListenerConflict, "port %s is in use by the listener %s of %s", want.Ports(), other.ID, d.makerOf(other))
			d.followListeners(want)
			return slices.DeleteFunc(gone, func(l *model.Listener) bool { return l.Overlaps(want) })
		}
	}
	if have != nil {
		d.replaceListener(have, want)
	}
	var needs []string
	for i := range d.actual.Listeners {
		other := &d.actual.Listeners[i]
		if other == have || !other.Overlaps(want) {
			continue
		}
		d.replaceListener(other, want)
		needs = append(needs, model.TargetListener(other.Key()))
		gone = slices.DeleteFunc(gone, func(l *model.Listener) bool { return l == other })
	}
	d.createListener(want, needs)
	return gone
}

// followListeners keeps the listeners of ours in line with the endpoints that stay in place of a wanted one, each in the group that it
// uses.
func (d *differ) followListeners(want *model.Listener) {
	for i := range d.actual.Listeners {
		have := &d.actual.Listeners[i]
		if group := model.Text(have.ServerGroupID); have.Overlaps(want) && d.owner.OwnsNLB(model.Text(have.Description)) && !d.used[group] {
			d.used[group] = true // it is not dropped, and two listeners may stay in it
			d.plan.Steps = append(d.plan.Steps, d.meanwhileSteps(group, nil)...)
		}
	}
}

// unwantedListeners are the listeners of ours that no port has any more.
func (d *differ) unwantedListeners() []*model.Listener {
	var gone []*model.Listener
	for i := range d.actual.Listeners {
		have := &d.actual.Listeners[i]
		if held := d.desired.HoldRanges && have.Port == 0; !held && d.desired.Listener(have.Key()) == nil &&
			d.owner.OwnsNLB(model.Text(have.Description)) && have.Status != alicloud.NLBListenerDeleting {
			gone = append(gone, have)
		}
	}
	return gone
}

// mayWrite reports whether a listener on a port of ours may be changed. One without a mark was made by a human: on an existing load
// balancer the Service takes it over, on one of ours it stays, unless it leads where ours does, so that somebody has described ours anew.
func (d *differ) mayWrite(want, have *model.Listener) bool {
	text, group := model.Text(have.Description), d.groupOf(want)
	asOurs := d.actual.Reused || group != "" && group == model.Text(have.ServerGroupID)
	if d.owner.OwnsNLB(text) || asOurs && !d.owner.OwnedNLBByOther(text) {
		return true
	}
	d.addProblem(problem.ReasonListenerConflict, "port %s is in use by the listener %s of %s", want.Ports(), have.ID, d.makerOf(have))
	return false
}

// makerOf names who made a listener.
func (d *differ) makerOf(l *model.Listener) string {
	return mark.Maker(model.Text(l.Description), d.owner.ClusterID)
}

// mayReplace reports whether a listener of another protocol may be deleted for ours: only one with our mark.
func (d *differ) mayReplace(want, have *model.Listener) bool {
	if d.owner.OwnsNLB(model.Text(have.Description)) {
		return true
	}
	d.addProblem(problem.ReasonListenerConflict, "port %s is in use by the listener %s (%s) of %s", want.Ports(), have.ID, have.Protocol,
		d.makerOf(have))
	return false
}

func (d *differ) updateListener(want, have *model.Listener) {
	wanted := &want.NLBListenerSettings
	if want.Blocked != "" {
		wanted = &alicloud.NLBListenerSettings{CertificateIDs: want.CertificateIDs}
	}
	settings, changes := listenerChanges(wanted, &have.NLBListenerSettings)
	target := model.TargetListener(want.Key())
	if group := d.groupOf(want); group == "" || group != model.Text(have.ServerGroupID) {
		changes.before, changes.after = append(changes.before, "group="+model.Text(have.ServerGroupID)), append(changes.after,
			"group="+want.Group)
		settings.ServerGroupID = &group // the creation of the group fills it in
	}
	if changes.anyChanges() {
		s := model.Step{
			Op: model.OpUpdateListener, Target: target, Before: strings.Join(changes.before, " "), After: strings.Join(changes.after, " "),
			Listener: model.Listener{NLBListener: have.NLBListener, Group: want.Group}, Changes: settings,
		}
		if settings.ServerGroupID != nil {
			s.Needs = []string{model.TargetGroup(want.Group)}
			d.leavesGroup(&s, have, want)
		}
		d.addStep(s)
	}
	if want.Blocked != "" {
		return
	}
	if have.Status == alicloud.NLBListenerStopped {
		d.addStep(model.Step{Op: model.OpStartListener, Target: target, Listener: *have})
	}
	d.certificateSteps(want, have)
}

// groupOf returns the id of the group of a desired listener, empty where it is to be created.
func (d *differ) groupOf(want *model.Listener) string {
	for i := range d.desired.Groups {
		if group := &d.desired.Groups[i]; group.Name == want.Group {
			if have := d.actual.Matching(group); have != nil {
				return have.ID
			}
		}
	}
	return ""
}

func (d *differ) createListener(want *model.Listener, needs []string) {
	listener := *want
	if id := d.groupOf(want); id != "" {
		listener.ServerGroupID = &id
	}
	d.addStep(model.Step{
		Op: model.OpCreateListener, Target: model.TargetListener(want.Key()), After: want.Protocol, Listener: listener,
		Needs: append(needs, model.TargetGroup(want.Group)),
	})
	d.certificateSteps(want, &model.Listener{NLBListener: want.NLBListener})
}

func (d *differ) deleteListener(have *model.Listener, needs ...string) {
	d.addStep(model.Step{Op: model.OpDeleteListener, Target: model.TargetListener(have.Key()), Before: have.Protocol, Listener: *have,
		Needs: needs})
}

// replaceListener deletes a listener on whose port another one is to be created: it serves until the group of that one has its servers.
func (d *differ) replaceListener(have, want *model.Listener) {
	s := model.Step{
		Op: model.OpDeleteListener, Target: model.TargetListener(have.Key()), Before: have.Protocol, Listener: *have,
		Needs: []string{model.TargetGroup(want.Group)},
	}
	successor := *want
	s.Successor = &successor
	d.leavesGroup(&s, have, want)
	d.addStep(s)
}

// leavesGroup notes on a step which group a listener leaves for which.
func (d *differ) leavesGroup(s *model.Step, have, want *model.Listener) {
	s.From, s.Group = model.Text(have.ServerGroupID), alicloud.NLBGroup{ID: d.groupOf(want), Name: want.Group}
	var next *model.Group
	if at := slices.IndexFunc(d.desired.Groups, func(g model.Group) bool { return g.Name == want.Group }); at >= 0 {
		next = &d.desired.Groups[at]
		s.Awaits = next.Doubt || len(next.Held) > 0 || next.Serves()
	}
	s.Meanwhile = d.meanwhileSteps(s.From, next)
}

// meanwhileSteps makes the steps that keep a group in line with the endpoints while a listener stays in it. The servers of the next group,
// nil for none, come into it where the cloud refuses that one, for example because the account has as many groups as it may have: the port
// of the servers in it may answer nobody any more.
func (d *differ) meanwhileSteps(id string, next *model.Group) []model.Step {
	want, have := d.desired.FormerGroup(id), d.actual.GroupByID(id)
	if have != nil && next != nil && d.takesServers(have, next) {
		want = inPlaceOf(next, have)
	}
	if want == nil || have == nil {
		return nil
	}
	aside := &differ{desired: d.desired, actual: d.actual, owner: d.owner}
	change := d.compareServers(want, have)
	aside.serverStep(model.OpRemoveServers, want, id, change.dead)
	aside.fillGroup(want, &change)
	aside.serverStep(model.OpRemoveServers, want, id, change.removed)
	for i := range aside.plan.Steps {
		aside.plan.Steps[i].Target = model.TargetGroup(id) // the new group may have its name
	}
	return aside.plan.Steps
}

// takesServers reports whether a group takes the servers of one that the cloud refuses to create.
func (d *differ) takesServers(have, next *model.Group) bool {
	return d.desired.Refused[model.TargetGroup(next.Name)] && d.actual.Matching(next) == nil && !d.used[have.ID] && !have.Foreign &&
		have.AnyPort == next.AnyPort && strings.EqualFold(have.Type, next.Type)
}

// inPlaceOf returns a group that the cloud refuses to create as it is to be within another one.
func inPlaceOf(next, have *model.Group) *model.Group {
	want := *next
	want.NLBGroup, want.Description = have.NLBGroup, have.Name
	describe := func(servers []alicloud.NLBServer) []alicloud.NLBServer {
		servers = slices.Clone(servers)
		for i := range servers {
			servers[i].Description = have.Name
		}
		return servers
	}
	want.Servers, want.Draining = describe(next.Servers), describe(next.Draining)
	return &want
}

// certificateSteps compares the additional certificates of a TCPSSL listener. Those that a human added stay.
func (d *differ) certificateSteps(want, have *model.Listener) {
	step := func(op model.Op, ids []string) {
		if len(ids) > 0 {
			s := model.Step{Op: op, Target: model.TargetListener(want.Key()), After: strings.Join(ids, " "), Listener: *have, IDs: ids}
			if op == model.OpRemoveCertificates {
				s.Before, s.After = s.After, ""
			}
			d.addStep(s)
		}
	}
	step(model.OpAddCertificates, annotation.NotIn(want.Certificates, have.Certificates))
	var removed []string
	for _, id := range want.RemoveCertificates {
		if slices.Contains(have.Certificates, id) && !slices.Contains(want.Certificates, id) {
			removed = append(removed, id)
		}
	}
	step(model.OpRemoveCertificates, removed)
}
