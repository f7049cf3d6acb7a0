package slb

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

const webGate = gatePrefix + "web"

// putPod makes a pod whose containers are ready or not, with the given readiness gates.
func (w *world) putPod(name string, containersReady bool, gates ...string) {
	w.t.Helper()
	status := corev1.ConditionFalse
	if containersReady {
		status = corev1.ConditionTrue
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: testNamespace, UID: types.UID("uid-" + name), CreationTimestamp: metav1.Now()},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.ContainersReady, Status: status}}},
	}
	for _, gate := range gates {
		pod.Spec.ReadinessGates = append(pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: corev1.PodConditionType(gate)})
	}
	pods := w.kube.CoreV1().Pods(testNamespace)
	if old, err := pods.Get(w.t.Context(), name, metav1.GetOptions{}); err == nil {
		old.Status.Conditions = append(slices.DeleteFunc(old.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.ContainersReady }), pod.Status.Conditions...)
		if _, err := pods.UpdateStatus(w.t.Context(), old, metav1.UpdateOptions{}); err != nil {
			w.t.Fatal(err)
		}
		return
	}
	if _, err := pods.Create(w.t.Context(), pod, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// gateOfPod returns the condition as "Status/Reason", empty for none.
func (w *world) gateOfPod(name string) string {
	w.t.Helper()
	pod, err := w.kube.CoreV1().Pods(testNamespace).Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	condition, ok := podCondition(pod, webGate)
	if !ok {
		return ""
	}
	return string(condition.Status) + "/" + condition.Reason
}

// podRequests counts the requests about pods since the last time.
func (w *world) podRequests() (n int) {
	for _, action := range w.kube.Actions() {
		if action.GetResource().Resource == "pods" {
			n++
		}
	}
	w.kube.ClearActions()
	return n
}

// gateWorld has a Service in ENI mode with the pods p (address of i-a) and q (address of i-b), neither of them ready.
func gateWorld(t *testing.T, change ...func(*corev1.Service)) (w *world, ready func(names ...string)) {
	t.Helper()
	w = newWorld(t)
	threeNodes(w)
	svc := testService("web", 80)
	eni(svc)
	for _, f := range change {
		f(svc)
	}
	ready = func(names ...string) {
		slice := testSlice(svc.Spec.Ports[0], w.addressOf("i-a")+"@a", w.addressOf("i-b")+"@b")
		slice.Name = "web-1"
		for i, name := range []string{"p", "q"} {
			endpoint := &slice.Endpoints[i]
			endpoint.TargetRef = &corev1.ObjectReference{Kind: "Pod", Name: name, UID: types.UID("uid-" + name)}
			if !slices.Contains(names, name) {
				endpoint.Conditions = discoveryv1.EndpointConditions{Ready: ptr.To(false), Serving: ptr.To(false)}
			}
		}
		w.putSlice(slice)
	}
	ready()
	w.put(svc)
	return w, ready
}

// TestReadinessGateOpensForMembers: a pod that waits for nothing but its gate becomes a member, then its gate opens; a pod
// whose containers are not ready waits.
func TestReadinessGateOpensForMembers(t *testing.T) {
	t.Parallel()
	w, ready := gateWorld(t)
	w.putPod("p", true, webGate)
	w.putPod("q", false, webGate)
	wait, err := w.Reconcile(t.Context(), w.get("web"))
	if err != nil || wait != minGateWait {
		t.Errorf("the next look is due in %s, %v; want %s for the pod that waits", wait, err, minGateWait)
	}
	if diff := cmp.Diff([]string{"True/ServerRegistered", ""}, []string{w.gateOfPod("p"), w.gateOfPod("q")}); diff != "" {
		t.Errorf("gates (-want +got):\n%s", diff)
	}
	if n := len(w.podMembers("k8s/8080/web/default/c1")); n != 1 {
		t.Errorf("%d members, want 1", n)
	}
	ready("p")
	w.putPod("q", true)
	w.calls()
	w.mustPass("web")
	if diff := cmp.Diff([]string{"AddVServerGroupBackendServers"}, writesOf(w.calls())); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if got := w.gateOfPod("q"); got != "True/ServerRegistered" {
		t.Errorf("gate of q = %q", got)
	}
	ready("p", "q")
	w.kube.ClearActions()
	w.mustPass("web")
	if n := w.podRequests(); n != 0 || len(w.calls()) != 0 {
		t.Errorf("%d requests about pods that are ready", n)
	}
}

// TestReadinessGateCloses: a pod that stops to be ready leaves the group, and its gate closes until it is back.
func TestReadinessGateCloses(t *testing.T) {
	t.Parallel()
	w, ready := gateWorld(t)
	w.putPod("p", true, webGate)
	w.putPod("q", true, webGate)
	w.mustPass("web")
	ready("q")
	w.putPod("p", false)
	w.mustPass("web")
	if diff := cmp.Diff([]string{"False/ServerNotRegistered", "True/ServerRegistered"}, []string{w.gateOfPod("p"), w.gateOfPod("q")}); diff != "" {
		t.Errorf("gates (-want +got):\n%s", diff)
	}
	w.putPod("p", true)
	w.mustPass("web")
	if got := w.gateOfPod("p"); got != "True/ServerRegistered" {
		t.Errorf("gate of p = %q once it is back", got)
	}
}

// TestReadinessGateWithoutInterface tells the pod why it waits.
func TestReadinessGateWithoutInterface(t *testing.T) {
	t.Parallel()
	w, _ := gateWorld(t)
	w.putPod("p", true, webGate)
	w.putPod("q", true, webGate)
	address := w.addressOf("i-b")
	if !w.emulator.ReleaseInstance("i-b") {
		t.Fatal("no instance i-b")
	}
	w.mustPass("web")
	if diff := cmp.Diff([]string{"True/ServerRegistered", "False/ServerInvalidServer"}, []string{w.gateOfPod("p"), w.gateOfPod("q")}); diff != "" {
		t.Errorf("gates of the pods, q at %s (-want +got):\n%s", address, diff)
	}
	w.podRequests()
	w.mustPass("web")
	for _, action := range w.kube.Actions() {
		if action.GetVerb() == "patch" && action.GetResource().Resource == "pods" {
			t.Error("the same condition is written again")
		}
	}
}

// TestReadinessGateWaitsForTheWrite: the gate of a pod whose addition failed stays closed.
func TestReadinessGateWaitsForTheWrite(t *testing.T) {
	t.Parallel()
	w, _ := gateWorld(t)
	w.putPod("p", false, webGate)
	w.putPod("q", false, webGate)
	w.mustPass("web")
	w.putPod("p", true)
	w.fault(map[string]any{"action": "AddVServerGroupBackendServers", "code": "InternalError", "status": 500})
	if err := w.pass("web"); err == nil {
		t.Error("the pass succeeded")
	}
	if got := w.gateOfPod("p"); got != "" {
		t.Errorf("gate of p = %q though it is no member", got)
	}
	w.clearFaults()
	w.mustPass("web")
	if got := w.gateOfPod("p"); got != "True/ServerRegistered" {
		t.Errorf("gate of p = %q", got)
	}
}

// TestReadinessGateOfWeightZero: who gets no traffic has no place behind the CLB.
func TestReadinessGateOfWeightZero(t *testing.T) {
	t.Parallel()
	w, _ := gateWorld(t, func(svc *corev1.Service) { annotate(svc, DefaultWeight, "0") })
	w.putPod("p", true, webGate)
	w.mustPass("web")
	if got := w.gateOfPod("p"); got != "" {
		t.Errorf("gate of p = %q, want it closed", got)
	}
}

// TestPodsWithoutGateAreReadOnce: their gates never change.
func TestPodsWithoutGateAreReadOnce(t *testing.T) {
	t.Parallel()
	w, _ := gateWorld(t)
	w.putPod("p", true, "example.com/other")
	w.putPod("q", true, gatePrefix+"another-service")
	w.podRequests()
	w.mustPass("web")
	if n := w.podRequests(); n != 2 {
		t.Errorf("%d requests about pods, want 2", n)
	}
	w.mustPass("web")
	if n := w.podRequests(); n != 0 {
		t.Errorf("%d requests about pods that are known", n)
	}
	if n := len(w.podMembers("k8s/8080/web/default/c1")); n != 0 {
		t.Errorf("%d members, want none: no pod is ready", n)
	}
}

// TestGateOfServiceWithNodes: pods are not read where nodes are the members.
func TestGateOfServiceWithNodes(t *testing.T) {
	t.Parallel()
	w, _ := gateWorld(t, func(svc *corev1.Service) { delete(svc.Annotations, AnnotationBackendType) })
	w.putPod("p", true, webGate)
	w.podRequests()
	w.mustPass("web")
	if n := w.podRequests(); n != 0 {
		t.Errorf("%d requests about pods", n)
	}
}

// TestPublishedThoughNotReady: the endpoints of such a Service are called ready before their pods are.
func TestPublishedThoughNotReady(t *testing.T) {
	t.Parallel()
	w, ready := gateWorld(t, func(svc *corev1.Service) { svc.Spec.PublishNotReadyAddresses = true })
	ready("p", "q")
	w.putPod("p", true, webGate)
	w.mustPass("web")
	if got := w.gateOfPod("p"); got != "True/ServerRegistered" {
		t.Errorf("gate of p = %q", got)
	}
}

// TestOtherGatesOfAPod: ours is not the last one that it waits for.
func TestOtherGatesOfAPod(t *testing.T) {
	t.Parallel()
	w, _ := gateWorld(t)
	w.putPod("p", true, webGate, "example.com/other")
	w.mustPass("web")
	if n := len(w.podMembers("k8s/8080/web/default/c1")); n != 0 || w.gateOfPod("p") != "" {
		t.Errorf("%d members, gate %q; want none, the pod waits for another gate", n, w.gateOfPod("p"))
	}
}

// TestRoleWithoutPods: everything else goes on, and somebody is told once.
func TestRoleWithoutPods(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"get", "patch"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			w, ready := gateWorld(t)
			w.putPod("p", true, webGate)
			w.kube.PrependReactor(verb, "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", nil)
			})
			ready("q")
			w.mustPass("web")
			w.mustPass("web")
			members := w.podMembers("k8s/8080/web/default/c1")
			events := strings.Join(w.told(), "\n")
			if want := map[string]int{"get": 1, "patch": 2}[verb]; len(members) != want {
				t.Errorf("%d members, want %d", len(members), want)
			}
			if want := map[string]int{"get": 0, "patch": 1}[verb]; strings.Count(events, ReasonFailedUpdateGate) != want {
				t.Errorf("events %q, want %d %s", events, want, ReasonFailedUpdateGate)
			}
		})
	}
}

