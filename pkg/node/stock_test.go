package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	cloudprovider "k8s.io/cloud-provider"
	cloudproviderapi "k8s.io/cloud-provider/api"
	nodecontroller "k8s.io/cloud-provider/controllers/node"
	"k8s.io/cloud-provider/controllers/nodelifecycle"
	controllersmetrics "k8s.io/component-base/metrics/prometheus/controllers"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// stockCloud is the smallest cloud provider that the stock controllers accept.
type stockCloud struct {
	cloudprovider.Interface
	instances *Instances
}

func (c stockCloud) Instances() (cloudprovider.Instances, bool)     { return nil, false }
func (c stockCloud) InstancesV2() (cloudprovider.InstancesV2, bool) { return c.instances, true }
func (c stockCloud) Zones() (cloudprovider.Zones, bool)             { return nil, false }

// startStock runs the stock controllers over the provider until the test ends, or the returned function is called.
func startStock(t *testing.T, client *fake.Clientset, a *account) (stop func()) {
	t.Helper()
	factory := informers.NewSharedInformerFactory(client, 0)
	nodes := factory.Core().V1().Nodes()
	instances := NewInstances(Options{
		API: a.Client, Region: testRegion, VPCID: testVPC, Nodes: nodes, MonitorPeriod: 50 * time.Millisecond, Window: 20 * time.Millisecond,
		Guard: GuardOptions{Confirmations: 3, Over: 100 * time.Millisecond, UnseenAge: 100 * time.Millisecond},
	})
	cloud := stockCloud{instances: instances}
	initializer, err := nodecontroller.NewCloudNodeController(nodes, client, cloud, 100*time.Millisecond, 10, 10)
	if err != nil {
		t.Fatal(err)
	}
	lifecycle, err := nodelifecycle.NewCloudNodeLifecycleController(nodes, client, cloud, instances.opts.MonitorPeriod, 10)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	metrics := controllersmetrics.NewControllerManagerMetrics("test")
	factory.Start(ctx.Done())
	running.Go(func() { initializer.RunWithContext(ctx, metrics) })
	running.Go(func() { lifecycle.Run(ctx, metrics) })
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		factory.Shutdown()
	})
	t.Cleanup(stop)
	return stop
}

// failNodeWrites lets every third write of a Node fail, in turns before and after it has happened.
func failNodeWrites(t *testing.T, client *fake.Clientset) {
	t.Helper()
	var writes atomic.Int32
	fail := func(action clienttesting.Action) (bool, runtime.Object, error) {
		n := writes.Add(1)
		if n%3 != 0 {
			return false, nil, nil
		}
		if n%2 == 0 {
			if _, _, err := clienttesting.ObjectReaction(client.Tracker())(action); err != nil {
				return true, nil, err
			}
		}
		return true, nil, apierrors.NewInternalError(errors.New("injected"))
	}
	client.PrependReactor("update", "nodes", fail)
	client.PrependReactor("patch", "nodes", fail)
}

// TestStockControllers lets nodes join, with and without provider ID, beside one of another cloud; then releases one. Some
// writes of Nodes fail or lose their answer.
func TestStockControllers(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	client := fake.NewClientset()
	foreign := nodeOf(emulator.Instance{ID: "i-foreign", PrivateIP: "192.168.0.1"}, withProviderID("k3s://worker"))
	create := func(node *corev1.Node) {
		t.Helper()
		node.CreationTimestamp = metav1.Now()
		if _, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	create(foreign)
	for i, instance := range a.put(30) {
		node := nodeOf(instance, tainted)
		if i%2 == 0 {
			node.Spec.ProviderID = ""
		}
		create(node)
	}
	failNodeWrites(t, client)
	startStock(t, client, a)
	testkit.Eventually(t, "all nodes are initialized", func(ctx context.Context) bool {
		list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		return err == nil && !slices.ContainsFunc(list.Items, func(node corev1.Node) bool {
			return node.Name != foreign.Name && (nodes.Uninitialized(&node) || node.Spec.ProviderID == "" ||
				node.Labels[corev1.LabelTopologyZone] == "" || node.Labels[LabelChargeType] == "")
		})
	})
	a.ReleaseInstance("i-3")
	if _, err := a.PutInstance("i-4", emulator.InstanceSpec{Status: alicloud.InstanceStopped}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the released node is deleted", func(ctx context.Context) bool {
		_, err := client.CoreV1().Nodes().Get(ctx, "node-i-3", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	testkit.Eventually(t, "the stopped node has the shutdown taint", func(ctx context.Context) bool {
		node, err := client.CoreV1().Nodes().Get(ctx, "node-i-4", metav1.GetOptions{})
		return err == nil && slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
			return taint.Key == cloudproviderapi.TaintNodeShutdown
		})
	})
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 30 {
		t.Errorf("%d nodes are left (%v), want 30: all but the released one, and the foreign one", len(nodes.Items), err)
	}
}

// TestStoppedNodesCostNoGets: the stock controller reads a Node before it taints it, so it must not be asked to taint one twice.
func TestStoppedNodesCostNoGets(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	client := fake.NewClientset()
	for i := range 10 {
		instance, err := a.PutInstance(fmt.Sprintf("i-%d", i), emulator.InstanceSpec{Status: alicloud.InstanceStopped})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.CoreV1().Nodes().Create(t.Context(), nodeOf(instance), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	startStock(t, client, a)
	testkit.Eventually(t, "all nodes have the shutdown taint", func(ctx context.Context) bool {
		list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		return err == nil && !slices.ContainsFunc(list.Items, func(node corev1.Node) bool { return !nodes.ShutDown(&node) })
	})
	passes := func(n int) {
		before := a.Last()
		testkit.Eventually(t, "passes go on", func(context.Context) bool { return a.Count(before, "DescribeInstances") >= n })
	}
	passes(2) // what was under way has ended
	client.ClearActions()
	passes(5)
	for _, action := range client.Actions() {
		if action.GetResource().Resource == "nodes" {
			t.Errorf("%s of nodes while nothing changes", action.GetVerb())
		}
	}
}
