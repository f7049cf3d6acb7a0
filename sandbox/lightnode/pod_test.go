package lightnode

import (
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestNextStatus(t *testing.T) {
	t.Parallel()
	host, addr := netip.MustParseAddr("10.1.0.1"), []netip.Addr{netip.MustParseAddr("10.244.0.2"), netip.MustParseAddr("fd00::2")}
	start := metav1.NewTime(time.Unix(1000, 0))
	later := metav1.NewTime(time.Unix(2000, 0))
	jobOwner := &metav1.OwnerReference{Kind: "Job", Name: "job", Controller: ptr.To(true)}
	ready := func(status corev1.PodStatus) corev1.ConditionStatus {
		for _, condition := range status.Conditions {
			if condition.Type == corev1.PodReady {
				return condition.Status
			}
		}
		return corev1.ConditionUnknown
	}

	pod := testPod("web", nil)
	pod.Status = nextStatus(pod, host, addr, start)
	if pod.Status.Phase != corev1.PodRunning || ready(pod.Status) != corev1.ConditionTrue {
		t.Errorf("a new pod is %s with Ready=%s, want Running and True", pod.Status.Phase, ready(pod.Status))
	}
	if pod.Status.Reason != emulated {
		t.Errorf("a pod without a container shows %q, want %s", pod.Status.Reason, emulated)
	}
	if again := nextStatus(pod, host, addr, later); !apiequality.Semantic.DeepEqual(again, pod.Status) {
		t.Errorf("a running pod's status changes from %v to %v by itself", pod.Status, again)
	}

	// The node lifecycle controller marks pods of silent nodes; a kubelet that is back takes that back.
	setPodCondition(&pod.Status, corev1.PodReady, false, later)
	if got := ready(nextStatus(pod, host, addr, later)); got != corev1.ConditionTrue {
		t.Errorf("after the node came back Ready is %s, want True", got)
	}

	gated := testPod("gated", nil)
	gated.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/registered"}}
	if got := ready(nextStatus(gated, host, addr, start)); got != corev1.ConditionFalse {
		t.Errorf("with a closed readiness gate Ready is %s, want False", got)
	}
	setPodCondition(&gated.Status, "example.com/registered", true, start)
	if got := ready(nextStatus(gated, host, addr, start)); got != corev1.ConditionTrue {
		t.Errorf("with an open readiness gate Ready is %s, want True", got)
	}

	job := testPod("job", jobOwner)
	job.Status = nextStatus(job, host, addr, start)
	if job.Status.Phase != corev1.PodRunning {
		t.Errorf("a job's new pod is %s, want Running", job.Status.Phase)
	}
	job.Status = nextStatus(job, host, addr, later)
	ended := job.Status.ContainerStatuses[0].State.Terminated
	if job.Status.Phase != corev1.PodSucceeded || ended == nil || !ended.StartedAt.Equal(&start) || !ended.FinishedAt.Equal(&later) {
		t.Errorf("a job's running pod becomes %s with container state %v", job.Status.Phase, ended)
	}
}
