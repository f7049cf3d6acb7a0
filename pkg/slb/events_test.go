package slb

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	discoveryinformers "k8s.io/client-go/informers/discovery/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
)

// withoutLister are EndpointSlices that nobody may list: a list with a selector reads all of the namespace.
type withoutLister struct {
	discoveryinformers.EndpointSliceInformer
	t testing.TB
}

func (w withoutLister) Lister() discoverylisters.EndpointSliceLister {
	w.t.Error("the EndpointSlices of the namespace are listed")
	return w.EndpointSliceInformer.Lister()
}

// TestEndpointSlicesAreReadByIndex: what a pass costs does not depend on how many slices other Services have.
func TestEndpointSlicesAreReadByIndex(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	svc := testService("web", 80)
	svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	w.put(svc)
	w.putSlice(testSlice(svc.Spec.Ports[0], "10.9.0.1@a", "10.9.0.2@b"))
	foreign := testSlice(svc.Spec.Ports[0], "10.9.0.3@c")
	foreign.Labels[discoveryv1.LabelServiceName] = "other"
	w.putSlice(foreign)
	opts := w.options()
	opts.EndpointSlices = withoutLister{opts.EndpointSlices, t}
	w.Reconciler = service.NewReconciler(opts)
	w.mustPass("web")
	for _, lb := range w.state() {
		if backends := len(lb.Groups["k8s/30080/web/default/c1"]); backends != 2 {
			t.Errorf("%d backends, want those of the Service's own slices", backends)
		}
	}
}

// TestUnchangedServiceAllocatesLittle: a pass over a Service with 1,000 nodes that finds nothing to do makes no list of them, neither
// when a node has changed that does not matter. It does not run in parallel: the memory of others would count.
func TestUnchangedServiceAllocatesLittle(t *testing.T) { //nolint:paralleltest // see above
	const limit = 56 << 10 // a list of 1,000 backends has 80 kB, and one of pointers to nodes at least 8 kB
	w, services := manyNodesWorld(t, 1)
	pass := func() {
		if _, err := w.Reconcile(t.Context(), services[0]); err != nil {
			t.Fatal(err)
		}
	}
	pass()
	const passes = 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range passes {
		pass()
	}
	runtime.ReadMemStats(&after)
	if bytes := (after.TotalAlloc - before.TotalAlloc) / passes; bytes > limit {
		t.Errorf("a pass allocates %d bytes, want %d at most", bytes, limit)
	}
	if calls := w.calls(); len(calls) != 0 {
		t.Errorf("calls %v, want none", calls)
	}
}

// A cluster for measurements.
const (
	manyNodes    = 1000
	manyServices = 5000
	// distinct is how many Services there really are: each has as many backends as there are nodes, and the rate limit makes
	// more of them take minutes.
	distinct = 3
)

// manyNodesWorld has Services that are served by all nodes, and informers that run.
func manyNodesWorld(tb testing.TB, distinct int) (*world, []*corev1.Service) {
	tb.Helper()
	w := newWorldWith(tb, cloud.Limits{BackendsPerLB: 10 * manyNodes})
	w.config.Quotas = roomy()
	w.factory = informers.NewSharedInformerFactory(w.kube, 0)
	w.restart()
	controller, err := service.NewController(w.options(), w.Reconciler) // for its handlers
	if err != nil {
		tb.Fatal(err)
	}
	for i := range manyNodes {
		name := fmt.Sprintf("n%04d", i)
		if _, err := w.emulator.PutInstance("i-"+name, emulator.InstanceSpec{}); err != nil {
			tb.Fatal(err)
		}
		if _, err := w.kube.CoreV1().Nodes().Create(tb.Context(), testNode(name), metav1.CreateOptions{}); err != nil {
			tb.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(tb.Context())
	tb.Cleanup(func() {
		cancel()
		controller.Run(ctx) // ends its queue
		w.factory.Shutdown()
	})
	w.factory.Start(ctx.Done())
	w.factory.WaitForCacheSync(ctx.Done())
	services := make([]*corev1.Service, distinct)
	for i := range services {
		name := fmt.Sprintf("web-%d", i)
		w.put(testService(name, 80))
		for settled := false; !settled; settled = len(writesOf(w.calls())) == 0 {
			w.mustPass(name) // an event of the Service may have interrupted the pass before
		}
		services[i] = w.get(name)
	}
	w.newEvents()
	return w, services
}

// reportCPU reports the CPU time of the process, which other processes do not prolong.
func reportCPU(b *testing.B, nanoseconds float64, unit string) func() {
	b.Helper()
	used := func() time.Duration {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			b.Fatal(err)
		}
		return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	before := used()
	return func() { b.ReportMetric(float64(used()-before)/nanoseconds/float64(b.N), unit) }
}

// BenchmarkUnchangedService: one pass over a Service with 1,000 nodes that finds nothing to do.
func BenchmarkUnchangedService(b *testing.B) {
	w, services := manyNodesWorld(b, distinct)
	b.ReportAllocs()
	defer reportCPU(b, 1e6, "cpu-ms/op")()
	for b.Loop() {
		if _, err := w.Reconcile(b.Context(), services[0]); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	if calls := w.calls(); len(calls) != 0 {
		b.Errorf("calls %v, want none", calls)
	}
}

// BenchmarkNodeEvent: what a change of one node that concerns nobody costs with 5,000 Services and 1,000 nodes.
func BenchmarkNodeEvent(b *testing.B) {
	w, services := manyNodesWorld(b, distinct)
	node, err := w.kube.CoreV1().Nodes().Get(b.Context(), "n0000", metav1.GetOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	defer reportCPU(b, 1e9, "cpu-s/op")()
	for b.Loop() {
		node = node.DeepCopy()
		node.Spec.Unschedulable = !node.Spec.Unschedulable
		if _, err := w.kube.CoreV1().Nodes().Update(b.Context(), node, metav1.UpdateOptions{}); err != nil {
			b.Fatal(err)
		}
		for i := range manyServices {
			if _, err := w.Reconcile(b.Context(), services[i%distinct]); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.StopTimer()
	if calls := w.calls(); len(calls) != 0 {
		b.Errorf("calls %v, want none", calls)
	}
}
