package lightnode

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	cloudproviderapi "k8s.io/cloud-provider/api"
	"k8s.io/utils/ptr"
)

// fleet is a fleet of kubelets over a fake API server and a list of instances.
type fleet struct {
	*testing.T
	client  *fake.Clientset
	network *Network
	changed chan struct{}

	mu        sync.Mutex
	instances []Instance
}

func startFleet(t *testing.T, nodeIP bool, objects ...*corev1.Node) *fleet {
	t.Helper()
	f := &fleet{T: t, client: fake.NewClientset(), network: newTestNetwork(t), changed: make(chan struct{}, 1)}
	for _, node := range objects {
		if err := f.client.Tracker().Add(node); err != nil {
			t.Fatal(err)
		}
	}
	kubelets, err := NewKubelets(Options{
		Client: f.client, Network: f.network, Changed: func() <-chan struct{} {
			return f.changed
		}, NodeIP: nodeIP, Heartbeat: 50 * time.Millisecond,
		Instances: func() []Instance { f.mu.Lock(); defer f.mu.Unlock(); return slices.Clone(f.instances) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- kubelets.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return f
}

func (f *fleet) set(instances ...Instance) {
	f.mu.Lock()
	f.instances = instances
	f.mu.Unlock()
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// until polls a condition with a deadline.
func (f *fleet) until(what string, condition func(ctx context.Context) bool) {
	f.Helper()
	err := wait.PollUntilContextTimeout(f.Context(), 5*time.Millisecond, 10*time.Second, true,
		func(ctx context.Context) (bool, error) { return condition(ctx), nil })
	if err != nil {
		f.Fatalf("%s: %v", what, err)
	}
}

func (f *fleet) node(name string) *corev1.Node {
	f.Helper()
	var node *corev1.Node
	f.until("node "+name+" is ready", func(ctx context.Context) bool {
		var err error
		node, err = f.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		return err == nil && isReady(node)
	})
	return node
}

func (f *fleet) renewed(name string) time.Time {
	lease, err := f.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(f.Context(), name, metav1.GetOptions{})
	if err != nil || lease.Spec.RenewTime == nil {
		return time.Time{}
	}
	return lease.Spec.RenewTime.Time
}

func TestNodeRegistersAsWithExternalProvider(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		nodeIP     bool
		addresses  []corev1.NodeAddress
		annotation string
	}{
		{"hostname only", false, []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "node-1"}}, ""},
		{"with --node-ip", true, []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: "10.1.0.1"}, {Type: corev1.NodeHostName, Address: "node-1"},
		}, "10.1.0.1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := startFleet(t, tt.nodeIP)
			f.set(Instance{ID: "i-1", Name: "Node-1", PrivateIP: "10.1.0.1", Running: true})
			node := f.node("node-1")
			wantTaints := []corev1.Taint{{Key: cloudproviderapi.TaintExternalCloudProvider, Value: "true", Effect: corev1.TaintEffectNoSchedule}}
			if diff := cmp.Diff(wantTaints, node.Spec.Taints); diff != "" {
				t.Errorf("taints differ (-want +got):\n%s", diff)
			}
			if node.Spec.ProviderID != "" {
				t.Errorf("provider ID is %q, want none", node.Spec.ProviderID)
			}
			if diff := cmp.Diff(tt.addresses, node.Status.Addresses); diff != "" {
				t.Errorf("addresses differ (-want +got):\n%s", diff)
			}
			if got := node.Annotations[cloudproviderapi.AnnotationAlphaProvidedIPAddr]; got != tt.annotation {
				t.Errorf("provided-node-ip is %q, want %q", got, tt.annotation)
			}
		})
	}
}

