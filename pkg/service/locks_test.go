package service

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

const sharedCLB = "lb-shared"

// parked waits as a call does for which the rate limit has no room, until the channel is closed.
func parked(ctx context.Context, until <-chan struct{}) error {
	waiting := alicloud.WaitingOf(ctx)
	if waiting.Parked != nil {
		waiting.Parked()
	}
	if waiting.Resumed != nil {
		defer waiting.Resumed()
	}
	select {
	case <-until:
		return nil
	case <-waiting.Interrupt:
		return alicloud.ErrInterrupted
	case <-ctx.Done():
		return ctx.Err()
	}
}

// holding makes the passes over a Service wait at a stage until the channel is closed.
func holding(p *product, name, stage string) (release func()) {
	until := make(chan struct{})
	p.atStage(func(ctx context.Context, at string, svc *corev1.Service) error {
		if at == stage && svc.Name == name {
			return parked(ctx, until)
		}
		return nil
	})
	return func() { close(until) }
}

// TestTearDownTakesNoLockOfTheCLB: a tear-down does not write on a load balancer on which another Service is at work.
func TestTearDownTakesNoLockOfTheCLB(t *testing.T) {
	t.Parallel()
	clb := newProduct("clb")
	inFrame(t, []driver.Engine{clb}, func(t *testing.T, f *frame) {
		f.put(testService("old", sharing(sharedCLB)))
		clb.since()
		release := holding(clb, "new", "Deploy")
		f.put(testService("new", sharing(sharedCLB)))
		f.change("old", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP })
		if calls := clb.since(); slices.Contains(calls, "remove old") {
			t.Errorf("calls %v while another Service writes to the load balancer", calls)
		}
		release()
		f.rest()
		if calls := writesOf(clb.since()); !slices.Equal(calls, []string{"write new", "remove old"}) {
			t.Errorf("calls %v, want one Service after the other", calls)
		}
	})
}

// TestTearDownLocksWhatOnlyAReadShows: after a restart only the cloud says that the load balancer is a shared one. It is read again with
// the lock.
func TestTearDownLocksWhatOnlyAReadShows(t *testing.T) {
	t.Parallel()
	clb := newProduct("clb")
	inFrame(t, []driver.Engine{clb}, func(t *testing.T, f *frame) {
		clb.set(sharedCLB, "old", 80)
		release := holding(clb, "new", "Deploy")
		f.put(testService("new", sharing(sharedCLB)))
		f.put(testService("old", func(svc *corev1.Service) {
			svc.Finalizers, svc.Spec.Type = []string{clb.finalizer()}, corev1.ServiceTypeClusterIP
		}))
		if calls := clb.since(); slices.Contains(calls, "remove old") {
			t.Errorf("calls %v while another Service writes to the load balancer", calls)
		}
		release()
		f.rest()
		if calls := clb.since(); !slices.Contains(calls, "remove old") || f.opts.hasFinalizer(f.get("old")) {
			t.Errorf("calls %v, finalizers %v, want the tear-down", calls, f.get("old").Finalizers)
		}
	})
}

// TestSharedCLBHoldsAllWorkers: Services that wait for a load balancer whose holder waits for the rate limit leave the workers to others,
// and do not count as stuck, however long that takes.
func TestSharedCLBHoldsAllWorkers(t *testing.T) {
	t.Parallel()
	clb := newProduct("clb")
	inFrame(t, []driver.Engine{clb}, func(t *testing.T, f *frame) {
		release := holding(clb, "a", "Deploy")
		for _, name := range []string{"a", "b", "c", "d", "e"} { // there are three workers
			f.put(testService(name, sharing(sharedCLB)))
		}
		f.put(testService("other"))
		if id, _ := clb.of("other"); id == "" {
			t.Error("a Service of another load balancer waits")
		}
		time.Sleep(2 * waits.PassOfService)
		if err := f.controller.HealthChecker().Check(nil); err != nil {
			t.Errorf("the health check fails although every pass only waits: %v", err)
		}
		if n := f.controller.Working(); n != 0 {
			t.Errorf("%d passes count as under way", n)
		}
		release()
		f.rest()
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			if id, _ := clb.of(name); id != sharedCLB {
				t.Errorf("Service %s is on %q in the end, want %s", name, id, sharedCLB)
			}
		}
	})
}

