package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
)

// Result says how far a node is.
type Result string

// The results.
const (
	// ResultPending says that the node's pod has not ended, or that there is none yet.
	ResultPending Result = "pending"
	// ResultSet says that the node had no provider ID and has one now.
	ResultSet Result = Result(initor.OutcomeSet)
	// ResultUnchanged says that the node had its provider ID already.
	ResultUnchanged Result = Result(initor.OutcomeUnchanged)
	// ResultSkipped says that the node is not an ECS instance and was left alone.
	ResultSkipped Result = Result(initor.OutcomeSkipped)
	// ResultFailed says that the node's pod failed and that waiting longer does not help.
	ResultFailed Result = "failed"
)

// NodeState is what is known of one node.
type NodeState struct {
	Node string `json:"node"`
	// ProviderID is the one that the node has, empty if it has none.
	ProviderID string `json:"providerID"`
	Result     Result `json:"result"`
	// Reason says why a node is pending, failed or skipped.
	Reason string `json:"reason,omitempty"`
	// Blocked says that the node's pod cannot start, for example because its image cannot be pulled or the scheduler finds no room. Reason
	// says why. If it stays so, the node fails.
	Blocked bool `json:"-"`
	// NoPod says that the API server takes no pod for the node. Pods of other nodes that end may make room for it in a quota.
	NoPod bool `json:"-"`
}

// The kinds that own the pods of a rollout.
const (
	kindBroadcastJob = "BroadcastJob"
	kindJob          = "Job"
)

// owners are the objects that make the pods of a rollout; the value is the kind. Pods of an earlier rollout have the same
// labels and other owners.
type owners map[types.UID]string

// states returns the state of each node, in the order of names. Pods that none of jobs owns are left out. refusals say why jobs have none.
func (r *Rollout) states(nodes []*corev1.Node, pods []*corev1.Pod, jobs owners, refusals map[string]string) []NodeState {
	byNode := map[string]*corev1.Pod{}
	for _, pod := range pods {
		name, owner := nodeOf(pod), metav1.GetControllerOf(pod)
		if owner != nil && jobs[owner.UID] != "" && (byNode[name] == nil || newer(pod, byNode[name])) {
			byNode[name] = pod
		}
	}
	result := make([]NodeState, 0, len(nodes))
	for _, n := range nodes {
		refused := cmp.Or(refusals[jobName(r.Config, n.Name)], refusals[r.Config.Name])
		result = append(result, stateOf(n, byNode[n.Name], refused))
	}
	slices.SortFunc(result, func(a, b NodeState) int { return cmp.Compare(a.Node, b.Node) })
	return result
}

// nodeOf returns the node that pod is for. OpenKruise names it in the affinity and leaves the binding to the scheduler.
func nodeOf(pod *corev1.Pod) string {
	affinity := pod.Spec.Affinity
	if pod.Spec.NodeName != "" || affinity == nil || affinity.NodeAffinity == nil ||
		affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return pod.Spec.NodeName
	}
	for _, term := range affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return ""
}

// newer orders the pods of one node; a Job replaces a pod that was evicted.
func newer(a, b *corev1.Pod) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name)) > 0
}

func stateOf(n *corev1.Node, pod *corev1.Pod, refused string) NodeState {
	state := NodeState{Node: n.Name, ProviderID: n.Spec.ProviderID}
	switch {
	case pod == nil:
		state.Result, state.Reason = ResultPending, cmp.Or(refused, "there is no pod yet")
		state.Blocked, state.NoPod = refused != "", refused != ""
	case pod.Status.Phase == corev1.PodSucceeded:
		succeeded(&state, pod)
	case pod.Status.Phase == corev1.PodFailed && metav1.GetControllerOf(pod).Kind == kindJob:
		// Containers restart in their pod, so the pod itself was taken away; the Job makes another one.
		state.Result, state.Reason = ResultPending, "the pod is being replaced: "+podReason(pod)
	case pod.Status.Phase == corev1.PodFailed:
		state.Result, state.Reason = ResultFailed, podReason(pod)
	default:
		unfinished(&state, pod)
	}
	return state
}

// succeeded takes the result from the container's report. An initializer that writes none leaves it to the node's state.
func succeeded(state *NodeState, pod *corev1.Pod) {
	report, ok := initor.Result{}, false
	if last := lastEnd(pod); last != nil {
		report, ok = initor.ParseReport(last.Message)
	}
	switch {
	case ok:
		state.Result, state.Reason = Result(report.Outcome), report.Reason
		// The pod's news may be here before the node's.
		state.ProviderID = cmp.Or(state.ProviderID, report.ProviderID)
	case state.ProviderID != "":
		state.Result = ResultUnchanged
	default:
		state.Result, state.Reason = ResultSkipped, "the pod succeeded without a report; see its log for the reason"
	}
}

// unfinished classifies a pod that waits or runs: its container starts again and again after a failure.
func unfinished(state *NodeState, pod *corev1.Pod) {
	last := lastEnd(pod)
	if last == nil || last.ExitCode == 0 {
		reason, message := waitsFor(pod)
		state.Result, state.Reason, state.Blocked = ResultPending, joined(reason, message), blockedReasons.Has(reason)
		if hopelessReasons.Has(reason) {
			state.Result = ResultFailed
		}
		return
	}
	state.Result, state.Reason = ResultPending, endReason(last)
	failures := pod.Status.ContainerStatuses[0].RestartCount
	if pod.Status.ContainerStatuses[0].State.Running == nil { // a run that is under way is no failure yet
		failures++
	}
	if last.ExitCode == initor.ExitConflict || failures > restartLimit {
		state.Result = ResultFailed
	}
}

// lastEnd returns how the container ended most recently, nil if it never did.
func lastEnd(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	if len(pod.Status.ContainerStatuses) == 0 {
		return nil
	}
	status := pod.Status.ContainerStatuses[0]
	if status.State.Terminated != nil {
		return status.State.Terminated
	}
	return status.LastTerminationState.Terminated
}

func endReason(end *corev1.ContainerStateTerminated) string {
	return cmp.Or(lastLine(end.Message), fmt.Sprintf("exit code %d, %s", end.ExitCode, end.Reason))
}

// waitsFor says what holds up a pod that has not run: its container waits, or no node takes it.
func waitsFor(pod *corev1.Pod) (reason, message string) {
	for _, status := range pod.Status.ContainerStatuses {
		if waiting := status.State.Waiting; waiting != nil {
			return waiting.Reason, waiting.Message
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return condition.Reason, condition.Message
		}
	}
	if pod.Status.Phase == corev1.PodPending {
		return "", "the kubelet has not started the pod yet"
	}
	return "", "the pod is running"
}

// podReason says why a pod failed as a whole, for example because it was evicted.
func podReason(pod *corev1.Pod) string {
	if reason := joined(pod.Status.Reason, pod.Status.Message); reason != "" {
		return reason
	}
	if last := lastEnd(pod); last != nil {
		return endReason(last)
	}
	return "the pod failed"
}

func joined(reason, message string) string {
	if message = lastLine(message); reason != "" && message != "" {
		return reason + ": " + message
	}
	return reason + message
}

// lastLine returns the last line that says something; of a log that is the outcome.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
