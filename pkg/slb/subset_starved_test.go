package slb

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// TestNoServiceIsStarvedByQuotaThatIsTooHigh: the quota that is read is larger than what the cloud grants, as where CLBs of somebody else
// have the same instances. The refusals show that for every instance. Each Service has at least one backend server all the same: others
// have several. Then, each instance is tried once more at most, although the refusals are forgotten.
func TestNoServiceIsStarvedByQuotaThatIsTooHigh(t *testing.T) {
	t.Parallel()
	const nodes, services, shown = 20, 33, 10
	for _, granted := range []int{8, 7, 6, 5, 3} {
		t.Run(fmt.Sprint(granted), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFleetIn(t, cloud.Limits{LBsPerInstance: granted, LoadBalancers: 1000},
					config.Config{BackendSubset: backend.SubsetAuto, Quotas: assumedBook(shown)})
				defer func() { f.stop() }()
				for i := range nodes {
					f.createFleetNode(nodeName(i))
				}
				f.putMany("s", services)
				time.Sleep(3 * time.Hour)
				synctest.Wait()
				least, most := nodes, 0
				for i := range services {
					n := len(f.backendsOf(fmt.Sprintf("s%03d", i))["30080"])
					least, most = min(least, n), max(most, n)
					if n == 0 {
						t.Errorf("s%03d has no backend server", i)
					}
				}
				f.emulator.NewCalls()
				writes, refused := f.refusedIn(3 * time.Hour)
				if refused > nodes {
					t.Errorf("%d calls are refused in 3 hours", refused)
				}
				t.Logf("granted %d of %d: Services have %d to %d of %d nodes, %d refused calls of %d in 3 hours", granted, shown, least, most, nodes,
					refused, writes)
			})
		})
	}
}

// TestServiceWithoutNodeGetsOne: all instances are behind as many CLBs as they can be, by Services that have no more than they need. One
// that comes, or that loses its only node, has no backend server. A Service that has several gives up one for it, also one with
// externalTrafficPolicy Local; none is left without any.
func TestServiceWithoutNodeGetsOne(t *testing.T) {
	t.Parallel()
	const nodes, attachments = 3, 3
	for name, test := range map[string]struct {
		// on are the nodes of the pods of so many Services with externalTrafficPolicy Local; others have Cluster.
		on             []int
		locals, others int
		// gone says that the first node is deleted then, otherwise one more Service comes, with Local or not.
		gone, local bool
	}{
		"one with Cluster beside some with Local": {on: []int{0, 1, 2}, locals: attachments},
		"one with Local beside some with Local":   {on: []int{0, 1, 2}, locals: attachments, local: true},
		"the only node of some with Cluster":      {on: []int{1, 2}, locals: attachments - 1, others: nodes, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFleetIn(t, cloud.Limits{LBsPerInstance: attachments},
					config.Config{BackendSubset: backend.SubsetAuto, Quotas: smallQuotas(200, attachments)})
				defer func() { f.stop() }()
				for i := range nodes {
					f.createFleetNode(nodeName(i))
				}
				var names []string
				add := func(name string, local bool) {
					names = append(names, name)
					if local {
						f.putLocalOn(name, test.on...)
					} else {
						f.put(testService(name, 80))
					}
					f.rest()
				}
				for i := range test.locals {
					add(fmt.Sprint("local", i), true)
				}
				for i := range test.others {
					add(fmt.Sprint("web", i), false)
				}
				if test.gone {
					testkit.Check(t, f.kube.CoreV1().Nodes().Delete(t.Context(), nodeName(0), metav1.DeleteOptions{}))
				} else {
					add("last", test.local)
				}
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				for _, name := range names {
					ids := f.backendsOf(name)["30080"]
					if test.gone {
						ids = slices.DeleteFunc(ids, func(id string) bool { return id == "i-"+nodeName(0) })
					}
					if len(ids) == 0 {
						t.Errorf("%s has no live backend server", name)
					}
				}
				f.emulator.NewCalls()
				if writes, refused := f.refusedIn(time.Hour); writes+refused > 0 {
					t.Errorf("%d writes at rest, %d are refused", writes, refused)
				}
			})
		})
	}
}

