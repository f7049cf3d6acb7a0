package slb

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// makeCLB makes a CLB as its owner would.
func (w *world) makeCLB(tags ...alicloud.Tag) alicloud.LoadBalancer {
	w.t.Helper()
	lb, err := w.api.CreateLoadBalancer(w.t.Context(), alicloud.LoadBalancer{
		Name: "mine", AddressType: alicloud.AddressIntranet, VPCID: "vpc-emulator", VSwitchID: "vsw-a", Tags: tags,
	}, "")
	if err != nil {
		w.t.Fatal(err)
	}
	w.calls()
	return lb
}

func (w *world) makeListener(id string, port int, description string) {
	w.t.Helper()
	listener := alicloud.Listener{
		ListenerKey: alicloud.ListenerKey{Port: port, Protocol: alicloud.ProtocolTCP}, Description: description,
		Attributes: alicloud.Attributes{"BackendServerPort": "80"},
	}
	if err := w.api.CreateListener(w.t.Context(), id, listener); err != nil {
		w.t.Fatal(err)
	}
	w.calls()
}

func (w *world) deleteListener(id string, port int) {
	w.t.Helper()
	if err := w.api.DeleteListener(w.t.Context(), id, alicloud.ListenerKey{Port: port, Protocol: alicloud.ProtocolTCP}); err != nil {
		w.t.Fatal(err)
	}
	w.calls()
}

