package slb

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
)

const (
	// testGateReads is how many pods a pass reads.
	testGateReads = 20
	gateGroup     = "k8s/8080/web/default/c1"
)

// crowd adds endpoints that are not ready to those of gateWorld. Nobody has an interface with their addresses.
func (w *world) crowd(n int) {
	w.t.Helper()
	slice := testSlice(w.get("web").Spec.Ports[0])
	slice.Name = "web-2"
	for i := range n {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.0.9.%d", i)}, Conditions: discoveryv1.EndpointConditions{Ready: new(false), Serving: new(false)},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: fmt.Sprintf("crowd-%d", i), UID: types.UID(fmt.Sprintf("uid-crowd-%d", i))},
		})
		w.putPod(fmt.Sprintf("crowd-%d", i), false)
	}
	w.putSlice(slice)
}

// podReads has f called before each pod that is read, with its name.
func (w *world) podReads(f func(pod string) error) {
	w.kube.PrependReactor("get", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		get, ok := action.(clienttesting.GetAction)
		if !ok {
			return false, nil, nil
		}
		err := f(get.GetName())
		return err != nil, nil, err
	})
}

// TestDeadBackendsLeaveBeforePodsAreRead: hundreds of pods that are not ready hold up nobody, and each is read once. None of them has
// a gate.
func TestDeadBackendsLeaveBeforePodsAreRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, ready := gateWorld(t)
		ready("p", "q")
		w.putPod("p", true)
		w.putPod("q", true)
		w.mustPass("web")
		w.calls()
		w.crowd(200)
		ready("p")
		reads := map[string]int{}
		w.podReads(func(pod string) error {
			if len(reads) == 0 && !slices.Contains(w.calls(), "RemoveVServerGroupBackendServers") {
				t.Error("a pod is read before the dead backend has left")
			}
			reads[pod]++
			return nil
		})
		passes := 0
		for wait := time.Millisecond; wait == time.Millisecond; passes++ {
			before := len(reads)
			var err error
			if wait, err = w.Reconcile(t.Context(), w.get("web")); err != nil {
				t.Fatal(err)
			}
			if read := len(reads) - before; read > testGateReads {
				t.Errorf("a pass reads %d pods, want %d at most", read, testGateReads)
			}
			time.Sleep(wait)
		}
		if len(reads) != 201 || passes != 11 {
			t.Errorf("%d pods are read in %d passes, want 201 in 11", len(reads), passes)
		}
		w.mustPass("web")
		for pod, times := range reads {
			if times != 1 {
				t.Errorf("pod %s is read %d times", pod, times)
			}
		}
	})
}

// TestRestartKeepsPodsThatWait: a pod that is a backend and waits for its gate stays one while the next process has not read it yet,
// however many others are read before it, or while it cannot be read. One that does not wait leaves as soon as that is known.
func TestRestartKeepsPodsThatWait(t *testing.T) {
	t.Parallel()
	for _, waits := range []bool{true, false} {
		t.Run(fmt.Sprintf("waits %v", waits), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, ready := gateWorld(t)
				ready("q")
				w.putPod("p", true, webGate)
				w.kube.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errDead })
				if w.pass("web") == nil {
					t.Fatal("the gate opened")
				}
				w.kube.ReactionChain = w.kube.ReactionChain[1:]
				w.crowd(3 * testGateReads)
				w.putPod("p", waits, webGate)
				w.restart()
				failures := 2
				read := false
				w.podReads(func(pod string) error {
					if failures--; failures >= 0 {
						return errors.New("the API server is busy")
					}
					read = read || pod == "p"
					return nil
				})
				for passes, wait := 0, time.Duration(1); wait < time.Minute; passes++ {
					known := read
					var err error
					if wait, err = w.Reconcile(t.Context(), w.get("web")); err != nil {
						t.Fatal(err)
					}
					want := map[bool]int{true: 2, false: 1}[waits || !known]
					if backends := len(w.podBackends(gateGroup)); backends != want {
						t.Fatalf("pass %d: %d backends, want %d; p was read: %v", passes, backends, want, known)
					}
					if read && known {
						break
					}
					time.Sleep(wait)
				}
				if gate := w.gateOfPod("p"); waits && gate != registered {
					t.Errorf("gate of p %q, want %s", gate, registered)
				}
			})
		})
	}
}

// TestPodOnSilentNodeDoesNotWait: its containers are still said to be ready, but nobody has heard of them for a while.
func TestPodOnSilentNodeDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, ready := gateWorld(t)
		w.putPod("p", true, webGate)
		w.putPod("q", true)
		ready("q")
		w.mustPass("web")
		ready("p", "q")
		w.mustPass("web")
		notReady := func(n *corev1.Node) { testkube.Ready(n).Status = corev1.ConditionFalse }
		w.putNode(testNode("a", notReady))
		ready("q")
		for i, step := range []gateStep{
			{gates: [2]string{"False/ServerNotRegistered", ""}, servers: 1},
			{gates: [2]string{"False/ServerNotRegistered", ""}, servers: 1},
			{act: func(w *world, _ func(...string)) { w.putNode(testNode("a")) }, gates: [2]string{registered, ""}, servers: 2},
		} {
			if step.act != nil {
				step.act(w, ready)
			}
			w.check(i+1, step)
			time.Sleep(backend.MaxGateWait)
		}
	})
}

// TestPreviewReadsGates: a preview shows what the passes come to once they have read the pods.
func TestPreviewReadsGates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, ready := gateWorld(t)
		ready("q")
		w.putPod("p", false, webGate)
		w.mustPass("web")
		w.crowd(2 * testGateReads)
		w.putPod("p", true, webGate)
		if plan := w.preview("web"); plan.Err != nil || len(plan.Steps) != 1 {
			t.Errorf("steps %v, %v; want that p joins", plan.Steps, plan.Err)
		}
	})
}

// TestAdapterReadsGates: the stock controller does not come back for pods.
func TestAdapterReadsGates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _ := gateWorld(t)
		w.putPod("p", true, webGate)
		w.crowd(2 * testGateReads)
		w.startInformers()
		if _, err := service.NewLoadBalancer(w.Reconciler).EnsureLoadBalancer(t.Context(), "", w.get("web"), nil); err != nil {
			t.Fatal(err)
		}
		if gate := w.gateOfPod("p"); gate != registered {
			t.Errorf("gate of p %q, want %s", gate, registered)
		}
	})
}
