package slb

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
)

const codeGone = "InvalidLoadBalancerId.NotFound"

// named returns a world with a Service that is on a CLB with a name of its own.
func named(t *testing.T) (w *world, id string) {
	t.Helper()
	w = settled(t, testService("web", 80))
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Name, "shop") })
	w.mustPass("web")
	w.calls()
	w.newEvents()
	return w, w.get("web").Labels[driver.LabelLoadBalancerID]
}

// untagged removes all tags of a CLB, as a person or a policy does.
func (w *world) untagged(id string) {
	w.t.Helper()
	var keys []string
	for _, tag := range w.lb(id).Tags {
		keys = append(keys, tag.Key)
	}
	if err := w.api.UntagLoadBalancer(w.t.Context(), id, keys); err != nil {
		w.t.Fatal(err)
	}
}

// takenOver removes all tags of a CLB and renames it, as somebody does who takes it over.
func (w *world) takenOver(id string) {
	w.t.Helper()
	w.untagged(id)
	w.must(w.api.SetLoadBalancerName(w.t.Context(), id, "theirs"))
}

// TestTagRemovedCustomNameRestart: a CLB whose tags were removed is recognized by the label of the Service and the marks of its
// listeners, and gets its tags back.
func TestTagRemovedCustomNameRestart(t *testing.T) {
	t.Parallel()
	w, id := named(t)
	w.untagged(id)
	w.restart()
	w.mustPass("web")
	if got := w.get("web").Labels[driver.LabelLoadBalancerID]; got != id || len(w.lbs()) != 1 {
		t.Errorf("on CLB %s of %d, want %s alone", got, len(w.lbs()), id)
	}
	lb := w.lb(id)
	if owner, _ := lb.Tag(mark.TagOwner); owner != mark.DefaultName(w.get("web").UID) {
		t.Errorf("tags %v, want the owner tag back", lb.Tags)
	}
}

// TestTakenOverCLBIsKept: a CLB whose tags are gone, and that has another name, is not deleted with the Service after a restart, and only
// what carries the Service's marks goes from it.
func TestTakenOverCLBIsKept(t *testing.T) {
	t.Parallel()
	w, id := named(t)
	w.takenOver(id)
	w.restart()
	w.change("web", deleteService)
	w.mustPass("web")
	if state := w.state()["theirs"]; len(w.lbs()) != 1 || len(state.Listeners) != 0 || len(state.Groups) != 0 {
		t.Errorf("%d CLBs, %v; want the CLB without listeners and groups", len(w.lbs()), state)
	}
	w.wantKept(id)
}

// wantKept fails unless one event, a Warning, says that the CLB stays and what to do about it.
func (w *world) wantKept(id string) {
	w.t.Helper()
	if events := w.newEvents(); len(events) != 1 || !strings.HasPrefix(events[0], "Warning LoadBalancerKept CLB "+id) ||
		!strings.Contains(events[0], "delete it") {
		w.t.Errorf("events %q, want a warning that names the CLB and what to do", events)
	}
}

// TestUntaggedCLBStaysWithAWord: a CLB whose owner tag and name somebody removed, and with them the Service's marks or not, is left in the
// cloud with a Warning before the Service is released. Where the release has to be repeated, the Warning is not.
func TestUntaggedCLBStaysWithAWord(t *testing.T) {
	t.Parallel()
	for name, marks := range map[string]bool{"with marks": true, "without marks": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, id := named(t)
			w.takenOver(id)
			if !marks {
				w.must(w.api.DeleteListener(t.Context(), id, alicloud.ListenerKey{Port: 80, Protocol: "tcp"}))
				groups, err := w.api.DescribeVServerGroups(t.Context(), id)
				w.must(err)
				w.must(w.api.DeleteVServerGroup(t.Context(), groups[0].ID))
			}
			w.restart()
			w.change("web", deleteService)
			refused := true
			w.kube.PrependReactor("patch", "services", func(clienttesting.Action) (bool, runtime.Object, error) { return refused, nil, errDead })
			if err := w.pass("web"); err == nil {
				t.Fatal("the finalizer can be removed")
			}
			if events := w.newEvents(); len(events) != 2 || !strings.HasPrefix(events[0], "Warning LoadBalancerKept CLB "+id) {
				t.Errorf("events %q, want a Warning about the CLB before that about the finalizer", events)
			}
			refused = false
			w.calls()
			w.mustPass("web")
			if events := w.newEvents(); len(events) != 0 || len(w.lbs()) != 1 || len(w.get("web").Finalizers) != 0 {
				t.Errorf("events %q, %d CLBs, finalizers %v", events, len(w.lbs()), w.get("web").Finalizers)
			}
			if writes := writesOf(w.calls()); len(writes) != 0 {
				t.Errorf("writes %v", writes)
			}
		})
	}
}

