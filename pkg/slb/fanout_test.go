package slb

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
)

// watchedServices reports each Service that a pass begins with.
type watchedServices struct {
	coreinformers.ServiceInformer
	begins func(name string)
}

func (w watchedServices) Lister() corelisters.ServiceLister {
	return watchedLister{w.ServiceInformer.Lister(), w.begins}
}

type watchedLister struct {
	corelisters.ServiceLister
	begins func(name string)
}

func (w watchedLister) Services(namespace string) corelisters.ServiceNamespaceLister {
	return watchedNamespace{w.ServiceLister.Services(namespace), w.begins}
}

type watchedNamespace struct {
	corelisters.ServiceNamespaceLister
	begins func(name string)
}

func (w watchedNamespace) Get(name string) (*corev1.Service, error) {
	w.begins(name)
	return w.ServiceNamespaceLister.Get(name)
}

// fanOut is a controller with one worker in a synctest bubble, and the Services of its passes in their order.
type fanOut struct {
	*world
	mu     sync.Mutex
	passes []string // guarded by mu: handlers of events ask for a Service, too
	// during is called in each pass. Guarded by mu.
	during func()
}

// begins notes a pass.
func (f *fanOut) begins(name string) {
	f.mu.Lock()
	f.passes = append(f.passes, name)
	during := f.during
	f.mu.Unlock()
	during()
}

// atNextPass has f called once, in the next pass.
func (f *fanOut) atNextPass(call func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.during = func() {
		f.mu.Lock()
		f.during = func() {}
		f.mu.Unlock()
		call()
	}
}

// keep drops all passes but the first n.
func (f *fanOut) keep(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.passes = f.passes[:n]
}

// newFanOut starts a controller with one worker over three nodes and what prepare makes, and lets it come to rest.
func newFanOut(t *testing.T, services int, prepare func(*world)) *fanOut {
	t.Helper()
	return newFanOutIn(t, cloud.DefaultConfig(), 1, func(w *world) {
		for _, name := range []string{"a", "b", "c"} {
			w.createNode(name)
		}
		for i := range services {
			w.put(testService(fmt.Sprintf("web-%d", i), 80))
		}
		prepare(w)
	})
}

func newFanOutIn(t *testing.T, cfg *cloud.Config, workers int, prepare func(*world)) *fanOut {
	t.Helper()
	w := unstartedWorld(t, cfg)
	w.events = make(chan string, 20*manyServices) // nobody reads them
	w.config.Quotas = roomy()
	w.factory = informers.NewSharedInformerFactory(w.kube, 0)
	w.restart()
	f := &fanOut{world: w, during: func() {}}
	opts := w.options()
	opts.Workers, opts.ResyncPeriod = workers, 24*time.Hour
	opts.Services = watchedServices{opts.Services, f.begins}
	w.Reconciler = service.NewReconciler(opts)
	controller, err := service.NewController(opts, w.Reconciler)
	if err != nil {
		t.Fatal(err)
	}
	prepare(w)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	w.factory.Start(ctx.Done())
	go func() {
		defer close(done)
		controller.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		w.factory.Shutdown()
	})
	return f
}

// since lets time pass and returns the Services of the passes meanwhile.
func (f *fanOut) since(d time.Duration) []string {
	time.Sleep(d)
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	passes := f.passes
	f.passes = nil
	return passes
}

func (w *world) changeNode(name string, change func(*corev1.Node)) {
	w.t.Helper()
	testkube.ChangeNode(w.t, w.kube, name, change)
}

// TestNodesThatConcernNobody: the nodes of the initial list have no pass made, and labels only of Services that choose nodes by label.
func TestNodesThatConcernNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFanOut(t, 3, func(w *world) {
			chooser := testService("chooser", 80)
			annotate(chooser, annotation.BackendLabel, "pool=x")
			w.put(chooser)
			w.changeNode("b", func(n *corev1.Node) { n.Labels["pool"] = "x" })
		})
		if early := f.since(900 * time.Millisecond); len(early) < 4 {
			t.Fatalf("passes %v, want all Services", early)
		}
		if late := f.since(20 * time.Second); len(late) != 0 {
			t.Errorf("the initial list of nodes makes passes over %v", late)
		}
		f.since(5 * time.Minute) // whatever the start has left to do
		for _, test := range []struct {
			name string
			act  func()
			want int
		}{
			{"a heartbeat", func() {
				f.changeNode("a", func(n *corev1.Node) { testkube.Ready(n).LastHeartbeatTime = metav1.Now() })
			}, 0},
			{"a label", func() { f.changeNode("a", func(n *corev1.Node) { n.Labels["pool"] = "x" }) }, 1},
			{"a cordon", func() { f.changeNode("a", func(n *corev1.Node) { n.Spec.Unschedulable = true }) }, 4},
			{"a new node", func() { f.createNode("d") }, 4},
		} {
			test.act()
			concerned := f.since(20 * time.Second)
			slices.Sort(concerned)
			if concerned = slices.Compact(concerned); len(concerned) != test.want || test.want == 1 && concerned[0] != "chooser" {
				t.Errorf("%s: passes over %v, want %d Services", test.name, concerned, test.want)
			}
		}
	})
}