func TestMachinesFollowInstances(t *testing.T) {
	t.Parallel()
	f := startFleet(t, false)
	one := Instance{ID: "i-1", Name: "node-1", PrivateIP: "10.1.0.1", Running: true}
	two := Instance{ID: "i-2", PrivateIP: "10.1.0.2", Running: true}
	f.set(one, two)
	f.node("node-1")
	f.node("i-2")
	f.until("i-2 has a heartbeat", func(context.Context) bool { return !f.renewed("i-2").IsZero() })
	last := f.renewed("i-2")
	f.until("i-2 renews its heartbeat", func(context.Context) bool { return f.renewed("i-2").After(last) })

	two.Running = false
	f.set(one, two)
	f.until("the machine of i-2 is off", func(context.Context) bool { return f.network.machineOf("i-2") == nil })
	last = f.renewed("i-2")
	other := f.renewed("node-1")
	f.until("node-1 renews three times more", func(context.Context) bool {
		return f.renewed("node-1").After(other.Add(150 * time.Millisecond))
	})
	// One renewal may have been under way when the machine was switched off.
	if late := f.renewed("i-2"); late.After(last.Add(100 * time.Millisecond)) {
		t.Errorf("a machine that is off renewed its lease at %v, %v after it was switched off", late, late.Sub(last))
	}
	if _, err := f.client.CoreV1().Nodes().Get(t.Context(), "i-2", metav1.GetOptions{}); err != nil {
		t.Errorf("the Node of a machine that is off: %v, want it left alone", err)
	}
}

func TestDeletedNodeComesBackOnlyWithARestart(t *testing.T) {
	t.Parallel()
	f := startFleet(t, false)
	one := Instance{ID: "i-1", Name: "node-1", PrivateIP: "10.1.0.1", Running: true}
	f.set(one)
	f.node("node-1")
	if err := f.client.CoreV1().Nodes().Delete(t.Context(), "node-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// Another node that joins afterwards shows that the kubelets have had their time.
	f.set(one, Instance{ID: "i-2", Name: "node-2", PrivateIP: "10.1.0.2", Running: true})
	f.node("node-2")
	if _, err := f.client.CoreV1().Nodes().Get(t.Context(), "node-1", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("looking up the deleted node gives %v, want not found", err)
	}
	f.set()
	f.until("the machines are off", func(context.Context) bool { return f.network.machineOf("node-1") == nil })
	f.set(one)
	f.node("node-1")
}

// TestStaleNodeIsRegistered: the informer still shows a Node that somebody deleted when the kubelet starts. It is made all the same.
func TestStaleNodeIsRegistered(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset()
	kubelets, err := NewKubelets(Options{Client: client, Network: newTestNetwork(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer kubelets.queue.ShutDown()
	m := &machine{instanceID: "i-1", nodeName: "node-1"}
	if err = kubelets.nodes.GetStore().Add(newNode(m, "v1", false)); err != nil {
		t.Fatal(err)
	}
	if _, err = kubelets.register(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if _, err = client.CoreV1().Nodes().Get(t.Context(), m.nodeName, metav1.GetOptions{}); err != nil {
		t.Errorf("looking up the node gives %v", err)
	}
}

func TestPodsOfANode(t *testing.T) {
	t.Parallel()
	f := startFleet(t, false)
	f.set(Instance{ID: "i-1", Name: "node-1", PrivateIP: "10.1.0.1", Running: true})
	f.node("node-1")
	serving := testPod("web", nil)
	job := testPod("job", &metav1.OwnerReference{Kind: "BroadcastJob", Name: "init", Controller: ptr.To(true)})
	for _, pod := range []*corev1.Pod{serving, job} {
		if _, err := f.client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	f.until("the node gets its pod CIDR", func(ctx context.Context) bool {
		node := f.node("node-1").DeepCopy()
		node.Spec.PodCIDR, node.Spec.PodCIDRs = "10.244.0.0/24", []string{"10.244.0.0/24"}
		_, err := f.client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
		return err == nil
	})
	var status corev1.PodStatus
	phase := func(name string, want corev1.PodPhase) {
		f.until(name+" is "+string(want), func(ctx context.Context) bool {
			pod, err := f.client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
			if err == nil {
				status = pod.Status
			}
			return err == nil && status.Phase == want
		})
	}
	phase("job", corev1.PodSucceeded)
	phase("web", corev1.PodRunning)
	if status.HostIP != "10.1.0.1" || !netip.MustParsePrefix("10.244.0.0/24").Contains(netip.MustParseAddr(status.PodIP)) {
		t.Errorf("addresses are host %s, pod %s", status.HostIP, status.PodIP)
	}
	conn, err := f.network.Dial(t.Context(), "i-1", "tcp", status.PodIP+":80")
	if err != nil {
		t.Fatal(err)
	}
	if got := get(t, conn); got != "web" {
		t.Errorf("%q answered, want web", got)
	}
}

func testPod(name string, owner *metav1.OwnerReference) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
		Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "main", Image: "web"}}},
	}
	if owner != nil {
		pod.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return pod
}
