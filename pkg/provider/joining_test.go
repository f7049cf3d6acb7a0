package provider

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
)

// TestNoMomentWithoutCondition: the stock node controller takes the taint off a node with the metadata that it gets. Before it gets
// them the node's network is unavailable, or it gets none, so that pods never land on a node without a route.
func TestNoMomentWithoutCondition(t *testing.T) {
	t.Parallel()
	routed := Settings{ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/9")}}
	for name, test := range map[string]struct {
		settings  Settings
		change    func(*corev1.Node)
		refused   bool // the API server refuses the condition
		condition bool
		fails     bool // the stock controller leaves the taint and asks again
	}{
		"joins":                           {settings: routed, condition: true},
		"joins, the condition is refused": {settings: routed, refused: true, fails: true},
		"routes are switched off":         {},
		"initialized long ago":            {settings: routed, change: func(n *corev1.Node) { n.Spec.Taints = nil }},
		"excluded": {settings: routed, change: func(n *corev1.Node) {
			n.Labels = map[string]string{nodes.LabelOnPremises: "true"}
		}},
		"of another provider": {settings: routed, change: func(n *corev1.Node) { n.Spec.ProviderID = "k3s://node-0" }},
		"its instance is not known so far": {settings: routed, change: func(n *corev1.Node) {
			n.Status.Addresses[0].Address = "10.1.99.99"
		}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				node := joiningNode(0)
				if test.change != nil {
					test.change(node)
				}
				kube := fake.NewClientset(node)
				if test.refused {
					kube.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
						return true, nil, errors.New("not now")
					})
				}
				c := joiningCloud(t, kube, test.settings)
				instances, _ := c.InstancesV2()
				if _, err := instances.InstanceMetadata(t.Context(), node); (err != nil) != test.fails {
					t.Errorf("error %v, want one: %t", err, test.fails)
				}
				n, err := kube.CoreV1().Nodes().Get(t.Context(), node.Name, metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				condition := nodes.Condition(n, corev1.NodeNetworkUnavailable)
				if got := condition != nil && condition.Status == corev1.ConditionTrue; got != test.condition {
					t.Errorf("condition %+v, want the network unavailable: %t", condition, test.condition)
				}
			})
		})
	}
}

// joiningCloud is the provider over an account with the instance of the first node.
func joiningCloud(t *testing.T, kube *fake.Clientset, settings Settings) *Cloud {
	t.Helper()
	server := emulatortest.New(t, emulator.Options{})
	if _, err := server.PutInstance(steadyInstance(0), emulator.InstanceSpec{PrivateIP: steadyAddress(0)}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c := New(keys, Environment{})
	c.Configure(settings)
	c.client, c.place, c.clusterID = steadyClient(t, server), place{vpcID: emulatortest.VPC}, "c1"
	c.kube, c.ctx, c.endpointSlices = kube, ctx, true
	factory := informers.NewSharedInformerFactory(kube, 0)
	c.SetInformers(factory)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
	})
	return c
}
