package vpcroute

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	nodeutil "k8s.io/component-helpers/node/util"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
)

// server is a fake API server with a watch, for controllers that really run.
type server struct {
	t       *testing.T
	account *account
	client  *fake.Clientset
}

func newServer(t *testing.T, opts emulator.Options, instances int) *server {
	t.Helper()
	s := &server{t: t, account: newAccount(t, opts), client: fake.NewClientset()}
	s.account.put(instances)
	return s
}

// start runs a controller made over a node informer until the test ends, or the returned function is called.
func (s *server) start(build func(factory informers.SharedInformerFactory) func(context.Context)) (stop func()) {
	s.t.Helper()
	factory := informers.NewSharedInformerFactory(s.client, 0)
	run := build(factory)
	ctx, cancel := context.WithCancel(s.t.Context())
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	factory.Start(ctx.Done()) // after Run, as the stock app does
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		factory.Shutdown()
	})
	s.t.Cleanup(stop)
	return stop
}

func (s *server) options(factory informers.SharedInformerFactory) Options {
	return Options{
		API: s.account.Client, Config: testConfig(), Client: s.client, Recorder: record.NewFakeRecorder(10000),
		Nodes: factory.Core().V1().Nodes(), InstanceID: instanceOf,
	}
}

func (s *server) startController() (stop func()) {
	s.t.Helper()
	return s.start(func(factory informers.SharedInformerFactory) func(context.Context) {
		opts := s.options(factory)
		controller, err := NewController(opts, NewWriter(opts))
		if err != nil {
			s.t.Fatal(err)
		}
		return controller.Run
	})
}

func (s *server) create(nodes ...*corev1.Node) {
	s.t.Helper()
	for _, node := range nodes {
		if _, err := s.client.CoreV1().Nodes().Create(s.t.Context(), node, metav1.CreateOptions{}); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *server) update(name string, change func(*corev1.Node)) {
	s.t.Helper()
	node, err := s.client.CoreV1().Nodes().Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	change(node)
	node.ResourceVersion += "1" // the fake API server leaves that to its callers
	if _, err := s.client.CoreV1().Nodes().Update(s.t.Context(), node, metav1.UpdateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// eventually polls the condition until it holds.
// testPatience is how long a test waits for what a real controller does in real time: minutes, because a busy machine is no failure.
const testPatience = 2 * time.Minute

func (s *server) eventually(what string, within time.Duration, condition func(ctx context.Context) bool) {
	s.t.Helper()
	err := wait.PollUntilContextTimeout(s.t.Context(), 10*time.Millisecond, within, true, func(ctx context.Context) (bool, error) {
		return condition(ctx), nil
	})
	if err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

func (s *server) eventuallyRoutes(want map[string]string) {
	s.t.Helper()
	var got map[string]string
	err := wait.PollUntilContextTimeout(s.t.Context(), 10*time.Millisecond, testPatience, true, func(context.Context) (bool, error) {
		got = s.account.Routes(testTable)
		return cmp.Equal(want, got), nil
	})
	if err != nil {
		s.t.Fatalf("%v: routes (-want +got):\n%s", err, cmp.Diff(want, got))
	}
}

// network waits until exactly the named nodes' NetworkUnavailable is False with RouteCreated.
func (s *server) network(names ...string) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("nodes with network are %v", names), testPatience, func(ctx context.Context) bool {
		nodes, err := s.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false
		}
		var with []string
		for i := range nodes.Items {
			_, condition := nodeutil.GetNodeCondition(&nodes.Items[i].Status, corev1.NodeNetworkUnavailable)
			if condition != nil && condition.Status == corev1.ConditionFalse && condition.Reason == conditionCreated {
				with = append(with, nodes.Items[i].Name)
			}
		}
		slices.Sort(with)
		return slices.Equal(with, names)
	})
}

// TestController plays a node's life: it joins without pod CIDR and provider ID, gets both, changes, and goes.
func TestController(t *testing.T) {
	t.Parallel()
	config := cloud.DefaultConfig()
	for i := range 4 {
		config.Instances = append(config.Instances, cloud.InstanceConfig{
			ID: fmt.Sprintf("i-%d", i), PrivateIP: fmt.Sprintf("10.1.0.%d", i+10), SourceDestCheck: i < 2,
		})
	}
	s := newServer(t, emulator.Options{Config: config, Settle: 200 * time.Millisecond}, 0)
	s.create(nodeOf(0), nodeOf(1, withCIDR()), nodeOf(2, withProviderID("")))
	stop := s.startController()
	s.eventuallyRoutes(map[string]string{cidrOf(0): "i-0"})
	s.network("node-0")

	s.update("node-1", withCIDR(cidrOf(1)))
	s.update("node-2", withProviderID("alicloud://cn-hangzhou.i-2"))
	s.eventually("the routes are requested", testPatience, func(context.Context) bool { return len(s.account.Routes(testTable)) == 3 })
	s.network("node-0", "node-1", "node-2")
	s.eventually("the source/destination checks are off", testPatience, func(context.Context) bool {
		return s.account.Count(0, "ModifyNetworkInterfaceAttribute") == 2
	})

	if err := s.client.CoreV1().Nodes().Delete(t.Context(), "node-0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.eventuallyRoutes(map[string]string{cidrOf(1): "i-1", cidrOf(2): "i-2"})

	stop()
	before := s.account.Last()
	s.startController()
	s.eventually("the tables are read again", testPatience, func(context.Context) bool {
		return s.account.Count(before, "DescribeRouteEntryList", "DescribeNetworkInterfaces") >= 2
	})
	s.network("node-1", "node-2")
	if n := s.account.Count(before, "ModifyNetworkInterfaceAttribute"); n != 0 {
		t.Errorf("%d checks were switched off again after the restart", n)
	}
}

// TestNodesThatJoin: one node, and one batch of them, and everything around it, from the event until each node has its condition. In a
// bubble, so that the time is that of waits alone.
func TestNodesThatJoin(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 50} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { playJoin(t, n) })
		})
	}
}

