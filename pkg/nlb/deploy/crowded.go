package deploy

import (
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/refusal"
)

// crowdedFor is for how long the refusal of a listener says something about the servers of its group: the passes that follow empty the
// group, create the listener and add servers again, with a job for each.
var crowdedFor = refusal.Fixed(5 * time.Minute)

// otherCauseFor is for how long a refusal counts of a listener whose group is empty: servers are not why the load balancer takes no further
// listener. The same of a listener that is to have another group, for which there is room. One says nothing about the other: only a further
// listener needs room among listeners.
var otherCauseFor = refusal.Fixed(waits.LoadBalancerFull)

// fillingPause is how long a server is left out of a group that waits until others have given servers up: they still count while the jobs
// that remove them are under way.
var fillingPause = refusal.Pause{First: 5 * time.Second, Least: 10 * time.Second, Longest: waits.FewNodes}

// crowdedError is the refusal of a listener that was to send to a group, which is tried again with most servers in the group.
type crowdedError struct {
	error
	most int
}

// Crowded reports whether the cloud refused a short while ago that a listener sends to a group with the servers that it had, perhaps
// because these are too many for the load balancer, and with how many it is tried again.
func (m *Memory) Crowded(group string) (most int, crowded bool) {
	refused, ok := errors.AsType[*crowdedError](m.crowded.Err(group, time.Now()))
	if !ok {
		return 0, false
	}
	return refused.most, true
}

// Moves reports whether a listener is to leave a group for another one, and the load balancer has no room for the servers of both.
func (m *Memory) Moves(group string) bool { return m.moves.Err(group, time.Now()) != nil }

// lastError is the refusal of a listener that is to leave a group, where no port of the Service has two servers.
type lastError struct{ error }

// GivesWay reports whether the last server of a group, which a listener is to leave, makes room for the one that the listener is to have:
// nothing else of the Service can. What the port is to have from now on counts more than what it is to have no longer.
func (m *Memory) GivesWay(group string) bool {
	_, last := errors.AsType[*lastError](m.moves.Err(group, time.Now()))
	return last
}

// noteCrowded notes how the creation of a listener on a group ended. The code of a refusal does not say which quota is used up: servers are
// the cause if the cloud takes the listener with an empty group, and not if it refuses that, too, except while servers leave, which count
// until their jobs have ended. Who uses the group is read before it is emptied.
func (a *Applier) noteCrowded(group *model.Group, err error) {
	if group == nil {
		return
	}
	m, lb, now := a.Memory, a.Model.LoadBalancer.ID, time.Now()
	before, isEmpty := m.crowded.Err(group.ID, now), len(group.Servers) == 0
	switch {
	case err == nil && before != nil && isEmpty:
		m.crowded.Drop(group.ID)
		m.filling.Add(group.ID, before, crowdedFor, now)
	case !alicloud.IsQuota(err), isEmpty && a.changesServers():
	case isEmpty:
		m.crowded.Drop(group.ID)
		m.otherCause.Add(lb, err, otherCauseFor, now)
	case m.otherCause.Err(lb, now) == nil:
		m.crowded.Add(group.ID, &crowdedError{error: err}, crowdedFor, now)
		a.Doubts[model.PartGroups] = "the cloud refused a listener"
	}
}

// noteMove notes how it ended that a listener was to leave a group for another one: meanwhile, the servers of both count. As the listener
// serves, the next group keeps some of its servers. If the cloud refuses it with a single one, too, the load balancer is full, and the
// other groups make room. If it does so although they have, another quota is used up.
func (a *Applier) noteMove(from string, to *model.Group, err error) {
	if to == nil {
		return
	}
	m, lb, now := a.Memory, a.Model.LoadBalancer.ID, time.Now()
	before := m.crowded.Err(to.ID, now)
	switch {
	case err == nil:
		m.moves.Drop(from)
		m.stays.Drop(lb)
		if before != nil {
			m.crowded.Drop(to.ID)
			m.filling.Add(to.ID, before, crowdedFor, now)
		}
	case !alicloud.IsQuota(err), m.stays.Err(lb, now) != nil:
	case m.Moves(from) && a.hasRoom(len(to.Servers)):
		m.moves.Drop(from)
		m.stays.Add(lb, err, otherCauseFor, now)
	case len(to.Servers) > 1:
		m.crowded.Add(to.ID, &crowdedError{err, len(to.Servers) / 2}, crowdedFor, now) //nolint:mnd // half of them
		a.Doubts[model.PartGroups] = "the cloud refused a listener"
	case m.Moves(from) && !a.changesServers() && !a.hasSecond():
		m.moves.Add(from, &lastError{err}, crowdedFor, now)
	default:
		m.moves.Add(from, err, crowdedFor, now)
		a.Full = true
	}
}

// hasSecond reports whether a listener of the Service sends to more than one server.
func (a *Applier) hasSecond() bool {
	return slices.ContainsFunc(a.Model.Listeners, func(l model.Listener) bool {
		group := a.Model.GroupByID(model.Text(l.ServerGroupID))
		return group != nil && len(group.Servers) > 1
	})
}

// changesServers reports whether jobs change which servers there are: those that leave count until their jobs have ended.
func (a *Applier) changesServers() bool {
	changes := func(target string) bool { return a.Busy(target) || a.justStarted(target) }
	return slices.ContainsFunc(a.Model.Groups, func(group model.Group) bool {
		return changes(model.TargetGroup(group.Name)) || changes(model.TargetGroup(group.ID)) // a listener is to leave it
	})
}

// hasRoom reports whether the load balancer has room for so many more servers of the Service, as far as that is known.
func (a *Applier) hasRoom(more int) bool {
	used, total := sets.New[string](), 0
	for i := range a.Model.Listeners {
		used.Insert(model.Text(a.Model.Listeners[i].ServerGroupID))
	}
	for i := range a.Model.Groups {
		if group := &a.Model.Groups[i]; used.Has(group.ID) {
			total += len(group.Servers)
		}
	}
	return total+more <= a.MostServers && !a.changesServers()
}

// noteFull notes that the load balancer is full, if the cloud refused a server of a group whose listener it took without servers only.
func (a *Applier) noteFull(group string, err error) {
	a.Full = a.Full || alicloud.IsQuota(err) && a.Memory.filling.Err(group, time.Now()) != nil
}