// TestTakenOverCLBIsNotDeletedFromMemory: a CLB whose tags and name are gone is not deleted although this process still knows it as its
// own.
func TestTakenOverCLBIsNotDeletedFromMemory(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	w.takenOver(w.onlyCLB())
	w.calls()
	w.newEvents()
	w.change("web", deleteService)
	w.mustPass("web")
	if left := w.state()["theirs"]; len(w.lbs()) != 1 || len(left.Listeners)+len(left.Groups) != 0 {
		t.Errorf("%d CLBs, %v; want the CLB without listeners and groups", len(w.lbs()), left)
	}
	w.wantKept(w.onlyCLB())
	if svc := w.get("web"); len(svc.Finalizers) != 0 {
		t.Errorf("finalizers %v hold the Service", svc.Finalizers)
	}
}

// TestCLBWithoutTagsAndMarksMakesNoSecondOne: a CLB that the label names and that shows nothing of the Service is an error that says what
// to do, and no reason for a second CLB.
func TestCLBWithoutTagsAndMarksMakesNoSecondOne(t *testing.T) {
	t.Parallel()
	w, id := named(t)
	w.untagged(id)
	if err := w.api.DeleteListener(t.Context(), id, alicloud.ListenerKey{Port: 80, Protocol: "tcp"}); err != nil {
		t.Fatal(err)
	}
	groups, err := w.api.DescribeVServerGroups(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range groups {
		if err := w.api.DeleteVServerGroup(t.Context(), group.ID); err != nil {
			t.Fatal(err)
		}
	}
	w.restart()
	w.calls()
	err = w.pass("web")
	if writes := writesOf(w.calls()); err != nil || len(writes) != 0 {
		t.Errorf("error %v, writes %v", err, writes)
	}
	if events := w.newEvents(); len(events) != 1 || !strings.Contains(events[0], id) || !strings.Contains(events[0], mark.TagOwner) {
		t.Errorf("events %q, want one with the id and the tag to restore", events)
	}
}

// TestSecondCLBWithTagDoesNotFreeze: of two CLBs with the owner tag the Service stays on the one that its label names.
func TestSecondCLBWithTagDoesNotFreeze(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	id := w.get("web").Labels[driver.LabelLoadBalancerID]
	w.makeCLB(alicloud.Tag{Key: mark.TagOwner, Value: mark.DefaultName(w.get("web").UID)},
		alicloud.Tag{Key: mark.TagCluster, Value: testCluster})
	w.restart()
	w.calls()
	w.mustPass("web")
	if writes := writesOf(w.calls()); w.get("web").Labels[driver.LabelLoadBalancerID] != id || len(writes) != 0 {
		t.Errorf("on %s, writes %v", w.get("web").Labels[driver.LabelLoadBalancerID], writes)
	}
}

// TestCreateThenNotFoundYet: a replica that does not know the CLB yet, and a search that does not either, prove nothing.
func TestCreateThenNotFoundYet(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	id := w.get("web").Labels[driver.LabelLoadBalancerID]
	w.drift("web")
	w.fault(map[string]any{"action": "DescribeLoadBalancerAttribute", "code": codeGone, "status": 404, "times": 1})
	w.fault(map[string]any{"action": "DescribeLoadBalancers", "times": 1, "stale": "24h"})
	w.newEvents()
	w.mustPass("web")
	w.clearFaults()
	w.mustPass("web")
	if got := w.get("web").Labels[driver.LabelLoadBalancerID]; got != id || len(w.lbs()) != 1 {
		t.Errorf("on CLB %s of %d, want %s alone", got, len(w.lbs()), id)
	}
	if events := w.newEvents(); len(events) != 0 {
		t.Errorf("events %q, want none", events)
	}
}

// TestOneNotFoundAtTearDownLeaksNothing: "not found" for a step of the tear-down does not release the Service while its CLB stands.
func TestOneNotFoundAtTearDownLeaksNothing(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"SetLoadBalancerDeleteProtection", "DeleteLoadBalancer"} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			w := settled(t, testService("web", 80))
			w.fault(map[string]any{"action": action, "code": codeGone, "status": 404, "times": 1})
			w.change("web", deleteService)
			w.mustPass("web")
			w.mustPass("web")
			if left := w.lbs(); len(left) != 0 || len(w.get("web").Finalizers) != 0 {
				t.Errorf("%d CLBs left, finalizers %v", len(left), w.get("web").Finalizers)
			}
		})
	}
}

// TestAnotherCLBInTheAnnotationProvesNoAbsence: that the CLB of the annotation exists and has nothing of the Service says nothing about the
// CLB that the Service is on, which answers do not show for a moment.
func TestAnotherCLBInTheAnnotationProvesNoAbsence(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	another := w.makeCLB().ID
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.LoadBalancerID, another) })
	w.mustPass("web")
	w.restart()
	w.fault(map[string]any{"action": "DescribeLoadBalancers", "body": `{"RequestId":"r","TotalCount":0,"PageNumber":1,"PageSize":50}`,
		"times": 2})
	w.fault(map[string]any{"action": "DescribeLoadBalancerAttribute", "code": codeGone, "status": 404, "times": 1})
	w.change("web", deleteService)
	for range 3 {
		w.mustPass("web")
	}
	if left := w.lbs(); len(left) != 1 || left[0].ID != another || w.faultHits() != 3 {
		t.Errorf("CLBs %v are left after %d faults, want %s", left, w.faultHits(), another)
	}
	if driver.HasFinalizer(w.get("web"), Finalizer) {
		t.Error("the Service is still held")
	}
}

