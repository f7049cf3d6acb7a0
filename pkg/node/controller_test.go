package node

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
)

const statusPeriod = 5 * time.Minute // the stock node controller's

// controlled is a cluster with the controller and without the stock ones.
type controlled struct {
	t      *testing.T
	client *fake.Clientset
	events *record.FakeRecorder
}

// control runs the controller in the test's bubble over these Nodes.
func control(t *testing.T, opts Options, all ...*corev1.Node) *controlled {
	t.Helper()
	c := &controlled{t: t, client: fake.NewClientset(), events: record.NewFakeRecorder(1000)}
	for _, node := range all {
		if _, err := c.client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	factory := informers.NewSharedInformerFactory(c.client, 0)
	opts.Region, opts.VPCID, opts.Nodes, opts.Recorder = testRegion, testVPC, factory.Core().V1().Nodes(), c.events
	controller, err := NewController(NewInstances(opts), c.client, statusPeriod)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	factory.Start(ctx.Done())
	running.Go(func() { controller.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		factory.Shutdown()
	})
	time.Sleep(10 * time.Second)
	return c
}

func (c *controlled) node(name string) *corev1.Node {
	c.t.Helper()
	node, err := c.client.CoreV1().Nodes().Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return node
}

func (c *controlled) update(node *corev1.Node) {
	c.t.Helper()
	if _, err := c.client.CoreV1().Nodes().Update(c.t.Context(), node, metav1.UpdateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// patches returns the patches of Nodes so far, and forgets them.
func (c *controlled) patches() []string {
	var patches []string
	for _, action := range c.client.Actions() {
		if patch, ok := action.(clienttesting.PatchAction); ok {
			patches = append(patches, string(patch.GetPatch()))
		}
	}
	c.client.ClearActions()
	return patches
}

func neutralLabels(kind, zone string) map[string]string {
	return map[string]string{
		corev1.LabelInstanceType: kind, corev1.LabelInstanceTypeStable: kind,
		corev1.LabelFailureDomainBetaZone: zone, corev1.LabelTopologyZone: zone,
		corev1.LabelFailureDomainBetaRegion: testRegion, corev1.LabelTopologyRegion: testRegion,
	}
}

func (c *controlled) wantLabels(name string, want map[string]string) {
	c.t.Helper()
	have := c.node(name).Labels
	for key, value := range want {
		if have[key] != value {
			c.t.Errorf("%s: label %s = %q, want %q", name, key, have[key], value)
		}
	}
}

// TestUntaintedNodeGetsProviderID: nodes that never had the uninitialized taint get provider ID and labels too, a hundred of them with one
// call and a patch each; then nothing is written any more.
func TestUntaintedNodeGetsProviderID(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		var all []*corev1.Node
		for i, instance := range a.put(100) {
			node := nodeOf(instance, isReady)
			if i < 50 {
				node.Spec.ProviderID = ""
			}
			all = append(all, node)
		}
		c := control(t, Options{API: a.Client}, all...)
		for i, node := range all {
			if got, want := c.node(node.Name).Spec.ProviderID, fmt.Sprintf("cn-hangzhou.i-%d", i); got != want {
				t.Errorf("%s: provider ID %q, want %q", node.Name, got, want)
			}
			c.wantLabels(node.Name, neutralLabels("ecs.g7.large", "cn-hangzhou-a"))
		}
		if n, calls := len(c.patches()), a.Count(0, "DescribeInstances"); n != 100 || calls > 3 {
			t.Errorf("%d patches and %d calls for 100 nodes, want 100 and 3 at most", n, calls)
		}
		before := a.Last()
		time.Sleep(10 * statusPeriod)
		if patches := c.patches(); len(patches) != 0 {
			t.Errorf("%d patches while nothing changes, such as %s", len(patches), patches[0])
		}
		if calls := a.Count(before, "DescribeInstances"); calls > 10 {
			t.Errorf("%d calls in ten periods, want one each at most", calls)
		}
	})
}

// TestLabelsFollowTheInstance: labels that somebody changed come back, those of others stay, and a resize is followed.
func TestLabelsFollowTheInstance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		instance, err := a.PutInstance("i-0", emulator.InstanceSpec{Type: "ecs.g7.large", Tags: map[string]string{tagNodePoolID: "np-1"}})
		if err != nil {
			t.Fatal(err)
		}
		c := control(t, Options{API: a.Client}, nodeOf(instance, isReady, withLabel("team", "a")))
		name := "node-i-0"
		want := neutralLabels("ecs.g7.large", "cn-hangzhou-a")
		maps.Copy(want, map[string]string{LabelNodePoolID: "np-1", "team": "a"})
		c.wantLabels(name, want)

		node := c.node(name)
		node.Labels[corev1.LabelInstanceType], node.Labels[corev1.LabelTopologyZone] = "wrong", "wrong"
		delete(node.Labels, corev1.LabelTopologyRegion)
		c.update(node)
		time.Sleep(labelDelay + time.Second)
		c.wantLabels(name, want)

		if _, err := a.PutInstance("i-0",
			emulator.InstanceSpec{Type: "ecs.g7.4xlarge", Tags: map[string]string{tagNodePoolID: "np-2"}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * statusPeriod)
		want = neutralLabels("ecs.g7.4xlarge", "cn-hangzhou-a")
		maps.Copy(want, map[string]string{LabelNodePoolID: "np-2", "team": "a"})
		c.wantLabels(name, want)
	})
}

