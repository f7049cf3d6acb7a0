package lightnode

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// script is a runner whose containers end as it says, one after the other; after the last they run until they are stopped.
type script struct {
	mu    sync.Mutex
	ends  []Exit
	fail  error // of every start
	alive int
}

func (s *script) Runs(*corev1.Pod) bool { return true }

func (s *script) Run(ctx context.Context, _ *corev1.Pod, _ string) (Exit, error) {
	s.mu.Lock()
	if s.fail != nil || len(s.ends) > 0 {
		defer s.mu.Unlock()
		if s.fail != nil {
			return Exit{}, s.fail
		}
		end := s.ends[0]
		s.ends = s.ends[1:]
		return end, nil
	}
	s.alive++
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	s.alive--
	s.mu.Unlock()
	return Exit{}, ctx.Err()
}

func TestRunsContainers(t *testing.T) {
	t.Parallel()
	bad, good := Exit{Code: 3, Message: "no instance"}, Exit{Message: "done"}
	for name, test := range map[string]struct {
		runner       *script
		policy       corev1.RestartPolicy
		wantPhase    corev1.PodPhase
		wantRestarts int32
		wantMessage  string // of the last end
		wantWaiting  bool
	}{
		"succeeds": {runner: &script{ends: []Exit{good}}, policy: corev1.RestartPolicyOnFailure, wantPhase: corev1.PodSucceeded,
			wantMessage: "done"},
		"succeeds in the end": {runner: &script{ends: []Exit{bad, bad, good}}, policy: corev1.RestartPolicyOnFailure,
			wantPhase: corev1.PodSucceeded, wantRestarts: 2, wantMessage: "done"},
		"fails": {runner: &script{ends: []Exit{bad}}, policy: corev1.RestartPolicyNever, wantPhase: corev1.PodFailed,
			wantMessage: "no instance"},
		"is under way": {runner: &script{ends: []Exit{bad}}, policy: corev1.RestartPolicyOnFailure, wantPhase: corev1.PodRunning,
			wantRestarts: 1, wantMessage: "no instance"},
		"cannot be started": {runner: &script{fail: errors.New("no program")}, policy: corev1.RestartPolicyNever,
			wantPhase: corev1.PodFailed, wantMessage: "no program"},
		"fails again and again": {runner: &script{fail: errors.New("no program")}, policy: corev1.RestartPolicyOnFailure,
			wantPhase: corev1.PodRunning, wantRestarts: 4, wantMessage: "no program", wantWaiting: true},
		"starts after a success": {runner: &script{ends: []Exit{good}}, policy: corev1.RestartPolicyAlways, wantPhase: corev1.PodRunning,
			wantRestarts: 1, wantMessage: "done"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				pod := testPod("a", nil)
				pod.UID, pod.Spec.RestartPolicy = "a", test.policy
				r, stop := startRuns(t, test.runner, pod)
				time.Sleep(10 * time.Second) // the fifth start is after 0.5+1+2+4 s, the sixth after 15.5 s
				got, err := r.client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				status := got.Status.ContainerStatuses[0]
				last := status.State.Terminated
				if last == nil {
					last = status.LastTerminationState.Terminated
				}
				if got.Status.Phase != test.wantPhase || status.RestartCount != test.wantRestarts || last == nil || last.Message != test.wantMessage ||
					(status.State.Waiting != nil) != test.wantWaiting {
					t.Errorf("phase %s, container %+v", got.Status.Phase, status)
				}
				stop()
				if test.runner.alive != 0 {
					t.Error("the container outlives its machine")
				}
			})
		})
	}
}

func TestRunEndsWithAnEviction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pod := testPod("a", nil)
		pod.UID = "a"
		runner := &script{}
		r, stop := startRuns(t, runner, pod)
		synctest.Wait()
		pods := r.client.CoreV1().Pods(pod.Namespace)
		evicted, err := pods.Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		evicted.Status.Phase = corev1.PodFailed
		if _, err := pods.UpdateStatus(t.Context(), evicted, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		r.end(pod.UID)
		r.group.Wait()
		got, err := pods.Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil || got.Status.Phase != corev1.PodFailed || runner.alive != 0 {
			t.Errorf("after the eviction: %v, error %v, %d running", got.Status.Phase, err, runner.alive)
		}
		stop()
	})
}

// startRuns starts the pod on a machine; stop switches that off and waits.
func startRuns(t *testing.T, runner Runner, pod *corev1.Pod) (_ *runs, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := newRuns(fake.NewClientset(pod), runner)
	r.start(pod, &machine{instanceID: "i-1", nodeName: pod.Spec.NodeName, running: ctx, stop: cancel})
	return r, func() { cancel(); r.group.Wait() }
}
