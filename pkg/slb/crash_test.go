package slb

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// operation is a change whose every write may go wrong.
type operation struct {
	name    string
	prepare func(*world)
	act     func(*world)
}

func operations() []operation {
	web := func() *corev1.Service {
		svc := testService("web", 80)
		svc.Spec.Ports = append(svc.Spec.Ports, testPort(53, corev1.ProtocolUDP))
		return svc
	}
	stand := func(w *world) {
		threeNodes(w)
		w.put(web())
		w.converge("web")
	}
	return []operation{
		{"create", threeNodes, func(w *world) { w.put(web()) }},
		{"update", stand, func(w *world) {
			w.deleteNode("c")
			w.addNode("d")
			w.addNode("e")
			w.change("web", func(svc *corev1.Service) {
				svc.Spec.Ports = []corev1.ServicePort{svc.Spec.Ports[0], testPort(443, corev1.ProtocolTCP)}
				annotate(svc, Scheduler, "wrr")
				annotate(svc, Name, "renamed")
				annotate(svc, AdditionalTags, "team=a")
				annotate(svc, DeleteProtection, "off")
			})
		}},
		{"delete", stand, func(w *world) {
			w.change("web", deleteService)
		}},
		{"reuse", func(w *world) { threeNodes(w); w.makeCLB() }, func(w *world) { w.put(reusing("web", w.onlyCLB(), "true", 80, 81)) }},
		{"end of reuse", func(w *world) {
			threeNodes(w)
			w.put(reusing("web", w.makeCLB().ID, "true", 80, 81))
			w.converge("web")
		}, func(w *world) { w.change("web", deleteService) }},
		{"group of others joined", func(w *world) {
			threeNodes(w)
			w.makeGroup(w.makeCLB().ID, "shared", "9.9.9.9")
		}, func(w *world) { w.put(joining("web", w.onlyCLB(), w.groupID("shared")+":80", 80, 81)) }},
		{"group of others left for another", func(w *world) {
			threeNodes(w)
			id := w.makeCLB().ID
			w.makeGroup(id, "shared", "9.9.9.9")
			w.makeGroup(id, "other", "9.9.9.8")
			w.put(joining("web", id, w.groupID("shared")+":80", 80))
			w.converge("web")
		}, func(w *world) {
			w.change("web", func(svc *corev1.Service) { annotate(svc, VGroupPort, w.groupID("other")+":80") })
		}},
		{"group of others left for good", func(w *world) {
			threeNodes(w)
			id := w.makeCLB().ID
			w.makeGroup(id, "shared", "9.9.9.9")
			w.put(joining("web", id, w.groupID("shared")+":80", 80))
			w.converge("web")
		}, func(w *world) { w.change("web", deleteService) }},
		{"source ranges from the start", threeNodes, func(w *world) { w.put(restricted("192.0.2.0/24")) }},
		{"source ranges changed", func(w *world) {
			threeNodes(w)
			w.put(restricted("192.0.2.0/24"))
			w.converge("web")
		}, func(w *world) {
			w.change("web", func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = []string{"198.51.100.0/24"} })
		}},
		{"source ranges added", stand, func(w *world) {
			w.change("web", func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = []string{"198.51.100.0/24"} })
		}},
		{"source ranges removed", func(w *world) {
			threeNodes(w)
			w.put(restricted("192.0.2.0/24"))
			w.converge("web")
		}, func(w *world) { w.change("web", func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = nil }) }},
		{"restricted Service deleted", func(w *world) {
			threeNodes(w)
			w.put(restricted("192.0.2.0/24"))
			w.converge("web")
		}, func(w *world) { w.change("web", deleteService) }},
		{"fewer tags", func(w *world) {
			threeNodes(w)
			svc := web()
			annotate(svc, AdditionalTags, "a=1,b=2")
			w.put(svc)
			w.converge("web")
		}, func(w *world) { w.change("web", func(svc *corev1.Service) { annotate(svc, AdditionalTags, "a=2") }) }},
		{"preserved", func(w *world) {
			threeNodes(w)
			svc := web()
			annotate(svc, PreserveOnDelete, "true")
			w.put(svc)
			w.converge("web")
		}, func(w *world) { w.change("web", deleteService) }},
		{"type change", stand, func(w *world) {
			w.change("web", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP })
		}},
	}
}

