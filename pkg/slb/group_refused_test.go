package slb

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/groups"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// refusedID is an existing CLB that a Service of a group may not use.
type refusedID struct {
	// id makes it, or names one that does not exist; text is in the Warning.
	id   func(*world) string
	text string
	// reuse restricts which CLBs Services may use.
	reuse policy.Reuse
}

func refusedIDs() map[string]refusedID {
	mine := func(w *world) string { return w.makeCLB().ID }
	return map[string]refusedID{
		"does not exist": {id: func(*world) string { return "lb-typo" }, text: "CLB lb-typo does not exist"},
		"is no ID": {id: func(*world) string {
			return "my CLB"
		}, text: "an annotation on which a new load balancer depends is not accepted"},
		"has another address": {id: mine, text: "has the address"},
		"is another Service's": {id: func(w *world) string {
			return w.makeCLB(alicloud.Tag{Key: mark.TagOwner, Value: "another"}).ID
		}, text: "was created by a controller"},
		"has no tag": {id: mine, text: "loadBalancerReuse is tagged", reuse: policy.ReuseTagged},
	}
}

// namesRefused makes a world in which the Service web of a group names an existing CLB that it may not use, with and without the annotation
// of its group.
func namesRefused(t *testing.T, refused refusedID, keepsGroup bool) *world {
	t.Helper()
	w := newWorld(t)
	w.config.Policy.LoadBalancerReuse = refused.reuse
	w.restart()
	threeNodes(w)
	w.putAll(grouped("shop", "edge", 81), grouped("web", "edge", 80))
	id := refused.id(w)
	w.change("web", func(svc *corev1.Service) {
		if !keepsGroup {
			delete(svc.Annotations, key(annotation.Group))
		}
		annotate(svc, annotation.LoadBalancerID, id)
		annotate(svc, annotation.ForceOverrideListeners, "true")
	})
	return w
}

// TestRefusedIDKeepsServiceInItsGroup: a Service of a group that names an existing CLB which it may not use stays on that of its group,
// which follows nodes. One Warning says why, also after a restart, and few calls are made.
func TestRefusedIDKeepsServiceInItsGroup(t *testing.T) {
	t.Parallel()
	for name, refused := range refusedIDs() {
		for _, keepsGroup := range []bool{false, true} {
			for when, then := range knownOrNot() {
				t.Run(strings.Join([]string{name, when, map[bool]string{true: "in both"}[keepsGroup]}, " "), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						w := namesRefused(t, refused, keepsGroup)
						address, owners := w.address("web"), w.ownersOf()
						then(w)
						w.newEvents()
						w.live("web", time.Second)
						events := strings.Join(w.newEvents(), "\n")
						if strings.Count(events, "Warning "+problem.ReasonMoveRefused) != 1 || strings.Contains(events, problem.ReasonSyncFailed) ||
							!strings.Contains(events, refused.text) {
							t.Errorf("events %s, want one %s with %q", events, problem.ReasonMoveRefused, refused.text)
						}
						staysUpToDate(t, w, moveToNewCLB{owners: owners}, address)

						w.calls()
						w.live("web", 32*time.Minute)
						if calls := w.calls(); len(calls) > 32*6 || len(writesOf(calls)) > 0 {
							t.Errorf("32 minutes take %d calls: %v", len(calls), calls)
						}
						if events := w.newEvents(); len(events) > 0 {
							t.Errorf("further events %v", events)
						}
						staysUpToDate(t, w, moveToNewCLB{owners: owners}, address)
						w.change("shop", deleteService)
						w.mustPass("shop")
						w.vanish("shop")
						w.live("web", time.Minute)
						if !w.answers("web", address) {
							t.Error("the CLB went with another Service of the group")
						}
						w.change("web", deleteService)
						w.live("web", time.Minute)
						if svc, left := w.get("web"), w.ownersOf(); len(svc.Finalizers) > 0 || len(left[edgeCLB]) > 0 {
							t.Errorf("finalizers %v, %v stay", svc.Finalizers, left)
						}
					})
				})
			}
		}
	}
}

// TestRefusedIDIsCorrected: a Service that stays in its group because of the existing CLB that it names is an ordinary one of the group
// once the annotation is gone, and moves once it may use the CLB.
func TestRefusedIDIsCorrected(t *testing.T) {
	t.Parallel()
	for _, allowed := range []bool{false, true} {
		t.Run(map[bool]string{false: "removed", true: "allowed"}[allowed], func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := namesRefused(t, refusedIDs()["has no tag"], true)
				w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Hostname, "web.example.com") })
				w.live("web", time.Minute)
				want := map[string][]string{edgeCLB: {"tcp:80 web", "tcp:81 shop"}, "mine": {}}
				wantOwners(t, w, want)
				if allowed {
					lb := w.balancer("mine")
					if err := w.api.TagLoadBalancer(t.Context(), lb.ID, []alicloud.Tag{{Key: mark.TagAllow, Value: testCluster}}); err != nil {
						t.Fatal(err)
					}
					want = map[string][]string{edgeCLB: {"tcp:81 shop"}, "mine": {"tcp:80 web"}}
				} else {
					w.change("web", func(svc *corev1.Service) {
						delete(svc.Annotations, key(annotation.LoadBalancerID))
						delete(svc.Annotations, key(annotation.ForceOverrideListeners))
					})
				}
				w.live("web", groups.MovePause.Longest+2*time.Minute)
				wantOwners(t, w, want)
				if condition := w.synced("web"); condition.Status != metav1.ConditionTrue {
					t.Errorf("condition %+v", condition)
				}
				w.silent("afterwards", "web", "shop")
				w.leavesNothing("web", "shop")
			})
		})
	}
}

