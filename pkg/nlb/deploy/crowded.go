package deploy

import (
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/refusal"
)

// crowdedFor is for how long the refusal of a listener says something about the servers of its group: the passes that follow empty the group, create the listener
// and add servers again, with a job for each.
var crowdedFor = refusal.Pause{First: 5 * time.Minute, Least: 5 * time.Minute, Longest: 5 * time.Minute}

// otherCauseFor is for how long a refusal counts of a listener whose group is empty: servers are not why the load balancer takes no further listener.
var otherCauseFor = refusal.Pause{First: time.Hour, Least: time.Hour, Longest: time.Hour}

// fillingPause is how long a server is left out of a group that waits until others have given servers up: they still count while the jobs that remove them are under way.
var fillingPause = refusal.Pause{First: 5 * time.Second, Least: 10 * time.Second, Longest: time.Minute}

// Crowded reports whether the cloud refused a listener a short while ago while its group had servers, perhaps because these are too many for the load balancer.
func (m *Memory) Crowded(group string) bool { return m.crowded.Err(group, time.Now()) != nil }

// refusedListener notes that the cloud refused a listener because a quota is used up. The code does not say which: servers are not the cause if it also refuses the
// listener with an empty group.
func (m *Memory) refusedListener(loadBalancer string, group *model.Group, err error) {
	now := time.Now()
	switch {
	case group == nil || !alicloud.IsQuota(err):
	case len(group.Servers) == 0:
		m.crowded.Drop(group.ID)
		m.otherCause.Add(loadBalancer, err, otherCauseFor, now)
	case m.otherCause.Err(loadBalancer, now) == nil:
		m.crowded.Add(group.ID, err, crowdedFor, now)
	}
}

// noteFull notes that the load balancer is full, if the cloud refused a server of a group whose listener it took only without servers.
func (a *Applier) noteFull(group string, err error) {
	if alicloud.IsQuota(err) && a.Memory.Crowded(group) {
		a.Memory.crowded.Drop(group)
		a.Memory.filling.Add(group, err, crowdedFor, time.Now())
		a.Full = true
	}
}
