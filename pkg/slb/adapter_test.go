package slb

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/api"
	servicecontroller "k8s.io/cloud-provider/controllers/service"
	"k8s.io/component-base/featuregate"
	controllersmetrics "k8s.io/component-base/metrics/prometheus/controllers"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// stockCloud is a provider that has nothing but load balancers.
type stockCloud struct {
	cloudprovider.Interface
	balancer cloudprovider.LoadBalancer
}

func (c stockCloud) LoadBalancer() (cloudprovider.LoadBalancer, bool) { return c.balancer, true }
func (c stockCloud) ProviderName() string                             { return "alicloud" }

// TestStockServiceControllerDrivesTheAdapter runs the service controller of k8s.io/cloud-provider over the adapter.
func TestStockServiceControllerDrivesTheAdapter(t *testing.T) {
	t.Parallel()
	const group = "k8s/30080/web/default/c1"
	w := newWorld(t)
	w.factory = informers.NewSharedInformerFactory(w.kube, 0)
	w.restart()
	stock, err := servicecontroller.New(stockCloud{balancer: service.NewLoadBalancer(w.Reconciler)}, w.kube,
		w.factory.Core().V1().Services(), w.factory.Core().V1().Nodes(), "kubernetes", featuregate.NewFeatureGate())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		stock.Run(ctx, 1, controllersmetrics.NewControllerManagerMetrics("test"))
	}()
	w.factory.Start(ctx.Done())
	t.Cleanup(func() {
		cancel()
		<-done
		w.factory.Shutdown()
	})
	servers := func() int {
		for _, lb := range w.state() {
			return len(lb.Groups[group])
		}
		return -1
	}

	w.put(testService("web", 80))
	eventually(t, "address in the status", func() bool { return len(w.get("web").Status.LoadBalancer.Ingress) == 1 })
	// One after the other: the stock controller's node and service workers share a field without a lock.
	for i, name := range []string{"a", "b"} {
		w.createNode(name)
		eventually(t, "backend server "+name, func() bool { return servers() == i+1 })
	}
	address := w.get("web").Status.LoadBalancer.Ingress[0].IP
	w.change("web", func(svc *corev1.Service) {
		svc.Spec.Ports = []corev1.ServicePort{testPort(80, corev1.ProtocolTCP), testPort(81, corev1.ProtocolUDP)}
		annotate(svc, annotation.Scheduler, "wlc")
	})
	eventually(t, "two listeners", func() bool { return slices.Equal(w.listenerKeys(), []string{"tcp:80", "udp:81"}) })
	eventually(t, "another scheduler", func() bool {
		for _, lb := range w.state() {
			return lb.Listeners["tcp:80"]["Scheduler"] == "wlc"
		}
		return false
	})
	w.change("web", func(svc *corev1.Service) { svc.Spec.Ports = svc.Spec.Ports[:1] })
	eventually(t, "one listener", func() bool { return slices.Equal(w.listenerKeys(), []string{"tcp:80"}) })
	if shown := w.get("web").Status.LoadBalancer.Ingress; len(shown) != 1 || shown[0].IP != address {
		t.Errorf("the status shows %v, want %s as before", shown, address)
	}

	w.change("web", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP })
	eventually(t, "CLB gone", func() bool { return len(w.state()) == 0 })
	eventually(t, "no finalizer", func() bool { return len(w.get("web").Finalizers) == 0 })
	w.change("web", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeLoadBalancer })
	eventually(t, "CLB of the Service that came back", func() bool {
		return len(w.state()) == 1 && len(w.get("web").Status.LoadBalancer.Ingress) == 1
	})
	w.change("web", deleteService)
	eventually(t, "CLB of the deleted Service gone", func() bool { return len(w.state()) == 0 })
	eventually(t, "nothing that holds the deleted Service", func() bool { return len(w.get("web").Finalizers) == 0 })
}

func TestAdapterOfServicesThatAreNotOurs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	adapter := service.NewLoadBalancer(w.Reconciler)
	svc := testService("web", 80)
	class := "example.com/other"
	svc.Spec.LoadBalancerClass = &class
	if _, exists, err := adapter.GetLoadBalancer(t.Context(), "", svc); exists || err != nil {
		t.Errorf("GetLoadBalancer = %v, %v", exists, err)
	}
	if _, err := adapter.EnsureLoadBalancer(t.Context(), "", svc, nil); !errors.Is(err, cloudprovider.ImplementedElsewhere) {
		t.Errorf("EnsureLoadBalancer = %v", err)
	}
	if err := adapter.EnsureLoadBalancerDeleted(t.Context(), "", svc); err != nil {
		t.Errorf("EnsureLoadBalancerDeleted = %v", err)
	}
	if calls := w.calls(); len(calls) != 0 {
		t.Errorf("calls %v, want none", calls)
	}
}

// startInformers starts the informers, after what their caches hold by hand is in the API server, too.
func (w *world) startInformers() {
	w.t.Helper()
	for _, object := range w.factory.Core().V1().Nodes().Informer().GetIndexer().List() {
		_, err := w.kube.CoreV1().Nodes().Create(w.t.Context(), object.(*corev1.Node), metav1.CreateOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	for _, object := range w.factory.Discovery().V1().EndpointSlices().Informer().GetIndexer().List() {
		_, err := w.kube.DiscoveryV1().EndpointSlices(testNamespace).Create(w.t.Context(), object.(*discoveryv1.EndpointSlice),
			metav1.CreateOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	w.factory.Start(ctx.Done())
	w.factory.WaitForCacheSync(ctx.Done())
	w.t.Cleanup(func() {
		cancel()
		w.factory.Shutdown()
	})
}

func TestAdapterAsksToWaitWhileTheCloudIsBusy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.put(testService("web", 80))
	w.startInformers()
	w.fault(map[string]any{"action": "CreateVServerGroup", "code": "SystemBusy", "status": 400})
	_, err := service.NewLoadBalancer(w.Reconciler).EnsureLoadBalancer(t.Context(), "", w.get("web"), nil)
	if _, ok := errors.AsType[*api.RetryError](err); !ok {
		t.Errorf("error %v, want one that names a time", err)
	}
	if events := w.newEvents(); len(events) != 0 {
		t.Errorf("events %q, want none", events)
	}
}
