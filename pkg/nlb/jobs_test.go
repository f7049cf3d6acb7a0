package nlb

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
)

// TestJobThatNeverEnds: it is an error that says what was to be done, after a minute and not before; other ports are served.
func TestJobThatNeverEnds(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n1")
		w.put(newService("web", testkube.TCP(80), udp(53)))
		w.account.Fault(`{"action":"AddServersToServerGroup","times":1,"job":"stuck"}`)
		start := time.Now()
		var failed error
		for failed == nil && time.Since(start) < 5*time.Minute {
			wait, err := w.Reconcile(t.Context(), w.get("web"))
			failed = err
			time.Sleep(wait)
		}
		if failed == nil || !strings.Contains(failed.Error(), "add servers") || !strings.Contains(failed.Error(), "not done after 1m0s") {
			t.Errorf("after %s: %v", time.Since(start), failed)
		}
		if took := time.Since(start); took < waits.Job || took > 2*waits.Job {
			t.Errorf("the error came after %s", took)
		}
		if got := w.listeners(w.balancer("web").ID); !slices.Contains(got, "UDP:53 i-n1:30053=100") {
			t.Errorf("listeners %v", got)
		}
	})
}

// TestFailedJobIsAnError: the cloud states no reason; what was to be done is done again.
func TestFailedJobIsAnError(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n1")
		w.put(newService("web", testkube.TCP(80)))
		w.account.Fault(`{"action":"CreateListener","times":1,"job":"failed"}`)
		w.converge("web")
		events := w.newEvents()
		if !slices.ContainsFunc(events, func(e string) bool {
			return strings.Contains(e, "create listener tcp:80") && strings.Contains(e, "failed; the cloud did not state a reason")
		}) {
			t.Errorf("events %q", events)
		}
		if got := w.listeners(w.balancer("web").ID); !slices.Equal(got, []string{"TCP:80 i-n1:30080=100"}) {
			t.Errorf("listeners %v", got)
		}
	})
}

// TestGroupsAreFilledWhileTheLoadBalancerIsProvisioned: traffic flows as soon as the listener is there.
func TestGroupsAreFilledWhileTheLoadBalancerIsProvisioned(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n1")
		w.put(newService("web", testkube.TCP(80)))
		start := time.Now()
		for len(w.groups("web")) == 0 || len(w.servers(w.groups("web")[0].ID)) == 0 {
			wait, err := w.Reconcile(t.Context(), w.get("web"))
			testkit.Check(t, err)
			time.Sleep(wait)
		}
		if took := time.Since(start); took > 5*settle {
			t.Errorf("the group has its server after %s, the load balancer takes %s", took, 20*settle)
		}
	})
}

// TestNoWorkerWaitsForJobs: a pass ends as soon as nothing but jobs is left to wait for, and one poller asks for the jobs of all
// Services, twenty in a call.
func TestNoWorkerWaitsForJobs(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		const services = 50
		w.addNodes("n1")
		var names []string
		for i := range services {
			name := "web" + string(rune('a'+i/26)) + string(rune('a'+i%26))
			names = append(names, name)
			w.put(newService(name, testkube.TCP(80)))
		}
		w.calls()
		for _, name := range names {
			start := time.Now()
			_, err := w.Reconcile(t.Context(), w.get(name))
			testkit.Check(t, err)
			if took := time.Since(start); took > 30*time.Second { // the rate limit of 200 creations in a minute aside
				t.Errorf("the pass over %s took %s", name, took)
			}
		}
		w.calls()
		time.Sleep(1500 * time.Millisecond)
		polls := slices.DeleteFunc(w.calls(), func(a string) bool { return a != "ListAsynJobs" })
		if len(polls) == 0 || len(polls) > services/5 {
			t.Errorf("%d polls for the jobs of %d Services", len(polls), services)
		}
	})
}

// TestJobListsOfAnyLength: whether the cloud accepts a list of twenty jobs or refuses it, no job seems to hang.
func TestJobListsOfAnyLength(t *testing.T) {
	t.Parallel()
	for _, flipped := range [][]string{nil, {"nlb.ids-per-job-list"}} {
		t.Run(fmt.Sprint(flipped), func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.account.Change(func(s *emulator.Settings) { s.Flipped = flipped })
				var waiting []alicloud.Job
				for i := range alicloud.MaxJobsPerCall {
					name := fmt.Sprint("group-", i)
					_, job, err := w.account.Client.CreateNLBGroup(t.Context(), alicloud.NLBGroup{Name: name, VPCID: emulatortest.VPC}, name)
					testkit.Check(t, err)
					waiting = append(waiting, job)
				}
				for _, job := range waiting {
					w.engine.awaits.awaitJob(job, types.NamespacedName{Namespace: "default", Name: "web"})
				}
				time.Sleep(waits.Job / 2)
				synctest.Wait()
				for _, job := range waiting {
					if item, ok := w.engine.awaits.outcomeOf(string(job)); !ok || !item.ended || item.status != alicloud.JobSucceeded {
						t.Errorf("%s: waited for %t, ended %t, status %d", job, ok, item.ended, item.status)
					}
				}
			})
		})
	}
}

