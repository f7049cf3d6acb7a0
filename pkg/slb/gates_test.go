package slb

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

const webGate = backend.GatePrefix + "web"

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
		old.Status.Conditions = append(slices.DeleteFunc(old.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.ContainersReady
		}), pod.Status.Conditions...)
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
	condition, ok := backend.PodCondition(pod, webGate)
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
				endpoint.Conditions = discoveryv1.EndpointConditions{Ready: new(false), Serving: new(false)}
			}
		}
		w.putSlice(slice)
	}
	ready()
	w.put(svc)
	return w, ready
}

// gateStep is something that happens to the pods p and q, and what one pass makes of it.
type gateStep struct {
	act   func(w *world, ready func(names ...string))
	fails bool
	// gates are those of p and q, backend servers how many the group has.
	gates   [2]string
	servers int
	// writes to the cloud; nil is not looked at.
	writes []string
	// requests about pods, quiet none at all, unwritten no write to one; otherwise they are not looked at.
	requests         int
	quiet, unwritten bool
}

const registered = "True/ServerRegistered"

// TestReadinessGates: a pod that waits for nothing but its gate becomes a backend server, then its gate opens; and what keeps it closed.
func TestReadinessGates(t *testing.T) {
	t.Parallel()
	pod := func(name string, containersReady bool, gates ...string) func(*world, func(...string)) {
		return func(w *world, _ func(...string)) { w.putPod(name, containersReady, gates...) }
	}
	all := func(acts ...func(*world, func(...string))) func(*world, func(...string)) {
		return func(w *world, ready func(...string)) {
			for _, act := range acts {
				act(w, ready)
			}
		}
	}
	endpoints := func(names ...string) func(*world, func(...string)) {
		return func(_ *world, ready func(...string)) { ready(names...) }
	}
	nothing := func(*world, func(...string)) {}
	both := all(pod("p", true, webGate), pod("q", true, webGate))
	for _, test := range []struct {
		name   string
		change func(*corev1.Service)
		steps  []gateStep
	}{
		{"opens for a backend server", nil, []gateStep{
			{act: all(pod("p", true, webGate), pod("q", false, webGate)), gates: [2]string{registered, ""}, servers: 1},
			{act: all(endpoints("p"), pod("q", true)), gates: [2]string{registered, registered}, servers: 2,
				writes: []string{"AddVServerGroupBackendServers"}},
			{act: endpoints("p", "q"), gates: [2]string{registered, registered}, servers: 2, writes: []string{}, quiet: true},
		}},
		{"closes until the pod is back", nil, []gateStep{
			{act: both, gates: [2]string{registered, registered}, servers: 2},
			{act: all(endpoints("q"), pod("p", false)), gates: [2]string{"False/ServerNotRegistered", registered}, servers: 1},
			{act: pod("p", true), gates: [2]string{registered, registered}, servers: 2},
		}},
		{"says that the address has no network interface", nil, []gateStep{
			{act: all(both, func(w *world, _ func(...string)) { w.emulator.ReleaseInstance("i-b") }),
				gates: [2]string{registered, "False/ServerInvalidServer"}, servers: 1},
			{act: nothing, gates: [2]string{registered, "False/ServerInvalidServer"}, servers: 1, unwritten: true},
		}},
		{"waits for the write", nil, []gateStep{
			{act: all(pod("p", false, webGate), pod("q", false, webGate))},
			{act: all(pod("p", true), func(w *world, _ func(...string)) {
				w.fault(map[string]any{"action": "AddVServerGroupBackendServers", "code": "InternalError", "status": 500})
			}), fails: true},
			{act: func(w *world, _ func(...string)) { w.clearFaults() }, gates: [2]string{registered, ""}, servers: 1},
		}},
		{"stays closed where the weight is 0", func(svc *corev1.Service) { annotate(svc, annotation.DefaultWeight, "0") }, []gateStep{
			{act: all(pod("p", true, webGate), pod("q", false)), servers: 1},
		}},
		{"of others: such pods are read once", nil, []gateStep{
			{act: all(pod("p", true, "example.com/other"), pod("q", true, backend.GatePrefix+"another-service")), requests: 2},
			{act: nothing, quiet: true},
		}},
		{"is of no interest where nodes are the backend servers", func(svc *corev1.Service) {
			delete(svc.Annotations, annotation.BackendType)
		}, []gateStep{
			{act: both, quiet: true},
		}},
		{"opens where endpoints are called ready before their pods are", func(svc *corev1.Service) {
			svc.Spec.PublishNotReadyAddresses = true
		}, []gateStep{
			{act: all(endpoints("p", "q"), pod("p", true, webGate), pod("q", false)), gates: [2]string{registered, ""}, servers: 2},
		}},
		{"is not the last one that the pod waits for", nil, []gateStep{
			{act: all(pod("p", true, webGate, "example.com/other"), pod("q", false))},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var changes []func(*corev1.Service)
				if test.change != nil {
					changes = append(changes, test.change)
				}
				w, ready := gateWorld(t, changes...)
				for i, step := range test.steps {
					step.act(w, ready)
					w.check(i+1, step)
					time.Sleep(backend.MinGateWait)
				}
			})
		})
	}
}

