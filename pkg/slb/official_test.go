package slb

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// TestBandwidthSetByHandIsNotCutToDefault: only an annotated bandwidth is written, and the default where paying by bandwidth is
// switched on.
func TestBandwidthSetByHandIsNotCutToDefault(t *testing.T) {
	t.Parallel()
	svc := testService("web", 80)
	annotate(svc, annotation.AddressType, "internet")
	annotate(svc, annotation.ChargeType, "paybybandwidth")
	w := settled(t, svc)
	if got := w.state()["a0f5e8a1cweb"].Bandwidth; got != 50 {
		t.Fatalf("created with %d Mbit/s, want 50", got)
	}
	if err := w.api.SetInternetSpec(t.Context(), w.onlyCLB(), model.PayByBandwidth, 200); err != nil {
		t.Fatal(err)
	}
	for _, restarts := range []bool{false, true} {
		if restarts {
			w.restart()
		}
		w.calls()
		w.drift("web")
		w.mustPass("web")
		if writes := writesOf(w.calls()); len(writes) != 0 {
			t.Errorf("restart %v: writes %v", restarts, writes)
		}
	}
}

// TestSpecOfAdoptedCLB: on a CLB that pays by specification the annotation spec acts alone.
func TestSpecOfAdoptedCLB(t *testing.T) {
	t.Parallel()
	svc := testService("web", 80)
	annotate(svc, annotation.InstanceChargeType, model.PayBySpec)
	annotate(svc, annotation.Spec, "slb.s2.small")
	w := settled(t, svc)
	w.change("web", func(svc *corev1.Service) {
		svc.Status.Conditions = nil
		delete(svc.Annotations, key(annotation.InstanceChargeType))
	})
	w.restart()
	w.mustPass("web")
	if writes := writesOf(w.calls()); len(writes) != 0 {
		t.Errorf("adoption writes %v", writes)
	}
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Spec, "slb.s3.medium") })
	w.mustPass("web")
	if got := w.state()["a0f5e8a1cweb"].Spec; got != "slb.s3.medium" {
		t.Errorf("specification %s", got)
	}
}

// TestFullTagsDoNotFreezeReusedCLB: a CLB that has no room for our tag is served all the same.
func TestFullTagsDoNotFreezeReusedCLB(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	var tags []alicloud.Tag
	for i := range annotation.MaxTags {
		tags = append(tags, alicloud.Tag{Key: fmt.Sprintf("tag-%d", i), Value: "x"})
	}
	id := w.makeCLB(tags...).ID
	w.put(reusing("web", id, "true", 80))
	w.mustPass("web")
	w.mustReport(problem.ReasonAnnotationNoEffect)
	if got := w.get("web").Status.LoadBalancer.Ingress; len(got) != 1 {
		t.Errorf("status %v", got)
	}
	w.calls()
	w.mustPass("web")
	if calls := w.calls(); len(calls) != 0 {
		t.Errorf("the next pass calls %v", calls)
	}
}

// TestHumansListenerOnOurCLBStays: a listener without a mark is not deleted to make room for another protocol.
func TestHumansListenerOnOurCLBStays(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	w.makeListener(w.onlyCLB(), 8443, "by hand")
	w.change("web", func(svc *corev1.Service) {
		svc.Spec.Ports = append(svc.Spec.Ports, testPort(8443, corev1.ProtocolTCP))
		annotate(svc, annotation.ProtocolPort, "http:8443")
	})
	w.drift("web")
	w.mustPass("web")
	w.mustReport(problem.ReasonListenerConflict)
	if _, ok := w.state()["a0f5e8a1cweb"].Listeners["tcp:8443"]; !ok {
		t.Errorf("listeners %v", w.state()["a0f5e8a1cweb"].Listeners)
	}
}

// TestConflictShowsNoAddress: the loser of a port conflict on a shared CLB publishes no address.
func TestConflictShowsNoAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	id := w.makeCLB().ID
	w.put(reusing("web", id, "true", 80))
	w.converge("web")
	w.put(reusing("shop", id, "true", 80))
	w.mustPass("shop")
	if got := w.get("shop").Status.LoadBalancer.Ingress; len(got) != 0 {
		t.Errorf("the loser shows %v", got)
	}
	w.mustReport(problem.ReasonListenerConflict)
}
