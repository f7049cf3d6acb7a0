package slb

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// actionOf is the call that a step makes.
var actionOf = map[model.Op]string{
	model.OpCreateLoadBalancer: "CreateLoadBalancer", model.OpSetProtection: "SetLoadBalancerDeleteProtection",
	model.OpDeleteLoadBalancer: "DeleteLoadBalancer",
	model.OpSetInternet:        "ModifyLoadBalancerInternetSpec", model.OpTag: "TagResources", model.OpUntag: "UntagResources",
	model.OpSetName:     "SetLoadBalancerName",
	model.OpCreateGroup: "CreateVServerGroup", model.OpDeleteGroup: "DeleteVServerGroup", model.OpAddBackends: "AddVServerGroupBackendServers",
	model.OpRemoveBackends: "RemoveVServerGroupBackendServers", model.OpReplaceBackends: "ModifyVServerGroupBackendServers",
	model.OpCreateListener: "CreateLoadBalancerTCPListener", model.OpStartListener: "StartLoadBalancerListener",
	model.OpDeleteListener: "DeleteLoadBalancerListener",
	model.OpCreateAccess:   "CreateAccessControlList", model.OpAddEntries: "AddAccessControlListEntry",
	model.OpDeleteAccess: "DeleteAccessControlList",
}

