package slb

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// passesOver makes passes over a Service for a time, as the queue does, whether they fail or not. It returns the calls.
func (w *world) passesOver(name string, d time.Duration) []string {
	w.t.Helper()
	w.calls()
	testkit.Passes(d, func() (time.Duration, error) {
		w.fillGroups()
		return w.Reconcile(w.t.Context(), w.get(name))
	})
	return w.calls()
}

// listenBy makes a listener by hand that leads to a group.
func (w *world) listenBy(id string, port int, group, text string) {
	w.t.Helper()
	w.must(w.api.CreateListener(w.t.Context(), id, alicloud.Listener{
		ListenerKey: alicloud.ListenerKey{Port: port, Protocol: alicloud.ProtocolTCP}, Description: text, VServerGroupID: w.groupID(group),
		Attributes: alicloud.Attributes{},
	}))
	w.calls()
}

// wantReleased fails unless a Service is released, with one event that says what stays.
func (w *world) wantReleased(name string, said ...string) {
	w.t.Helper()
	if svc := w.get(name); len(svc.Finalizers) != 0 {
		w.t.Errorf("finalizers %v", svc.Finalizers)
	}
	kept := slices.DeleteFunc(w.newEvents(), func(event string) bool { return !strings.HasPrefix(event, "Warning "+problem.ReasonKeptInUse) })
	if len(kept) != 1 {
		w.t.Fatalf("events %q, want one %s", kept, problem.ReasonKeptInUse)
	}
	for _, text := range said {
		if !strings.Contains(kept[0], text) {
			w.t.Errorf("event %q lacks %q", kept[0], text)
		}
	}
}

// TestAGroupThatOthersUseHoldsNoService: a Service goes although a listener of somebody else, or a rule that does not show, uses its
// vServer group. The group stays without its backend servers, and is an orphan.
func TestAGroupThatOthersUseHoldsNoService(t *testing.T) {
	t.Parallel()
	const group = "k8s/30080/web/default/c1"
	for name, test := range map[string]struct {
		override string
		hidden   bool
	}{
		"the owner's listener, as the documents say": {"false", false},
		"a listener by hand beside ours":             {"true", false},
		"a rule that does not show":                  {"true", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				threeNodes(w)
				lb := w.makeCLB()
				w.put(reusing("web", lb.ID, test.override, 80))
				w.mustPass("web")
				if test.hidden {
					w.fault(map[string]any{"action": "DeleteVServerGroup", "code": "RspoolVipExist", "status": 400, "times": 0})
				} else {
					w.listenBy(lb.ID, 8080, group, "by hand")
				}
				w.passesFor("web", time.Minute)
				w.newEvents()
				w.change("web", deleteService)
				writes := writesOf(w.passesOver("web", time.Hour))
				w.wantReleased("web", "vServer group", group)
				if len(writes) > 30 {
					t.Errorf("%d writes", len(writes))
				}
				on := w.state()["mine"]
				if servers, there := on.Groups[group]; !there || len(servers) != 0 || on.Listeners["tcp:80"] != nil {
					t.Errorf("groups %v, listeners %v; want the group without servers", on.Groups, on.Listeners)
				}
				w.vanish("web")
				if found := w.orphans(); len(found) != 1 || !strings.Contains(found[0], group) {
					t.Errorf("orphans %v, want the group", found)
				}
			})
		})
	}
}

// TestAGroupOfAFormerPortThatOthersUse: the group of a port that is gone, or has another node port, stays without backend servers where a
// listener of somebody else uses it, and nobody tries to delete it again and again. What the Service has follows meanwhile.
func TestAGroupOfAFormerPortThatOthersUse(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(svc *corev1.Service){
		"another node port": func(svc *corev1.Service) { svc.Spec.Ports[1].NodePort = 31000 },
		"a port less":       func(svc *corev1.Service) { svc.Spec.Ports = svc.Spec.Ports[:1] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				threeNodes(w)
				lb := w.makeCLB()
				w.put(reusing("web", lb.ID, "true", 80, 81))
				w.mustPass("web")
				w.listenBy(lb.ID, 8080, "k8s/30081/web/default/c1", "by hand")
				w.newEvents()
				w.change("web", change)
				writes := writesOf(w.passesOver("web", time.Hour))
				if slices.Contains(writes, "DeleteVServerGroup=RspoolVipExist") || len(w.state()["mine"].Groups["k8s/30081/web/default/c1"]) != 0 {
					t.Errorf("writes %v, groups %v; want that the group is left without servers", writes, w.state()["mine"].Groups)
				}
				if condition := w.synced("web"); condition.Status != "True" {
					t.Errorf("condition %+v", condition)
				}
				if events := strings.Join(w.newEvents(), "\n"); strings.Count(events, problem.ReasonKeptInUse) != 1 ||
					!strings.Contains(events, "tcp:8080") {
					t.Errorf("events %s, want one %s that names the listener", events, problem.ReasonKeptInUse)
				}
				w.deleteListener(lb.ID, 8080)
				w.passesFor("web", time.Hour)
				if _, there := w.state()["mine"].Groups["k8s/30081/web/default/c1"]; there {
					t.Error("the group stays although nothing uses it any more")
				}
			})
		})
	}
}

