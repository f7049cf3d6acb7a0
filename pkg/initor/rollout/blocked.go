package rollout

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// stuckAfter is how long the pod of a node may be impossible to create, or unable to start, before the node counts as failed. The kubelet tries to pull
// an image four times in it, so that a registry that fails once or is slow to answer does not end a rollout.
const stuckAfter = 2 * time.Minute

// Reasons of the kubelet why a container waits. Those that are hopeless stay until somebody changes the pod.
var (
	hopelessReasons = sets.New("InvalidImageName", "ErrImageNeverPull")
	blockedReasons  = sets.New("ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed",
		"CreateContainerConfigError", "CreateContainerError", "RunContainerError").Union(hopelessReasons)
)

// blockedBy returns the reason why a pod that has never run cannot start, empty if nothing is known to be wrong.
func blockedBy(pod *corev1.Pod) string {
	for _, status := range pod.Status.ContainerStatuses {
		if waiting := status.State.Waiting; waiting != nil && blockedReasons.Has(waiting.Reason) {
			return waiting.Reason
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && condition.Reason == corev1.PodReasonUnschedulable {
			return condition.Reason
		}
	}
	return ""
}

// patience remembers since when the pod of each node has been unable to start, and how many nodes were finished then.
type patience struct {
	since    map[string]time.Time
	finished int
}

func newPatience() *patience { return &patience{since: map[string]time.Time{}} }

// judge has nodes fail whose pods have been unable to start for too long. A pod that starts after all is a node that goes on. Where there is no
// pod, each node that finishes is a reason to wait on.
func (p *patience) judge(states []NodeState, now time.Time) {
	finished := 0
	for i := range states {
		if states[i].Result != ResultPending {
			finished++
		}
	}
	progress := finished > p.finished
	p.finished = max(p.finished, finished)
	for i := range states {
		state := &states[i]
		if !state.Blocked {
			delete(p.since, state.Node)
			continue
		}
		since, known := p.since[state.Node]
		if !known || progress && state.NoPod {
			p.since[state.Node], since = now, now
		}
		if now.Sub(since) >= stuckAfter {
			state.Result = ResultFailed
		}
	}
}