// TestExistingCLBGoneInTheMove: the existing CLB to which a Service of a group moves is deleted before the Service has left the group. It
// stays there, follows its nodes, and moves once the annotation names another CLB.
func TestExistingCLBGoneInTheMove(t *testing.T) {
	t.Parallel()
	for when, then := range knownOrNot() {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				threeNodes(w)
				web := grouped("web", "edge", 80)
				annotate(web, annotation.Hostname, "web.example.com") // any CLB can have it
				w.putAll(grouped("shop", "edge", 81), web)
				owners := w.ownersOf()
				moves := func(id string) func(*corev1.Service) {
					return func(svc *corev1.Service) {
						delete(svc.Annotations, key(annotation.Group))
						annotate(svc, annotation.LoadBalancerID, id)
						annotate(svc, annotation.ForceOverrideListeners, "true")
					}
				}
				w.fault(map[string]any{"action": "CreateLoadBalancerTCPListener", "code": "OperationDenied.Test", "status": 400, "times": 100})
				target := w.makeCLB()
				w.change("web", moves(target.ID))
				if err := w.pass("web"); err == nil {
					t.Fatal("the listener was created")
				}
				w.clearFaults()
				w.deleteByHand(target.Address)
				then(w)
				w.drift("web")
				w.live("web", time.Minute)
				staysUpToDateIn(t, w, owners)
				if record, _ := driver.RecordOn(w.get("web")); len(record.Leaving) > 0 || !w.staysRefused("web") {
					t.Errorf("the Record says that %v is to be left; condition %+v", record.Leaving, w.synced("web"))
				}
				w.change("web", moves(w.makeCLB().ID))
				w.live("web", 2*time.Minute)
				w.mustPass("shop")
				wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:81 shop"}, "mine": {"tcp:80 web"}})
				w.silent("afterwards", "web", "shop")
				w.leavesNothing("web", "shop")
			})
		})
	}
}

// staysUpToDateIn checks that the nodes which join and leave reach the CLB of its group on which the Service web stays.
func staysUpToDateIn(t *testing.T, w *world, owners map[string][]string) {
	t.Helper()
	wantOwners(t, w, owners)
	w.addNode("d")
	w.deleteNode("a")
	w.mustPass("web")
	if got := w.backendsOf("web")["30080"]; !slices.Equal(got, []string{"i-b", "i-c", "i-d"}) {
		t.Errorf("backend servers %v after a node joined and another left", got)
	}
}

// TestAPIServersIDKeepsServiceInItsGroup: that a CLB is that of the API server may only be known after everything on it was read.
func TestAPIServersIDKeepsServiceInItsGroup(t *testing.T) {
	t.Parallel()
	web := grouped("web", "edge", 80)
	annotate(web, annotation.Hostname, "web.example.com") // any CLB can have it
	w := groupWorld(t, web, grouped("shop", "edge", 81))
	lb, owners := w.makeCLB(), w.ownersOf()
	owners["mine"] = []string{}
	w.config.APIServerAddresses = []string{lb.Address}
	w.restart()
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.LoadBalancerID, lb.ID) })
	w.mustPass("web")
	if events := strings.Join(w.newEvents(), "\n"); !strings.Contains(events, "Warning "+problem.ReasonMoveRefused) ||
		!strings.Contains(events, "is that of the API server") {
		t.Errorf("events %s, want %s", events, problem.ReasonMoveRefused)
	}
	w.deleteNode("a")
	w.mustPass("web")
	if got := w.backendsOf("web")["30080"]; !slices.Equal(got, []string{"i-b", "i-c"}) {
		t.Errorf("backend servers %v after a node left", got)
	}
	wantOwners(t, w, owners)
}

// TestForgedLabelOfAGroup: a Service with the label of a group's CLB, as anybody can write it, gets nothing there when it names a CLB that
// it may not use, and when it can have no CLB of its own.
func TestForgedLabelOfAGroup(t *testing.T) {
	t.Parallel()
	for name, asks := range map[string]annotation.Suffix{"lb-typo": annotation.LoadBalancerID, "nonsense": annotation.Spec} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := groupWorld(t, grouped("shop", "edge", 81))
			want := w.ownersOf()
			guest := claiming(w.balancer(edgeCLB).ID)
			annotate(guest, asks, name)
			w.put(guest)
			for range 3 {
				_ = w.pass("web")
			}
			wantOwners(t, w, want)
			if status := w.get("web").Status.LoadBalancer; len(status.Ingress) > 0 {
				t.Errorf("the status shows %v", status.Ingress)
			}
			if record, _ := driver.RecordOn(w.get("web")); record.Group != "" {
				t.Errorf("the Record has the group %s", record.Group)
			}
		})
	}
}
