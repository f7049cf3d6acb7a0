package node

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	nodecontroller "k8s.io/cloud-provider/controllers/node"
	controllersmetrics "k8s.io/component-base/metrics/prometheus/controllers"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

const (
	internal = corev1.NodeInternalIP
	external = corev1.NodeExternalIP
	hostname = corev1.NodeHostName

	// addressPass is how often the stock node controller compares the addresses of all nodes.
	addressPass = 5 * time.Minute
)

func TestAddresses(t *testing.T) {
	t.Parallel()
	instance := alicloud.Instance{
		PrivateIPs: []string{"10.1.0.9", "10.1.0.10"}, PublicIPs: []string{"47.0.0.1"}, EIP: "8.8.8.8", IPv6: []string{"2408::9"},
		InterfaceIPs: []string{"10.1.0.9", "10.1.0.10", "10.1.7.7", "2408::9"},
	}
	want := []corev1.NodeAddress{
		{Type: internal, Address: "10.1.0.9"}, {Type: internal, Address: "10.1.0.10"}, {Type: internal, Address: "2408::9"},
		{Type: external, Address: "47.0.0.1"}, {Type: external, Address: "8.8.8.8"},
	}
	if diff := cmp.Diff(want, addressesOf(instance, true)); diff != "" {
		t.Errorf("with IPv6 (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(slices.Delete(slices.Clone(want), 2, 3), addressesOf(instance, false)); diff != "" {
		t.Errorf("without IPv6 (-want +got):\n%s", diff)
	}
}

func hasAddresses(addresses ...corev1.NodeAddress) func(*corev1.Node) {
	return func(node *corev1.Node) { node.Status.Addresses = addresses }
}

// public gives all instances a public address.
func public(_ alicloud.InstanceQuery, answer []alicloud.Instance) []alicloud.Instance {
	for i := range answer {
		answer[i].PublicIPs = []string{"47.0.0.1"}
	}
	return answer
}

// TestNodeIP: the stock node controller gives a node the addresses that its kubelet names, and those of other types. An address
// of a further network interface counts too, but only where it is named: network plugins give such addresses to pods.
func TestNodeIP(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		nodeIP string               // "" for a kubelet without the flag
		want   []corev1.NodeAddress // nil: the node is not initialized
	}{
		"not given": {want: []corev1.NodeAddress{
			{Type: internal, Address: "10.1.0.9"}, {Type: external, Address: "47.0.0.1"}, {Type: hostname, Address: "worker"},
		}},
		"primary": {nodeIP: "10.1.0.9", want: []corev1.NodeAddress{
			{Type: internal, Address: "10.1.0.9"}, {Type: external, Address: "47.0.0.1"}, {Type: hostname, Address: "worker"},
		}},
		"of another interface": {nodeIP: "10.1.0.77", want: []corev1.NodeAddress{
			{Type: internal, Address: "10.1.0.77"}, {Type: external, Address: "47.0.0.1"}, {Type: hostname, Address: "worker"},
		}},
		"public": {nodeIP: "47.0.0.1", want: []corev1.NodeAddress{
			{Type: external, Address: "47.0.0.1"}, {Type: internal, Address: "10.1.0.9"}, {Type: hostname, Address: "worker"},
		}},
		"both families, IPv6 not reported otherwise": {nodeIP: "10.1.0.9,2408:4005::9", want: []corev1.NodeAddress{
			{Type: internal, Address: "10.1.0.9"}, {Type: internal, Address: "2408:4005::9"}, {Type: external, Address: "47.0.0.1"},
			{Type: hostname, Address: "worker"},
		}},
		"of another machine": {nodeIP: "10.1.0.5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { playNodeIP(t, test.nodeIP, test.want) })
		})
	}
}

