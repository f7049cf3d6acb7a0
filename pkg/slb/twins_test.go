package slb

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// makeTwin makes another CLB with the owner tag of a Service.
func (w *world) makeTwin(name string) alicloud.LoadBalancer {
	w.t.Helper()
	return w.makeCLB(alicloud.Tag{Key: mark.TagOwner, Value: mark.DefaultName(w.get(name).UID)},
		alicloud.Tag{Key: mark.TagCluster, Value: testCluster})
}

// TestDeletionReportsSecondCLBWithTag: of two CLBs with the owner tag of a Service, its deletion removes the one that its label names. One
// Warning says that the other one stays, which takes no further call: tags can be copied, so that the other one may be anybody's.
func TestDeletionReportsSecondCLBWithTag(t *testing.T) {
	t.Parallel()
	for when, then := range knownOrNot() {
		for _, preserved := range []bool{false, true} {
			t.Run(when+map[bool]string{true: ", preserved"}[preserved], func(t *testing.T) {
				t.Parallel()
				calls := map[bool]int{}
				for _, twins := range []bool{false, true} {
					w := settled(t, testService("web", 80))
					if preserved {
						w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.PreserveOnDelete, "true") })
						w.mustPass("web")
					}
					id := w.get("web").Labels[driver.LabelLoadBalancerID]
					var twin alicloud.LoadBalancer
					if twins {
						twin = w.makeTwin("web")
					}
					then(w)
					w.calls()
					w.newEvents()
					w.change("web", deleteService)
					w.mustPass("web")
					calls[twins] = len(w.calls())
					events := strings.Join(w.newEvents(), "\n")
					if kept := strings.Count(events,
						"Warning "+problem.ReasonLoadBalancerKept+" CLB "+twin.ID+" stays in the cloud: like CLB "+id); kept != map[bool]int{true: 1}[twins] {
						t.Errorf("second CLB %v: events %s", twins, events)
					}
					if done := strings.Contains(events, problem.ReasonCleaned) || strings.Contains(events, problem.ReasonPreservedOnDelete); !done ||
						len(w.get("web").Finalizers) > 0 {
						t.Errorf("second CLB %v: events %s, finalizers %v", twins, events, w.get("web").Finalizers)
					}
					w.vanish("web")
					if found := w.orphans(); len(found) != map[bool]int{true: 1}[twins] {
						t.Errorf("second CLB %v: orphans %v", twins, found)
					}
				}
				if calls[true] != calls[false] {
					t.Errorf("the second CLB costs %d calls, %d without it", calls[true], calls[false])
				}
			})
		}
	}
}

// TestDeletionWithTwoCLBsAndNoLabel: without the label, nobody knows which of two CLBs is the Service's. The event says what to do, and the
// deletion goes on then.
func TestDeletionWithTwoCLBsAndNoLabel(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	twin := w.makeTwin("web")
	w.change("web", func(svc *corev1.Service) { delete(svc.Labels, driver.LabelLoadBalancerID); deleteService(svc) })
	w.restart()
	w.newEvents()
	for range 2 {
		_ = w.pass("web")
	}
	if events := w.newEvents(); len(events) != 1 || !strings.Contains(events[0], twin.ID) ||
		!strings.Contains(events[0], "remove the tag from all but one") {
		t.Errorf("events %q, want one that says what to do", events)
	}
	if writes := writesOf(w.calls()); len(writes) > 0 || len(w.get("web").Finalizers) == 0 {
		t.Errorf("writes %v, finalizers %v", writes, w.get("web").Finalizers)
	}
	if err := w.api.UntagLoadBalancer(t.Context(), twin.ID, []string{mark.TagOwner}); err != nil {
		t.Fatal(err)
	}
	w.mustPass("web")
	if state := w.state(); len(state) != 1 || len(w.get("web").Finalizers) > 0 {
		t.Errorf("CLBs %v, finalizers %v", state, w.get("web").Finalizers)
	}
}
