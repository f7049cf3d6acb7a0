//go:build unix && kruise

package e2e

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/alicloud-ccm/cloud-provider-alicloud/deploy"
)

// These tests run the real OpenKruise manager; `make e2e` builds it.

const broadcastJob = "broadcastjobs.apps.kruise.io"

func newKruiseWorld(t *testing.T) *initorWorld {
	t.Helper()
	return newInitorWorld(t, "--open-kruise", filepath.Join(binDir, "kruise"))
}

// impatient gives the initializer seconds in place of a minute, so that its failures do not take minutes.
func impatient(manifest string) string {
	return strings.Replace(manifest, "env:\n", "args: [--timeout=5s]\n        env:\n", 1)
}

// TestChartsBroadcastJob applies the project's own manifest.
func TestChartsBroadcastJob(t *testing.T) {
	w := newKruiseWorld(t)
	w.addFiveNodes()
	w.addMachine("broken")
	w.metadata("broken", false)
	manifest, err := deploy.Files.ReadFile("provider-initor.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w.apply(impatient(string(manifest)))

	status := func() (int, string) {
		code, stdout, _ := w.initor("status", "--name", "provider-initor", "--output", "json")
		return code, stdout
	}
	w.p.until("five nodes are done and one has failed for good", 2*eventDeadline, func(context.Context) bool {
		code, stdout := status()
		return code == 4 && !strings.Contains(stdout, `"pending"`)
	})
	_, stdout := status()
	w.wantNodes("status", stdout, map[string]string{
		"plain": "set cn-hangzhou.i-plain", "done": "unchanged cn-hangzhou.i-done", "cordoned": "set cn-hangzhou.i-cordoned",
		"idc-1": "skipped", "broken": "failed",
	})
	if !strings.Contains(stdout, "503") {
		t.Errorf("status does not say why a node failed:\n%s", stdout)
	}
	if pods := w.podsOn("virtual"); len(pods) > 0 {
		t.Errorf("virtual-kubelet's node has a pod: %s", pods[0].Name)
	}

	w.addMachine("late")
	w.untilInitialized("late") // although one node has failed

	w.metadata("broken", true)
	w.untilInitialized("broken")
	w.p.stop()
}

// TestPublishedBroadcastJob applies the manifest of the vendor's guide.
func TestPublishedBroadcastJob(t *testing.T) {
	w := newKruiseWorld(t)
	w.addFiveNodes()
	manifest, err := os.ReadFile(filepath.Join("testdata", "published-provider.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	w.apply(string(manifest))
	w.untilInitialized("plain")
	w.untilInitialized("cordoned")
	w.p.until("all pods have succeeded", eventDeadline, func(context.Context) bool {
		out, err := w.kubectl("get", broadcastJob, "create-ecs-node-provider-id", "-o", "jsonpath={.status.succeeded} of {.status.desired}")
		return err == nil && out == "4 of 4"
	})
	w.addMachine("late")
	w.untilInitialized("late")
	code, stdout, _ := w.initor("status", "--namespace", "default", "--name", "create-ecs-node-provider-id")
	if code != 0 || !strings.Contains(stdout, "late      cn-hangzhou.i-late      unchanged") {
		t.Errorf("status of a job of others: exit code %d with\n%s", code, stdout)
	}
	w.failsFast(string(manifest))
	w.p.stop()
}

// failsFast shows what FailFast does with the real manager, and why the project's own manifest has it not: one node that fails for good
// ends the job for all nodes.
func (w *initorWorld) failsFast(manifest string) {
	w.Helper()
	if out, err := w.kubectl("delete", broadcastJob, "create-ecs-node-provider-id"); err != nil {
		w.Fatalf("delete the job: %v\n%s", err, out)
	}
	w.addMachine("broken")
	w.metadata("broken", false)
	w.apply(impatient(manifest))
	w.p.until("the job has failed", 2*eventDeadline, func(context.Context) bool {
		out, err := w.kubectl("get", broadcastJob, "create-ecs-node-provider-id", "-o", "jsonpath={.status.phase}")
		return err == nil && out == "failed"
	})
	for _, pod := range w.podsOn("broken") {
		if restarts := pod.Status.ContainerStatuses[0].RestartCount; restarts < 4 {
			w.Errorf("the job failed after %d restarts, want more than its limit of 3", restarts)
		}
	}
	w.addMachine("too-late")
	w.addMachine("marker") // had the manager made pods for new nodes, it would have done so by now
	if pods := w.podsOn("too-late"); len(pods) > 0 {
		w.Errorf("a job that failed made a pod for a node that joined later")
	}
}

// TestEvictedHalfWay takes the pod away from a node whose initializer is still trying.
func TestEvictedHalfWay(t *testing.T) {
	w := newKruiseWorld(t)
	w.addMachine("a")
	w.addMachine("b")
	w.metadata("a", false)
	w.metadata("b", false)
	type outcome struct {
		code           int
		stdout, stderr string
	}
	done := make(chan outcome, 1)
	go func() {
		code, stdout, stderr := w.initor("run", "--timeout", "3m", "--output", "json")
		done <- outcome{code, stdout, stderr}
	}()
	// By the API, as a drain does: the pod is deleted.
	drained := w.runningPodOn("a")
	if err := w.client.PolicyV1().Evictions(drained.Namespace).Evict(t.Context(), &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: drained.Name, Namespace: drained.Namespace},
	}); err != nil {
		t.Fatal(err)
	}
	// By the kubelet, as a node under pressure does: the pod stays and has failed.
	pressed := w.runningPodOn("b")
	pressed.Status.Phase, pressed.Status.Reason, pressed.Status.Message = corev1.PodFailed, "Evicted", "The node was low on resource: memory."
	pressed.ResourceVersion = ""
	if _, err := w.client.CoreV1().Pods(pressed.Namespace).UpdateStatus(t.Context(), pressed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, old := range map[string]*corev1.Pod{"a": drained, "b": pressed} {
		w.p.until("node "+name+" has another pod", eventDeadline, func(context.Context) bool {
			pods := w.podsOn(name)
			return len(pods) == 1 && pods[0].UID != old.UID
		})
		w.metadata(name, true)
	}
	got := <-done
	w.wantNodes("run", got.stdout, map[string]string{"a": "set cn-hangzhou.i-a", "b": "set cn-hangzhou.i-b", "idc-1": "skipped"})
	if got.code != 0 {
		t.Errorf("run: exit code %d, want 0; standard error:\n%s", got.code, got.stderr)
	}
	w.p.stop()
}

// podsOn lists the initializer's pods on a node, in all namespaces.
func (w *initorWorld) podsOn(node string) []corev1.Pod {
	w.Helper()
	list, err := w.client.CoreV1().Pods("").List(w.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		w.Fatal(err)
	}
	return list.Items
}

func (w *initorWorld) runningPodOn(node string) *corev1.Pod {
	w.Helper()
	var pod *corev1.Pod
	w.p.until("a pod runs on "+node, eventDeadline, func(context.Context) bool {
		pods := w.podsOn(node)
		if len(pods) == 1 && pods[0].Status.Phase == corev1.PodRunning {
			pod = &pods[0]
		}
		return pod != nil
	})
	return pod
}

// TestOpenKruiseDiesWithTheSandbox kills the sandbox as a power cut does: its manager must not be left running.
func TestOpenKruiseDiesWithTheSandbox(t *testing.T) {
	w := newKruiseWorld(t)
	if err := w.p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	w.p.wait(stopDeadline)
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, stopDeadline, true, func(context.Context) (bool, error) {
		return errors.Is(syscall.Kill(-w.p.cmd.Process.Pid, 0), syscall.ESRCH), nil
	})
	if err != nil {
		t.Errorf("processes of the sandbox are left: %v", err)
	}
}

// metadata lets the metadata service of an instance fail, or work again.
func (w *initorWorld) metadata(name string, works bool) {
	w.Helper()
	method := http.MethodPut
	if works {
		method = http.MethodDelete
	}
	admin(w.T, w.up, method, "../_sandbox/outages/i-"+name, "")
}

func (w *initorWorld) providerID(ctx context.Context, name string) string {
	n, err := w.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	return n.Spec.ProviderID
}

func (w *initorWorld) untilInitialized(name string) {
	w.Helper()
	w.p.until("node "+name+" has its ID", eventDeadline, func(ctx context.Context) bool {
		return w.providerID(ctx, name) == "cn-hangzhou.i-"+name
	})
}
