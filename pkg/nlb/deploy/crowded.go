package deploy

import (
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/refusal"
)

// crowdedFor is for how long the refusal of a listener says something about the servers of its group: the passes that follow empty the group, create the listener
// and add servers again, with a job for each.
var crowdedFor = refusal.Fixed(5 * time.Minute)

// otherCauseFor is for how long a refusal counts of a listener whose group is empty: servers are not why the load balancer takes no further listener.
var otherCauseFor = refusal.Fixed(time.Hour)

// fillingPause is how long a server is left out of a group that waits until others have given servers up: they still count while the jobs that remove them are under way.
var fillingPause = refusal.Pause{First: 5 * time.Second, Least: 10 * time.Second, Longest: time.Minute}

// Crowded reports whether the cloud refused a listener a short while ago while its group had servers, perhaps because these are too many for the load balancer.
func (m *Memory) Crowded(group string) bool { return m.crowded.Err(group, time.Now()) != nil }

// noteCrowded notes how the creation of a listener on a group ended. The code of a refusal does not say which quota is used up: servers are the cause if the cloud
// takes the listener with an empty group, and not if it refuses that, too. Who uses the group is read before it is emptied.
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
	case !alicloud.IsQuota(err):
	case isEmpty:
		m.crowded.Drop(group.ID)
		m.otherCause.Add(lb, err, otherCauseFor, now)
	case m.otherCause.Err(lb, now) == nil:
		m.crowded.Add(group.ID, err, crowdedFor, now)
		a.Doubts[model.PartGroups] = "the cloud refused a listener"
	}
}

// noteFull notes that the load balancer is full, if the cloud refused a server of a group whose listener it took without servers only.
func (a *Applier) noteFull(group string, err error) {
	a.Full = a.Full || alicloud.IsQuota(err) && a.Memory.filling.Err(group, time.Now()) != nil
}