// TestOwnListenersGoWithoutOverride: where a Service no longer manages the listeners of an existing CLB, its own one still goes with its
// port, or the port would lead to the Service that gets its node port next. One whose port it has stays, and so does that of anybody else.
func TestOwnListenersGoWithoutOverride(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	lb := w.makeCLB()
	w.put(reusing("web", lb.ID, "true", 80, 81, 82))
	w.mustPass("web")
	w.makeListener(lb.ID, 9000, "by hand")
	w.makeListener(lb.ID, 9001, "k8s/9001/web/default/c9")
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.ForceOverrideListeners, "false") })
	w.mustPass("web")
	if keys := w.listenerKeys(); !slices.Equal(keys, []string{"tcp:80", "tcp:81", "tcp:82", "tcp:9000", "tcp:9001"}) {
		t.Errorf("listeners %v once they are not managed, want all", keys)
	}
	w.change("web", func(svc *corev1.Service) {
		svc.Spec.Ports = svc.Spec.Ports[:2]
		svc.Spec.Ports[1].NodePort = 31000
	})
	w.mustPass("web")
	if keys := w.listenerKeys(); !slices.Equal(keys, []string{"tcp:80", "tcp:81", "tcp:9000", "tcp:9001"}) {
		t.Errorf("listeners %v, want that of port 82 gone", keys)
	}
	if servers := w.state()["mine"].serving("tcp:81"); len(servers) != 0 {
		t.Errorf("port 81 leads to %v on a node port that the Service does not have any more", servers)
	}
	w.wantRest("web")
}

// TestAListThatCannotGoHoldsNoService: a Service whose CLB is gone is released although its access control list is used by somebody else,
// or cannot be read.
func TestAListThatCannotGoHoldsNoService(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ranges  int
		prepare func(w *world)
		said    []string // nothing where it is clear that there is none
	}{
		"used elsewhere": {1, func(w *world) {
			lb := w.makeCLB()
			w.must(w.api.CreateListener(w.t.Context(), lb.ID, alicloud.Listener{
				ListenerKey: alicloud.ListenerKey{Port: 80, Protocol: alicloud.ProtocolTCP}, Description: "by hand",
				Attributes: alicloud.Attributes{"BackendServerPort": "80", "AclStatus": "on", "AclType": "white", "AclId": w.listID()},
			}))
		}, []string{"access control list", testListName, "uses it"}},
		"unread": {1, func(w *world) {
			w.fault(map[string]any{"action": "DescribeAccessControlLists", "code": "Forbidden.RAM", "status": 403, "times": 0})
		}, []string{"access control list", testListName, "could not be read"}},
		"unread, never made": {0, func(w *world) {
			w.fault(map[string]any{"action": "DescribeAccessControlLists", "code": "Forbidden.RAM", "status": 403, "times": 0})
			w.restart()
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := settled(t, restricted(ranges(test.ranges)...))
				test.prepare(w)
				w.change("web", deleteService)
				writes := writesOf(w.passesOver("web", time.Hour))
				if _, there := w.state()["a0f5e8a1cweb"]; there || len(writes) > 30 {
					t.Errorf("the CLB is there: %v; %d writes", there, len(writes))
				}
				if test.said != nil {
					w.wantReleased("web", test.said...)
				} else if svc := w.get("web"); len(svc.Finalizers) != 0 {
					t.Errorf("finalizers %v", svc.Finalizers)
				}
			})
		})
	}
}

// TestNoListHoldsAServiceOnAnExistingCLB: a role that may not read access control lists keeps no Service on an existing CLB.
func TestNoListHoldsAServiceOnAnExistingCLB(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	lb := w.makeCLB()
	w.fault(map[string]any{"action": "DescribeAccessControlLists", "code": "Forbidden.RAM", "status": 403, "times": 0})
	w.put(reusing("web", lb.ID, "true", 80))
	for range 2 {
		_ = w.pass("web") //nolint:errcheck // it says what it cannot read
	}
	if keys := w.listenerKeys(); !slices.Equal(keys, []string{"tcp:80"}) {
		t.Errorf("listeners %v, want that of the Service", keys)
	}
	w.restart()
	w.change("web", deleteService)
	w.mustPass("web")
	if on := w.state()["mine"]; len(on.Listeners)+len(on.Groups) != 0 || on.Tags[mark.TagOwner] != "" || len(w.get("web").Finalizers) != 0 {
		t.Errorf("after the Service: %+v, finalizers %v", on, w.get("web").Finalizers)
	}
}