func TestGateWait(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for age, want := range map[time.Duration]time.Duration{
		0: minGateWait, 5 * time.Second: minGateWait, time.Minute: 6 * time.Second, time.Hour: maxGateWait, -time.Minute: minGateWait,
	} {
		if got := gateWait([]gatedPod{{address: "10.1.0.1", since: now.Add(-age)}}, nil, nil, now); got != want {
			t.Errorf("after %s: %s, want %s", age, got, want)
		}
	}
	if got := gateWait(nil, nil, nil, now); got != 0 {
		t.Errorf("without gates: %s", got)
	}
}

// TestReadinessGateWriteFails: whether the request or its answer was lost, the next pass comes to the same.
func TestReadinessGateWriteFails(t *testing.T) {
	t.Parallel()
	for _, written := range []bool{false, true} {
		w, _ := gateWorld(t)
		w.putPod("p", true, webGate)
		failed := false
		w.kube.PrependReactor("patch", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if failed {
				return false, nil, nil
			}
			failed = true
			if written {
				if _, _, err := clienttesting.ObjectReaction(w.kube.Tracker())(action); err != nil {
					t.Error(err)
				}
			}
			return true, nil, errDead
		})
		if err := w.pass("web"); err == nil {
			t.Error("the pass succeeded")
		}
		w.restart()
		w.mustPass("web")
		if got := w.gateOfPod("p"); got != "True/ServerRegistered" {
			t.Errorf("written %v: gate of p = %q", written, got)
		}
	}
}
