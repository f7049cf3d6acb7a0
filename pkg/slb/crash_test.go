package slb

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

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
		before := len(w.emulator.Unread())
		if err = w.pass(name); err == nil && len(writesIn(w, before)) == 0 {
			return
		}
	}
	w.t.Fatalf("not converged after %d passes: %v", maxPasses, err)
}

// writesIn returns the writes that arrived after the first skip calls.
func writesIn(w *world, skip int) []string {
	var actions []string
	for _, call := range w.emulator.Unread()[skip:] {
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
		{"is refused", func(w *world, k int) {
			// Each write meets one of the classes: all of them with each would take minutes.
			refusals := []string{"OperationDenied", "Forbidden.RAM", "QuotaExceeded.Slb", "InvalidSecurityToken.Expired"}
			inject(map[string]any{"code": refusals[k%len(refusals)], "status": 400})(w, k)
		}, nothing},
		{"is busy", inject(map[string]any{"code": "SystemBusy", "status": 400}), nothing},
		// The program would wait for the next minute; one that was started anew need not.
		{"is throttled", inject(map[string]any{"code": "Throttling.User", "status": 400}), (*world).restart},
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
	operations, mishaps := operations(), mishaps()
	want, writes := make([]map[string]cloudLB, len(operations)), make([][]string, len(operations))
	for i, op := range operations {
		if want[i], writes[i] = undisturbed(t, op); len(writes[i]) == 0 {
			t.Fatalf("%s writes nothing", op.name)
		}
	}
	for _, wrong := range testkit.SampleWrites(writes, len(mishaps)) {
		op, mishap := operations[wrong.Operation], mishaps[wrong.Way]
		t.Run(fmt.Sprintf("%s/write %d %s", op.name, wrong.Write+1, mishap.name), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { survive(t, op, mishap, wrong.Write, want[wrong.Operation]) })
		})
	}
}

// BenchmarkWorld is what a cell of a matrix costs: a world, an operation, and passes until it has converged.
func BenchmarkWorld(b *testing.B) {
	op := operations()[0]
	for b.Loop() {
		w := newWorld(b)
		op.prepare(w)
		op.act(w)
		w.converge("web")
	}
}

// undisturbed carries an operation out, and returns the state that it leads to and the writes that it makes.
func undisturbed(t *testing.T, op operation) (state map[string]cloudLB, writes []string) {
	t.Helper()
	w := newWorld(t)
	op.prepare(w)
	w.calls()
	op.act(w)
	w.converge("web")
	writes = writesOf(w.calls())
	return w.state(), writes
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
	if w.staysRefused("web") {
		w.restart() // the program would wait for a minute; one that was started anew need not
	}
	w.converge("web")
	if diff := cmp.Diff(want, w.state()); diff != "" {
		t.Errorf("state (-undisturbed +got), the first pass said %v:\n%s", first, diff)
	}
	w.wantRest("web")
}

// TestHalfACreationIsTornDown: a Service that goes before its creation has converged, whatever write of that went wrong, leaves
// nothing in the cloud, or on an existing CLB.
func TestHalfACreationIsTornDown(t *testing.T) {
	t.Parallel()
	for _, op := range operations() {
		if !slices.Contains([]string{"create", "source ranges from the start", "domain extensions from the start", "reuse with tags and domains",
			"group begun", "group joined", "overflow"}, op.name) {
			continue
		}
		prepared := newWorld(t)
		op.prepare(prepared)
		before := prepared.state()
		tornDown(t, op, mishaps(), func(*world) {}, func(t *testing.T, w *world, first error) {
			t.Helper()
			after := w.state()
			delete(after["mine"].Tags, mark.TagReused) // says that Services were on it, and stays
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("state (-before +after), the creation said %v:\n%s", first, diff)
			}
		})
	}
}

// tornDown has the Service of an operation go after one write of that went wrong, each in turn, and checks what is left. begin is what
// happens before it goes.
func tornDown(t *testing.T, op operation, mishaps []mishap, begin func(*world), check func(t *testing.T, w *world, first error)) {
	t.Helper()
	t.Run(op.name, func(t *testing.T) {
		t.Parallel()
		_, writes := undisturbed(t, op)
		for i, mishap := range mishaps {
			for _, k := range testkit.Sample(i, len(writes)) {
				t.Run(fmt.Sprintf("write %d %s", k+1, mishap.name), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						w := newWorld(t)
						op.prepare(w)
						mishap.arm(w, k)
						op.act(w)
						first := w.pass("web")
						mishap.after(w)
						w.clearFaults()
						begin(w)
						w.change("web", deleteService)
						w.converge("web")
						check(t, w, first)
						if svc := w.get("web"); len(svc.Finalizers) != 0 {
							t.Errorf("finalizers %v hold the Service", svc.Finalizers)
						}
					})
				})
			}
		}
	})
}
