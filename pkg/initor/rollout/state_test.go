package rollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestStates(t *testing.T) {
	t.Parallel()
	const mine, old = "mine", "old"
	for name, test := range map[string]struct {
		providerID string
		kind       string // of the owner, BroadcastJob if empty
		pods       []*corev1.Pod
		want       NodeState
	}{
		"no pod": {want: NodeState{Result: ResultPending, Reason: "there is no pod yet"}},
		"earlier run's": {pods: []*corev1.Pod{podOf(old, ended(0, `{"outcome":"set"}`))},
			want: NodeState{Result: ResultPending, Reason: "there is no pod yet"}},
		"running": {pods: []*corev1.Pod{podOf(mine)}, want: NodeState{Result: ResultPending, Reason: "the pod is running"}},
		"no image": {
			pods: []*corev1.Pod{podOf(mine, waits("ImagePullBackOff", "no such image"))},
			want: NodeState{Result: ResultPending, Reason: "ImagePullBackOff: no such image", Blocked: true},
		},
		"unschedulable": {
			pods: []*corev1.Pod{podOf(mine, unschedulable)},
			want: NodeState{Result: ResultPending, Reason: "Unschedulable: too full", Blocked: true},
		},
		"invalid image": {
			pods: []*corev1.Pod{podOf(mine, waits("InvalidImageName", "not a reference"))},
			want: NodeState{Result: ResultFailed, Reason: "InvalidImageName: not a reference", Blocked: true},
		},
		"image is being pulled": {
			pods: []*corev1.Pod{podOf(mine, waits("ContainerCreating", ""))},
			want: NodeState{Result: ResultPending, Reason: "ContainerCreating"},
		},
		"dead kubelet": {
			pods: []*corev1.Pod{podOf(mine, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodPending })},
			want: NodeState{Result: ResultPending, Reason: "the kubelet has not started the pod yet"},
		},
		"set": {
			pods: []*corev1.Pod{podOf(mine, ended(0, `{"outcome":"set","providerID":"cn-hangzhou.i-1"}`))},
			want: NodeState{Result: ResultSet, ProviderID: "cn-hangzhou.i-1"},
		},
		"unchanged": {
			providerID: "cn-hangzhou.i-1", pods: []*corev1.Pod{podOf(mine, ended(0, `{"outcome":"unchanged"}`))},
			want: NodeState{Result: ResultUnchanged, ProviderID: "cn-hangzhou.i-1"},
		},
		"skipped": {
			pods: []*corev1.Pod{podOf(mine, ended(0, `{"outcome":"skipped","reason":"on premises"}`))},
			want: NodeState{Result: ResultSkipped, Reason: "on premises"},
		},
		"succeeded without a report, with ID": {
			providerID: "cn-hangzhou.i-1", pods: []*corev1.Pod{podOf(mine, ended(0, ""))},
			want: NodeState{Result: ResultUnchanged, ProviderID: "cn-hangzhou.i-1"},
		},
		"succeeded without a report, without ID": {
			pods: []*corev1.Pod{podOf(mine, ended(0, ""))},
			want: NodeState{Result: ResultSkipped, Reason: "the pod succeeded without a report; see its log for the reason"},
		},
		"first failure": {
			pods: []*corev1.Pod{podOf(mine, restarts(1, 3, "a\nidentify node a: off\n"))},
			want: NodeState{Result: ResultPending, Reason: "identify node a: off"},
		},
		"too many failures": {
			pods: []*corev1.Pod{podOf(mine, restarts(3, 3, "identify node a: off"))},
			want: NodeState{Result: ResultFailed, Reason: "identify node a: off"},
		},
		"last attempt under way": {
			pods: []*corev1.Pod{podOf(mine, restarts(3, 3, "identify node a: off"), again)},
			want: NodeState{Result: ResultPending, Reason: "identify node a: off"},
		},
		"one more attempt after too many failures": {
			pods: []*corev1.Pod{podOf(mine, restarts(4, 3, "identify node a: off"), again)},
			want: NodeState{Result: ResultFailed, Reason: "identify node a: off"},
		},
		"conflict": {
			pods: []*corev1.Pod{podOf(mine, restarts(0, 2, "other ID"))},
			want: NodeState{Result: ResultFailed, Reason: "other ID"},
		},
		"failure without a message": {
			pods: []*corev1.Pod{podOf(mine, restarts(3, 137, ""))},
			want: NodeState{Result: ResultFailed, Reason: "exit code 137, OOMKilled"},
		},
		"evicted": {
			pods: []*corev1.Pod{podOf(mine, evicted)},
			want: NodeState{Result: ResultFailed, Reason: "Evicted: disk is full"},
		},
		"evicted from a Job": {
			kind: "Job", pods: []*corev1.Pod{podOf(mine, evicted)},
			want: NodeState{Result: ResultPending, Reason: "the pod is being replaced: Evicted: disk is full"},
		},
		"replaced": {
			pods: []*corev1.Pod{podOf(mine, later, ended(0, `{"outcome":"set"}`)), podOf(mine, evicted)},
			want: NodeState{Result: ResultSet},
		},
		"assigned by OpenKruise, not yet bound": {
			pods: []*corev1.Pod{podOf(mine, onlyAssigned, unschedulable)},
			want: NodeState{Result: ResultPending, Reason: "Unschedulable: too full", Blocked: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, pod := range test.pods {
				if test.kind != "" {
					pod.OwnerReferences[0].Kind = test.kind
				}
			}
			test.want.Node = "a"
			got := (&Rollout{}).states([]*corev1.Node{node("a", test.providerID)}, test.pods, owners{mine: "BroadcastJob"}, nil)
			if diff := cmp.Diff([]NodeState{test.want}, got); diff != "" {
				t.Errorf("states (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStatesAreInOrder(t *testing.T) {
	t.Parallel()
	got := (&Rollout{}).states([]*corev1.Node{node("b", ""), node("c", ""), node("a", "")}, nil, nil, nil)
	if len(got) != 3 || got[0].Node != "a" || got[2].Node != "c" {
		t.Errorf("order is %v", got)
	}
}

// podOf returns a running pod on node a.
func podOf(owner types.UID, edits ...func(*corev1.Pod)) *corev1.Pod {
	isController := true
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "pod", CreationTimestamp: metav1.NewTime(time.Unix(1, 0)),
			OwnerReferences: []metav1.OwnerReference{{Kind: "BroadcastJob", Name: "test", UID: owner, Controller: &isController}},
		},
		Spec:   corev1.PodSpec{NodeName: "a"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

func ended(code int32, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { end(pod, corev1.PodSucceeded, code, message) }
}

func restarts(count, code int32, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			RestartCount: count,
			State:        corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			LastTerminationState: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message, Reason: "OOMKilled"},
			},
		}}
	}
}

// again is a container that runs once more.
func again(pod *corev1.Pod) {
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
}

func waits(reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodPending
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		}}
	}
}

func unschedulable(pod *corev1.Pod) {
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "too full"},
	}}
}

func evicted(pod *corev1.Pod) {
	pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "disk is full"}
}

func later(pod *corev1.Pod) { pod.CreationTimestamp = metav1.NewTime(time.Unix(2, 0)) }

// onlyAssigned makes the pod one that the scheduler has not seen yet.
func onlyAssigned(pod *corev1.Pod) {
	pod.Spec.NodeName = ""
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}},
		}}},
	}}
}