// TestEndpointEventOvertakesAFanOut: while every Service waits for a pass that finds nothing to do, the next pass is that of the Service
// with an event of its own; and so is the one after it, which adds the pod that the first one has found to wait for its gate.
func TestEndpointEventOvertakesAFanOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const others = 30
		pods := testService("pods", 80)
		eni(pods)
		var slice *discoveryv1.EndpointSlice
		f := newFanOut(t, others, func(w *world) {
			w.put(pods)
			w.putPod("p", true, backend.GatePrefix+"pods")
			slice = testSlice(pods.Spec.Ports[0], w.addressOf("i-a")+"@a")
			slice.Labels[discoveryv1.LabelServiceName] = "pods"
			slice.Endpoints[0].TargetRef = &corev1.ObjectReference{Kind: "Pod", Name: "q", UID: "uid-q"}
			if _, err := w.kube.DiscoveryV1().EndpointSlices(testNamespace).Create(t.Context(), slice, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		})
		f.since(5 * time.Minute)
		f.atNextPass(func() {
			waiting := slice.DeepCopy()
			waiting.Endpoints = append(waiting.Endpoints, discoveryv1.Endpoint{
				Addresses: []string{f.addressOf("i-b")}, Conditions: discoveryv1.EndpointConditions{Ready: new(false), Serving: new(false)},
				TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "p", UID: "uid-p"},
			})
			if _, err := f.kube.DiscoveryV1().EndpointSlices(testNamespace).Update(t.Context(), waiting, metav1.UpdateOptions{}); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Millisecond) // the informer sees it
			f.keep(1)                    // its handler asks for the Service, too
		})
		f.changeNode("c", func(n *corev1.Node) { n.Spec.Unschedulable = true })
		passes := f.since(20 * time.Second)
		next := passes[1:]
		if passes[0] == "pods" { // the fan-out began with it, so that its pass may have seen the new pod already
			next = append([]string{"pods"}, next...)
		}
		if len(passes) < others || next[0] != "pods" || next[1] != "pods" {
			t.Errorf("passes over %v, want pods in the second and the third place", passes)
		}
	})
}

// largeFanOut has TestEndpointEventBehindAFanOut measure in a cluster of the size that the goal names.
var largeFanOut = flag.Bool("slb.large", false, "let TestEndpointEventBehindAFanOut measure with 5,000 Services and 1,000 nodes")

// TestEndpointEventBehindAFanOut: an endpoint that is gone leaves the cloud while nearly all Services still wait for the pass that a
// changed node asks for. It reports how long that took. The clock of the bubble stands still meanwhile, so the time is that of the
// processor.
func TestEndpointEventBehindAFanOut(t *testing.T) { //nolint:paralleltest // it measures
	services, nodes := 100, 20
	if *largeFanOut {
		services, nodes = manyServices, manyNodes
	}
	synctest.Test(t, func(t *testing.T) {
		cfg := cloud.DefaultConfig()
		cfg.Quotas = cloud.Limits{LoadBalancers: 2 * manyServices, LBsPerInstance: manyServices}
		local := testService("local", 80)
		local.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		slice := testSlice(local.Spec.Ports[0], "10.9.0.1@n0000", "10.9.0.2@n0001")
		slice.Labels[discoveryv1.LabelServiceName] = local.Name
		first := &firstWrite{}
		f := newFanOutIn(t, cfg, 10, func(w *world) {
			first.next, w.transport.next = w.transport.next, first
			for i := range nodes {
				w.createNode(fmt.Sprintf("n%04d", i))
				w.changeNode(fmt.Sprintf("n%04d", i), func(n *corev1.Node) { n.Labels["pool"] = strconv.Itoa(i / 3) })
			}
			for i := range services {
				svc := testService(fmt.Sprintf("web-%d", i), 80)
				annotate(svc, annotation.BackendLabel, fmt.Sprintf("pool=%d", i%(nodes/3)))
				w.put(svc)
			}
			w.put(local)
			if _, err := w.kube.DiscoveryV1().EndpointSlices(testNamespace).Create(t.Context(), slice, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		})
		f.since(48 * time.Hour) // under the rate limit
		var issued time.Duration
		f.atNextPass(func() {
			left := slice.DeepCopy()
			left.Endpoints = left.Endpoints[:1]
			issued = wallClock(t)
			first.await(t)
			if _, err := f.kube.DiscoveryV1().EndpointSlices(testNamespace).Update(t.Context(), left, metav1.UpdateOptions{}); err != nil {
				t.Error(err)
			}
		})
		f.changeNode("n0002", func(n *corev1.Node) { n.Spec.Unschedulable = true })
		if passes := len(f.since(20 * time.Second)); passes < services {
			t.Fatalf("%d passes, want one over each of %d Services", passes, services)
		}
		first.mu.Lock()
		defer first.mu.Unlock()
		if first.action != "RemoveVServerGroupBackendServers" {
			t.Errorf("the first write is %q, want the removal of the endpoint", first.action)
		}
		t.Attr("milliseconds", fmt.Sprintf("%.1f", float64(first.at-issued)/1e6)) // for make bench
	})
}

// firstWrite notes when the first write after await reaches the cloud.
type firstWrite struct {
	next http.RoundTripper

	mu     sync.Mutex // guards the rest
	seen   func()     // nil while nobody waits
	action string
	at     time.Duration
}

func (w *firstWrite) await(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = func() { w.at = wallClock(t) }
}

func (w *firstWrite) RoundTrip(request *http.Request) (*http.Response, error) {
	action := request.URL.Query().Get("Action")
	w.mu.Lock()
	if w.seen != nil && !strings.HasPrefix(action, "Describe") {
		w.seen()
		w.action, w.seen = action, nil
	}
	w.mu.Unlock()
	return w.next.RoundTrip(request)
}

// wallClock is the time outside the bubble.
func wallClock(t *testing.T) time.Duration {
	t.Helper()
	var now syscall.Timeval
	if err := syscall.Gettimeofday(&now); err != nil {
		t.Error(err)
	}
	return time.Duration(now.Nano())
}
