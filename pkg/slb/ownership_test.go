package slb

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

func withType(svc *corev1.Service) { annotate(svc, annotation.Type, "nlb") }

// TestTypeWithoutGate: the annotation is not read, and an event says so.
func TestTypeWithoutGate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	svc := testService("web", 80)
	withType(svc)
	w.put(svc)
	w.mustPass("web")
	if len(w.state()) != 1 {
		t.Error("the Service has no CLB")
	}
	if events := w.newEvents(); len(events) != 2 || !strings.Contains(events[0], annotation.GateLoadBalancerType+" is off") {
		t.Errorf("events %q, want one about the gate", events)
	}
}

// TestTypeBehindGate: a Service of another kind of load balancer gets one event and is not touched.
func TestTypeBehindGate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.TypeAnnotation = true
	w.restart()
	threeNodes(w)
	svc := testService("web", 80)
	withType(svc)
	w.put(svc)
	w.mustPass("web")
	w.mustPass("web")
	if calls := w.calls(); len(calls) != 0 {
		t.Errorf("calls %v, want none", calls)
	}
	if events := w.newEvents(); len(events) != 1 || !strings.HasPrefix(events[0], "Warning "+problem.ReasonFeatureNotSupported) ||
		!strings.Contains(events[0], `"nlb"`) {
		t.Errorf("events %q, want one", events)
	}
	if got := w.get("web"); driver.HasFinalizer(got, Finalizer) || len(got.Status.Conditions) > 0 {
		t.Errorf("the Service was touched: %v", got)
	}
	if plan := w.preview("web"); plan.Err != nil || len(plan.Steps) != 0 || len(plan.Problems) != 1 {
		t.Errorf("steps %v, problems %v, %v", plan.Steps, plan.Problems, plan.Err)
	}
}

// TestTypeAddedLater: what carries traffic stays until the Service goes.
func TestTypeAddedLater(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	w.config.TypeAnnotation = true
	w.restart()
	w.change("web", withType)
	w.addNode("d")
	w.calls()
	w.mustPass("web")
	if calls := w.calls(); len(calls) != 0 {
		t.Errorf("calls %v, want none", calls)
	}
	if events := w.newEvents(); len(events) != 1 || !strings.Contains(events[0], w.get("web").Labels[driver.LabelLoadBalancerID]) {
		t.Errorf("events %q, want one that names the CLB", events)
	}
	w.change("web", deleteService)
	w.mustPass("web")
	if n := len(w.state()); n != 0 {
		t.Errorf("%d CLBs left after the Service was deleted", n)
	}
}