// setPort gives a Service another port.
func setPort(port int32) func(*corev1.Service) {
	return func(svc *corev1.Service) {
		svc.Spec.Ports = nil
		testkube.TCP(port)(svc)
	}
}

// inBusyFrame runs a test with three Services on one load balancer. The pass over the first one holds it until release is called, and
// the passes over the others wait for it to give them the port 81.
func inBusyFrame(t *testing.T, clb *product, test func(t *testing.T, f *frame, release func())) {
	t.Helper()
	inFrame(t, []driver.Engine{clb}, func(t *testing.T, f *frame) {
		for _, name := range []string{"first", "second", "third"} {
			f.put(testService(name, sharing(sharedCLB)))
		}
		release := holding(clb, "first", "Deploy")
		for _, name := range []string{"first", "second", "third"} {
			f.change(name, setPort(81))
		}
		clb.since()
		test(t, f, func() {
			release()
			f.rest()
		})
	})
}

// TestPassAfterTheLockIsStale: a Service that changed while its pass waited for the lock is taken as it is then.
func TestPassAfterTheLockIsStale(t *testing.T) {
	t.Parallel()
	clb := newProduct("clb")
	inBusyFrame(t, clb, func(t *testing.T, f *frame, release func()) {
		f.change("second", setPort(82))
		f.change("third", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP })
		release()
		if _, ports := clb.of("second"); !slices.Equal(ports, []int32{82}) {
			t.Errorf("ports %v of the second Service, want 82", ports)
		}
		calls := writesOf(clb.since())
		slices.Sort(calls)
		if want := []string{"remove third", "write first", "write second"}; !slices.Equal(calls, want) {
			t.Errorf("calls %v, want %v: nothing for the ports 81 of before", calls, want)
		}
	})
}

// TestDeletedWhileItWaited: nothing is written for a Service that is gone.
func TestDeletedWhileItWaited(t *testing.T) {
	t.Parallel()
	clb := newProduct("clb")
	inBusyFrame(t, clb, func(t *testing.T, f *frame, release func()) {
		// The fake API server does not wait for finalizers.
		testkit.Check(t, f.kube.CoreV1().Services(testkube.Namespace).Delete(t.Context(), "second", metav1.DeleteOptions{}))
		f.rest()
		release()
		if calls := clb.since(); slices.Contains(calls, "write second") {
			t.Errorf("calls %v for a Service that is gone", calls)
		}
		if n := len(f.states.byKey); n != 2 {
			t.Errorf("%d states are kept for two Services", n)
		}
	})
}

// TestShutdownEmitsEvents: nobody but the program itself ended the pass, and the next process makes it again.
func TestShutdownEmitsEvents(t *testing.T) {
	t.Parallel()
	for _, stage := range []string{"Refresh", "Plan", "Deploy"} {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				clb := newProduct("clb")
				f := newFrame(t, []driver.Engine{clb})
				f.put(testService("web"))
				if stage != "Plan" { // which a tear-down has not
					clb.set("clb-7", "leaving", 80)
				}
				f.put(testService("leaving", func(svc *corev1.Service) {
					svc.Finalizers, svc.Spec.Type = []string{clb.finalizer()}, corev1.ServiceTypeClusterIP
				}))
				for _, name := range []string{"web", "leaving"} {
					ctx, cancel := context.WithCancel(t.Context())
					clb.atStage(func(ctx context.Context, at string, _ *corev1.Service) error {
						if at == stage {
							cancel()
						}
						return ctx.Err()
					})
					if _, err := f.Reconcile(ctx, f.get(name)); ctx.Err() != nil && !errors.Is(err, context.Canceled) {
						t.Errorf("%s: error %v, want that of the context", name, err)
					}
					cancel()
				}
				if events := f.events(); len(events) != 0 {
					t.Errorf("events %q, want none", events)
				}
				if conditions := f.get("web").Status.Conditions; len(conditions) != 0 {
					t.Errorf("conditions %+v, want none", conditions)
				}
			})
		})
	}
}
