package vpcroute

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/controller-manager/pkg/features"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testcloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

const (
	testVPC   = emulatortest.VPC
	testTable = emulatortest.SystemTable
)

func TestMain(m *testing.M) {
	testkube.RoomForWatchers()
	testkube.ErrorsDoNotWait()
	// The stock route controller asks for a gate that the stock command registers.
	if err := features.SetupCurrentKubernetesSpecificFeatureGates(utilfeature.DefaultMutableFeatureGate); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// account is an emulated cloud and the real client that reaches it.
type account struct {
	*testcloud.Account
	t *testing.T
}

// cenNode is a node whose pod CIDR a CEN has.
const cenNode = 4000

// newAccount has room for two thousand routes and a second route table, unless the options bring a configuration.
func newAccount(t *testing.T, opts emulator.Options) *account {
	t.Helper()
	if opts.Config == nil {
		opts.Config = cloud.DefaultConfig()
		opts.Config.Quotas.RouteEntriesPerTable = 2000
		opts.Config.RouteTables[0].LearnedRoutes = []cloud.LearnedRouteConfig{{CIDR: cidrOf(cenNode), Type: "CEN", NextHop: "tr-1"}}
		opts.Config.RouteTables = append(opts.Config.RouteTables, cloud.RouteTableConfig{ID: "vtb-second", VPCID: testVPC})
	}
	return &account{testcloud.New(t, opts), t}
}

// put adds running instances i-0, i-1, … with the addresses of nodeOf.
func (a *account) put(n int) {
	a.t.Helper()
	for i := range n {
		if _, err := a.PutInstance(fmt.Sprintf("i-%d", i), emulator.InstanceSpec{PrivateIP: addressOfNode(i)}); err != nil {
			a.t.Fatal(err)
		}
	}
}

// make writes entries as somebody else would.
func (a *account) make(description string, routes map[string]string) {
	a.t.Helper()
	var all []alicloud.NewRoute
	for _, cidr := range slices.Sorted(maps.Keys(routes)) {
		all = append(all, alicloud.NewRoute{TableID: testTable, CIDR: cidr, InstanceID: routes[cidr], Description: description})
	}
	for chunk := range slices.Chunk(all, alicloud.MaxRouteEntriesPerCall) {
		results, err := a.Client.CreateRouteEntries(context.WithoutCancel(a.t.Context()), chunk)
		if err := errors.Join(append(results, err)...); err != nil {
			a.t.Fatal(err)
		}
	}
}

var writes = []string{"CreateRouteEntries", "DeleteRouteEntries", "CreateRouteEntry", "DeleteRouteEntry", "ModifyNetworkInterfaceAttribute"}

// cluster is a node cache that a test fills by hand, with a controller whose passes the test makes. It has no watch and
// no goroutine.
type cluster struct {
	t       *testing.T
	account *account
	factory informers.SharedInformerFactory
	opts    Options
	events  *record.FakeRecorder
	// stubborn makes converge wait for routes that failed, however long their next attempt is away.
	stubborn bool
	*Controller
}

func testConfig() Config {
	return Config{
		ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")}, VPCID: testVPC, ClusterID: "test", Period: defaultPeriod,
	}
}

func newCluster(t *testing.T, a *account, change ...func(*Options)) *cluster {
	t.Helper()
	client := fake.NewClientset()
	c := &cluster{
		t: t, account: a, factory: informers.NewSharedInformerFactory(client, 0), events: record.NewFakeRecorder(10000),
	}
	c.opts = Options{
		API: a.Client, Config: testConfig(), Client: client, Recorder: c.events, Nodes: c.factory.Core().V1().Nodes(),
		InstanceID: instanceOf, SkipSourceDestCheck: true,
	}
	for _, f := range change {
		f(&c.opts)
	}
	c.restart()
	return c
}

// restart forgets everything that was in memory, as a new process does.
func (c *cluster) restart() {
	c.t.Helper()
	controller, err := NewController(c.opts, NewWriter(c.opts))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(controller.conditions.queue.ShutDown)
	c.t.Cleanup(controller.queue.ShutDown)
	c.Controller = controller
}

// instanceOf stands for the provider ID parser, which tests of routes need not have.
func instanceOf(node *corev1.Node) (string, error) {
	id, ok := strings.CutPrefix(strings.TrimPrefix(node.Spec.ProviderID, "alicloud://"), "cn-hangzhou.")
	if _, excluded := node.Labels["service.alibabacloud.com/exclude-node"]; !ok || excluded {
		return "", errors.New("no instance of ours")
	}
	return id, nil
}

func (c *cluster) set(nodes ...*corev1.Node) {
	c.t.Helper()
	for _, node := range nodes {
		if err := c.factory.Core().V1().Nodes().Informer().GetIndexer().Update(node); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *cluster) unset(nodes ...*corev1.Node) {
	c.t.Helper()
	for _, node := range nodes {
		if err := c.factory.Core().V1().Nodes().Informer().GetIndexer().Delete(node); err != nil {
			c.t.Fatal(err)
		}
	}
}

// converge makes passes until none is due before the next drift period, at most for so long. It is for bubbles.
func (c *cluster) converge(within time.Duration) {
	c.t.Helper()
	passes := 0
	for start := time.Now(); time.Since(start) <= within; {
		if passes++; passes > 1000 {
			c.t.Fatal("a thousand passes without an end")
		}
		next, err := c.pass(c.t.Context())
		if err != nil {
			time.Sleep(firstBackoff)
			continue
		}
		// Nothing is left to do before the next read for drift. How far that is says nothing: a read may wait for its minute.
		if (next.Equal(c.drift) || time.Until(next) > c.opts.Config.Period*3/4) && (!c.stubborn || !c.waitsToRetry()) {
			return
		}
		time.Sleep(time.Until(next))
	}
	c.t.Fatalf("the routes did not settle within %s", within)
}

// waitsToRetry reports whether something that failed has its next attempt ahead.
func (c *cluster) waitsToRetry() bool {
	w, now := c.writer, time.Now()
	for what := range w.retries.failures {
		if !w.retries.until(what, now).IsZero() {
			return true
		}
	}
	return false
}

// checkAll makes a pass over all source/destination checks that are not known to be off, whenever they are due.
func (c *cluster) checkAll(ctx context.Context) error {
	for _, check := range c.checks.checks {
		if check.state != up {
			check.due = time.Time{}
		}
	}
	return c.checks.pass(ctx)
}

// unchecked counts the instances whose source/destination check is not known to be off.
func (c *cluster) unchecked() int {
	n := 0
	for _, check := range c.checks.checks {
		if check.state != up {
			n++
		}
	}
	return n
}

// available returns the names of nodes that are said to have a network, and of those that are not.
func (c *cluster) available() (yes, no []string) {
	c.conditions.mu.Lock()
	defer c.conditions.mu.Unlock()
	for _, uid := range slices.Sorted(maps.Keys(c.conditions.wanted)) {
		name := strings.Replace(string(uid), "uid", "node", 1) // see nodeOf
		if c.conditions.wanted[uid] != conditionMissing {
			yes = append(yes, name)
		} else {
			no = append(no, name)
		}
	}
	return yes, no
}

// emitted returns how often each reason was emitted since the last call.
func (c *cluster) emitted() map[string]int {
	reasons := map[string]int{}
	for {
		select {
		case event := <-c.events.Events:
			reasons[strings.Fields(event)[1]]++
		default:
			return reasons
		}
	}
}

// nodeOf returns node n: instance i-<n>, pod CIDR 10.244.<n>.0/24 or, above 255, a smaller piece.
func nodeOf(n int, change ...func(*corev1.Node)) *corev1.Node {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("node-%d", n), UID: types.UID(fmt.Sprintf("uid-%d", n)), ResourceVersion: "1", Labels: map[string]string{},
		},
		Spec:   corev1.NodeSpec{ProviderID: fmt.Sprintf("cn-hangzhou.i-%d", n)},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: addressOfNode(n)}}},
	}
	withCIDR(cidrOf(n))(node)
	for _, f := range change {
		f(node)
	}
	return node
}

