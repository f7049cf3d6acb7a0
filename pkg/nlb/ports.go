package nlb

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// portStatuses returns what the status of the Service says about its ports.
func (n nlb) portStatuses() []corev1.PortStatus {
	if n.desired == nil {
		return nil
	}
	return driver.PortStatuses(n.ports, n.unservedReason)
}

// unservedReason returns the reason of the event about a port that is not served, "" for one that is served or soon may be.
func (n nlb) unservedReason(port corev1.ServicePort) string {
	i := slices.IndexFunc(n.desired.Listeners, func(l model.Listener) bool {
		return l.ServicePort == port.Port && l.Transport == port.Protocol
	})
	if i < 0 && n.desired.Conflicts(port) {
		return problem.ReasonListenerConflict
	}
	if i < 0 {
		return problem.ReasonFeatureNotSupported
	}
	want := &n.desired.Listeners[i]
	switch served, conflict := n.servedBy(want); {
	case served:
		return ""
	case conflict:
		return problem.ReasonListenerConflict
	case want.Blocked != "":
		return want.Blocked
	case n.refused[model.TargetListener(want.Key())], n.refused[model.TargetGroup(want.Group)]:
		return problem.ReasonSyncFailed
	}
	return ""
}

// servedBy reports whether the Service has a listener: also one of another protocol, which stands in for the wanted one, and one whose
// first creation is under way, but not one that the cloud failed to create before. conflict says that somebody else's is in its place.
func (n nlb) servedBy(want *model.Listener) (served, conflict bool) {
	target := model.TargetListener(want.Key())
	again := n.refused[target] && n.isBusy(target)
	for at := range n.listeners.Value {
		have := &n.listeners.Value[at]
		switch {
		case !have.Overlaps(want):
		case !ofOneService(have, want):
			conflict = true
		case have.Key() == want.Key() && !again:
			return true, false
		}
	}
	return false, conflict
}

// ofOneService reports whether two listeners have the marks of the same Service.
func ofOneService(a, b *model.Listener) bool {
	first, firstCluster, ok := mark.ParseNLB(model.Text(a.Description))
	second, secondCluster, marked := mark.ParseNLB(model.Text(b.Description))
	return ok && marked && first == second && firstCluster == secondCluster
}