func playJoin(t *testing.T, n int) {
	t.Helper()
	s := newServer(t, emulator.Options{Settle: time.Second}, n)
	for i := range n {
		s.create(nodeOf(i, withProviderID("")))
	}
	stop := s.startController()
	defer stop()
	time.Sleep(10 * time.Second)
	before, start := s.account.Last(), time.Now()
	for i := range n {
		s.update(fmt.Sprintf("node-%d", i), withProviderID(fmt.Sprintf("cn-hangzhou.i-%d", i)))
	}
	nodes, _ := nodesOf(n)
	all := make([]string, 0, len(nodes))
	for _, node := range nodes {
		all = append(all, node.Name)
	}
	slices.Sort(all)
	s.network(all...)
	for _, call := range s.account.Calls(before) {
		if took := call.Time.Sub(start); call.Action == "CreateRouteEntries" && took > time.Second {
			t.Errorf("routes are requested after %s, want within a second", took)
		}
	}
	if took := time.Since(start); took > 1200*time.Millisecond {
		t.Errorf("%d routes took %s, want at most 1.2 times the second that the cloud takes", n, took)
	}
	if calls := s.account.Count(before, "CreateRouteEntries", "DescribeRouteEntryList"); calls > 3 {
		for _, call := range s.account.Calls(before) {
			t.Logf("%s %s %s", call.Time.Sub(start), call.Action, call.Code)
		}
		t.Errorf("%d routes took %d calls, want at most 3", n, calls)
	}
}

// TestConditionRepaired: what others write over the condition is put right at once.
func TestConditionRepaired(t *testing.T) {
	t.Parallel()
	s := newServer(t, emulator.Options{}, 2)
	s.create(nodeOf(0), nodeOf(1))
	s.startController()
	s.network("node-0", "node-1")
	s.update("node-1", func(node *corev1.Node) {
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionTrue,
			Reason: "NodeInitialization"}}
	})
	s.network("node-0", "node-1")
}

