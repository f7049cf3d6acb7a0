package provider

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	cloudproviderapi "k8s.io/cloud-provider/api"
	nodecontroller "k8s.io/cloud-provider/controllers/node"
	"k8s.io/cloud-provider/controllers/nodelifecycle"
	routecontroller "k8s.io/cloud-provider/controllers/route"
	servicecontroller "k8s.io/cloud-provider/controllers/service"
	controllersmetrics "k8s.io/component-base/metrics/prometheus/controllers"
	_ "k8s.io/controller-manager/pkg/features/register" // the feature gates that the stock controllers read

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// joiningNode is what a kubelet with --cloud-provider=external registers.
func joiningNode(i int) *corev1.Node {
	n := steadyNode(i)
	n.Spec.ProviderID = ""
	n.Spec.Taints = []corev1.Taint{{Key: cloudproviderapi.TaintExternalCloudProvider, Value: "true", Effect: corev1.TaintEffectNoSchedule}}
	n.Status.Conditions = n.Status.Conditions[:1] // Ready
	return n
}

// TestStockControllers links the provider into a stock CCM: the four stock controllers drive it with zero settings.
func TestStockControllers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := emulatortest.New(t, emulator.Options{})
		if _, err := server.PutInstance(steadyInstance(0), emulator.InstanceSpec{PrivateIP: steadyAddress(0)}); err != nil {
			t.Fatal(err)
		}
		port := corev1.ServicePort{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP, NodePort: 30080, TargetPort: intstr.FromInt32(8080)}
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "6f2c3d4e-0000-4000-8000-00000000abcd", ResourceVersion: "1"},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{port}},
		}
		ready := true
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: "default", ResourceVersion: "1",
				Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
			Ports: []discoveryv1.EndpointPort{{Name: &port.Name, Port: &port.TargetPort.IntVal, Protocol: &port.Protocol}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.128.0.5"}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
				NodeName: new("node-0")}},
		}
		kube := fake.NewClientset(joiningNode(0), slice)
		ctx, cancel := context.WithCancel(t.Context())
		running := startStockControllers(ctx, t, server, kube)
		defer time.Sleep(time.Minute) // calls that are under way end by themselves
		defer running.Wait()
		defer cancel()

		// The stock service controller has a data race between a Service that it syncs for the first time and nodes that change.
		time.Sleep(time.Minute)
		if _, err := kube.CoreV1().Services("default").Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		checkStockNode(t, kube)
		checkStockService(t, server, kube)
		routes, err := steadyClient(t, server).DescribeRouteEntries(t.Context(), emulatortest.SystemTable, false)
		if err != nil || len(routes) != 1 || routes[0].CIDR != steadyCIDR(0) {
			t.Errorf("routes %v, %v: want %s", routes, err, steadyCIDR(0))
		}
	})
}

func checkStockNode(t *testing.T, kube *fake.Clientset) {
	t.Helper()
	n, err := kube.CoreV1().Nodes().Get(t.Context(), "node-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := emulatortest.Region + "." + steadyInstance(0); n.Spec.ProviderID != want || nodes.Uninitialized(n) {
		t.Errorf("provider ID %q and taints %v, want %q and the node initialized", n.Spec.ProviderID, n.Spec.Taints, want)
	}
	if c := nodes.Condition(n, corev1.NodeNetworkUnavailable); c == nil || c.Status != corev1.ConditionFalse {
		t.Errorf("condition %+v, want the network available", c)
	}
}

func checkStockService(t *testing.T, server *emulatortest.Cloud, kube *fake.Clientset) {
	t.Helper()
	client := steadyClient(t, server)
	found, err := client.DescribeLoadBalancers(t.Context(), alicloud.LoadBalancerQuery{})
	if err != nil || len(found) != 1 {
		t.Fatalf("load balancers %v, %v: want one", found, err)
	}
	service, err := kube.CoreV1().Services("default").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || len(service.Status.LoadBalancer.Ingress) != 1 || service.Status.LoadBalancer.Ingress[0].IP != found[0].Address {
		t.Errorf("status %+v, %v: want the address %s", service.Status.LoadBalancer, err, found[0].Address)
	}
	groups, err := client.DescribeVServerGroups(t.Context(), found[0].ID)
	if err != nil || len(groups) != 1 {
		t.Fatalf("vServer groups %v, %v: want one", groups, err)
	}
	group, err := client.DescribeVServerGroup(t.Context(), groups[0].ID)
	if err != nil || len(group.Backends) != 1 || group.Backends[0].ServerID != steadyInstance(0) {
		t.Errorf("backend servers %v, %v: want %s", group.Backends, err, steadyInstance(0))
	}
	listeners, err := client.DescribeListeners(t.Context(), found[0].ID)
	if err != nil || len(listeners[found[0].ID]) != 1 || listeners[found[0].ID][0].Status != alicloud.ListenerRunning {
		t.Errorf("listeners %v, %v: want one that runs", listeners, err)
	}
}

func startStockControllers(ctx context.Context, t *testing.T, server *emulatortest.Cloud, kube kubernetes.Interface) *sync.WaitGroup {
	t.Helper()
	c := New(keys, Environment{}) // no Configure: the stock command knows none of our flags
	c.client, c.clusterID = steadyClient(t, server), "c1"
	c.place = place{vpcID: emulatortest.VPC, vSwitchIDs: []string{"vsw-a"}}
	c.kube, c.ctx, c.endpointSlices = kube, ctx, true
	factory := informers.NewSharedInformerFactory(kube, 0)
	c.SetInformers(factory)
	nodeInformer := factory.Core().V1().Nodes()
	initializer, err := nodecontroller.NewCloudNodeController(nodeInformer, kube, c, addressPeriod, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	lifecycleNodes, err := LifecycleNodes(nodeInformer)
	if err != nil {
		t.Fatal(err)
	}
	lifecycle, err := nodelifecycle.NewCloudNodeLifecycleController(lifecycleNodes, kube, c, monitorPeriod, 1)
	if err != nil {
		t.Fatal(err)
	}
	services, err := servicecontroller.New(c, kube, factory.Core().V1().Services(), nodeInformer, "kubernetes", utilfeature.DefaultFeatureGate)
	if err != nil {
		t.Fatal(err)
	}
	_, clusterCIDR, err := net.ParseCIDR("10.128.0.0/9")
	if err != nil {
		t.Fatal(err)
	}
	adapter, _ := c.Routes()
	routes, err := routecontroller.New(adapter, kube, nodeInformer, "kubernetes", []*net.IPNet{clusterCIDR})
	if err != nil {
		t.Fatal(err)
	}
	running := &sync.WaitGroup{}
	metrics := controllersmetrics.NewControllerManagerMetrics("test")
	factory.Start(ctx.Done())
	running.Go(func() { initializer.RunWithContext(ctx, metrics) })
	running.Go(func() { lifecycle.Run(ctx, metrics) })
	running.Go(func() { services.Run(ctx, 1, metrics) })
	running.Go(func() { routes.Run(ctx, 10*time.Second, metrics) })
	running.Go(func() {
		<-ctx.Done()
		factory.Shutdown()
	})
	return running
}
