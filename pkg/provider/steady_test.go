package provider

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	nodecontroller "k8s.io/cloud-provider/controllers/node"
	"k8s.io/cloud-provider/controllers/nodelifecycle"
	controllersmetrics "k8s.io/component-base/metrics/prometheus/controllers"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// The pace of the stock controllers by default, and what the steady state may cost.
const (
	addressPeriod  = 5 * time.Minute
	monitorPeriod  = 5 * time.Second
	steadyNodes    = 1000
	steadyPeriod   = 5 * time.Minute
	steadyMaxCalls = 10
)

// TestSteadyState lets the stock node controllers and ours run for an hour, in a bubble, over a thousand nodes that have
// all they need, and counts the calls to the cloud in every five minutes of it. Nobody writes a Node, which two controllers
// that do not agree would do over and over, and nobody reads a single one.
func TestSteadyState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := steadyCloud(t)
		ctx, cancel := context.WithCancel(t.Context())
		running, kube := startControllers(ctx, t, server)
		defer running.Wait()
		defer cancel()

		time.Sleep(2 * time.Minute) // a start reads everything
		for window := range 12 {
			before := server.Last()
			kube.ClearActions()
			time.Sleep(steadyPeriod)
			for _, action := range kube.Actions() {
				if action.GetResource().Resource == "nodes" {
					t.Errorf("in the steady state the API server is asked to %s %v", action.GetVerb(), action.GetResource())
				}
			}
			actions := map[string]int{}
			for _, call := range server.Calls(before) {
				actions[call.Action]++
				if call.Kind == "write" || call.Code != "" {
					t.Errorf("in the steady state: %s %s", call.Action, call.Code)
				}
			}
			if n := server.Count(before); n > steadyMaxCalls || n == 0 {
				t.Errorf("window %d: %d calls, want 1 to %d: %v", window, n, steadyMaxCalls, actions)
			}
			t.Logf("window %d: %v", window, actions)
		}
	})
}

// steadyCloud has a thousand instances, and the route of each.
func steadyCloud(t *testing.T) *emulatortest.Cloud {
	t.Helper()
	config := cloud.DefaultConfig()
	config.Quotas.RouteEntriesPerTable = 2 * steadyNodes
	server := emulatortest.New(t, emulator.Options{Config: config})
	client := steadyClient(t, server)
	var routes []alicloud.NewRoute
	for i := range steadyNodes {
		if _, err := server.PutInstance(steadyInstance(i), emulator.InstanceSpec{PrivateIP: steadyAddress(i)}); err != nil {
			t.Fatal(err)
		}
		routes = append(routes, alicloud.NewRoute{TableID: emulatortest.SystemTable, CIDR: steadyCIDR(i), InstanceID: steadyInstance(i)})
		if len(routes) == alicloud.MaxRouteEntriesPerCall {
			if _, err := client.CreateRouteEntries(t.Context(), routes); err != nil {
				t.Fatal(err)
			}
			routes = nil
		}
	}
	return server
}

func steadyInstance(i int) string { return fmt.Sprintf("i-%d", i) }

func steadyAddress(i int) string { return fmt.Sprintf("10.1.%d.%d", i/200, i%200+10) }

func steadyCIDR(i int) string { return fmt.Sprintf("10.%d.%d.0/24", 128+i/256, i%256) }

func steadyClient(t *testing.T, server *emulatortest.Cloud) *alicloud.Client {
	t.Helper()
	client, err := alicloud.New(alicloud.Options{
		Region:      emulatortest.Region,
		Credentials: alicloud.StaticCredentials{AccessKeyID: emulatortest.AccessKeyID, AccessKeySecret: emulatortest.AccessKeySecret},
		Endpoints:   alicloud.Endpoints{PlainHTTP: true, SLB: "emulator.test", NLB: "emulator.test", VPC: "emulator.test", ECS: "emulator.test", Quotas: "emulator.test"},
		Transport:   server.Transport(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

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

// startControllers wires the provider as it is and runs all controllers that deal with nodes.
func startControllers(ctx context.Context, t *testing.T, server *emulatortest.Cloud) (*sync.WaitGroup, *fake.Clientset) {
	t.Helper()
	kube := fake.NewClientset()
	for i := range steadyNodes {
		if err := kube.Tracker().Add(steadyNode(i)); err != nil {
			t.Fatal(err)
		}
	}
	c := New(keys, Environment{})
	c.Configure(Settings{
		ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/9")}, RoutePeriod: 5 * time.Minute, NodeMonitorPeriod: monitorPeriod,
	})
	c.client, c.place, c.clusterID = steadyClient(t, server), place{vpcID: emulatortest.VPC}, "c1"
	c.kube, c.ctx, c.endpointSlices = kube, ctx, true
	factory := informers.NewSharedInformerFactory(kube, 0)
	c.SetInformers(factory)
	nodes := factory.Core().V1().Nodes()
	initializer, err := nodecontroller.NewCloudNodeController(nodes, kube, c, addressPeriod, 10, 10)
	if err != nil {
		t.Fatal(err)
	}
	lifecycle, err := nodelifecycle.NewCloudNodeLifecycleController(LifecycleNodes(nodes), kube, c, monitorPeriod, 10)
	if err != nil {
		t.Fatal(err)
	}
	routes, err := c.RouteController()
	if err != nil {
		t.Fatal(err)
	}
	ours, err := c.NodeController(addressPeriod)
	if err != nil {
		t.Fatal(err)
	}
	running := &sync.WaitGroup{}
	metrics := controllersmetrics.NewControllerManagerMetrics("test")
	factory.Start(ctx.Done())
	running.Go(func() { initializer.RunWithContext(ctx, metrics) })
	running.Go(func() { lifecycle.Run(ctx, metrics) })
	running.Go(func() { routes.Run(ctx) })
	running.Go(func() { ours.Run(ctx) })
	running.Go(func() {
		<-ctx.Done()
		factory.Shutdown()
	})
	return running, kube
}