// TestOthersAreLeftAlone: the controller writes nothing on nodes that are none of ours, that the stock controller is about to initialize,
// or whose instance ECS does not show, and reads nothing for the first two.
func TestOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		with  func(*corev1.Node)
		calls bool
	}{
		"other cloud":     {with: withProviderID("k3s://worker")},
		"other region":    {with: withProviderID("cn-beijing.i-0")},
		"opted out":       {with: withLabel(nodes.LabelExcludeNode, "")},
		"virtual kubelet": {with: withLabel(nodes.LabelType, nodes.TypeVirtualKubelet)},
		"malformed":       {with: withProviderID("worker-1")},
		"uninitialized":   {with: tainted},
		"not shown":       {with: withProviderID("cn-hangzhou.i-none"), calls: true},
		"no such address": {with: onPremises, calls: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, emulator.Options{})
				c := control(t, Options{API: a.Client}, nodeOf(a.put(1)[0], isReady, test.with))
				time.Sleep(3 * statusPeriod)
				if patches := c.patches(); len(patches) != 0 {
					t.Errorf("patches %q", patches)
				}
				if calls := a.Count(0, "DescribeInstances"); (calls > 0) != test.calls || calls > 20 {
					t.Errorf("%d calls", calls)
				}
			})
		})
	}
}

// TestOnPremises: a machine outside of Alibaba Cloud is initialized without provider ID, call or event, by its label or by its address.
func TestOnPremises(t *testing.T) {
	t.Parallel()
	outside := []netip.Prefix{netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("fd00::/8")}
	others := corev1.Taint{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}
	for name, test := range map[string]struct {
		cidrs []netip.Prefix
		with  func(*corev1.Node)
		want  bool
	}{
		"by label": {with: withLabel(nodes.LabelOnPremises, "true"), want: true},
		"by label, foreign": {with: func(node *corev1.Node) {
			withLabel(nodes.LabelOnPremises, "true")(node)
			withProviderID("k3s://w")(node)
		}, want: true},
		"by address": {cidrs: outside, want: true},
		"by both addresses": {cidrs: outside, want: true, with: func(node *corev1.Node) {
			node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "fd00::1"})
		}},
		"an address of both kinds": {cidrs: outside, with: func(node *corev1.Node) {
			node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "10.1.0.99"})
		}},
		"a provider ID of ours": {cidrs: outside, with: withProviderID("cn-hangzhou.i-0")},
		"neither":               {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, emulator.Options{})
				a.put(1)
				node := nodeOf(emulator.Instance{ID: "idc"}, tainted, onPremises)
				node.Spec.Taints = append(node.Spec.Taints, others)
				if test.with != nil {
					test.with(node)
				}
				c := control(t, Options{API: a.Client, OnPremises: test.cidrs}, node)
				got := c.node(node.Name)
				if nodes.Uninitialized(got) == test.want || nodes.IsOnPremises(got) != test.want || got.Spec.ProviderID != node.Spec.ProviderID ||
					!slices.Contains(got.Spec.Taints, others) {
					t.Errorf("labels %v, taints %v, provider ID %q, want initialized = %v", got.Labels, got.Spec.Taints, got.Spec.ProviderID, test.want)
				}
				if calls := a.Count(0, "DescribeInstances"); calls != 0 || len(c.events.Events) != 0 {
					t.Errorf("%d calls and %d events", calls, len(c.events.Events))
				}
			})
		})
	}
}

// TestPatchNamesItsNode: a patch carries UID and version, so that the API server refuses it for another Node of the same name, or when
// somebody else has written meanwhile.
func TestPatchNamesItsNode(t *testing.T) {
	t.Parallel()
	node := nodeOf(emulator.Instance{ID: "i-0"}, tainted)
	data, err := PatchOf(node, nil, map[string]any{"providerID": "cn-hangzhou.i-0", "taints": []corev1.Taint{}})
	if err != nil {
		t.Fatal(err)
	}
	var patch corev1.Node
	if err := json.Unmarshal(data, &patch); err != nil {
		t.Fatal(err)
	}
	if patch.UID != node.UID || patch.ResourceVersion != node.ResourceVersion || patch.Spec.ProviderID != "cn-hangzhou.i-0" ||
		patch.Spec.Taints == nil {
		t.Errorf("the patch is %s", data)
	}
}
