package provider

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// stockWorld is a cluster of three nodes that the four stock controllers manage over the provider.
type stockWorld struct {
	*testing.T
	server *emulatortest.Cloud
	kube   *fake.Clientset
	api    *alicloud.Client
}

// inStockWorld plays a story in a bubble.
func inStockWorld(t *testing.T, story func(w *stockWorld)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &stockWorld{T: t, server: emulatortest.New(t, emulator.Options{}), kube: testkube.NewClientset()}
		w.api = steadyClient(t, w.server)
		for i := range 3 {
			w.joins(i)
		}
		ctx, cancel := context.WithCancel(t.Context())
		running := startStockControllers(ctx, t, w.server, w.kube)
		defer time.Sleep(time.Minute) // calls that are under way end by themselves
		defer running.Wait()
		defer cancel()
		time.Sleep(3 * time.Minute)
		story(w)
	})
}

// joins makes an instance and lets its kubelet register.
func (w *stockWorld) joins(i int) {
	w.Helper()
	testkit.Must(w.server.PutInstance(steadyInstance(i), emulator.InstanceSpec{PrivateIP: steadyAddress(i)}))(w)
	testkit.Must(w.kube.CoreV1().Nodes().Create(w.Context(), joiningNode(i), metav1.CreateOptions{}))(w)
}

