package slb

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
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

// TestDeletionIsRefused: the cloud refuses to delete the CLB of a Service. One event says so, and the Service goes once the CLB has gone.
func TestDeletionIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.putAll(testService("web", 80))
	w.newEvents()
	w.fault(map[string]any{"action": "DeleteLoadBalancer", "code": "Forbidden.RAM", "status": 403, "times": 2})
	w.change("web", deleteService)
	for range 2 {
		if err := w.pass("web"); err == nil {
			t.Error("the CLB cannot be deleted, and the pass succeeds")
		}
	}
	if events := strings.Join(w.newEvents(), "\n"); strings.Count(events, problem.ReasonCleanFailed) != 1 {
		t.Errorf("events %s, want one %s", events, problem.ReasonCleanFailed)
	}
	w.passes("web", 3)
	if held := w.get("web").Finalizers; len(held) > 0 || len(w.ownersOf()) > 0 {
		t.Errorf("finalizers %v, load balancers %v", held, w.ownersOf())
	}
}
