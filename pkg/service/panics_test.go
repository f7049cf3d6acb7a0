package service

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/component-base/metrics/testutil"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// panicking makes a product panic at a stage of the passes over a Service, as long as on says so.
func panicking(p *product, name, stage string, on *atomic.Bool) {
	p.atStage(func(_ context.Context, at string, svc *corev1.Service) error {
		if on.Load() && at == stage && svc.Name == name {
			var nobody *corev1.Service
			_ = nobody.Spec.Ports // the nil pointer of the day
		}
		return nil
	})
}

func switchedOn() *atomic.Bool {
	on := new(atomic.Bool)
	on.Store(true)
	return on
}

func panicCount(t *testing.T) float64 {
	t.Helper()
	count, err := testutil.GetCounterMetricValue(passPanics)
	testkit.Check(t, err)
	return count
}

// TestPanicIsTheErrorOfOneService: a bug that one Service meets is that Service's failed pass, which is made again, and ends neither the
// process nor the passes over others.
func TestPanicIsTheErrorOfOneService(t *testing.T) { //nolint:paralleltest // it counts panics, and so do the others
	for _, stage := range []string{"Refresh", "Plan", "Deploy"} {
		t.Run(stage, func(t *testing.T) {
			clb, on := newProduct("clb"), switchedOn()
			panicking(clb, "bad", stage, on)
			inFrame(t, []driver.Engine{clb}, func(t *testing.T, f *frame) {
				before := panicCount(t)
				f.put(testService("bad"))
				f.put(testService("good"))
				if id, _ := clb.of("good"); id == "" {
					t.Error("the other Service has no load balancer")
				}
				time.Sleep(30 * time.Second)
				if n := panicCount(t) - before; n < 3 || n > 8 {
					t.Errorf("%v panics, want some, with the back-off of failures between them", n)
				}
				if failed := withReason(f.events(), problem.ReasonSyncFailed); len(failed) != 1 {
					t.Errorf("events %q, want one for all attempts", failed)
				}
				if c := meta.FindStatusCondition(f.get("bad").Status.Conditions, ConditionSynced); c == nil || c.Reason != problem.ReasonSyncFailed {
					t.Errorf("condition %+v, want %s", c, problem.ReasonSyncFailed)
				}
				on.Store(false)
				time.Sleep(time.Minute)
				if id, _ := clb.of("bad"); id == "" {
					t.Error("no load balancer although the bug is gone")
				}
				if working := f.controller.Working(); working != 0 {
					t.Errorf("%d passes do not end", working)
				}
			})
		})
	}
}

// TestPanicInATearDown: the finalizer stays until the load balancer is gone.
func TestPanicInATearDown(t *testing.T) { //nolint:paralleltest // it counts panics, and so do the others
	clb, on := newProduct("clb"), new(atomic.Bool)
	panicking(clb, "web", "Deploy", on)
	inFrame(t, []driver.Engine{clb}, func(t *testing.T, f *frame) {
		f.put(testService("web"))
		on.Store(true)
		f.change("web", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP })
		if id, _ := clb.of("web"); id == "" || !f.opts.hasFinalizer(f.get("web")) {
			t.Fatalf("load balancer %q, finalizers %v: want both to stand", id, f.get("web").Finalizers)
		}
		if failed := withReason(f.events(), problem.ReasonCleanFailed); len(failed) != 1 {
			t.Errorf("events %q, want one of the failed tear-down", failed)
		}
		on.Store(false)
		time.Sleep(5 * time.Second)
		if id, _ := clb.of("web"); id != "" || f.opts.hasFinalizer(f.get("web")) {
			t.Errorf("load balancer %q, finalizers %v: want neither", id, f.get("web").Finalizers)
		}
	})
}

// TestPanicInTheAdapter: a stock manager that this provider is linked into gets an error.
func TestPanicInTheAdapter(t *testing.T) { //nolint:paralleltest // it counts panics, and so do the others
	clb, on := newProduct("clb"), switchedOn()
	inFrame(t, []driver.Engine{clb}, func(t *testing.T, f *frame) {
		adapter := NewLoadBalancer(f.Reconciler)
		svc := testService("web")
		for _, stage := range []string{"Refresh", "Plan", "Deploy"} {
			panicking(clb, "web", stage, on)
			if _, err := adapter.EnsureLoadBalancer(t.Context(), "", svc, nil); err == nil {
				t.Errorf("%s: no error of the creation", stage)
			}
		}
		on.Store(false)
		if _, err := adapter.EnsureLoadBalancer(t.Context(), "", svc, nil); err != nil {
			t.Fatalf("after the panics: %v", err)
		}
		on.Store(true)
		if err := adapter.EnsureLoadBalancerDeleted(t.Context(), "", svc); err == nil {
			t.Error("no error of the deletion")
		}
		panicking(clb, "web", "Refresh", on)
		if _, _, err := adapter.GetLoadBalancer(t.Context(), "", svc); err == nil {
			t.Error("no error of the question whether there is one")
		}
	})
}

// TestPanicAtTheStart: what one engine reads for all Services together, each reads itself then.
func TestPanicAtTheStart(t *testing.T) { //nolint:paralleltest // it counts panics, and so do the others
	clb := newProduct("clb")
	clb.atStage(func(_ context.Context, stage string, _ *corev1.Service) error {
		if stage == "Preload" {
			panic("of the engine")
		}
		return nil
	})
	f := newFrame(t, []driver.Engine{clb})
	testkube.Fill(t, f.opts.Services.Informer(), testService("web", func(svc *corev1.Service) { svc.Finalizers = []string{clb.finalizer()} }))
	if err := f.Preload(t.Context()); err == nil {
		t.Error("no error")
	}
}
