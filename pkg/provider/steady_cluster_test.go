package provider

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	nodecontroller "k8s.io/cloud-provider/controllers/node"
	"k8s.io/cloud-provider/controllers/nodelifecycle"
	controllersmetrics "k8s.io/component-base/metrics/prometheus/controllers"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// The size of the cluster, and the pace of the controllers: that of the program by default.
const (
	steadyNodes    = 1000
	steadyServices = 400
	steadyWorkers  = 10
	addressPeriod  = 5 * time.Minute
	monitorPeriod  = 5 * time.Second
	// steadyLatency is how long the cloud takes to answer.
	steadyLatency = 100 * time.Millisecond
)

// steadyCluster is a cluster on an account whose rate limits are the published ones.
type steadyCluster struct {
	t      *testing.T
	server *emulatortest.Cloud
	kube   *fake.Clientset
	config Config
	// vSwitches are those of new load balancers.
	vSwitches []string
	// cloud is the provider of the last process.
	cloud *Cloud
	stop  func()
}

// newSteadyCluster has a thousand nodes with the route of each, and Services that nobody has served yet.
func newSteadyCluster(t *testing.T) *steadyCluster {
	t.Helper()
	config := cloud.DefaultConfig()
	config.Quotas.RouteEntriesPerTable, config.Quotas.LoadBalancers = 2*steadyNodes, 2*steadyServices
	s := &steadyCluster{
		t: t, server: emulatortest.New(t, emulator.Options{Config: config, RateLimits: emulator.RateLimitsPublished}),
		kube:   testkube.NewClientset(),
		config: keys, vSwitches: []string{"vsw-a"},
	}
	s.addNodes()
	for i := range steadyServices {
		svc := testkube.Service(steadyService(i), testkube.TCP(80), testkube.Annotation(annotation.AddressType.Key(), "intranet"))
		s.add(svc)
		slice := testkube.EndpointSlice(svc.Name, svc.Spec.Ports[0], fmt.Sprintf("10.128.0.5@node-%d", i))
		slice.ResourceVersion = "1"
		s.add(slice)
	}
	return s
}

func (s *steadyCluster) add(object runtime.Object) {
	s.t.Helper()
	testkit.Check(s.t, s.kube.Tracker().Add(object))
}

func (s *steadyCluster) addNodes() {
	s.t.Helper()
	client := steadyClient(s.t, s.server)
	var routes []alicloud.NewRoute
	for i := range steadyNodes {
		s.add(steadyNode(i))
		testkit.Must(s.server.PutInstance(steadyInstance(i), emulator.InstanceSpec{PrivateIP: steadyAddress(i)}))(s.t)
		routes = append(routes, alicloud.NewRoute{TableID: emulatortest.SystemTable, CIDR: steadyCIDR(i), InstanceID: steadyInstance(i)})
		if len(routes) == alicloud.MaxRouteEntriesPerCall {
			testkit.Must(client.CreateRouteEntries(s.t.Context(), routes))(s.t)
			routes = nil
		}
	}
}

func steadyService(i int) string { return fmt.Sprintf("s%03d", i) }

func steadyInstance(i int) string { return fmt.Sprintf("i-%d", i) }

func steadyAddress(i int) string { return fmt.Sprintf("10.1.%d.%d", i/200, i%200+10) }

func steadyCIDR(i int) string { return fmt.Sprintf("10.%d.%d.0/24", 128+i/256, i%256) }

// steadyNode is Ready, initialized and routed.
func steadyNode(i int) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("node-%d", i), UID: types.UID(fmt.Sprintf("uid-%d", i)), ResourceVersion: "1",
			CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Hour)),
		},
		Spec: corev1.NodeSpec{
			ProviderID: emulatortest.Region + "." + steadyInstance(i), PodCIDR: steadyCIDR(i), PodCIDRs: []string{steadyCIDR(i)},
		},
		Status: corev1.NodeStatus{
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: steadyAddress(i)}},
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
				{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionFalse, Reason: "RouteCreated"},
			},
		},
	}
}

func steadyClient(t *testing.T, server *emulatortest.Cloud) *alicloud.Client {
	t.Helper()
	return steadyClientOver(t, server.Transport())
}

func steadyClientOver(t *testing.T, transport http.RoundTripper) *alicloud.Client {
	t.Helper()
	return testkit.Must(alicloud.New(alicloud.Options{
		Region:      emulatortest.Region,
		Credentials: alicloud.StaticCredentials{AccessKeyID: emulatortest.AccessKeyID, AccessKeySecret: emulatortest.AccessKeySecret},
		Endpoints: alicloud.Endpoints{PlainHTTP: true, SLB: "emulator.test", NLB: "emulator.test", VPC: "emulator.test", ECS: "emulator.test",
			Quotas: "emulator.test"},
		Transport: transport,
	}))(t)
}