func addressOfNode(n int) string { return fmt.Sprintf("10.1.%d.%d", n/200, n%200+10) }

// cidrOf gives every n below 4096 a /28 of its own, spread so that the first 256 are easy to read.
func cidrOf(n int) string { return fmt.Sprintf("10.244.%d.%d/28", n%256, n/256*16) }

func withCIDR(cidrs ...string) func(*corev1.Node) {
	return func(node *corev1.Node) {
		node.Spec.PodCIDRs = cidrs
		node.Spec.PodCIDR = ""
		if len(cidrs) > 0 {
			node.Spec.PodCIDR = cidrs[0]
		}
	}
}

func withProviderID(id string) func(*corev1.Node) {
	return func(node *corev1.Node) { node.Spec.ProviderID = id }
}

// settled makes an account and a cluster with nodes that have their routes.
func settled(t *testing.T, n int) (a *account, c *cluster, nodes []*corev1.Node, routes map[string]string) {
	t.Helper()
	a = newAccount(t, emulator.Options{})
	a.put(n)
	c = newCluster(t, a)
	nodes, routes = nodesOf(n)
	c.set(nodes...)
	c.converge(time.Minute)
	return a, c, nodes, routes
}

func nodesOf(n int) (nodes []*corev1.Node, routes map[string]string) {
	routes = map[string]string{}
	for i := range n {
		nodes = append(nodes, nodeOf(i))
		routes[cidrOf(i)] = fmt.Sprintf("i-%d", i)
	}
	return nodes, routes
}

func routeTo(node *corev1.Node) *cloudprovider.Route {
	return &cloudprovider.Route{TargetNode: types.NodeName(node.Name), DestinationCIDR: node.Spec.PodCIDR}
}