// all returns the Services of the API server, the oldest first.
func (w *world) all() []*corev1.Service {
	w.t.Helper()
	list, err := w.kube.CoreV1().Services(metav1.NamespaceAll).List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	var all []*corev1.Service
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	slices.SortFunc(all, func(a, b *corev1.Service) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return all
}

// cached has the cache of Services hold those of the API server. It returns them, the oldest first.
func (w *world) cached() []*corev1.Service {
	w.t.Helper()
	all := w.all()
	objects := make([]any, len(all))
	for i, svc := range all {
		objects[i] = svc
	}
	if err := w.factory.Core().V1().Services().Informer().GetIndexer().Replace(objects, ""); err != nil {
		w.t.Fatal(err)
	}
	return all
}

// plan returns what a process that has just started plans for all Services, and checks that it writes nothing.
func (w *world) plan() []service.Preview {
	w.t.Helper()
	w.restart()
	w.calls()
	before := w.cached()
	previews, err := w.PreviewAll(w.t.Context(), before)
	if err != nil {
		w.t.Fatal(err)
	}
	if writes := writesOf(w.calls()); len(writes) > 0 {
		w.t.Errorf("the plan writes %v", writes)
	}
	if diff := cmp.Diff(before, w.all()); diff != "" {
		w.t.Errorf("the plan changes Services (-before +after):\n%s", diff)
	}
	return previews
}

// foreseen returns the steps of the plan for each Service, by what they do, and whether further ones follow.
func (w *world) foreseen() []string {
	w.t.Helper()
	var foreseen []string
	previews := w.plan()
	for i := range previews {
		p := &previews[i]
		if p.Err != nil {
			w.t.Errorf("%s cannot be planned: %v", p.Service.Name, p.Err)
		}
		var does []string
		for _, step := range p.Steps {
			does = append(does, step.Op)
		}
		if p.Follow != "" {
			does = append(does, idOfCLB.ReplaceAllString(p.Follow, "lb-"))
		}
		if len(does) > 0 {
			foreseen = append(foreseen, p.Service.Name+": "+strings.Join(does, ", "))
		}
	}
	return foreseen
}

var idOfCLB = regexp.MustCompile(`lb-\w+`)

// wantPlan checks the first plan for each Service where the manager goes on with another one, and otherwise that it makes the calls of the
// plan alone.
func (w *world) wantPlan(first ...string) {
	w.t.Helper()
	if len(first) == 0 {
		w.wantAsPlanned()
		return
	}
	if diff := cmp.Diff(first, w.foreseen()); diff != "" {
		w.t.Errorf("plan (-want +got):\n%s", diff)
	}
}

// wantAsPlanned checks that the manager makes the calls that its plan announces, and no others.
func (w *world) wantAsPlanned() {
	w.t.Helper()
	previews := w.plan()
	var planned, lines []string
	for i := range previews {
		p := &previews[i]
		if p.Err != nil {
			w.t.Errorf("%s cannot be planned: %v", p.Service.Name, p.Err)
		}
		for _, step := range p.Steps {
			if actionOf[model.Op(step.Op)] == "" {
				w.t.Errorf("which call is %q?", step.Op)
			}
			planned, lines = append(planned, actionOf[model.Op(step.Op)]), append(lines, p.Service.Name+": "+step.String())
		}
	}
	made := w.carryOut()
	slices.Sort(planned)
	slices.Sort(made)
	if diff := cmp.Diff(planned, made, cmpopts.EquateEmpty()); diff != "" {
		w.t.Errorf("calls (-planned +made):\n%s\nplan:\n%s", diff, strings.Join(lines, "\n"))
	}
}

// carryOut makes passes over all Services in a new process until none writes anything, and returns the writes.
func (w *world) carryOut() []string {
	w.t.Helper()
	const enough = 8
	w.restart()
	w.calls()
	for range enough {
		for _, svc := range w.cached() {
			if err := w.pass(svc.Name); err != nil {
				w.t.Log(svc.Name, err)
			}
			if now := w.get(svc.Name); now.DeletionTimestamp != nil && len(now.Finalizers) == 0 {
				w.vanish(svc.Name)
				w.Forget(mark.ServiceName(now))
			}
		}
	}
	return writesOf(w.calls())
}

// leaveGroup and enterGroup change the group of a Service.
func leaveGroup(svc *corev1.Service) { delete(svc.Annotations, key(annotation.Group)) }

func enterGroup(name string) func(*corev1.Service) {
	return func(svc *corev1.Service) { annotate(svc, annotation.Group, name) }
}

// unmade makes Services that had no pass yet, the first one the oldest.
func (w *world) unmade(services ...*corev1.Service) {
	w.t.Helper()
	for i, svc := range services {
		w.put(born(svc, int64(i)))
	}
}

// midMove has a Service move, whose process dies before the Service has left its former place.
func (w *world) midMove(name string, change func(*corev1.Service)) {
	w.t.Helper()
	w.moveGrace = time.Hour
	w.restart()
	w.change(name, change)
	w.mustPass(name)
	w.moveGrace = 0
}

// TestPlanOfGroups: the plan is what the manager then does. Where that depends on what it does for another Service of the group, the plan
// is the first one.
func TestPlanOfGroups(t *testing.T) {
	t.Parallel()
	const creates, exists = "create load balancer, create group, create listener, start listener", "further steps follow once the load balancer exists"
	const deletes, leaves, left = "set delete protection, delete load balancer", "delete listener, delete group", "further steps may follow once other Services have left CLB lb-, too"
	first := map[string][]string{
		"a new group":                             {"web: " + creates, "shop: " + exists, "blog: " + exists},
		"a new group with overflow":               {"web: " + creates, "blog: " + exists, "wiki: " + exists},
		"taken ports with overflow":               {"blog: " + creates, "wiki: " + exists},
		"all into another group":                  {"web: " + creates + ", " + leaves, "shop: " + leaves + ", " + exists},
		"two into a new group":                    {"web: " + creates + ", " + deletes, "shop: " + deletes + ", " + exists},
		"all deleted":                             {"web: " + leaves, "shop: " + leaves + ", " + left},
		"one deleted, another one gets its port":  {"web: " + leaves},
		"an older one wants a younger one's port": {"old: create group", "web: " + creates + ", " + leaves},
		"into a group and another one deleted":    {"shop: " + deletes},
	}
	for name, prepare := range map[string]func(*world){
		"a new group": func(w *world) {
			w.unmade(grouped("web", "edge", 80), grouped("shop", "edge", 81), grouped("blog", "edge", 80))
		},
		"a new group with overflow": func(w *world) {
			w.unmade(overflowing(grouped("web", "edge", 80)), overflowing(grouped("blog", "edge", 80)), overflowing(grouped("wiki", "edge", 80, 81)))
		},
		"a port that is taken": func(w *world) {
			w.putAll(grouped("web", "edge", 80))
			w.put(born(grouped("blog", "edge", 80), 5))
		},
		"taken ports with overflow": func(w *world) {
			w.putAll(overflowing(grouped("web", "edge", 80)))
			w.put(born(overflowing(grouped("blog", "edge", 80)), 5))
			w.put(born(overflowing(grouped("wiki", "edge", 80)), 6))
		},
		"into a group": func(w *world) {
			w.putAll(testService("web", 80), grouped("shop", "edge", 81))
			w.change("web", enterGroup("edge"))
		},
		"out of a group": func(w *world) {
			w.putAll(grouped("web", "edge", 80), grouped("shop", "edge", 81))
			w.change("web", leaveGroup)
		},
		"the last one out of a group": func(w *world) {
			w.putAll(grouped("web", "edge", 80))
			w.change("web", leaveGroup)
		},
		"all into another group": func(w *world) {
			w.putAll(grouped("web", "edge", 80), grouped("shop", "edge", 81))
			w.change("web", enterGroup("core"))
			w.change("shop", enterGroup("core"))
		},
		"two into a new group": func(w *world) {
			w.putAll(testService("web", 80), testService("shop", 81))
			w.change("web", enterGroup("edge"))
			w.change("shop", enterGroup("edge"))
		},
		"in the middle of a move into a group": func(w *world) {
			w.putAll(testService("web", 80), grouped("shop", "edge", 81))
			w.midMove("web", enterGroup("edge"))
		},
		"in the middle of a move out of a group": func(w *world) {
			w.putAll(grouped("web", "edge", 80), grouped("shop", "edge", 81))
			w.midMove("web", leaveGroup)
		},
		"deleted in the middle of a move": func(w *world) {
			w.putAll(testService("web", 80), grouped("shop", "edge", 81))
			w.midMove("web", enterGroup("edge"))
			w.change("web", deleteService)
		},
		"one deleted": func(w *world) {
			w.putAll(grouped("web", "edge", 80), grouped("shop", "edge", 81))
			w.change("web", deleteService)
		},
		"the last one deleted": func(w *world) {
			w.putAll(grouped("web", "edge", 80))
			w.change("web", deleteService)
		},
		"all deleted": func(w *world) {
			w.putAll(grouped("web", "edge", 80), grouped("shop", "edge", 81))
			w.change("web", deleteService)
			w.change("shop", deleteService)
		},
		"one deleted, another one gets its port": func(w *world) {
			w.putAll(grouped("web", "edge", 80), grouped("shop", "edge", 81))
			w.put(born(grouped("blog", "edge", 80), 5))
			w.mustPass("blog")
			w.change("web", deleteService)
		},
		"deleted with source ranges": func(w *world) {
			closed := grouped("web", "edge", 80)
			closed.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}
			w.putAll(closed, grouped("shop", "edge", 81))
			w.change("web", deleteService)
		},
		"no longer a load balancer": func(w *world) {
			w.putAll(grouped("web", "edge", 80), grouped("shop", "edge", 81))
			w.change("web", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP })
		},
		"an older one wants a younger one's port": func(w *world) {
			w.putAll(grouped("old", "edge", 81), overflowing(grouped("web", "edge", 80)))
			w.change("old", func(svc *corev1.Service) { svc.Spec.Ports = append(svc.Spec.Ports, testPort(80, corev1.ProtocolTCP)) })
		},
		"into a group and another one deleted": func(w *world) {
			w.putAll(testService("web", 80), grouped("shop", "edge", 80))
			w.change("web", enterGroup("edge"))
			w.change("shop", deleteService)
		},
		"listeners by hand": func(w *world) {
			w.putAll(grouped("web", "edge", 80))
			w.makeListener(w.onlyCLB(), 9000, "by hand")
			w.change("web", deleteService)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := groupWorld(t)
			prepare(w)
			w.wantPlan(first[name]...)
		})
	}
}