// lb reads a CLB.
func (w *world) lb(id string) alicloud.LoadBalancer {
	w.t.Helper()
	lb, err := w.api.DescribeLoadBalancer(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	w.calls()
	return lb
}

// reusing makes a Service that names a CLB.
func reusing(name, id, override string, ports ...int32) *corev1.Service {
	svc := testService(name, ports...)
	annotate(svc, annotation.LoadBalancerID, id)
	annotate(svc, annotation.ForceOverrideListeners, override)
	return svc
}

func deleteService(svc *corev1.Service) { now := metav1.Now(); svc.DeletionTimestamp = &now }

func TestReuseWithOverride(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	lb := w.makeCLB()
	w.makeListener(lb.ID, 80, "by hand")
	w.makeListener(lb.ID, 81, "k8s/81/other/default/c9")
	w.makeListener(lb.ID, 9000, "by hand")
	w.put(reusing("web", lb.ID, "true", 80, 81, 82))
	w.mustPass("web")

	state := w.state()["mine"]
	got := map[string]any{}
	for key, listener := range state.Listeners {
		got[key] = listener["Description"]
	}
	want := map[string]any{
		"tcp:80": "k8s/80/web/default/c1", "tcp:81": "k8s/81/other/default/c9", "tcp:82": "k8s/82/web/default/c1", "tcp:9000": "by hand",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("listeners (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{mark.TagReused: "true"}, state.Tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	if ip := w.get("web").Status.LoadBalancer.Ingress[0].IP; ip != lb.Address {
		t.Errorf("status %s, want %s", ip, lb.Address)
	}
	if events := strings.Join(w.newEvents(), "\n"); !strings.Contains(events, problem.ReasonListenerConflict) ||
		!strings.Contains(events, "Service default/other of cluster c9") {
		t.Errorf("events = %q, want one that names the owner of port 81", events)
	}
	w.change("web", deleteService)
	w.mustPass("web")
	if diff := cmp.Diff([]string{"tcp:81", "tcp:9000"}, w.listenerKeys()); diff != "" {
		t.Errorf("listeners after the tear-down (-want +got):\n%s", diff)
	}
	if groups := w.state()["mine"].Groups; len(groups) != 0 {
		t.Errorf("groups after the tear-down: %v", groups)
	}
	if svc := w.get("web"); len(svc.Finalizers) != 0 {
		t.Errorf("finalizers after the tear-down: %v", svc.Finalizers)
	}
}

func TestReuseWithoutOverride(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	lb := w.makeCLB()
	w.makeListener(lb.ID, 80, "by hand")
	w.put(reusing("web", lb.ID, "false", 80, 81))
	w.mustPass("web")
	if diff := cmp.Diff([]string{"tcp:80"}, w.listenerKeys()); diff != "" {
		t.Errorf("listeners (-want +got):\n%s", diff)
	}
	if n := len(w.state()["mine"].Groups); n != 2 {
		t.Errorf("%d groups, want those of both ports", n)
	}
	if shown := w.get("web").Status.LoadBalancer.Ingress; len(shown) != 1 || shown[0].IP != lb.Address {
		t.Errorf("the Service shows %v, want %s", shown, lb.Address)
	}
	if events := w.newEvents(); len(events) != 2 || !strings.HasPrefix(events[0], "Normal "+problem.ReasonListenersLeftAlone) {
		t.Errorf("events = %q", events)
	}
	// Events are gone after an hour, and the condition stays.
	condition := w.synced("web")
	if condition.Status != metav1.ConditionTrue || condition.Reason != problem.ReasonListenersLeftAlone ||
		!strings.Contains(condition.Message, "does not manage the listeners") {
		t.Errorf("condition %+v, want one that says that the listeners are not managed", condition)
	}
	w.change("web", deleteService)
	w.mustPass("web")
	if state := w.state()["mine"]; len(state.Groups) != 0 || len(state.Listeners) != 1 {
		t.Errorf("after the tear-down: %v", state)
	}
}

func TestSharedCLB(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	lb := w.makeCLB()
	w.put(reusing("web", lb.ID, "true", 80))
	w.put(reusing("shop", lb.ID, "true", 80, 81))
	w.mustPass("web")
	w.mustPass("shop")
	listener := func(key string) any { return w.state()["mine"].Listeners[key]["Description"] }
	if listener("tcp:80") != "k8s/80/web/default/c1" || listener("tcp:81") != "k8s/81/shop/default/c1" {
		t.Errorf("listeners %v and %v, want each Service to have its own", listener("tcp:80"), listener("tcp:81"))
	}
	w.change("web", deleteService)
	w.mustPass("web")
	w.mustPass("shop")
	if listener("tcp:80") != "k8s/80/shop/default/c1" {
		t.Errorf("listener %v, want the port to go to the one that waited for it", listener("tcp:80"))
	}
}

func TestNotReusable(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		tags   []alicloud.Tag
		change func(*world, *corev1.Service)
	}{
		{"made by a controller", []alicloud.Tag{{Key: mark.TagOwner, Value: "x"}}, nil},
		{"of a cluster", []alicloud.Tag{{Key: mark.TagCluster, Value: "x"}}, nil},
		{"of a group of another namespace", []alicloud.Tag{{Key: mark.TagGroup, Value: testCluster + "/infra/edge"}}, nil},
		{"of a group of another cluster", []alicloud.Tag{{Key: mark.TagGroup, Value: "c2/" + testNamespace + "/edge"}}, nil},
		{"gone", nil, func(_ *world, svc *corev1.Service) { annotate(svc, annotation.LoadBalancerID, "lb-gone") }},
		{"in another VPC", nil, func(w *world, _ *corev1.Service) { w.config.VPCID = "vpc-other"; w.restart() }},
		{"the API server's", nil, func(w *world, svc *corev1.Service) {
			w.config.APIServerAddresses = []string{w.lb(svc.Annotations[key(annotation.LoadBalancerID)]).Address}
			w.restart()
		}},
		{"with another address", nil, func(_ *world, svc *corev1.Service) {
			svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			threeNodes(w)
			svc := reusing("web", w.makeCLB(test.tags...).ID, "true", 80)
			if test.change != nil {
				test.change(w, svc)
			}
			w.put(svc)
			if _, err := w.Reconcile(t.Context(), w.get("web")); err != nil {
				t.Fatal(err)
			}
			if writes := writesOf(w.calls()); len(writes) != 0 {
				t.Errorf("writes %v, want none", writes)
			}
			if events := w.newEvents(); len(events) != 1 || !strings.HasPrefix(events[0], "Warning "+problem.ReasonLoadBalancerNotReusable) {
				t.Errorf("events = %q, want one %s", events, problem.ReasonLoadBalancerNotReusable)
			}
			w.change("web", deleteService)
			w.mustPass("web")
			if writes := writesOf(w.calls()); len(writes) != 0 || len(w.get("web").Finalizers) != 0 {
				t.Errorf("deletion: writes %v, finalizers %v", writes, w.get("web").Finalizers)
			}
		})
	}
}

// TestServiceStaysOnItsCLB: an id that comes, goes or changes later moves nothing.
func TestServiceStaysOnItsCLB(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		before func(*world) *corev1.Service
		change func(*world, *corev1.Service)
	}{
		{"added", func(*world) *corev1.Service { return testService("web", 80) }, func(w *world, svc *corev1.Service) {
			annotate(svc, annotation.LoadBalancerID, w.makeCLB().ID)
		}},
		{"changed", func(w *world) *corev1.Service { return reusing("web", w.makeCLB().ID, "true", 80) }, func(w *world, svc *corev1.Service) {
			annotate(svc, annotation.LoadBalancerID, w.makeCLB().ID)
		}},
		{"removed", func(w *world) *corev1.Service { return reusing("web", w.makeCLB().ID, "true", 80) }, func(_ *world, svc *corev1.Service) {
			delete(svc.Annotations, key(annotation.LoadBalancerID))
		}},
	} {
		for _, restarted := range []bool{false, true} {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				threeNodes(w)
				w.put(test.before(w))
				w.mustPass("web")
				w.newEvents()
				before := w.get("web").Labels[driver.LabelLoadBalancerID]
				w.change("web", func(svc *corev1.Service) { test.change(w, svc) })
				if restarted {
					w.restart()
				}
				w.calls()
				w.mustPass("web")
				if writes := writesOf(w.calls()); len(writes) != 0 {
					t.Errorf("writes %v, want none", writes)
				}
				if after := w.get("web").Labels[driver.LabelLoadBalancerID]; after != before {
					t.Errorf("the Service moved from %s to %s", before, after)
				}
				events := w.newEvents()
				if !slices.ContainsFunc(events, func(e string) bool { return strings.HasPrefix(e, "Warning "+problem.ReasonImmutableAttribute) }) {
					t.Errorf("events = %q, want %s", events, problem.ReasonImmutableAttribute)
				}
			})
		}
	}
}