// onlyCLB returns the id of the one CLB that stands.
func (w *world) onlyCLB() string {
	w.t.Helper()
	all, err := w.api.DescribeLoadBalancers(w.t.Context(), queryAll())
	if err != nil || len(all) != 1 {
		w.t.Fatalf("%d CLBs, %v", len(all), err)
	}
	return all[0].ID
}

// maxPasses is how many passes may be needed to converge: the one that fails, one that reads, and one to spare for a
// write that the first repetition meets half-done.
const maxPasses = 4

// converge passes until one has nothing more to say.
func (w *world) converge(name string) {
	w.t.Helper()
	var err error
	for range maxPasses {
		before := len(w.emulator.Calls(w.mark))
		if err = w.pass(name); err == nil && len(writesIn(w, before)) == 0 {
			return
		}
	}
	w.t.Fatalf("not converged after %d passes: %v", maxPasses, err)
}

// writesIn returns the writes that arrived after the first skip calls.
func writesIn(w *world, skip int) []string {
	var actions []string
	for _, call := range w.emulator.Calls(w.mark)[skip:] {
		actions = append(actions, call.Action)
	}
	return writesOf(actions)
}

// mishap is one way in which a write goes wrong.
type mishap struct {
	name string
	// arm makes the k-th write from now, counted from 0, go wrong.
	arm func(w *world, k int)
	// after is what happens once the pass has ended.
	after func(w *world)
}

func mishaps() []mishap {
	inject := func(rule map[string]any) func(*world, int) {
		return func(w *world, k int) {
			armed := map[string]any{"action": "*", "kind": "write", "after": k, "times": 1}
			maps.Copy(armed, rule)
			w.fault(armed)
		}
	}
	nothing := func(*world) {}
	return []mishap{
		{"fails", inject(map[string]any{"code": "InternalError", "status": 500}), nothing},
		{"is refused", inject(map[string]any{"code": "OperationDenied", "status": 400}), nothing},
		{"is busy", inject(map[string]any{"code": "SystemBusy", "status": 400}), nothing},
		{"loses its answer", inject(map[string]any{"drop": "after"}), nothing},
		{"is lost", inject(map[string]any{"drop": "before"}), nothing},
		{"is the process's last", func(w *world, k int) {
			w.transport.mu.Lock()
			defer w.transport.mu.Unlock()
			w.transport.limit = w.transport.writes + k + 1
		}, (*world).restart},
	}
}

// TestEveryWriteMayGoWrong: whatever write of an operation goes wrong in whatever way, the next passes come to the same
// state as if nothing had happened, leave nothing over, and then write nothing more.
func TestEveryWriteMayGoWrong(t *testing.T) {
	t.Parallel()
	for _, op := range operations() {
		t.Run(op.name, func(t *testing.T) {
			t.Parallel()
			smooth := newWorld(t)
			op.prepare(smooth)
			smooth.calls()
			op.act(smooth)
			smooth.converge("web")
			writes := len(writesOf(smooth.calls()))
			want := smooth.state()
			if writes == 0 {
				t.Fatal("the operation writes nothing")
			}
			for _, mishap := range mishaps() {
				for k := range writes {
					t.Run(fmt.Sprintf("write %d %s", k+1, mishap.name), func(t *testing.T) {
						t.Parallel()
						survive(t, op, mishap, k, want)
					})
				}
			}
		})
	}
}

func survive(t *testing.T, op operation, mishap mishap, k int, want map[string]cloudLB) {
	t.Helper()
	w := newWorld(t)
	op.prepare(w)
	w.calls()
	mishap.arm(w, k)
	op.act(w)
	first := w.pass("web")
	if !w.transport.isDead() && w.faultHits() != 1 {
		t.Fatalf("the mishap hit %d calls, want 1", w.faultHits())
	}
	mishap.after(w)
	w.clearFaults()
	w.converge("web")
	if diff := cmp.Diff(want, w.state()); diff != "" {
		t.Errorf("state (-undisturbed +got), the first pass said %v:\n%s", first, diff)
	}
	w.calls()
	w.drift("web")
	w.mustPass("web")
	if writes := writesOf(w.calls()); len(writes) != 0 {
		t.Errorf("the last pass still writes %v", writes)
	}
}
