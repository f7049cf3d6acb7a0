package nlb

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// noBalancers is an answer of a list that lacks everything: a replica that lags, or a gateway that lost the rest.
const noBalancers = `{"action":"ListLoadBalancers","times":%d,"body":"{\"RequestId\":\"1\",\"LoadBalancers\":[],\"TotalCount\":0}"}`

// TestBrake: several Services lose their load balancers at once. Nothing is created while nothing proves that the account is the right
// one: more likely the access key is that of another.
func TestBrake(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n1")
		names := []string{"one", "two", "three", "four", "five"}
		before := map[string]string{}
		for _, name := range names {
			w.put(newService(name, testkube.TCP(80)))
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
			time.Sleep(2 * waits.LoadBalancerMissing)
		}
		if calls := writes(w.calls()); len(calls) > 0 {
			t.Errorf("writes %v", calls)
		}
		if events := w.newEvents(); !slices.ContainsFunc(events, func(e string) bool {
			return strings.Contains(e, "Services lost their NLBs within a minute")
		}) {
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

// empty returns a fault by which an action answers without what it was asked for, so many times.
func empty(action, body string, times int) string {
	return fmt.Sprintf(`{"action":%q,"times":%d,"body":%q}`, action, times, body)
}

const (
	noSecurityGroups = `{"RequestId":"1","SecurityGroups":{"SecurityGroup":[]},"TotalCount":0,"PageNumber":1,"PageSize":50}`
	noServerGroups   = `{"RequestId":"1","ServerGroups":[],"TotalCount":0}`
)

// securityGroups are those of the Service's source ranges.
func (w *world) securityGroups(name string) []alicloud.SecurityGroup {
	w.t.Helper()
	return testkit.Must(w.account.Client.DescribeSecurityGroups(w.t.Context(), *w.owner(name)))(w.t)
}

// TestEmptySearchMakesNoSecondSecurityGroup: a search that lacks the security group of the source ranges, once or for ever because the role
// may not make it, makes no second one, and leaves none behind when the Service goes.
func TestEmptySearchMakesNoSecondSecurityGroup(t *testing.T) {
	t.Parallel()
	ranges := func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"} }
	begins := map[string]func(*world){"drift": (*world).drift, "restart": (*world).restart}
	for _, times := range []int{1, 0} {
		for name, begin := range begins {
			for what, act := range map[string]func(*world){"unchanged": func(*world) {}, "removed": func(w *world) { w.remove("web") }} {
				t.Run(fmt.Sprintf("%s %s, %d times", name, what, times), func(t *testing.T) {
					t.Parallel()
					inWorld(t, func(t *testing.T, w *world) {
						w.serve(1, testkube.TCP(80), ranges)
						begin(w)
						act(w)
						w.calls()
						w.account.Fault(empty("DescribeSecurityGroups", noSecurityGroups, times))
						w.converge("web")
						if times == 0 && what == "unchanged" {
							w.passes("web", time.Hour)
						}
						w.account.ClearFaults()
						calls, want := writes(w.calls()), 1
						if what == "removed" {
							want = 0
						} else if len(calls) > 0 {
							t.Errorf("writes %v", calls)
						}
						if got := w.securityGroups("web"); len(got) != want {
							t.Errorf("%d security groups, want %d", len(got), want)
						}
					})
				})
			}
		}
	}
}

// TestEmptySearchLeavesNoServerGroups: the load balancer is deleted, and the process that goes on with the groups gets an empty list twice.
func TestEmptySearchLeavesNoServerGroups(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkube.TCP(80))
		w.remove("web")
		for len(w.balancers("web")) > 0 {
			wait, err := w.Reconcile(t.Context(), w.get("web"))
			testkit.Check(t, err)
			time.Sleep(min(wait, settle))
		}
		w.restart()
		w.account.Fault(empty("ListServerGroups", noServerGroups, 2))
		w.converge("web")
		if left := len(w.groups("web")); left > 0 || len(w.get("web").Finalizers) > 0 {
			t.Errorf("%d groups are left, finalizers %v", left, w.get("web").Finalizers)
		}
	})
}

// TestLeftLoadBalancerIsNotForgotten: one answer without the load balancer that a Service has left, or a deletion that fails, is not the
// end of it: this process deletes it.
func TestLeftLoadBalancerIsNotForgotten(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]string{
		// The first one that is read is the load balancer that the annotation names.
		"a read":                     `{"action":"GetLoadBalancerAttribute","after":1,"times":1,"code":"ResourceNotFound.loadBalancer","status":404}`,
		"the deletion fails":         `{"action":"DeleteLoadBalancer","times":1,"job":"failed"}`,
		"the deletion finds nothing": `{"action":"DeleteLoadBalancer","times":1,"code":"ResourceNotFound.loadBalancer","status":404}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				a := w.existing("first")
				w.serve(1, testkube.TCP(80))
				own := w.balancer("web").ID
				w.account.Fault(fault)
				w.change("web", with(annotation.LoadBalancerID, a), with(annotation.ForceOverrideListeners, "true"))
				for range 100 { // also passes while it is being deleted
					_, _ = w.Reconcile(t.Context(), w.get("web")) //nolint:errcheck // the fault is one
					w.later(settle / 2)
				}
				w.converge("web")
				w.later(30 * settle)
				if w.exists(own) {
					t.Error("the load balancer that the Service has left is there")
				}
				if got := w.listeners(a); len(got) != 1 {
					t.Errorf("listeners %v", got)
				}
				w.quiet("web")
			})
		})
	}
}