// TestNoNodeIsAwaitedInVain: a Service has more nodes than it needs, and gives none up, because it is paused or its passes end before it
// chooses. One without any node gets one of another Service.
func TestNoNodeIsAwaitedInVain(t *testing.T) {
	t.Parallel()
	for name, stops := range map[string]func(f *fleet){
		"paused": func(f *fleet) {
			f.change("stopped", func(svc *corev1.Service) { svc.Annotations[annotation.Paused] = "true" })
		},
		"asks for a CLB that does not exist": func(f *fleet) {
			f.change("stopped", func(svc *corev1.Service) { annotate(svc, annotation.LoadBalancerID, "lb-none") })
		},
		"cannot be deleted": func(f *fleet) {
			f.fault(map[string]any{"times": 0, "action": "DeleteLoadBalancer", "code": "OperationDenied", "status": 400})
			f.change("stopped", deleteService)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { noNodeIsAwaited(t, stops) })
		})
	}
}

func noNodeIsAwaited(t *testing.T, stops func(*fleet)) {
	t.Helper()
	f := newFleetIn(t, cloud.Limits{LBsPerInstance: 2}, config.Config{BackendSubset: backend.SubsetAuto, Quotas: smallQuotas(200, 2)})
	defer func() { f.stop() }()
	for i := range 2 {
		f.createFleetNode(nodeName(i))
	}
	f.put(testService("stopped", 80))
	f.rest()
	stops(f)
	time.Sleep(5 * time.Minute)
	for i := range 2 {
		f.createFleetNode(nodeName(i + 2))
	}
	synctest.Wait()
	for i := range 4 {
		f.putLocalOn(fmt.Sprint("only", i), i)
	}
	f.putLocalOn("several", 2, 3)
	time.Sleep(10 * time.Minute)
	f.put(testService("last", 80))
	time.Sleep(10 * time.Minute)
	synctest.Wait()
	for _, name := range []string{"stopped", "only0", "only1", "only2", "only3", "several", "last"} {
		if len(f.backendsOf(name)["30080"]) == 0 {
			t.Errorf("%s has no backend server", name)
		}
	}
}

// TestStuckServiceKeepsItsNodes: the deletion of a Service is stuck that has chosen once, before it had backend servers. They count all the
// same: what the cloud refuses to others shows the quota as it is.
func TestStuckServiceKeepsItsNodes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := unknownQuotaWorld(t)
		w.put(testService("stuck", 80))
		w.mustPass("stuck")
		w.fault(map[string]any{"times": 0, "action": "DeleteLoadBalancer", "code": "OperationDenied", "status": 400})
		w.change("stuck", deleteService)
		for range 3 {
			if err := w.pass("stuck"); err == nil {
				t.Fatal("the CLB is deleted")
			}
			time.Sleep(2 * time.Minute)
		}
		for _, name := range []string{"first", "second"} {
			w.put(testService(name, 80))
			_ = w.pass(name) // the cloud refuses what comes last
		}
		testkit.WantLearned(t, w.config.Quotas.Refused(quota.CLBsPerInstance), 2)
	})
}

// TestRefusedInstancesAreNotCounted: what the cloud refused to a Service with some of the nodes does not count as one of its backend
// servers when it refuses the same to another one: that would show a larger quota.
func TestRefusedInstancesAreNotCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := unknownQuotaWorld(t)
		for _, name := range []string{"first", "second"} {
			w.put(testService(name, 80))
			w.mustPass(name)
		}
		for _, subset := range []string{"2", "off"} {
			svc := testService("subset-"+subset, 80)
			annotate(svc, annotation.BackendSubset, subset)
			w.put(svc)
			_ = w.pass(svc.Name)
		}
		testkit.WantLearned(t, w.config.Quotas.Refused(quota.CLBsPerInstance), 2)
	})
}

// unknownQuotaWorld is a world with three nodes that can be backend servers of two CLBs, which the manager does not know.
func unknownQuotaWorld(t *testing.T) *world {
	t.Helper()
	cfg := cloud.DefaultConfig()
	cfg.Quotas.LBsPerInstance = 2
	w := unstartedWorld(t, cfg)
	w.config.Quotas = quota.NewBook(nil)
	w.restart()
	threeNodes(w)
	return w
}