// TestReuseTagRemovedLeaksNoListener: marks are proof enough on an existing CLB whose tag was removed.
func TestReuseTagRemovedLeaksNoListener(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	id := w.makeCLB().ID
	w.put(reusing("web", id, "true", 80))
	w.mustPass("web")
	w.untagged(id)
	w.restart()
	w.change("web", deleteService)
	w.mustPass("web")
	for name, lb := range w.state() {
		if len(lb.Listeners)+len(lb.Groups) != 0 {
			t.Errorf("left on %s: %v %v", name, lb.Listeners, lb.Groups)
		}
	}
	if len(w.lbs()) != 1 || len(w.get("web").Finalizers) != 0 {
		t.Errorf("%d CLBs, finalizers %v", len(w.lbs()), w.get("web").Finalizers)
	}
}

// TestEIPAnnotationRemovedAfterRestart: the status showed another address than the CLB's, and the label says that the Service is on
// it all the same.
func TestEIPAnnotationRemovedAfterRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	id := w.makeCLB().ID
	svc := reusing("web", id, "true", 80)
	annotate(svc, annotation.Hostname, "shop.example.com")
	w.put(svc)
	w.mustPass("web")
	w.change("web", func(svc *corev1.Service) {
		delete(svc.Annotations, annotation.Prefixes[0]+string(annotation.Hostname))
		svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "47.0.0.1"}}
	})
	w.restart()
	w.fault(map[string]any{"action": "DescribeLoadBalancers", "times": 0, "stale": "24h"}) // found by id alone
	w.mustPass("web")
	if got := w.get("web").Status.LoadBalancer.Ingress; len(got) != 1 || got[0].IP != w.lb(id).Address {
		t.Errorf("the Service shows %v, want the address of the CLB", got)
	}
}

// TestKeyOfAnotherAccount: one Service whose CLB does not exist in the account of a changed access key gets none there, and keeps its
// address.
func TestKeyOfAnotherAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.put(testService("web", 80))
	w.mustPass("web")
	before := w.get("web").Status.LoadBalancer.Ingress
	w.removeCLB()
	w.fault(map[string]any{"action": "DescribeVpcs", "times": 0,
		"body": `{"RequestId":"1","TotalCount":0,"PageNumber":1,"PageSize":10,"Vpcs":{"Vpc":[]}}`})
	w.calls()
	w.drift("web")
	for range 5 {
		_ = w.pass("web") //nolint:errcheck // whether it fails does not matter
		time.Sleep(2 * testGoneOver)
	}
	if calls := w.calls(); slices.Contains(calls, "CreateLoadBalancer") {
		t.Errorf("a CLB was created in another account: %v", calls)
	}
	if diff := cmp.Diff(before, w.get("web").Status.LoadBalancer.Ingress); diff != "" {
		t.Errorf("the addresses changed (-want +got):\n%s", diff)
	}
	w.clearFaults()
	w.converge("web")
	if n := len(w.lbs()); n != 1 {
		t.Errorf("%d CLBs once the VPC can be read, want 1", n)
	}
}

// TestBrake: when several Services lose their CLBs at once, none is created until an object that must exist can be read.
func TestBrake(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	var names []string
	for i := range 5 {
		names = append(names, fmt.Sprintf("s%d", i))
		w.put(testService(names[i], 80))
		w.mustPass(names[i])
	}
	w.removeCLB()
	w.fault(map[string]any{"action": "DescribeVpcs", "code": "Forbidden.RAM", "status": 403, "times": 0})
	w.calls()
	for _, name := range names {
		w.drift(name)
		_ = w.pass(name) //nolint:errcheck // whether it fails does not matter
	}
	created := 0
	for _, call := range w.calls() {
		if call == "CreateLoadBalancer" {
			created++
		}
	}
	if created >= presence.BrakeServices {
		t.Errorf("%d CLBs created while nothing proved that the account is the right one", created)
	}
	w.clearFaults()
	for _, name := range names {
		w.converge(name)
	}
	if n := len(w.lbs()); n != len(names) {
		t.Errorf("%d CLBs once the VPC could be read, want %d", n, len(names))
	}
	if events := w.newEvents(); !slices.ContainsFunc(events, func(e string) bool {
		return strings.Contains(e, "lost their CLBs within a minute")
	}) {
		t.Errorf("events %q, want one that says what holds", events)
	}
}