func (w *stockWorld) node(i int) *corev1.Node {
	w.Helper()
	n, err := w.kube.CoreV1().Nodes().Get(w.Context(), steadyNode(i).Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	testkit.Check(w, err)
	return n
}

// ready sets a node's Ready condition, as its kubelet and the kube-controller-manager do.
func (w *stockWorld) ready(i int, status corev1.ConditionStatus) {
	w.Helper()
	n := w.node(i)
	c := nodes.Condition(n, corev1.NodeReady)
	c.Status, c.LastTransitionTime = status, metav1.Now()
	testkit.Must(w.kube.CoreV1().Nodes().UpdateStatus(w.Context(), n, metav1.UpdateOptions{}))(w)
}

func (w *stockWorld) routes() map[string]string {
	w.Helper()
	routes := map[string]string{}
	for _, entry := range testkit.Must(w.api.DescribeRouteEntries(w.Context(), emulatortest.SystemTable, false))(w) {
		if entry.Type == alicloud.RouteTypeCustom {
			routes[entry.CIDR] = entry.NextHops[0].ID
		}
	}
	return routes
}

func (w *stockWorld) wantRoutes(when string, want map[string]string) {
	w.Helper()
	if diff := cmp.Diff(want, w.routes()); diff != "" {
		w.Errorf("%s: routes (-want +got):\n%s", when, diff)
	}
}

func routesOfNodes(all ...int) map[string]string {
	routes := map[string]string{}
	for _, i := range all {
		routes[steadyCIDR(i)] = steadyInstance(i)
	}
	return routes
}

// TestStockControllersNodes: nodes join, are stopped and started, are released, and come back as other machines.
func TestStockControllersNodes(t *testing.T) {
	t.Parallel()
	inStockWorld(t, func(w *stockWorld) {
		for i := range 3 {
			n := w.node(i)
			if nodes.Uninitialized(n) || n.Spec.ProviderID == "" || n.Labels[corev1.LabelTopologyZone] == "" ||
				n.Labels[corev1.LabelInstanceTypeStable] == "" {
				w.Errorf("%s is not initialized: %q, %v, %v", n.Name, n.Spec.ProviderID, n.Spec.Taints, n.Labels)
			}
		}
		w.joins(3)
		time.Sleep(time.Minute)
		if n := w.node(3); nodes.Uninitialized(n) {
			w.Errorf("a node that joins later is not initialized: %v", n.Spec.Taints)
		}

		w.ready(1, corev1.ConditionUnknown)
		testkit.Must(w.server.PutInstance(steadyInstance(1),
			emulator.InstanceSpec{PrivateIP: steadyAddress(1), Status: alicloud.InstanceStopped}))(w)
		time.Sleep(2 * time.Minute)
		if n := w.node(1); n == nil || !nodes.ShutDown(n) {
			w.Fatalf("the node of a stopped instance is %+v, want it there with the shutdown taint", n)
		}
		testkit.Must(w.server.PutInstance(steadyInstance(1), emulator.InstanceSpec{PrivateIP: steadyAddress(1)}))(w)
		w.ready(1, corev1.ConditionTrue)
		time.Sleep(time.Minute)
		if n := w.node(1); nodes.ShutDown(n) {
			w.Error("the node of an instance that was started keeps the shutdown taint")
		}

		w.server.ReleaseInstance(steadyInstance(2))
		w.ready(2, corev1.ConditionUnknown)
		time.Sleep(10 * time.Minute)
		if w.node(2) != nil {
			w.Error("the Node of a released instance stays")
		}
		w.wantRoutes("after the release", routesOfNodes(0, 1, 3))

		back := joiningNode(2)
		back.UID = "another-machine"
		testkit.Must(w.server.PutInstance("i-back", emulator.InstanceSpec{PrivateIP: steadyAddress(2)}))(w)
		testkit.Must(w.kube.CoreV1().Nodes().Create(w.Context(), back, metav1.CreateOptions{}))(w)
		time.Sleep(3 * time.Minute)
		if n := w.node(2); n == nil || nodes.Uninitialized(n) || n.Spec.ProviderID != emulatortest.Region+".i-back" {
			w.Errorf("the Node that came back as another machine is %+v", n)
		}
		want := routesOfNodes(0, 1, 3)
		want[steadyCIDR(2)] = "i-back"
		w.wantRoutes("after it came back", want)
	})
}

// TestStockControllersRoutes: routes of nodes are made, moved and deleted, and those of others stay.
func TestStockControllersRoutes(t *testing.T) {
	t.Parallel()
	inStockWorld(t, func(w *stockWorld) {
		w.wantRoutes("at first", routesOfNodes(0, 1, 2))
		foreign := alicloud.NewRoute{TableID: emulatortest.SystemTable, CIDR: "10.200.0.0/24", InstanceID: steadyInstance(0), Description: "vpn"}
		testkit.Must(w.api.CreateRouteEntries(w.Context(), []alicloud.NewRoute{foreign}))(w)
		outside := alicloud.NewRoute{TableID: emulatortest.SystemTable, CIDR: "192.168.0.0/24", InstanceID: steadyInstance(0)}
		testkit.Must(w.api.CreateRouteEntries(w.Context(), []alicloud.NewRoute{outside}))(w)
		with := func(routes map[string]string) map[string]string {
			routes[foreign.CIDR], routes[outside.CIDR] = foreign.InstanceID, outside.InstanceID
			return routes
		}
		time.Sleep(3 * time.Minute)
		w.wantRoutes("with entries of others", with(routesOfNodes(0, 1, 2)))

		entry := alicloud.RouteEntry{TableID: emulatortest.SystemTable, CIDR: steadyCIDR(1),
			NextHops: []alicloud.NextHop{{ID: steadyInstance(1), Type: alicloud.NextHopInstance}}}
		testkit.Must(w.api.DeleteRouteEntries(w.Context(), []alicloud.RouteEntry{entry}))(w)
		time.Sleep(2 * time.Minute)
		w.wantRoutes("after somebody deleted one", with(routesOfNodes(0, 1, 2)))

		testkit.Check(w, w.kube.CoreV1().Nodes().Delete(w.Context(), "node-2", metav1.DeleteOptions{}))
		time.Sleep(3 * time.Minute)
		w.wantRoutes("without the third node", with(routesOfNodes(0, 1)))
		for i := range 2 {
			if c := nodes.Condition(w.node(i), corev1.NodeNetworkUnavailable); c == nil || c.Status != corev1.ConditionFalse {
				w.Errorf("node %d: condition %+v, want the network available", i, c)
			}
		}
	})
}

// backends are the backend servers of each listener, with their weights, by port.
func (w *stockWorld) backends(address string) map[int32]map[string]int {
	w.Helper()
	found := testkit.Must(w.api.DescribeLoadBalancers(w.Context(), alicloud.LoadBalancerQuery{}))(w)
	at := slices.IndexFunc(found, func(lb alicloud.LoadBalancer) bool { return lb.Address == address })
	if at < 0 {
		return nil
	}
	listeners := testkit.Must(w.api.DescribeListeners(w.Context(), found[at].ID))(w)[found[at].ID]
	ports := map[int32]map[string]int{}
	for i := range listeners {
		group := testkit.Must(w.api.DescribeVServerGroup(w.Context(), listeners[i].VServerGroupID))(w)
		servers := map[string]int{}
		for _, backend := range group.Backends {
			servers[backend.ServerID] = backend.Weight
		}
		ports[int32(listeners[i].Port)] = servers
	}
	return ports
}

func (w *stockWorld) service() *corev1.Service {
	w.Helper()
	return testkit.Must(w.kube.CoreV1().Services("default").Get(w.Context(), "web", metav1.GetOptions{}))(w)
}

func (w *stockWorld) change(change func(*corev1.Service)) {
	w.Helper()
	service := w.service()
	change(service)
	testkit.Must(w.kube.CoreV1().Services("default").Update(w.Context(), service, metav1.UpdateOptions{}))(w)
	time.Sleep(2 * time.Minute)
}

func stockPort(name string, port, nodePort int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: port, Protocol: corev1.ProtocolTCP, NodePort: nodePort, TargetPort: intstr.FromInt32(8080)}
}

func stockSlice(ports []string, onNodes ...string) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "web-1", Namespace: "default", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for _, name := range ports {
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &name, Port: new(int32(8080)), Protocol: new(corev1.ProtocolTCP)})
	}
	for i, node := range onNodes {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{steadyPod(i)}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}, NodeName: &node,
		})
	}
	return slice
}

func steadyPod(i int) string { return []string{"10.128.0.5", "10.128.1.5", "10.128.2.5"}[i] }

