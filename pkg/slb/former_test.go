package slb

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// former is a change after which the listener of a Service is to use another group.
type former struct {
	name string
	// pods says that pods are the backends before the change.
	pods   bool
	change func(*corev1.Service)
	// more and fewer are the backends of the group that it stays in when c has come, and when a has gone after that.
	more, fewer []string
}

func formers() []former {
	ab, abc, bc, b := []string{"a", "b"}, []string{"a", "b", "c"}, []string{"b", "c"}, []string{"b"}
	return []former{
		{"another node port", false, func(svc *corev1.Service) { svc.Spec.Ports[0].NodePort = 31000 }, abc, bc},
		{"pods in place of nodes", false, eni, abc, bc},
		// Nobody asks for the network interfaces of pods any more, so that those that come cannot join.
		{"nodes in place of pods", true, func(svc *corev1.Service) { delete(svc.Annotations, string(annotation.BackendType)) }, ab, b},
		{"another target port", true, func(svc *corev1.Service) { svc.Spec.Ports[0].TargetPort = intstr.FromInt32(9090) }, abc, bc},
		{"another protocol", false, func(svc *corev1.Service) {
			svc.Spec.Ports[0].NodePort = 31000
			annotate(svc, annotation.ProtocolPort, "http:80")
		}, abc, bc},
	}
}

// leadsTo returns the backends of the listener on port 80, whatever its protocol and whatever they are: nodes or the pods on them.
func (w *world) leadsTo() []string {
	w.t.Helper()
	lb := w.state()["a0f5e8a1cweb"]
	names := []string{}
	for listener := range lb.Listeners {
		for _, server := range lb.serving(listener) {
			for _, name := range []string{"a", "b", "c"} {
				if server == "i-"+name+" 100" || server == w.addressOf("i-"+name)+" 100" {
					names = append(names, name)
				}
			}
		}
	}
	slices.Sort(names)
	return names
}

// afterPass makes a pass, which fails while the listener stays, and checks what the listener leads to then.
func (w *world) afterPass(what string, names ...string) {
	w.t.Helper()
	_ = w.pass("web") //nolint:errcheck // it says that the listener stays
	if got := w.leadsTo(); !slices.Equal(got, names) {
		w.t.Errorf("%s: the listener leads to %v, want %v", what, got, names)
	}
}

// TestFormerGroupFollowsTheEndpoints: while a listener stays in its group because the new one cannot be made, dead backends leave the old
// one and ready ones join it, as far as they are known.
func TestFormerGroupFollowsTheEndpoints(t *testing.T) {
	t.Parallel()
	eachFormer(t, func(_ *testing.T, test former, w *world, put func(items ...string)) {
		w.afterPass("at first", "a", "b")
		w.fault(map[string]any{"action": "CreateVServerGroup", "code": "Forbidden.RAM", "status": 403, "times": 0})
		w.change("web", test.change)
		w.afterPass("after the change", "a", "b")
		w.putNode(testNode("c"))
		put("a", "b", "c@c")
		w.afterPass("c comes", test.more...)
		w.deleteNode("a")
		put("b", "c@c")
		w.afterPass("a goes", test.fewer...)
		w.clearFaults()
		w.restart()
		w.afterPass("in the end", "b", "c")
	})
}

// TestFormerGroupWhileTheNewOneIsEmpty: dead backends also leave while the cloud takes none into the new group, which is there.
func TestFormerGroupWhileTheNewOneIsEmpty(t *testing.T) {
	t.Parallel()
	eachFormer(t, func(_ *testing.T, test former, w *world, put func(items ...string)) {
		w.fault(map[string]any{"action": "CreateVServerGroup", "code": "NetworkConflict", "status": 400, "times": 1})
		w.fault(map[string]any{"action": "AddVServerGroupBackendServers", "code": "Forbidden.RAM", "status": 403, "times": 0})
		w.change("web", test.change)
		_ = w.pass("web") //nolint:errcheck // it says that the listener stays
		w.deleteNode("a")
		put("b")
		w.afterPass("a goes", "b")
	})
}

// TestFormerGroupIsNotEmptiedInDoubt: while nobody knows what the backends are, the old group keeps what it has.
func TestFormerGroupIsNotEmptiedInDoubt(t *testing.T) {
	t.Parallel()
	eachFormer(t, func(t *testing.T, test former, w *world, _ func(items ...string)) {
		t.Helper()
		w.fault(map[string]any{"action": "CreateVServerGroup", "code": "Forbidden.RAM", "status": 403, "times": 0})
		w.change("web", test.change)
		if test.pods {
			testkit.Check(t, w.factory.Discovery().V1().EndpointSlices().Informer().GetIndexer().Replace(nil, ""))
		} else {
			testkit.Check(t, w.factory.Core().V1().Nodes().Informer().GetIndexer().Replace(nil, ""))
		}
		w.afterPass("in doubt", "a", "b")
	})
}

// eachFormer runs a test for each change, with the Service and the backends a and b.
func eachFormer(t *testing.T, run func(t *testing.T, test former, w *world, put func(items ...string))) {
	t.Helper()
	for _, test := range formers() {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w, put := test.begin(t)
			run(t, test, w, put)
		})
	}
}

// begin makes the Service with the backends a and b.
func (f former) begin(t *testing.T) (w *world, put func(items ...string)) {
	t.Helper()
	change := func(*corev1.Service) {}
	if f.pods {
		change = eni
	}
	w, put = podWorld(t, change)
	w.deleteNode("c")
	w.mustPass("web")
	return w, put
}
