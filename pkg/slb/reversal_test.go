package slb

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// TestRemovedAnnotationsRevert: what an annotation set goes back to its default when the annotation goes, also when the
// program was started anew in between, and nothing is written after that.
func TestRemovedAnnotationsRevert(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		t.Run(map[bool]string{false: "same process", true: "restarted"}[restarted], func(t *testing.T) {
			t.Parallel()
			w := settled(t, testService("web", 80))
			before := w.state()
			w.change("web", func(svc *corev1.Service) {
				annotate(svc, annotation.Scheduler, "wlc")
				annotate(svc, annotation.HealthyThreshold, "9")
				annotate(svc, annotation.Name, "shop")
				annotate(svc, annotation.DeleteProtection, "off")
			})
			w.mustPass("web")
			w.calls()
			if restarted {
				w.restart()
			}
			w.change("web", func(svc *corev1.Service) {
				for _, suffix := range []annotation.Suffix{annotation.Scheduler, annotation.HealthyThreshold, annotation.Name,
					annotation.DeleteProtection} {
					delete(svc.Annotations, key(suffix))
				}
			})
			w.mustPass("web")
			want := []string{"SetLoadBalancerTCPListenerAttribute", "SetLoadBalancerName", "SetLoadBalancerDeleteProtection"}
			if diff := cmp.Diff(want, writesOf(w.calls())); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, w.state()); diff != "" {
				t.Errorf("state (-before +after):\n%s", diff)
			}
			w.drift("web")
			w.mustPass("web")
			if writes := writesOf(w.calls()); len(writes) != 0 {
				t.Errorf("the next pass writes %v", writes)
			}
		})
	}
}

// TestAdoptedCLBRevertsNothingAtFirst: nobody knows what the annotations of an adopted CLB were before.
func TestAdoptedCLBRevertsNothingAtFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	svc := testService("web", 80)
	annotate(svc, annotation.Scheduler, "rr")
	w.officialCLB(svc, testCluster)
	w.put(svc)
	w.mustPass("web")
	if writes := writesOf(w.calls()); len(writes) != 0 {
		t.Errorf("adoption writes %v", writes)
	}
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Scheduler, "wlc") })
	w.mustPass("web")
	if diff := cmp.Diff([]string{"SetLoadBalancerTCPListenerAttribute"}, writesOf(w.calls())); diff != "" {
		t.Errorf("writes of a changed value (-want +got):\n%s", diff)
	}
	w.change("web", func(svc *corev1.Service) { delete(svc.Annotations, key(annotation.Scheduler)) })
	w.mustPass("web")
	if diff := cmp.Diff([]string{"SetLoadBalancerTCPListenerAttribute"}, writesOf(w.calls())); diff != "" {
		t.Errorf("writes of a removal (-want +got):\n%s", diff)
	}
	if got := w.state()["a0f5e8a1cweb"].Listeners["tcp:80"]["Scheduler"]; got != "rr" {
		t.Errorf("scheduler %v, want the default", got)
	}
}

func TestReusedCLBHasNoSuchTag(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	svc := reusing("web", w.makeCLB().ID, "true", 80)
	annotate(svc, annotation.Scheduler, "wlc")
	w.put(svc)
	w.mustPass("web")
	if diff := cmp.Diff(map[string]string{mark.TagReused: "true"}, w.state()["mine"].Tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
}

// TestRevertsAreAccepted: what a setting goes back to is a value that the annotation accepts.
func TestRevertsAreAccepted(t *testing.T) {
	t.Parallel()
	for _, row := range annotation.Table() {
		if !row.Reverts || row.Suffix == annotation.Name {
			continue
		}
		back := row.Revert
		if back == "" {
			back = row.Default
		}
		if _, ok := row.Value.Parse(back); !ok {
			t.Errorf("%s goes back to %q, which it does not accept", row.Suffix, back)
		}
	}
}

// TestInstanceChargeTypeReverts: a CLB that was paid by specification is paid by use when the annotation goes.
func TestInstanceChargeTypeReverts(t *testing.T) {
	t.Parallel()
	svc := testService("web", 80)
	annotate(svc, annotation.InstanceChargeType, "PayBySpec")
	w := settled(t, svc)
	w.drift("web") // the answer to a creation does not contain everything
	w.change("web", func(svc *corev1.Service) { delete(svc.Annotations, key(annotation.InstanceChargeType)) })
	w.mustPass("web")
	if diff := cmp.Diff([]string{"ModifyLoadBalancerInstanceChargeType"}, writesOf(w.calls())); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}
