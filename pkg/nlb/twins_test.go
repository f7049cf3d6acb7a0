package nlb

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// makeTwin makes another NLB with the owner tag of a Service, and returns its id.
func (w *world) makeTwin(name string) string {
	w.t.Helper()
	id := w.existing("twin")
	tags := []alicloud.Tag{{Key: mark.TagOwner, Value: mark.DefaultName(w.get(name).UID)}, {Key: mark.TagCluster, Value: testCluster}}
	testkit.Check(w.t, w.account.Client.TagNLB(w.t.Context(), alicloud.NLBTagLoadBalancer, []string{id}, tags))
	return id
}

// deletedBesideTwin deletes a Service beside whose NLB another one has its owner tag, in the process that created it and in a new one, and
// then checks what is there.
func deletedBesideTwin(t *testing.T, before func(w *world, id string), check func(t *testing.T, w *world, id, twin string)) {
	t.Helper()
	for _, restarted := range []bool{false, true} {
		t.Run(map[bool]string{false: "known", true: "after a restart"}[restarted], func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.serve(1, testkube.TCP(80))
				id := w.get("web").Labels[driver.LabelLoadBalancerID]
				twin := w.makeTwin("web")
				before(w, id)
				if restarted {
					w.restart()
				}
				w.newEvents()
				w.remove("web")
				w.converge("web")
				check(t, w, id, twin)
			})
		})
	}
}

// TestDeletionReportsSecondNLBWithTag: of two NLBs with the owner tag of a Service, its deletion removes the one that its label names. One
// Warning says that the other one stays: tags can be copied, so that it may be anybody's.
func TestDeletionReportsSecondNLBWithTag(t *testing.T) {
	t.Parallel()
	deletedBesideTwin(t, func(*world, string) {}, func(t *testing.T, w *world, id, twin string) {
		t.Helper()
		events := strings.Join(w.newEvents(), "\n")
		if strings.Count(events, "Warning "+problem.ReasonLoadBalancerKept+" NLB "+twin+" stays in the cloud: like NLB "+id) != 1 ||
			strings.Count(events, problem.ReasonCleaned) != 1 {
			t.Errorf("events %s", events)
		}
		if !w.exists(twin) || w.exists(id) || len(w.get("web").Finalizers) > 0 {
			t.Errorf("the second one is there: %v, the other one: %v, finalizers %v", w.exists(twin), w.exists(id), w.get("web").Finalizers)
		}
		w.vanish("web")
		if orphans := w.orphans(w.census()); len(orphans) != 1 {
			t.Errorf("orphans %v, want the second one", orphans)
		}
	})
}

// TestDeletionWithTwoNLBsAndNoLabel: without the label, nobody knows which of two NLBs is the Service's. The event says what to do.
func TestDeletionWithTwoNLBsAndNoLabel(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkube.TCP(80))
		twin := w.makeTwin("web")
		w.change("web", func(svc *corev1.Service) { delete(svc.Labels, driver.LabelLoadBalancerID) })
		w.remove("web")
		w.restart()
		w.calls()
		w.newEvents()
		w.tries(2, "web")
		if events := w.newEvents(); len(events) != 1 || !strings.Contains(events[0], twin) ||
			!strings.Contains(events[0], "remove the tag from those that are not this Service's") {
			t.Errorf("events %q, want one that says what to do", events)
		}
		if calls := writes(w.calls()); len(calls) > 0 || len(w.get("web").Finalizers) == 0 {
			t.Errorf("writes %v, finalizers %v", calls, w.get("web").Finalizers)
		}
	})
}