func TestPreservedOnDelete(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		value string
		keep  bool
	}{{"true", true}, {"yes", true}, {"false", false}, {"off", false}} {
		t.Run(test.value, func(t *testing.T) {
			t.Parallel()
			svc := testService("web", 80)
			annotate(svc, annotation.PreserveOnDelete, test.value)
			w := settled(t, svc)
			before := w.state()["a0f5e8a1cweb"]
			w.change("web", deleteService)
			w.mustPass("web")
			after, stands := w.state()["a0f5e8a1cweb"]
			if stands != test.keep {
				t.Fatalf("the CLB stands: %v, want %v", stands, test.keep)
			}
			if !test.keep {
				return
			}
			if diff := cmp.Diff(before.Listeners, after.Listeners) + cmp.Diff(before.Groups, after.Groups); diff != "" {
				t.Errorf("what carries traffic changed:\n%s", diff)
			}
			if diff := cmp.Diff(map[string]string{mark.TagPreserved: "c1/default/web"}, after.Tags); diff != "" {
				t.Errorf("tags (-want +got):\n%s", diff)
			}
			if after.DeleteProtection != "off" || after.Protection != "NonProtection" {
				t.Errorf("still bound to us: %v", after)
			}
			if events := w.newEvents(); len(events) != 1 || !strings.HasPrefix(events[0], "Warning "+problem.ReasonPreservedOnDelete) {
				t.Errorf("events = %q, want one %s", events, problem.ReasonPreservedOnDelete)
			}
		})
	}
}

// TestPreservedKinds: whatever kind of Service goes, by deletion or by its type, nothing that carries traffic changes: listeners,
// groups, backend servers, the list of the source ranges, and all of an existing CLB but a tag.
func TestPreservedKinds(t *testing.T) {
	t.Parallel()
	made := func(f func() *corev1.Service) func(*world) *corev1.Service {
		return func(*world) *corev1.Service { return f() }
	}
	for _, test := range []struct {
		name    string
		service func(*world) *corev1.Service
		reused  bool
	}{
		{"four protocols", made(fourProtocols), false},
		{"source ranges", made(func() *corev1.Service { return restricted("192.0.2.0/24") }), false},
		{"domains", made(func() *corev1.Service { return secured("a.example.com:cert-1") }), false},
		{"a user's CLB", func(w *world) *corev1.Service { return onExistingCLB(w, "a.example.com:cert-1", "a=1") }, true},
		{"a group of others", func(w *world) *corev1.Service {
			id := w.makeCLB().ID
			return joining("web", id, w.makeGroup(id, "shared", "by hand")+":80", 80)
		}, true},
	} {
		for _, gone := range []func(*corev1.Service){deleteService, func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeNodePort }} {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				threeNodes(w)
				svc := test.service(w)
				annotate(svc, annotation.PreserveOnDelete, "true")
				w.put(svc)
				w.converge("web")
				before := w.state()
				w.restart()
				w.change("web", gone)
				w.converge("web")
				after := w.state()
				for name, was := range before {
					if is := after[name]; !test.reused {
						// What binds a CLB of ours to us may go, and nothing else.
						was.Tags, was.DeleteProtection, was.Protection, was.Reason = is.Tags, is.DeleteProtection, is.Protection, is.Reason
						before[name] = was
					} else {
						was.Tags[mark.TagPreserved] = "c1/default/web" // for orphans
					}
				}
				if diff := cmp.Diff(before, after); diff != "" || len(w.get("web").Finalizers) != 0 {
					t.Errorf("finalizers %v, state (-before +after):\n%s", w.get("web").Finalizers, diff)
				}
			})
		}
	}
}