// TestConditionWriteFails: the write of a condition that fails, or whose answer is lost, is repeated until the node has it,
// also by a controller that starts anew.
func TestConditionWriteFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ happens, dies bool }{
		"refused": {}, "answer lost": {happens: true}, "refused, process dies": {dies: true},
		"answer lost, process dies": {happens: true, dies: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, emulator.Options{}, 3)
			s.create(nodeOf(0), nodeOf(1), nodeOf(2))
			var failures atomic.Int32
			s.client.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
				if failures.Add(1) > 4 {
					return false, nil, nil
				}
				if test.happens {
					if _, _, err := clienttesting.ObjectReaction(s.client.Tracker())(action); err != nil {
						t.Error(err)
					}
				}
				return true, nil, apierrors.NewInternalError(errors.New("injected"))
			})
			stop := s.startController()
			s.eventually("a write has failed", testPatience, func(context.Context) bool { return failures.Load() > 0 })
			if test.dies {
				stop()
				s.startController()
			}
			s.network("node-0", "node-1", "node-2")
			if n := s.account.Count(0, "CreateRouteEntries"); n != 1 {
				t.Errorf("%d batches for three routes", n)
			}
		})
	}
}

// TestUnroutedController: with routes off, only a condition that a route controller left behind is cleared.
func TestUnroutedController(t *testing.T) {
	t.Parallel()
	s := newServer(t, emulator.Options{}, 0)
	with := func(reason string) func(*corev1.Node) {
		return func(node *corev1.Node) {
			node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionTrue, Reason: reason}}
		}
	}
	s.create(nodeOf(0, with(conditionMissing)), nodeOf(1, with("CalicoIsDown")), nodeOf(2))
	s.start(func(factory informers.SharedInformerFactory) func(context.Context) {
		opts := s.options(factory)
		opts.SkipSourceDestCheck = true
		controller, err := NewController(opts, nil)
		if err != nil {
			t.Fatal(err)
		}
		return controller.Run
	})
	status := func(ctx context.Context, name string) string {
		node, err := s.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		_, condition := nodeutil.GetNodeCondition(&node.Status, corev1.NodeNetworkUnavailable)
		if condition == nil {
			return "none"
		}
		return string(condition.Status)
	}
	s.eventually("the condition is cleared", testPatience, func(ctx context.Context) bool { return status(ctx, "node-0") == "False" })
	if got := status(t.Context(), "node-1"); got != "True" {
		t.Errorf("the condition of another program is %s, want True", got)
	}
	if got := status(t.Context(), "node-2"); got != "none" {
		t.Errorf("a node without the condition got %s", got)
	}
	if n := s.account.Count(0); n != 0 {
		t.Errorf("%d calls to the cloud with routes off", n)
	}
}

// TestUnroutedControllerSwitchesChecksOff: whoever routes pod addresses instead needs the source/destination checks off, also of
// nodes that join later; the flag that leaves them alone holds here too.
func TestUnroutedControllerSwitchesChecksOff(t *testing.T) {
	t.Parallel()
	for _, skip := range []bool{false, true} {
		t.Run(fmt.Sprint(skip), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				config := cloud.DefaultConfig()
				for i := range 3 {
					config.Instances = append(config.Instances,
						cloud.InstanceConfig{ID: fmt.Sprintf("i-%d", i), PrivateIP: addressOfNode(i), SourceDestCheck: true})
				}
				s := newServer(t, emulator.Options{Config: config}, 0)
				s.create(nodeOf(0), nodeOf(1))
				stop := s.start(func(factory informers.SharedInformerFactory) func(context.Context) {
					opts := s.options(factory)
					opts.SkipSourceDestCheck = skip
					controller, err := NewController(opts, nil)
					if err != nil {
						t.Fatal(err)
					}
					return controller.Run
				})
				time.Sleep(time.Minute)
				s.create(nodeOf(2))
				time.Sleep(time.Minute)
				stop()
				want := 3
				if skip {
					want = 0
				}
				if n := s.account.Count(0, "ModifyNetworkInterfaceAttribute"); n != want {
					t.Errorf("%d checks were switched off, want %d", n, want)
				}
			})
		})
	}
}

// TestEndBeforeTheCacheIsFilled: a process that ends while it starts leaves no work queue, which TestMain would find.
func TestEndBeforeTheCacheIsFilled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	controller, err := NewLeftOutController(Options{Client: fake.NewClientset(), Nodes: factory.Core().V1().Nodes(), InstanceID: instanceOf})
	if err != nil {
		t.Fatal(err)
	}
	controller.Run(ctx)
}
