package slb

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// twoServices makes a world with the Services web and other, both with source ranges, and with a process that remembers nothing.
func twoServices(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	threeNodes(w)
	for _, name := range []string{"web", "other"} {
		svc := testService(name, 80)
		svc.Spec.LoadBalancerSourceRanges = map[string][]string{"web": {"192.0.2.0/24"}, "other": {"203.0.113.0/24"}}[name]
		w.put(svc)
		w.mustPass(name)
	}
	w.restart()
	return w
}

// answerAboutOther has the next call of the action that searches by tag answer with what the Service other has.
func (w *world) answerAboutOther(action string) {
	w.t.Helper()
	var answer json.RawMessage
	w.raw(api.VersionSLB, action, map[string]string{"Tag.1.Key": mark.TagOwner, "Tag.1.Value": mark.DefaultName(w.get("other").UID)}, &answer)
	w.fault(map[string]any{"action": action, "body": string(answer), "times": 1})
}

// TestAnswerAboutAnotherServiceDeletesNoCLB: a CLB in the answer to a search by tag that does not show the tag is not the Service's.
func TestAnswerAboutAnotherServiceDeletesNoCLB(t *testing.T) {
	t.Parallel()
	w := twoServices(t)
	other := w.get("other").Labels[driver.LabelLoadBalancerID]
	w.answerAboutOther("DescribeLoadBalancers")
	w.change("web", deleteService)
	w.mustPass("web")
	if left := w.lbs(); len(left) != 1 || left[0].ID != other {
		t.Errorf("CLBs %v are left, want the one of the other Service, %s", left, other)
	}
}

// TestAnswerAboutAnotherServiceChangesNoAccessList: who may reach another Service does not change.
func TestAnswerAboutAnotherServiceChangesNoAccessList(t *testing.T) {
	t.Parallel()
	w := twoServices(t)
	before := w.state()["k8s-clb-a0f5e8a1cother"]
	w.answerAboutOther("DescribeAccessControlLists")
	w.mustPass("web")
	if after := w.state()["k8s-clb-a0f5e8a1cother"]; fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the list of the other Service is %v, want %v", after, before)
	}
}

// TestOneAnswerReleasesNoReusedCLB: what one answer lacks when a Service leaves an existing CLB is removed all the same.
func TestOneAnswerReleasesNoReusedCLB(t *testing.T) {
	t.Parallel()
	const nothing = `{"RequestId":"r","TotalCount":0,"PageNumber":1,"PageSize":50}`
	for name, fault := range map[string]map[string]any{
		"no listeners":      {"action": "DescribeLoadBalancerListeners", "body": nothing},
		"no groups":         {"action": "DescribeVServerGroups", "body": nothing},
		"group not found":   {"action": "DescribeVServerGroupAttribute", "code": "InvalidParameter", "status": 404},
		"no list":           {"action": "DescribeAccessControlLists", "body": nothing},
		"list not found":    {"action": "DescribeAccessControlListAttribute", "code": "AclNotExist", "status": 404},
		"list not readable": {"action": "DescribeAccessControlLists", "code": "InternalError", "status": 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			threeNodes(w)
			svc := reusing("web", w.makeCLB().ID, "true", 80)
			svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}
			w.put(svc)
			w.mustPass("web")
			w.restart()
			w.fault(fault)
			w.change("web", deleteService)
			for range 3 {
				_ = w.pass("web") //nolint:errcheck // what is left counts
			}
			if w.faultHits() != 1 {
				t.Errorf("the fault has hit %d calls, want 1", w.faultHits())
			}
			for name, lb := range w.state() {
				if name != "mine" || len(lb.Listeners)+len(lb.Groups) > 0 {
					t.Errorf("%s is left: %v %v", name, lb.Listeners, lb.Groups)
				}
			}
			if driver.HasFinalizer(w.get("web"), Finalizer) {
				t.Error("the Service is still held")
			}
		})
	}
}

