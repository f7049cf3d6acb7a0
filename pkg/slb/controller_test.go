package slb

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// running is a world whose controller runs over real informers.
type running struct {
	*world
	controller *service.Controller
}

func run(t *testing.T, prepare func(*world), configure ...func(*world)) *running {
	t.Helper()
	w := newWorld(t)
	for _, f := range configure {
		f(w)
	}
	w.factory = informers.NewSharedInformerFactory(w.kube, 0)
	w.restart()
	opts := w.options()
	controller, err := service.NewController(opts, w.Reconciler)
	if err != nil {
		t.Fatal(err)
	}
	prepare(w)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		controller.Run(ctx) // before the informers start: it must wait for them itself
	}()
	w.factory.Start(ctx.Done())
	t.Cleanup(func() {
		cancel()
		<-done
		w.factory.Shutdown()
	})
	return &running{world: w, controller: controller}
}

// createNode makes an instance and puts its Node into the API server.
func (w *world) createNode(name string) {
	w.t.Helper()
	node := w.addNode(name)
	w.deleteNode(name) // the informer brings it
	if _, err := w.kube.CoreV1().Nodes().Create(w.t.Context(), node, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// eventually polls until ok says yes.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	testkit.Eventually(t, what, func(context.Context) bool { return ok() })
}

func (r *running) servers(group string) int {
	for _, lb := range r.state() {
		return len(lb.Groups[group])
	}
	return -1
}

func TestControllerFollowsServiceAndNodes(t *testing.T) {
	t.Parallel()
	const group = "k8s/30080/web/default/c1"
	r := run(t, func(w *world) {
		for _, name := range []string{"a", "b", "c"} {
			w.createNode(name)
		}
		w.put(testService("web", 80))
	})
	eventually(t, "address in the status", func() bool { return len(r.get("web").Status.LoadBalancer.Ingress) == 1 })

	r.createNode("d")
	eventually(t, "fourth backend server", func() bool { return r.servers(group) == 4 })
	if err := r.kube.CoreV1().Nodes().Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "three backend servers", func() bool { return r.servers(group) == 3 })

	if _, err := r.kube.DiscoveryV1().EndpointSlices(testNamespace).Create(t.Context(),
		testSlice(testPort(80, corev1.ProtocolTCP), "10.9.0.1@b"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.change("web", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeNodePort })
	eventually(t, "CLB gone", func() bool { return len(r.state()) == 0 })
	eventually(t, "finalizer gone", func() bool { return len(r.get("web").Finalizers) == 0 })

	reads := 0
	for _, action := range r.calls() {
		if action[:len("Describe")] == "Describe" {
			reads++
		}
	}
	if reads != 3 {
		t.Errorf("%d reads in the whole life of the Service, want the one that looks for its CLB, and those of it and its listeners before its deletion", reads)
	}
}

func TestControllerIgnoresOtherClasses(t *testing.T) {
	t.Parallel()
	r := run(t, func(w *world) {
		w.createNode("a")
		nlb := testService("nlb", 80)
		class := "alibabacloud.com/nlb"
		nlb.Spec.LoadBalancerClass = &class
		w.put(nlb)
		ours := testService("web", 80)
		own := Class
		ours.Spec.LoadBalancerClass = &own
		w.put(ours)
	})
	eventually(t, "our class served", func() bool { return len(r.get("web").Status.LoadBalancer.Ingress) == 1 })
	if svc := r.get("nlb"); len(svc.Finalizers) != 0 || len(r.state()) != 1 {
		t.Errorf("the other class has finalizers %v, %d CLBs", svc.Finalizers, len(r.state()))
	}
}

func TestControllerServesManyServicesAtOnce(t *testing.T) {
	t.Parallel()
	const n = 12
	r := run(t, func(w *world) {
		w.createNode("a")
		for i := range n {
			w.put(testService(fmt.Sprintf("web-%d", i), 80))
		}
	})
	eventually(t, "all CLBs", func() bool {
		served := 0
		for i := range n {
			served += len(r.get(fmt.Sprintf("web-%d", i)).Status.LoadBalancer.Ingress)
		}
		return served == n
	})
	creates := 0
	for _, action := range r.calls() {
		if action == "CreateLoadBalancer" {
			creates++
		}
	}
	if creates != n {
		t.Errorf("%d creations for %d Services", creates, n)
	}
}

func TestControllerTriesAgain(t *testing.T) {
	t.Parallel()
	r := run(t, func(w *world) {
		w.createNode("a")
		w.fault(map[string]any{"action": "CreateVServerGroup", "code": "InternalError", "status": 500})
		w.put(testService("web", 80))
	})
	eventually(t, "address after a failure", func() bool { return len(r.get("web").Status.LoadBalancer.Ingress) == 1 })
	eventually(t, "both events", func() bool { return len(r.events) == 2 })
	if events := r.newEvents(); events[0][:len("Warning "+problem.ReasonSyncFailed)] != "Warning "+problem.ReasonSyncFailed {
		t.Errorf("events = %q", events)
	}
}

func TestFinalizerStandsBeforeTheFirstWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.put(testService("web", 80))
	w.fault(map[string]any{"action": "CreateLoadBalancer", "code": "InternalError", "status": 500})
	if w.pass("web") == nil {
		t.Fatal("no error")
	}
	if !slices.Contains(w.get("web").Finalizers, Finalizer) {
		t.Error("a CLB may exist and nothing holds the Service")
	}
}
