package nlb

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// actionOf is the call that a step makes.
var actionOf = map[model.Op]string{
	model.OpCreateLoadBalancer: "CreateLoadBalancer", model.OpSetProtection: "UpdateLoadBalancerProtection",
	model.OpDeleteLoadBalancer: "DeleteLoadBalancer",
	model.OpTag:                "TagResources", model.OpUntag: "UntagResources", model.OpCreateGroup: "CreateServerGroup",
	model.OpDeleteGroup: "DeleteServerGroup",
	model.OpAddServers:  "AddServersToServerGroup", model.OpRemoveServers: "RemoveServersFromServerGroup",
	model.OpUpdateServers:  "UpdateServerGroupServersAttribute",
	model.OpCreateListener: "CreateListener", model.OpDeleteListener: "DeleteListener", model.OpUpdateListener: "UpdateListenerAttribute",
}

// all returns the Services of the API server, the oldest first.
func (w *world) all() []*corev1.Service {
	w.t.Helper()
	list := testkit.Must(w.kube.CoreV1().Services(metav1.NamespaceAll).List(w.t.Context(), metav1.ListOptions{}))(w.t)
	var all []*corev1.Service
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	slices.SortFunc(all, func(a, b *corev1.Service) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return all
}

// plan returns what a process that has just started plans for all Services, and checks that it writes nothing.
func (w *world) plan() []service.Preview {
	w.t.Helper()
	w.restart()
	w.fillServices()
	w.calls()
	before := w.all()
	previews := testkit.Must(w.PreviewAll(w.t.Context(), before))(w.t)
	if found := writes(w.calls()); len(found) > 0 {
		w.t.Errorf("the plan writes %v", found)
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
			does = append(does, idOfNLB.ReplaceAllString(p.Follow, "nlb-"))
		}
		if len(does) > 0 {
			foreseen = append(foreseen, p.Service.Name+": "+strings.Join(does, ", "))
		}
	}
	return foreseen
}

var idOfNLB = regexp.MustCompile(`nlb-\w+`)

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
	w.restart()
	w.calls()
	const enough = 5
	for range enough {
		for _, svc := range w.all() {
			w.fillServices()
			if err := w.tryOne(svc.Name); err != nil {
				w.t.Log(svc.Name, err)
			}
			if now := w.get(svc.Name); now.DeletionTimestamp != nil && len(now.Finalizers) == 0 {
				w.vanish(svc.Name)
				w.Forget(mark.ServiceName(now))
			}
		}
	}
	return writes(w.calls())
}

// midMove has a Service move, whose process dies before the Service has left its former place.
func (w *world) midMove(name string, changes ...func(*corev1.Service)) {
	w.t.Helper()
	from := w.hostname(name)
	w.change(name, changes...)
	w.fillServices()
	const enough = 20
	for range enough {
		testkit.Must(w.Reconcile(w.t.Context(), w.get(name)))(w.t)
		if w.hostname(name) != from {
			return
		}
		w.later(settle)
	}
	w.t.Fatal("the Service does not move")
}

// TestPlanOfGroups: the plan is what the manager then does. Where that depends on what it does for another Service of the group, the plan
// is the first one.
func TestPlanOfGroups(t *testing.T) {
	t.Parallel()
	const creates, exists = "create NLB, create server group, add servers, create listener", "further steps follow once the load balancer exists"
	const moves, leaves, left = "set protection, delete NLB", "delete listener, delete server group", "further steps may follow once other Services have left NLB nlb-, too"
	first := map[string][]string{
		"a new group":                            {"web: " + creates, "shop: " + exists, "blog: " + exists},
		"a new group with overflow":              {"web: " + creates, "blog: " + exists, "wiki: " + exists},
		"two into a new group":                   {"web: create NLB, create listener, " + moves, "shop: " + moves + ", " + exists},
		"all deleted":                            {"web: " + leaves, "shop: " + leaves + ", " + left},
		"one deleted, another one gets its port": {"web: " + leaves},
	}
	deleted := func(svc *corev1.Service) { now := metav1.Now(); svc.DeletionTimestamp = &now }
	overflows := with(annotation.GroupOverflow, "true")
	port := testkit.TCP
	for name, prepare := range map[string]func(w *world){
		"a new group": func(w *world) {
			w.addNodes("n1", "n2")
			w.put(grouped("web", "edge", 0, port(80)))
			w.put(grouped("shop", "edge", 1, port(81)))
			w.put(grouped("blog", "edge", 2, port(80)))
		},
		"a new group with overflow": func(w *world) {
			w.addNodes("n1", "n2")
			w.put(grouped("web", "edge", 0, port(80), overflows))
			w.put(grouped("blog", "edge", 1, port(80), overflows))
			w.put(grouped("wiki", "edge", 2, port(80, 81), overflows))
		},
		"a port that is taken": func(w *world) {
			w.groupWorld(grouped("web", "edge", 0, port(80)))
			w.put(grouped("blog", "edge", 1, port(80)))
		},
		"into a group": func(w *world) {
			w.groupWorld(newService("web", born(0), port(80)), grouped("shop", "edge", 1, port(81)))
			w.change("web", with(annotation.Group, "edge"))
		},
		"out of a group": func(w *world) {
			w.groupWorld(grouped("web", "edge", 0, port(80)), grouped("shop", "edge", 1, port(81)))
			w.change("web", without(annotation.Group))
		},
		"the last one out of a group": func(w *world) {
			w.groupWorld(grouped("web", "edge", 0, port(80)))
			w.change("web", without(annotation.Group))
		},
		"two into a new group": func(w *world) {
			w.groupWorld(newService("web", born(0), port(80)), newService("shop", born(1), port(81)))
			w.change("web", with(annotation.Group, "edge"))
			w.change("shop", with(annotation.Group, "edge"))
		},
		"in the middle of a move into a group": func(w *world) {
			w.groupWorld(newService("web", born(0), port(80)), grouped("shop", "edge", 1, port(81)))
			w.midMove("web", with(annotation.Group, "edge"))
		},
		"deleted in the middle of a move": func(w *world) {
			w.groupWorld(newService("web", born(0), port(80)), grouped("shop", "edge", 1, port(81)))
			w.midMove("web", with(annotation.Group, "edge"))
			w.change("web", deleted)
		},
		"one deleted": func(w *world) {
			w.groupWorld(grouped("web", "edge", 0, port(80)), grouped("shop", "edge", 1, port(81)))
			w.change("web", deleted)
		},
		"the last one deleted": func(w *world) {
			w.groupWorld(grouped("web", "edge", 0, port(80)))
			w.change("web", deleted)
		},
		"all deleted": func(w *world) {
			w.groupWorld(grouped("web", "edge", 0, port(80)), grouped("shop", "edge", 1, port(81)))
			w.change("web", deleted)
			w.change("shop", deleted)
		},
		"one deleted, another one gets its port": func(w *world) {
			w.groupWorld(grouped("web", "edge", 0, port(80)), grouped("shop", "edge", 1, port(81)))
			w.put(grouped("blog", "edge", 2, port(80)))
			w.fillServices()
			_ = w.tryOne("blog")
			w.change("web", deleted)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(_ *testing.T, w *world) {
				prepare(w)
				w.wantPlan(first[name]...)
			})
		})
	}
}