// TestOneAnswerLeavesNoAccessList: the list of a Service outlives its CLB, and one answer does not prove that there is none.
func TestOneAnswerLeavesNoAccessList(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		w := twoServices(t)
		if !restarted {
			w.mustPass("web")
			w.drift("web")
		}
		w.fault(map[string]any{"action": "DescribeAccessControlLists", "body": `{"RequestId":"r","TotalCount":0,"PageNumber":1,"PageSize":50}`,
			"times": 1})
		w.change("web", deleteService)
		w.mustPass("web")
		if _, left := w.state()[testListName]; left || w.faultHits() != 1 {
			t.Errorf("restarted %v: list left %v, %d faults", restarted, left, w.faultHits())
		}
	}
}

// TestOneAnswerMakesNoSecondAccessList: a list that neither the search by tag nor its id shows in one pass is there in the next one.
func TestOneAnswerMakesNoSecondAccessList(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		svc := testService("web", 80)
		svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}
		w := settled(t, svc)
		if restarted {
			w.restart()
		} else {
			w.drift("web")
		}
		w.fault(map[string]any{"action": "DescribeAccessControlLists", "body": `{"RequestId":"r","TotalCount":0,"PageNumber":1,"PageSize":50}`,
			"times": 1})
		w.fault(map[string]any{"action": "DescribeAccessControlListAttribute", "code": "AclNotExist", "status": 404, "times": 1})
		w.calls()
		if wait, err := w.Reconcile(t.Context(), w.get("web")); err != nil || wait > time.Minute {
			t.Errorf("restarted %v: the next pass in %s, %v; want it to ask again soon", restarted, wait, err)
		}
		w.mustPass("web")
		if writes := writesOf(w.calls()); len(writes) != 0 || w.faultHits() != 2 {
			t.Errorf("restarted %v: writes %v, %d faults", restarted, writes, w.faultHits())
		}
	}
}

// afterALostCreation makes a world in which the creation of a Service's CLB was not answered, and the next searches lag; restarted says
// that the process has ended, too.
func afterALostCreation(t *testing.T, restarted bool) *world {
	t.Helper()
	w := newWorld(t)
	threeNodes(w)
	w.put(testService("web", 80))
	w.fault(map[string]any{"action": "CreateLoadBalancer", "drop": "after"})
	if err := w.pass("web"); err == nil {
		t.Fatal("the creation was answered")
	}
	if restarted {
		w.restart()
	}
	w.fault(map[string]any{"action": "DescribeLoadBalancers", "stale": "1h", "times": 2})
	return w
}

// TestLostCreationAndLaggingSearchLeaveNoCLB: a CLB whose creation was not answered, or by a process that ended, is not left behind
// although a search by tag does not show it yet.
func TestLostCreationAndLaggingSearchLeaveNoCLB(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted %v", restarted), func(t *testing.T) {
			t.Parallel()
			w := afterALostCreation(t, restarted)
			w.change("web", deleteService)
			for range 3 {
				_ = w.pass("web") //nolint:errcheck // what is left counts
			}
			if left := w.lbs(); len(left) != 0 || driver.HasFinalizer(w.get("web"), Finalizer) {
				t.Errorf("CLBs %v are left, finalizers %v", left, w.get("web").Finalizers)
			}
		})
	}
}

// TestLostCreationAndLaggingSearchMakeNoSecondCLB: the annotations change while the CLB that was created does not show in a search by tag.
func TestLostCreationAndLaggingSearchMakeNoSecondCLB(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted %v", restarted), func(t *testing.T) {
			t.Parallel()
			w := afterALostCreation(t, restarted)
			w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.DeleteProtection, "off") })
			w.converge("web")
			w.clearFaults()
			if all := w.lbs(); len(all) != 1 {
				t.Errorf("%d CLBs, want 1", len(all))
			}
		})
	}
}

// TestLongTagSearchLagMakesNoSecondCLB: while the search by tag lags for longer than it takes to call a CLB gone, the CLB of a creation
// that was not answered is found by making the same call again, although the Service has changed.
func TestLongTagSearchLagMakesNoSecondCLB(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted %v", restarted), func(t *testing.T) {
			t.Parallel()
			w := afterALostCreation(t, restarted)
			w.clearFaults()
			w.emulator.Change(func(s *emulator.Settings) { s.TagSearchLag = cloud.Duration(time.Hour) })
			w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.DeleteProtection, "off") })
			w.converge("web")
			w.clearFaults()
			if all := w.lbs(); len(all) != 1 {
				t.Errorf("%d CLBs, want 1", len(all))
			}
		})
	}
}