// TestStockControllersServices: a Service is created, gets another port, sends only to nodes with pods, follows nodes that come and go,
// obeys an annotation, and is deleted. Of changed endpoints alone the stock controller does not know: they take effect with the next
// change of the Service or of the nodes.
func TestStockControllersServices(t *testing.T) {
	t.Parallel()
	inStockWorld(t, func(w *stockWorld) {
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: types.UID("6f2c3d4e-0000-4000-8000-00000000abcd")},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{stockPort("http", 80, 30080)}},
		}
		testkit.Must(w.kube.DiscoveryV1().EndpointSlices("default").Create(w.Context(), stockSlice([]string{"http", "admin"}, "node-0", "node-1"),
			metav1.CreateOptions{}))(w)
		testkit.Must(w.kube.CoreV1().Services("default").Create(w.Context(), service, metav1.CreateOptions{}))(w)
		time.Sleep(2 * time.Minute)
		ingress := w.service().Status.LoadBalancer.Ingress
		if len(ingress) != 1 {
			w.Fatalf("status %+v, want one address", ingress)
		}
		address := ingress[0].IP
		all := map[string]int{steadyInstance(0): 100, steadyInstance(1): 100, steadyInstance(2): 100}
		want := func(when string, want map[int32]map[string]int) {
			w.Helper()
			if diff := cmp.Diff(want, w.backends(address)); diff != "" {
				w.Errorf("%s: backend servers by port (-want +got):\n%s", when, diff)
			}
		}
		want("created", map[int32]map[string]int{80: all})

		w.change(func(s *corev1.Service) { s.Spec.Ports = append(s.Spec.Ports, stockPort("admin", 81, 30081)) })
		want("with another port", map[int32]map[string]int{80: all, 81: all})
		w.change(func(s *corev1.Service) { s.Spec.Ports = s.Spec.Ports[:1] })
		want("without it", map[int32]map[string]int{80: all})

		w.change(func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal })
		if got := w.backends(address)[80]; len(got) != 2 || got[steadyInstance(2)] != 0 {
			w.Errorf("with the policy Local: backend servers %v, want those of the nodes with pods", got)
		}
		w.change(func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster })

		w.joins(3)
		time.Sleep(3 * time.Minute)
		all[steadyInstance(3)] = 100
		want("a node more", map[int32]map[string]int{80: all})
		testkit.Check(w, w.kube.CoreV1().Nodes().Delete(w.Context(), "node-3", metav1.DeleteOptions{}))
		time.Sleep(3 * time.Minute)
		delete(all, steadyInstance(3))
		want("a node less", map[int32]map[string]int{80: all})

		w.change(func(s *corev1.Service) {
			s.Annotations = map[string]string{"service.beta.kubernetes.io/alibaba-cloud-loadbalancer-scheduler": "wlc"}
		})
		lb := testkit.Must(w.api.DescribeLoadBalancers(w.Context(), alicloud.LoadBalancerQuery{}))(w)[0]
		if got := testkit.Must(w.api.DescribeListeners(w.Context(), lb.ID))(w)[lb.ID]; len(got) != 1 ||
			got[0].Attributes[alicloud.AttributeScheduler] != "wlc" {
			w.Errorf("listeners %+v, want one with the scheduler of the annotation", got)
		}

		if len(w.service().Finalizers) == 0 {
			w.Error("the Service has no finalizer")
		}
		w.change(func(s *corev1.Service) { s.DeletionTimestamp = new(metav1.Now()) })
		if left := testkit.Must(w.api.DescribeLoadBalancers(w.Context(), alicloud.LoadBalancerQuery{}))(w); len(left) != 0 {
			w.Errorf("load balancers %v are left after the Service was deleted", left)
		}
		if s, err := w.kube.CoreV1().Services("default").Get(w.Context(), "web", metav1.GetOptions{}); err == nil && len(s.Finalizers) != 0 {
			w.Errorf("finalizers %v are left", s.Finalizers)
		}
	})
}

// TestStockControllersServiceChangesType: a Service that no longer is of type LoadBalancer loses its load balancer.
func TestStockControllersServiceChangesType(t *testing.T) {
	t.Parallel()
	inStockWorld(t, func(w *stockWorld) {
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: types.UID("6f2c3d4e-0000-4000-8000-00000000abce")},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{stockPort("http", 80, 30080)}},
		}
		testkit.Must(w.kube.DiscoveryV1().EndpointSlices("default").Create(w.Context(), stockSlice([]string{"http"}, "node-0"),
			metav1.CreateOptions{}))(w)
		testkit.Must(w.kube.CoreV1().Services("default").Create(w.Context(), service, metav1.CreateOptions{}))(w)
		time.Sleep(2 * time.Minute)
		w.change(func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeClusterIP })
		if left := testkit.Must(w.api.DescribeLoadBalancers(w.Context(), alicloud.LoadBalancerQuery{}))(w); len(left) != 0 {
			w.Errorf("load balancers %v are left", left)
		}
		if s := w.service(); len(s.Status.LoadBalancer.Ingress) != 0 || len(s.Finalizers) != 0 {
			w.Errorf("the Service keeps status %+v and finalizers %v", s.Status.LoadBalancer, s.Finalizers)
		}
	})
}