// check makes one pass and looks at what came of it.
func (w *world) check(number int, step gateStep) {
	w.t.Helper()
	w.kube.ClearActions()
	w.calls()
	if err := w.pass("web"); (err != nil) != step.fails {
		w.t.Errorf("step %d: error %v, want one: %v", number, err, step.fails)
	}
	patches := slices.ContainsFunc(w.kube.Actions(), func(a clienttesting.Action) bool {
		return a.GetVerb() == "patch" && a.GetResource().Resource == "pods"
	})
	requests, writes := w.podRequests(), writesOf(w.calls())
	if gates := [2]string{w.gateOfPod("p"), w.gateOfPod("q")}; gates != step.gates {
		w.t.Errorf("step %d: gates %q, want %q", number, gates, step.gates)
	}
	if servers := len(w.podBackends("k8s/8080/web/default/c1")); servers != step.servers {
		w.t.Errorf("step %d: %d backend servers, want %d", number, servers, step.servers)
	}
	if step.writes != nil && !slices.Equal(writes, step.writes) {
		w.t.Errorf("step %d: writes %v, want %v", number, writes, step.writes)
	}
	if (step.quiet || step.requests > 0) && requests != step.requests {
		w.t.Errorf("step %d: %d requests about pods, want %d", number, requests, step.requests)
	}
	if step.unwritten && patches {
		w.t.Errorf("step %d: the same condition is written again", number)
	}
}

// TestWaitingPodIsReadAgain: no event shows when the containers of a pod get ready.
func TestWaitingPodIsReadAgain(t *testing.T) {
	t.Parallel()
	w, _ := gateWorld(t)
	w.putPod("p", true, webGate)
	w.putPod("q", false, webGate)
	w.mustPass("web")
	if wait, err := w.Reconcile(t.Context(), w.get("web")); err != nil || wait != backend.MinGateWait {
		t.Errorf("the next pass is due in %s, %v; want %s", wait, err, backend.MinGateWait)
	}
}

// TestRoleWithoutPods: everything else goes on, and one event says so.
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
			servers := w.podBackends("k8s/8080/web/default/c1")
			events := strings.Join(w.newEvents(), "\n")
			if want := map[string]int{"get": 1, "patch": 2}[verb]; len(servers) != want {
				t.Errorf("%d backend servers, want %d", len(servers), want)
			}
			if want := map[string]int{"get": 0, "patch": 1}[verb]; strings.Count(events, problem.ReasonFailedUpdateGate) != want {
				t.Errorf("events %q, want %d %s", events, want, problem.ReasonFailedUpdateGate)
			}
		})
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
