package lightnode

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// cannotRun is the exit code that a shell, and a container runtime, gives a program that it cannot run.
const cannotRun = 127

// containerStarted is the status of a container that starts, for the first time or again.
func containerStarted(s *corev1.ContainerStatus, since metav1.Time) {
	if s.LastTerminationState.Terminated != nil {
		s.RestartCount++
	}
	s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}}
	s.Ready, s.Started = true, ptr.To(true)
}

// containerWaits is the status of a container that failed and will start again.
func containerWaits(s *corev1.ContainerStatus, end *corev1.ContainerStateTerminated, pause time.Duration) {
	s.LastTerminationState = corev1.ContainerState{Terminated: end}
	s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
		Reason: "CrashLoopBackOff", Message: fmt.Sprintf("back-off %s restarting failed container", pause),
	}}
	s.Ready, s.Started = false, ptr.To(false)
}

// terminated is how the API reports a container's end.
func terminated(exit Exit, err error, since metav1.Time) *corev1.ContainerStateTerminated {
	end := &corev1.ContainerStateTerminated{
		ExitCode: exit.Code, Message: exit.Message, Reason: "Completed", StartedAt: since, FinishedAt: metav1.Now(),
	}
	switch {
	case err != nil:
		end.ExitCode, end.Reason, end.Message = cannotRun, "StartError", err.Error()
	case exit.Code != 0:
		end.Reason = "Error"
	}
	return end
}

// restarts says whether a container that ended so starts again.
func restarts(pod *corev1.Pod, end *corev1.ContainerStateTerminated) bool {
	switch pod.Spec.RestartPolicy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return end.ExitCode != 0
	default:
		return true
	}
}

// ranPod derives the pod's status from that of its container.
func ranPod(pod *corev1.Pod, machine *machine) {
	s, container := &pod.Status, &pod.Status.ContainerStatuses[0]
	s.Phase = corev1.PodRunning
	if end := container.State.Terminated; end != nil && !restarts(pod, end) {
		s.Phase = corev1.PodSucceeded
		if end.ExitCode != 0 {
			s.Phase = corev1.PodFailed
		}
		container.Ready, container.Started = false, ptr.To(false)
	}
	now := metav1.Now()
	if s.StartTime == nil {
		s.StartTime = &now
	}
	s.HostIP, s.HostIPs = machine.addr.String(), []corev1.HostIP{{IP: machine.addr.String()}}
	if pod.Spec.HostNetwork {
		s.PodIP, s.PodIPs = machine.addr.String(), []corev1.PodIP{{IP: machine.addr.String()}}
	}
	ready := container.Ready && s.Phase == corev1.PodRunning
	setPodCondition(s, corev1.PodInitialized, true, now)
	setPodCondition(s, corev1.ContainersReady, ready, now)
	setPodCondition(s, corev1.PodReady, ready, now)
}
