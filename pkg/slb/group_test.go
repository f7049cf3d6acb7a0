package slb

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// fillGroups has the cache of Services hold what the API server has, if any of them is in a group: others rely on a cache that a test
// fills.
func (w *world) fillGroups() {
	list, err := w.kube.CoreV1().Services(metav1.NamespaceAll).List(w.t.Context(), metav1.ListOptions{})
	if err != nil || !slices.ContainsFunc(list.Items, func(svc corev1.Service) bool {
		record, _ := driver.RecordOn(&svc)
		return svc.Annotations[key(annotation.Group)] != "" || record.Group != "" || len(record.Leaving) > 0
	}) {
		return
	}
	w.fillCache(list.Items)
}

// fillCache fills the cache with Services.
func (w *world) fillCache(services []corev1.Service) {
	w.t.Helper()
	all := make([]any, 0, len(services))
	for i := range services {
		all = append(all, &services[i])
	}
	if err := w.factory.Core().V1().Services().Informer().GetIndexer().Replace(all, ""); err != nil {
		w.t.Fatal(err)
	}
}

// grouped makes a Service of a group. Those that are made first are older.
func grouped(name, group string, ports ...int32) *corev1.Service {
	svc := testService(name, ports...)
	annotate(svc, annotation.Group, group)
	svc.CreationTimestamp = metav1.NewTime(time.Unix(int64(1_000_000-1000*len(name)), 0))
	return svc
}

// born sets how old a Service is; larger is younger.
func born(svc *corev1.Service, at int64) *corev1.Service {
	svc.CreationTimestamp = metav1.Unix(1_000_000+at, 0)
	return svc
}

func overflowing(svc *corev1.Service) *corev1.Service {
	annotate(svc, annotation.GroupOverflow, "true")
	return svc
}

// groupWorld makes a world with Services of the group edge, the first the oldest, each of which had its passes.
func groupWorld(t *testing.T, services ...*corev1.Service) *world {
	t.Helper()
	w := newWorld(t)
	threeNodes(w)
	w.putAll(services...)
	return w
}

// knownOrNot are processes that know what a group has, and that do not.
func knownOrNot() map[string]func(*world) {
	return map[string]func(*world){"known": func(*world) {}, "after a restart": (*world).restart}
}

func (w *world) putAll(services ...*corev1.Service) {
	w.t.Helper()
	for i, svc := range services {
		w.put(born(svc, int64(i)))
	}
	for range 2 {
		for _, svc := range services {
			w.mustPass(svc.Name)
		}
	}
	w.calls()
	w.newEvents()
}

// ownersOf returns who has which listener, by the name of the CLB.
func (w *world) ownersOf() map[string][]string {
	found := map[string][]string{}
	for name, lb := range w.state() {
		found[name] = []string{}
		for _, listener := range slices.Sorted(maps.Keys(lb.Listeners)) {
			text, _ := lb.Listeners[listener]["Description"].(string)
			owner, _, _ := mark.Parse(text)
			found[name] = append(found[name], listener+" "+owner.Name)
		}
	}
	return found
}

const edgeCLB = "k8s-group-default-edge"

// address is what the status of a Service shows.
func (w *world) address(name string) string {
	shown := w.get(name).Status.LoadBalancer.Ingress
	if len(shown) == 0 {
		return ""
	}
	return shown[0].IP
}

func wantOwners(t *testing.T, w *world, want map[string][]string) {
	t.Helper()
	if diff := cmp.Diff(want, w.ownersOf()); diff != "" {
		t.Errorf("listeners (-want +got):\n%s", diff)
	}
}

// silent checks that passes over Services write nothing.
func (w *world) silent(when string, names ...string) {
	w.t.Helper()
	w.calls()
	for _, name := range names {
		w.mustPass(name)
	}
	if writes := writesOf(w.calls()); len(writes) > 0 {
		w.t.Errorf("%s: %v", when, writes)
	}
}

// leavesNothing deletes Services, and checks that no CLB but an existing one stays.
func (w *world) leavesNothing(names ...string) {
	w.t.Helper()
	for _, name := range names {
		w.change(name, deleteService)
		w.mustPass(name)
		if svc := w.get(name); len(svc.Finalizers) > 0 {
			w.t.Errorf("finalizers %v hold %s", svc.Finalizers, name)
		}
		w.vanish(name)
	}
	left := w.ownersOf()
	delete(left, "mine")
	if len(left) > 0 {
		w.t.Errorf("after the last Service, %v stay", left)
	}
}