// TestWakesAfterAJob: a Service is reconciled when its job has ended, and not before.
func TestWakesAfterAJob(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n1")
		woken := make(chan types.NamespacedName, 100)
		w.engine.Wakes(func(key types.NamespacedName) { woken <- key })
		w.put(newService("web", testkube.TCP(80)))
		passes := 0
		for len(w.get("web").Status.LoadBalancer.Ingress) == 0 {
			passes++
			wait, err := w.Reconcile(t.Context(), w.get("web"))
			testkit.Check(t, err)
			if wait > 0 && wait < waits.Job {
				t.Fatalf("the next pass is due after %s, although the end of the job wakes the Service", wait)
			}
			if len(w.get("web").Status.LoadBalancer.Ingress) == 0 {
				if key := <-woken; key.Name != "web" {
					t.Errorf("woke %v", key)
				}
			}
		}
		if passes > 6 {
			t.Errorf("%d passes for a creation", passes)
		}
	})
}

// noJob are the writes that the cloud carries out at once.
var noJob = []string{
	"CreateSecurityGroup", "AuthorizeSecurityGroup", "RevokeSecurityGroup", "DeleteSecurityGroup", "UpdateLoadBalancerProtection",
	"TagResources", "UntagResources",
	"EnableLoadBalancerIpv6Internet", "DisableLoadBalancerIpv6Internet",
}

// TestJobsThatHang: each write of each operation begins a job that never ends. A pass says so within the time that such a job may take.
func TestJobsThatHang(t *testing.T) {
	t.Parallel()
	for row, op := range ownOperations() { // what Services that share an NLB do at a time differs with the job
		actions := op.writes(t)
		for _, i := range testkit.Sample(row, len(actions)) {
			action, nth := actions[i], 0
			for _, earlier := range actions[:i] {
				if name, _, _ := strings.Cut(earlier, "="); name == action { // what the cloud refuses counts as well
					nth++
				}
			}
			if slices.Contains(noJob, action) || strings.Contains(action, "=") {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d %s", op.name, i, action), func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, w *world) {
					op.prepare(w)
					w.account.Fault(fmt.Sprintf(`{"action":%q,"after":%d,"times":1,"job":"stuck"}`, action, nth))
					op.act(w)
					start := time.Now()
					var failed error
					for failed == nil && time.Since(start) < 2*waits.JobOfLoadBalancer {
						wait, err := w.Reconcile(t.Context(), w.get("web"))
						failed = err
						time.Sleep(max(wait, settle))
					}
					if failed == nil || !strings.Contains(failed.Error(), "not done after") {
						t.Errorf("after %s: %v", time.Since(start), failed)
					}
				}, op.cloud...)
			})
		}
	}
}

// TestTwoLeaders: for a while two processes are leaders, each with its own memory. What they make together converges, and nothing of it is
// there twice; the same for a change and for the deletion.
func TestTwoLeaders(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n1", "n2")
		first := w.Reconciler
		w.restart()
		both := func() {
			for range 60 {
				for _, leader := range []*service.Reconciler{first, w.Reconciler} {
					if svc := w.get("web"); svc.DeletionTimestamp == nil || len(svc.Finalizers) > 0 {
						_, _ = leader.Reconcile(t.Context(), svc) //nolint:errcheck // they are in each other's way
					}
					w.later(settle / 2)
				}
			}
			w.restart()
		}
		w.put(newService("web", testkube.TCP(80), udp(53)))
		both()
		w.converge("web")
		if got, want := w.listeners(w.balancer("web").ID), []string{"TCP:80 i-n1:30080=100 i-n2:30080=100",
			"UDP:53 i-n1:30053=100 i-n2:30053=100"}; !slices.Equal(got, want) || len(w.groups("web")) != 2 {
			t.Errorf("listeners %v, want %v; %d groups", got, want, len(w.groups("web")))
		}
		w.quiet("web")
		w.addNodes("n3")
		w.change("web", func(svc *corev1.Service) { svc.Spec.Ports[0].NodePort = 31000 })
		both()
		w.converge("web")
		if got, want := w.listeners(w.balancer("web").ID), []string{"TCP:80 i-n1:31000=100 i-n2:31000=100 i-n3:31000=100",
			"UDP:53 i-n1:30053=100 i-n2:30053=100 i-n3:30053=100"}; !slices.Equal(got, want) || len(w.groups("web")) != 2 {
			t.Errorf("listeners %v, want %v; %d groups", got, want, len(w.groups("web")))
		}
		w.remove("web")
		both()
		if left := len(w.balancers("web")) + len(w.groups("web")) + len(w.get("web").Finalizers); left > 0 {
			t.Errorf("%d things are left", left)
		}
	})
}