// distant is a cloud that takes a while to answer.
type distant struct{ http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (d distant) RoundTrip(request *http.Request) (*http.Response, error) {
	time.Sleep(steadyLatency)
	return d.RoundTripper.RoundTrip(request)
}

// start wires the provider as it is and runs all controllers, as a process that remembers nothing.
func (s *steadyCluster) start() {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	c := New(s.config, Environment{})
	s.cloud = c
	c.Configure(Settings{
		ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/9")}, RoutePeriod: 5 * time.Minute, NodeMonitorPeriod: monitorPeriod,
		ServiceWorkers: steadyWorkers,
	})
	c.client, c.place, c.clusterID = steadyClientOver(s.t, distant{s.server.Transport()}), place{vpcID: emulatortest.VPC,
		vSwitchIDs: s.vSwitches}, "c1"
	c.kube, c.ctx, c.endpointSlices = s.kube, ctx, true
	factory := informers.NewSharedInformerFactory(s.kube, 0)
	c.SetInformers(factory)
	nodes, metrics := factory.Core().V1().Nodes(), controllersmetrics.NewControllerManagerMetrics("test")
	initializer := testkit.Must(nodecontroller.NewCloudNodeController(nodes, s.kube, c, addressPeriod, 10, 10))(s.t)
	lifecycle := testkit.Must(nodelifecycle.NewCloudNodeLifecycleController(testkit.Must(LifecycleNodes(nodes))(s.t), s.kube, c, monitorPeriod,
		10))(s.t)
	routes, ours, services := testkit.Must(c.RouteController())(s.t), testkit.Must(c.NodeController(addressPeriod))(s.t), testkit.Must(c.ServiceController())(s.t)
	running := &sync.WaitGroup{}
	factory.Start(ctx.Done())
	running.Go(func() { initializer.RunWithContext(ctx, metrics) })
	running.Go(func() { lifecycle.Run(ctx, metrics) })
	running.Go(func() { routes.Run(ctx) })
	running.Go(func() { ours.Run(ctx) })
	running.Go(func() { services.Run(ctx) })
	s.stop = func() {
		cancel()
		running.Wait()
		factory.Shutdown()
		time.Sleep(time.Minute) // calls that are under way end by themselves
	}
}

// heartbeats has every node report that it is still ready.
func (s *steadyCluster) heartbeats() {
	s.t.Helper()
	resource := corev1.SchemeGroupVersion.WithResource("nodes")
	for i := range steadyNodes {
		node := testkit.Must(s.kube.Tracker().Get(resource, "", fmt.Sprintf("node-%d", i)))(s.t).(*corev1.Node).DeepCopy() //nolint:forcetypeassert // it is one
		testkube.Ready(node).LastHeartbeatTime = metav1.Now()
		testkit.Check(s.t, s.kube.Tracker().Update(resource, node, ""))
		if i%50 == 49 {
			synctest.Wait() // the fake API server's watches hold no more than a hundred events
		}
	}
}

// settle waits until every Service has its CLB and nothing is written any more.
func (s *steadyCluster) settle() {
	s.t.Helper()
	for range 12 {
		before := s.server.Last()
		time.Sleep(10 * time.Minute)
		if len(s.count(before).writes) == 0 {
			return
		}
	}
	s.t.Fatal("no end of writes")
}

// changeService changes a Service such that one write serves it, past the API server's count of requests, and returns its name and the
// action of this write.
func (s *steadyCluster) changeService() (name, action string) {
	s.t.Helper()
	name = steadyService(steadyServices / 2)
	resource := corev1.SchemeGroupVersion.WithResource("services")
	object := testkit.Must(s.kube.Tracker().Get(resource, testkube.Namespace, name))(s.t)
	svc := object.(*corev1.Service).DeepCopy() //nolint:forcetypeassert // it is one
	svc.Annotations[annotation.Scheduler.Key()] = "sch"
	testkit.Check(s.t, s.kube.Tracker().Update(resource, svc, testkube.Namespace))
	return name, "SetLoadBalancerTCPListenerAttribute"
}

// steadyCalls are the calls of the cloud in a time.
type steadyCalls struct {
	// reads and writes are those of load balancers, others how many there are for nodes, routes and quotas.
	reads, writes []emulator.Call
	others        int
	actions       map[string]int
}

// count returns the calls since an earlier one. None may be refused, or change anything but load balancers.
func (s *steadyCluster) count(since int64) steadyCalls {
	s.t.Helper()
	c := steadyCalls{actions: map[string]int{}}
	for _, call := range s.server.Calls(since) {
		c.actions[call.Action]++
		write := call.Kind == "write"
		switch {
		case call.Code != "":
			s.t.Errorf("the cloud refuses %s: %s", call.Action, call.Code)
		case call.Product != "slb" && write:
			s.t.Errorf("nothing is to be written for nodes and routes: %s", call.Action)
		case call.Product != "slb":
			c.others++
		case write:
			c.writes = append(c.writes, call)
		default:
			c.reads = append(c.reads, call)
		}
	}
	return c
}

// busiest returns how many reads there are in the minute with the most.
func (c steadyCalls) busiest() int {
	minutes, most := map[time.Time]int{}, 0
	for _, call := range c.reads {
		minute := call.Time.Truncate(time.Minute)
		minutes[minute]++
		most = max(most, minutes[minute])
	}
	return most
}

// unasked checks that the API server was asked for no object, and to change no Node and no Service but the one named, since its requests
// were last cleared.
func (s *steadyCluster) unasked(changed string) {
	s.t.Helper()
	for _, action := range s.kube.Actions() {
		verb, resource := action.GetVerb(), action.GetResource().Resource
		patch, ok := action.(clienttesting.PatchAction)
		switch {
		case verb == "watch", ok && resource == "services" && patch.GetName() == changed:
		case verb == "get", verb == "list", resource == "nodes", resource == "services":
			s.t.Errorf("the API server is asked to %s %s %s", verb, resource, action.GetSubresource())
		}
	}
	s.kube.ClearActions()
}