// TestGroupSharesOneCLB: the first Service of a group makes the CLB, others have their listeners on it, and the last one that goes deletes
// it.
func TestGroupSharesOneCLB(t *testing.T) {
	t.Parallel()
	w := groupWorld(t, grouped("web", "edge", 80), grouped("shop", "edge", 81))
	wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 web", "tcp:81 shop"}})
	if a, b := w.address("web"), w.address("shop"); a == "" || a != b {
		t.Errorf("addresses %q and %q, want one", a, b)
	}
	if diff := cmp.Diff(map[string]string{mark.TagGroup: "c1/default/edge"}, w.state()[edgeCLB].Tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	w.mustPass("web")
	w.mustPass("shop")
	if calls := w.calls(); len(calls) > 0 {
		t.Errorf("two passes with nothing to do make %v", calls)
	}
	w.restart()
	w.silent("after a restart", "shop", "web")
	w.change("web", deleteService)
	w.mustPass("web")
	wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:81 shop"}})
	if svc := w.get("web"); len(svc.Finalizers) > 0 {
		t.Errorf("finalizers %v", svc.Finalizers)
	}
	w.vanish("web")
	w.mustPass("shop")
	w.leavesNothing("shop")
}

// TestGroupIsMadeOnce: of two Services at once, the second one makes no CLB while nobody knows what came of the creation by the first, also
// where the first one is not the oldest, and also in another process.
func TestGroupIsMadeOnce(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		fault map[string]any
		after func(*world)
	}{
		{"smooth", nil, nil},
		{"the answer is lost", map[string]any{"action": "CreateLoadBalancer", "drop": "after", "times": 1}, nil},
		{"the answer is lost with the process", map[string]any{"action": "CreateLoadBalancer", "drop": "after", "times": 1}, (*world).restart},
	} {
		for _, order := range [][]string{{"web", "shop"}, {"shop", "web"}} {
			t.Run(test.name+" "+order[0], func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				threeNodes(w)
				w.put(born(grouped("web", "edge", 80), 1))
				w.put(born(grouped("shop", "edge", 81), 2))
				if test.fault != nil {
					w.fault(test.fault)
				}
				_ = w.pass(order[0])
				if test.after != nil {
					test.after(w)
				}
				_ = w.pass(order[1])
				for range 3 {
					w.mustPass("web")
					w.mustPass("shop")
				}
				wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 web", "tcp:81 shop"}})
			})
		}
	}
}

// TestGroupAttributes: the annotations of the oldest Service decide on the CLB; what others ask for otherwise is a Warning.
func TestGroupAttributes(t *testing.T) {
	t.Parallel()
	first, second := grouped("web", "edge", 80), grouped("shop", "edge", 81)
	annotate(first, annotation.Name, "edge")
	annotate(first, annotation.AdditionalTags, "team=web")
	annotate(second, annotation.Name, "shops")
	annotate(second, annotation.DeleteProtection, "off")
	w := newWorld(t)
	threeNodes(w)
	w.put(born(first, 1))
	w.put(born(second, 2))
	w.mustPass("shop") // the younger one makes it as the older one asks
	events := strings.Join(w.newEvents(), "\n")
	w.mustPass("web")
	lb := w.state()["edge"]
	if lb.DeleteProtection != "on" || lb.Tags["team"] != "web" || len(lb.Listeners) != 2 {
		t.Errorf("the CLB is %+v, want the attributes of web", lb)
	}
	for _, text := range []string{"Warning " + problem.ReasonAnnotationNoEffect, annotation.Name.Key() + `: "shops" has no effect`,
		annotation.DeleteProtection.Key(), "default/web"} {
		if !strings.Contains(events, text) {
			t.Errorf("events %s lack %q", events, text)
		}
	}
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Name, "front") })
	w.mustPass("web")
	if _, renamed := w.state()["front"]; !renamed {
		t.Error("a change of the oldest Service has no effect")
	}
	w.change("web", deleteService)
	w.mustPass("web")
	w.vanish("web")
	w.drift("shop")
	w.mustPass("shop")
	lb = w.state()["shops"]
	if lb.DeleteProtection != "off" || lb.Tags["team"] != "" {
		t.Errorf("after the oldest one went, the CLB is %+v, want the attributes of shop", lb)
	}
}

// TestPrivateServiceStaysPrivate: a Service that asks for a private address gets no listener on a public CLB.
func TestPrivateServiceStaysPrivate(t *testing.T) {
	t.Parallel()
	public := grouped("web", "edge", 80)
	annotate(public, annotation.AddressType, "internet")
	w := groupWorld(t, public)
	w.put(born(grouped("shop", "edge", 81), 5))
	if _, err := w.Reconcile(t.Context(), w.get("shop")); err != nil {
		t.Fatal(err)
	}
	wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 web"}})
	if events := strings.Join(w.newEvents(), "\n"); !strings.Contains(events, "Warning "+problem.ReasonLoadBalancerNotReusable) {
		t.Errorf("events %s", events)
	}
}

// TestGroupsOfOtherNamespaces: a Service joins the group of another namespace only where the policy says so.
func TestGroupsOfOtherNamespaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.put(born(grouped("web", "shared/edge", 80), 1))
	if _, err := w.Reconcile(t.Context(), w.get("web")); err != nil {
		t.Fatal(err)
	}
	wantOwners(t, w, map[string][]string{})
	if events := strings.Join(w.newEvents(), "\n"); !strings.Contains(events, "allowedGroups has no rule") {
		t.Errorf("events %s", events)
	}
	w.config.Policy.AllowedGroups = append(w.config.Policy.AllowedGroups,
		policy.GroupRule{Namespaces: []string{testNamespace}, Groups: []string{"shared/*"}})
	w.restart()
	w.mustPass("web")
	wantOwners(t, w, map[string][]string{"k8s-group-shared-edge": {"tcp:80 web"}})
}
