package slb

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// makeGroup makes a group on the CLB with a backend server of another cluster.
func (w *world) makeGroup(id, name, description string) string {
	w.t.Helper()
	w.addNode("far")
	w.deleteNode("far") // it is none of this cluster's
	server := alicloud.Backend{BackendKey: alicloud.BackendKey{Type: alicloud.BackendECS, ServerID: "i-far", Port: 80}, Weight: 7,
		Description: description}
	group, err := w.api.CreateVServerGroup(w.t.Context(), id, name, []alicloud.Backend{server})
	if err != nil {
		w.t.Fatal(err)
	}
	w.calls()
	return group
}

// groupID returns the id of the group of that name on the one CLB that stands.
func (w *world) groupID(name string) string {
	w.t.Helper()
	groups, err := w.api.DescribeVServerGroups(w.t.Context(), w.onlyCLB())
	if err != nil {
		w.t.Fatal(err)
	}
	i := slices.IndexFunc(groups, func(g alicloud.VServerGroup) bool { return g.Name == name })
	if i < 0 {
		w.t.Fatalf("no group %s", name)
	}
	return groups[i].ID
}

// joining makes a Service whose ports join groups of others on a CLB.
func joining(name, id, groups string, ports ...int32) *corev1.Service {
	svc := reusing(name, id, "true", ports...)
	annotate(svc, annotation.VGroupPort, groups)
	return svc
}

func TestJoinedGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	id := w.makeCLB().ID
	shared := w.makeGroup(id, "shared", "k8s/80/web/default/c9")
	other := w.makeGroup(id, "other", "by hand")
	w.put(joining("web", id, shared+":80", 80))
	w.mustPass("web")
	for _, step := range []struct {
		name          string
		change        func(*corev1.Service)
		calls         []string
		shared, other []string
	}{
		{"joined", func(*corev1.Service) {}, nil, []string{"i-a 100", "i-b 100", "i-c 100", "i-far 7"}, []string{"i-far 7"}},
		{"weight", func(svc *corev1.Service) { annotate(svc, annotation.Weight, "60") }, []string{"SetVServerGroupAttribute"},
			[]string{"i-a 20", "i-b 20", "i-c 20", "i-far 7"}, []string{"i-far 7"}},
		{"no weight", func(svc *corev1.Service) { annotate(svc, annotation.Weight, "0") }, []string{"SetVServerGroupAttribute"},
			[]string{"i-a 0", "i-b 0", "i-c 0", "i-far 7"}, []string{"i-far 7"}},
		{"another group", func(svc *corev1.Service) { annotate(svc, annotation.VGroupPort, other+":80") },
			[]string{"AddVServerGroupBackendServers", "SetLoadBalancerTCPListenerAttribute", "RemoveVServerGroupBackendServers"},
			[]string{"i-far 7"}, []string{"i-a 0", "i-b 0", "i-c 0", "i-far 7"}},
	} {
		w.change("web", step.change)
		w.calls()
		w.mustPass("web")
		if calls := writesOf(w.calls()); step.calls != nil && !slices.Equal(calls, step.calls) {
			t.Errorf("%s: writes %v, want %v", step.name, calls, step.calls)
		}
		groups := w.state()["mine"].Groups
		if diff := cmp.Diff([][]string{step.shared, step.other}, [][]string{short(groups["shared"]), short(groups["other"])}); diff != "" {
			t.Errorf("%s: backend servers (-want +got):\n%s", step.name, diff)
		}
	}
	w.restart()
	w.change("web", deleteService)
	w.mustPass("web")
	want := map[string][]string{"shared": {"i-far 7"}, "other": {"i-far 7"}}
	groups := w.state()["mine"].Groups
	if diff := cmp.Diff(want, map[string][]string{"shared": short(groups["shared"]), "other": short(groups["other"])}); diff != "" {
		t.Errorf("backend servers after the tear-down (-want +got):\n%s", diff)
	}
	if keys := w.listenerKeys(); len(keys) != 0 {
		t.Errorf("listeners after the tear-down: %v", keys)
	}
}

// TestTwoServicesInOneGroup: each has its own backend servers and leaves the other's alone.
func TestTwoServicesInOneGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	id := w.makeCLB().ID
	shared := w.makeGroup(id, "shared", "by hand")
	for _, name := range []string{"web", "shop"} {
		svc := joining(name, id, shared+":80", 80)
		annotate(svc, annotation.ForceOverrideListeners, "false")
		if name == "shop" {
			svc.Spec.Ports[0].NodePort = 31080
		}
		w.put(svc)
		w.mustPass(name)
	}
	if n := len(w.state()["mine"].Groups["shared"]); n != 7 {
		t.Errorf("%d backend servers, want three of each and the one that was there", n)
	}
	w.change("web", deleteService)
	w.mustPass("web")
	w.drift("shop")
	w.mustPass("shop")
	if n := len(w.state()["mine"].Groups["shared"]); n != 4 {
		t.Errorf("%d backend servers, want those of the other Service and the one that was there", n)
	}
}

// TestGroupThatIsNotThere: the port stays as it is with an event; the other ports are served.
func TestGroupThatIsNotThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	id := w.makeCLB().ID
	shared := w.makeGroup(id, "shared", "by hand")
	w.put(joining("web", id, shared+":80,rsp-gone:81", 80, 81, 82))
	w.mustPass("web")
	if diff := cmp.Diff([]string{"tcp:80", "tcp:82"}, w.listenerKeys()); diff != "" {
		t.Errorf("listeners (-want +got):\n%s", diff)
	}
	if events := strings.Join(w.newEvents(), "\n"); !strings.Contains(events, "rsp-gone") {
		t.Errorf("events = %q, want one that names the group", events)
	}
	before := w.state()
	w.calls()
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.VGroupPort, "rsp-gone:80,rsp-gone:81") })
	w.mustPass("web")
	w.mustPass("web")
	calls := w.calls()
	if writes := writesOf(calls); len(writes) != 0 {
		t.Errorf("a group that is not there: writes %v", writes)
	}
	if n := len(slices.DeleteFunc(calls, func(c string) bool { return c != "DescribeVServerGroups" })); n != 1 {
		t.Errorf("%d looks in two passes, want one after the change", n)
	}
	if diff := cmp.Diff(before, w.state()); diff != "" {
		t.Errorf("state (-before +after):\n%s", diff)
	}
	late := w.makeGroup(id, "late", "by hand")
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.VGroupPort, shared+":80,"+late+":81") })
	w.mustPass("web")
	if diff := cmp.Diff([]string{"tcp:80", "tcp:81", "tcp:82"}, w.listenerKeys()); diff != "" {
		t.Errorf("listeners (-want +got):\n%s", diff)
	}
}

func TestPortsOfOneService(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	id := w.makeCLB().ID
	shared := w.makeGroup(id, "shared", "by hand")
	w.put(joining("web", id, shared+":80,"+shared+":81", 80, 81))
	w.mustPass("web")
	if n := len(w.state()["mine"].Groups["shared"]); n != 7 {
		t.Errorf("%d backend servers, want three for each port and the one that was there", n)
	}
	w.wantRest("web")
}