func playNodeIP(t *testing.T, nodeIP string, want []corev1.NodeAddress) {
	t.Helper()
	a := newAccount(t, emulator.Options{})
	instance, err := a.PutInstance("i-0", emulator.InstanceSpec{PrivateIP: "10.1.0.9"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.PutInterface("eni-second", cloud.ContainerSpec{InstanceID: "i-0", PrivateIP: "10.1.0.77"}); err != nil {
		t.Fatal(err)
	}
	withIPv6 := func(query alicloud.InstanceQuery, answer []alicloud.Instance) []alicloud.Instance {
		for i := range answer {
			answer[i].IPv6 = []string{"2408:4005::9"}
			answer[i].InterfaceIPs = append(answer[i].InterfaceIPs, "2408:4005::9")
		}
		return public(query, answer)
	}
	node := nodeOf(instance, isReady, tainted, hasAddresses(corev1.NodeAddress{Type: hostname, Address: "worker"}))
	if nodeIP != "" {
		providedIP(nodeIP)(node)
	}
	w, stop := startAddresses(t, Options{API: lens{a.Client, withIPv6}}, node)
	defer stop()
	time.Sleep(5*addressPass + time.Minute)
	got := w.node(node.Name)
	if want == nil {
		if !nodes.Uninitialized(got) {
			t.Errorf("the node is initialized with %v although its kubelet names an address that is none of its instance", got.Status.Addresses)
		}
		return
	}
	if nodes.Uninitialized(got) {
		t.Fatal("the node is not initialized")
	}
	if diff := cmp.Diff(want, got.Status.Addresses); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	if n := w.writes(); n != 1 {
		t.Errorf("the status was written %d times, want once", n)
	}
}

// TestAddressesDoNotFlap: addresses change when those of the instance do, and not because ECS lists them in another order, or because a
// kubelet without --cloud-provider=external finds others.
func TestAddressesDoNotFlap(t *testing.T) {
	t.Parallel()
	primary := corev1.NodeAddress{Type: internal, Address: "10.1.0.10"}
	second := corev1.NodeAddress{Type: internal, Address: "10.1.0.11"}
	shuffled := func() func(alicloud.InstanceQuery, []alicloud.Instance) []alicloud.Instance {
		calls := 0
		return func(_ alicloud.InstanceQuery, answer []alicloud.Instance) []alicloud.Instance {
			for i := range answer {
				answer[i].PrivateIPs = []string{primary.Address, second.Address}
				if calls%2 == 1 {
					slices.Reverse(answer[i].PrivateIPs)
				}
			}
			calls++
			return answer
		}
	}
	for name, test := range map[string]struct {
		first   []corev1.NodeAddress
		kubelet bool // sets its own addresses after each pass
		most    int  // writes in three hours
		want    []corev1.NodeAddress
	}{
		"another order":               {first: []corev1.NodeAddress{primary, second}, want: []corev1.NodeAddress{primary, second}},
		"an address more":             {first: []corev1.NodeAddress{primary}, most: 1, want: []corev1.NodeAddress{primary, second}},
		"a kubelet that sets its own": {first: []corev1.NodeAddress{primary}, kubelet: true, most: 6, want: []corev1.NodeAddress{primary}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, emulator.Options{})
				instance := a.put(1)[0]
				w, stop := startAddresses(t, Options{API: lens{a.Client, shuffled()}, MetadataTTL: time.Minute},
					nodeOf(instance, isReady, hasAddresses(test.first...)))
				defer stop()
				for range 36 {
					time.Sleep(addressPass)
					if test.kubelet {
						w.set("node-i-0", test.first)
					}
				}
				got := w.node("node-i-0").Status.Addresses
				if !sameAddresses(got, test.want) {
					t.Errorf("addresses %v, want %v", got, test.want)
				}
				if n := w.writes(); n > test.most {
					t.Errorf("the addresses were written %d times in three hours, want at most %d", n, test.most)
				}
			})
		})
	}
}

// addressWorld is a Node and the stock node controller over the provider.
type addressWorld struct {
	t      *testing.T
	client *fake.Clientset
}

// startAddresses runs the stock node controller until the returned function is called.
func startAddresses(t *testing.T, opts Options, node *corev1.Node) (w *addressWorld, stop func()) {
	t.Helper()
	w = &addressWorld{t: t, client: fake.NewClientset(node)}
	factory := informers.NewSharedInformerFactory(w.client, 0)
	opts.Region, opts.VPCID, opts.Nodes = testRegion, testVPC, factory.Core().V1().Nodes()
	controller, err := nodecontroller.NewCloudNodeController(opts.Nodes, w.client, stockCloud{instances: NewInstances(opts)}, addressPass, 1,
		1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	factory.Start(ctx.Done())
	running.Go(func() { controller.RunWithContext(ctx, controllersmetrics.NewControllerManagerMetrics("test")) })
	return w, func() {
		cancel()
		running.Wait()
		factory.Shutdown()
	}
}

func (w *addressWorld) node(name string) *corev1.Node {
	w.t.Helper()
	return testkit.Must(w.client.CoreV1().Nodes().Get(w.t.Context(), name, metav1.GetOptions{}))(w.t)
}

// set changes a Node's addresses as its kubelet does.
func (w *addressWorld) set(name string, addresses []corev1.NodeAddress) {
	w.t.Helper()
	node := w.node(name)
	node.Status.Addresses = addresses
	if _, err := w.client.CoreV1().Nodes().UpdateStatus(w.t.Context(), node, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// writes returns how often the stock controller has written the status.
func (w *addressWorld) writes() int {
	n := 0
	for _, action := range w.client.Actions() {
		if action.GetVerb() == "patch" && action.GetSubresource() == "status" {
			n++
		}
	}
	return n
}
