package nlb

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// maxUnsettledPoll is the longest time between two reads of what somebody else changes: connections that are drained take up to 15 minutes.
const maxUnsettledPoll = 30 * time.Second

// rereadUnsettled puts in doubt what is being changed without a job that this process waits for: a job of the process before this one, or a
// change that somebody made by hand. Whether that succeeds, only another read shows. It returns how long until then, 0 where nothing of the
// kind is there. leaving says that a wanted backend server is on its way out.
func (n nlb) rereadUnsettled(svc *corev1.Service, leaving bool) (nlb, time.Duration) {
	parts := n.unsettledParts(n.ownerOf(svc, n.observed))
	if leaving {
		parts[model.PartGroups] = "a backend server is on its way out"
	}
	if len(parts) == 0 {
		n.unsettledSince = time.Time{}
		return n, 0
	}
	now := time.Now()
	if n.unsettledSince.IsZero() {
		n.unsettledSince = now
	}
	n = n.withKnown(n.invalidateParts(parts))
	return n, min(max(soonPoll, now.Sub(n.unsettledSince)/4), maxUnsettledPoll) //nolint:mnd // a change that takes long is asked for less often
}

// unsettledParts returns the parts of which a read showed something in transition. What a job is under way on that this process waits for
// is left out: its end says how it went. What others have on an existing load balancer, they change all the time.
func (n nlb) unsettledParts(owner mark.Owner) map[model.Part]string {
	const reason = "it was being changed when it was read"
	parts := map[model.Part]string{}
	if n.Presence.Present() && !n.Reused() && n.lb.Value.Status == alicloud.NLBConfiguring && !n.isBusy(model.TargetLoadBalancer) {
		parts[model.PartLoadBalancer], parts[model.PartListeners] = reason, reason // a listener that is being deleted is not among them
	}
	if n.Presence.Present() && slices.ContainsFunc(n.listeners.Value, func(l model.Listener) bool { return n.unsettledListener(&l, owner) }) {
		parts[model.PartListeners] = reason
	}
	if slices.ContainsFunc(n.groups.Value, func(g model.Group) bool { return n.unsettledGroup(&g, owner) }) ||
		slices.ContainsFunc(n.deletingGroups, func(id string) bool { return !n.isBusy(model.TargetGroup(id)) }) {
		parts[model.PartGroups] = reason
	}
	return parts
}

func (n nlb) unsettledListener(l *model.Listener, owner mark.Owner) bool {
	switch l.Status {
	case alicloud.NLBListenerRunning, alicloud.NLBListenerStopped, "":
		return false
	}
	return owner.OwnsNLB(model.Text(l.Description)) && !n.isBusy(model.TargetListener(l.Key()))
}

// unsettledGroup: a backend server that is being removed is not waited for in a group that takes writes, where only its connections are
// drained.
func (n nlb) unsettledGroup(g *model.Group, owner mark.Owner) bool {
	if n.busyGroup(g.ID) {
		return false
	}
	if !g.Foreign && g.Status != "" && g.Status != alicloud.NLBGroupAvailable {
		return true
	}
	return slices.ContainsFunc(g.Servers, func(s alicloud.NLBServer) bool {
		changing := s.Status == alicloud.NLBServerAdding || s.Status == alicloud.NLBConfiguring
		return changing && (owner.OwnsNLB(s.Description) || s.Description == g.Name && !g.Foreign)
	})
}
