package nlb

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
)

// noBalancers is an answer of a list that lacks everything: a replica that lags, or a gateway that lost the rest.
const noBalancers = `{"action":"ListLoadBalancers","times":%d,"body":"{\"RequestId\":\"1\",\"LoadBalancers\":[],\"TotalCount\":0}"}`

// TestOneListWithoutItIsNoDeletion: the list that is asked while a load balancer is being deleted lacks it once. The Service and its
// groups stay until it is gone.
func TestOneListWithoutItIsNoDeletion(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkit.TCP(80))
		id := w.balancer("web").ID
		w.remove("web")
		for !slices.Contains(w.calls(), "DeleteLoadBalancer") {
			_, err := w.Reconcile(t.Context(), w.get("web"))
			testkit.Check(t, err)
		}
		w.account.Fault(fmt.Sprintf(noBalancers, 1))
		for start := time.Now(); len(w.get("web").Finalizers) > 0 && time.Since(start) < time.Hour; {
			wait, err := w.Reconcile(t.Context(), w.get("web"))
			testkit.Check(t, err)
			time.Sleep(wait)
			calls := w.calls()
			_, err = w.account.Client.GetNLB(t.Context(), id)
			if there := err == nil; there && (len(w.get("web").Finalizers) == 0 || slices.ContainsFunc(calls, func(c string) bool { return strings.HasPrefix(c, "DeleteServerGroup") })) {
				t.Fatalf("the load balancer is there; finalizers %v, calls %v", w.get("web").Finalizers, calls)
			}
		}
		if left := len(w.balancers("web")) + len(w.groups("web")); left > 0 || len(w.get("web").Finalizers) > 0 {
			t.Errorf("%d things are left, finalizers %v", left, w.get("web").Finalizers)
		}
	})
}

// TestMissingAnswersMakeNoSecondLoadBalancer: neither one search that finds nothing, nor one read by id, nor both for a moment, before
// and after a restart.
func TestMissingAnswersMakeNoSecondLoadBalancer(t *testing.T) {
	t.Parallel()
	const noRead = `{"action":"GetLoadBalancerAttribute","times":1,"code":"ResourceNotFound.loadBalancer","status":404}`
	begins := map[string]func(*world){
		"drift":   func(w *world) { testkit.Check(w.t, w.Invalidate(w.t.Context(), w.get("web"), "drift")) },
		"restart": (*world).restart,
	}
	for name, begin := range begins {
		for i, faults := range [][]string{{fmt.Sprintf(noBalancers, 2)}, {noRead}, {fmt.Sprintf(noBalancers, 2), noRead}} {
			t.Run(fmt.Sprint(name, i), func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, w *world) {
					w.serve(1, testkit.TCP(80))
					id := w.balancer("web").ID
					w.calls()
					begin(w)
					for _, fault := range faults {
						w.account.Fault(fault)
					}
					w.converge("web")
					w.account.ClearFaults()
					if calls := writes(w.calls()); len(calls) > 0 || w.balancer("web").ID != id {
						t.Errorf("writes %v, load balancer %s in place of %s", calls, w.balancer("web").ID, id)
					}
				})
			})
		}
	}
}

// TestBrake: several Services miss their load balancers at once. Nothing is created while nothing proves that the account is the right
// one: more likely the access key is that of another.
func TestBrake(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n1")
		names := []string{"one", "two", "three", "four", "five"}
		before := map[string]string{}
		for _, name := range names {
			w.put(newService(name, testkit.TCP(80)))
			w.converge(name)
			before[name] = w.balancer(name).ID
		}
		w.calls()
		w.newEvents()
		w.account.Fault(fmt.Sprintf(noBalancers, 0))
		w.account.Fault(`{"action":"GetLoadBalancerAttribute","times":0,"code":"ResourceNotFound.loadBalancer","status":404}`)
		w.account.Fault(`{"action":"DescribeVpcs","times":0,"code":"Forbidden.RAM","status":403}`)
		for _, name := range names {
			testkit.Check(t, w.Invalidate(t.Context(), w.get(name), "drift"))
		}
		for range 3 {
			for _, name := range names {
				_, _ = w.Reconcile(t.Context(), w.get(name))
			}
			time.Sleep(2 * presence.GoneOver)
		}
		if calls := writes(w.calls()); len(calls) > 0 {
			t.Errorf("writes %v", calls)
		}
		if events := w.newEvents(); !slices.ContainsFunc(events, func(e string) bool { return strings.Contains(e, "Services miss their NLBs within a minute") }) {
			t.Errorf("events %q, want one that says what holds", events)
		}
		w.account.ClearFaults()
		for _, name := range names {
			w.converge(name)
			if id := w.balancer(name).ID; id != before[name] {
				t.Errorf("%s: load balancer %s in place of %s", name, id, before[name])
			}
		}
		if calls := writes(w.calls()); len(calls) > 0 {
			t.Errorf("writes %v", calls)
		}
	})
}

// TestManyAreDeletedAtOnce: those that this process deletes put on no brake.
func TestManyAreDeletedAtOnce(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n1")
		names := []string{"one", "two", "three", "four", "five"}
		for _, name := range names {
			w.put(newService(name, testkit.TCP(80)))
			w.converge(name)
		}
		for _, name := range names {
			w.remove(name)
			_, err := w.Reconcile(t.Context(), w.get(name))
			testkit.Check(t, err)
		}
		w.newEvents()
		for _, name := range names {
			w.converge(name)
			if left := len(w.get(name).Finalizers) + len(w.balancers(name)); left > 0 {
				t.Errorf("%s: %d things are left", name, left)
			}
		}
		if events := w.newEvents(); slices.ContainsFunc(events, func(e string) bool { return strings.Contains(e, "Warning") }) {
			t.Errorf("events %q", events)
		}
	})
}

// TestDeletedByHandIsWaitedFor: while a load balancer that somebody deletes is on its way out, no other takes its place.
func TestDeletedByHandIsWaitedFor(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkit.TCP(80))
		before := w.balancer("web").ID
		testkit.Check(t, w.account.Client.ProtectNLB(t.Context(), before, alicloud.NLBProtection{Deletion: new(bool)}))
		testkit.Must(w.account.Client.DeleteNLB(t.Context(), before))(t)
		testkit.Check(t, w.Invalidate(t.Context(), w.get("web"), "drift"))
		w.calls()
		w.converge("web")
		if calls := writes(w.calls()); len(calls) == 0 || calls[0] != "CreateLoadBalancer" {
			t.Errorf("writes %v", calls)
		}
		if found := w.balancers("web"); len(found) != 1 || found[0].ID == before {
			t.Errorf("load balancers %v", found)
		}
		w.quiet("web")
	})
}
