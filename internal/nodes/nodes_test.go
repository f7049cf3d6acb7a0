package nodes_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cloudproviderapi "k8s.io/cloud-provider/api"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
)

func labeled(key, value string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{key: value}}}
}

func tainted(key string) *corev1.Node {
	return &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "other"}, {Key: key, Effect: corev1.TaintEffectNoSchedule}}}}
}

// disruptedByKarpenter has both marks that Karpenter sets.
func disruptedByKarpenter() *corev1.Node {
	node := tainted(nodes.TaintDisrupted)
	node.Labels = map[string]string{corev1.LabelNodeExcludeBalancers: "karpenter"}
	return node
}

func TestExclusion(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		node         *corev1.Node
		label        string
		fromBalancer bool
	}{
		{node: &corev1.Node{}},
		{node: labeled("service.alibabacloud.com/exclude-node", ""), label: "service.alibabacloud.com/exclude-node", fromBalancer: true},
		{node: labeled("service.beta.kubernetes.io/exclude-node", "false"), label: "service.beta.kubernetes.io/exclude-node", fromBalancer: true},
		{node: labeled("node.kubernetes.io/exclude-from-external-load-balancers", ""), fromBalancer: true},
		{node: labeled("node.kubernetes.io/exclude-from-external-load-balancers", "true"), fromBalancer: true},
		{node: labeled("node.kubernetes.io/exclude-from-external-load-balancers", "karpenter"), fromBalancer: true},
		{node: labeled("node.kubernetes.io/exclude-from-external-load-balancers", "false")},
		{node: disruptedByKarpenter()},
		{node: labeled("alpha.service-controller.kubernetes.io/exclude-balancer", "true"), fromBalancer: true},
		{node: labeled("type", "virtual-kubelet"), label: "type=virtual-kubelet"},
		{node: labeled("type", "other")},
		{node: labeled("alibabacloud.com/lingjun-worker", "true"), label: "alibabacloud.com/lingjun-worker"},
		{node: labeled("alibabacloud.com/lingjun-worker", "false")},
		{node: labeled("node.alibabacloud.com/on-premises", "true"), label: "node.alibabacloud.com/on-premises"},
		{node: labeled("node.alibabacloud.com/on-premises", "false")},
		{node: labeled("node-role.kubernetes.io/master", "")},
	} {
		if got := nodes.ExclusionLabel(test.node); got != test.label {
			t.Errorf("labels %v: exclusion label %q, want %q", test.node.Labels, got, test.label)
		}
		if got := nodes.BalancerExclusionLabel(test.node) != ""; got != test.fromBalancer {
			t.Errorf("labels %v: excluded from load balancers = %v, want %v", test.node.Labels, got, test.fromBalancer)
		}
	}
}

func TestKind(t *testing.T) {
	t.Parallel()
	if !nodes.IsVirtualKubelet(labeled("type", "virtual-kubelet")) || nodes.IsVirtualKubelet(&corev1.Node{}) {
		t.Error("only the label type=virtual-kubelet makes a virtual node")
	}
	if !nodes.IsMaster(labeled("node-role.kubernetes.io/master", "")) || nodes.IsMaster(labeled("node-role.kubernetes.io/control-plane", "")) {
		t.Error("only the label node-role.kubernetes.io/master makes a master")
	}
}

func TestTaints(t *testing.T) {
	t.Parallel()
	deleted := &corev1.Node{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: time.Now()}}}
	for _, test := range []struct {
		name                             string
		node                             *corev1.Node
		uninitialized, shutDown, leaving bool
	}{
		{name: "none", node: &corev1.Node{}},
		{name: "uninitialized", node: tainted(cloudproviderapi.TaintExternalCloudProvider), uninitialized: true},
		{name: "shut down", node: tainted(cloudproviderapi.TaintNodeShutdown), shutDown: true},
		{name: "autoscaler", node: tainted(nodes.TaintToBeDeleted), leaving: true},
		{name: "being deleted", node: deleted, leaving: true},
		{name: "Karpenter", node: tainted("karpenter.sh/disrupted"), leaving: true},
		{name: "out of service", node: tainted("node.kubernetes.io/out-of-service"), leaving: true},
		{name: "Cluster API", node: labeled("cluster.x-k8s.io/delete-machine", "yes"), leaving: true},
	} {
		got := [3]bool{nodes.Uninitialized(test.node), nodes.ShutDown(test.node), nodes.Leaving(test.node)}
		if want := [3]bool{test.uninitialized, test.shutDown, test.leaving}; got != want {
			t.Errorf("%s: uninitialized, shut down, leaving = %v, want %v", test.name, got, want)
		}
	}
}

func TestReady(t *testing.T) {
	t.Parallel()
	changed := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for status, want := range map[corev1.ConditionStatus]struct {
		ready, silent bool
		since         time.Time
	}{
		"":                      {},
		corev1.ConditionTrue:    {ready: true},
		corev1.ConditionFalse:   {},
		corev1.ConditionUnknown: {silent: true, since: changed},
	} {
		node := &corev1.Node{}
		if status != "" {
			node.Status.Conditions = []corev1.NodeCondition{
				{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionUnknown},
				{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(changed)},
			}
		}
		since, silent := nodes.Silent(node)
		if nodes.Ready(node) != want.ready || silent != want.silent || !since.Equal(want.since) {
			t.Errorf("Ready=%q: ready = %v, silent = %v since %v, want %+v", status, nodes.Ready(node), silent, since, want)
		}
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	internal := func(addresses ...string) *corev1.Node {
		node := &corev1.Node{}
		node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeHostName, Address: "10.9.9.9"})
		for _, address := range addresses {
			node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
		}
		return node
	}
	provided := func(value string, node *corev1.Node) *corev1.Node {
		node.Annotations = map[string]string{cloudproviderapi.AnnotationAlphaProvidedIPAddr: value}
		return node
	}
	for _, test := range []struct {
		node  *corev1.Node
		first string
		own   []string
	}{
		{node: internal()},
		{node: internal("10.0.0.1", "fd00::1", "10.0.0.1"), first: "10.0.0.1", own: []string{"10.0.0.1", "fd00::1"}},
		{node: provided("10.0.0.7", internal("10.0.0.1")), first: "10.0.0.1", own: []string{"10.0.0.7", "10.0.0.1"}},
		{node: provided("10.0.0.7, fd00::7", internal("10.0.0.7")), first: "10.0.0.7", own: []string{"10.0.0.7", "fd00::7"}},
		{node: internal("nonsense", "10.0.0.1"), first: "10.0.0.1", own: []string{"10.0.0.1"}},
		{node: internal("fd00::1", "10.0.0.1"), first: "10.0.0.1", own: []string{"fd00::1", "10.0.0.1"}},
		{node: internal("fe80::1%eth0", "fd00::1"), first: "fd00::1", own: []string{"fd00::1"}},
	} {
		var own []string
		for _, address := range nodes.OwnAddresses(test.node) {
			own = append(own, address.String())
		}
		if nodes.InternalIP(test.node) != test.first || !slices.Equal(own, test.own) {
			t.Errorf("%v with %v: first %q, own %v, want %q, %v", test.node.Status.Addresses, test.node.Annotations, nodes.InternalIP(test.node),
				own, test.first, test.own)
		}
	}
}

// TestManyAddresses: a Node with tens of thousands of addresses costs no more than one with a few.
func TestManyAddresses(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{}
	for i := range 30000 {
		node.Status.Addresses = append(node.Status.Addresses,
			corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.%d.%d.1", i/256, i%256)})
	}
	if n := len(nodes.OwnAddresses(node)); n != 64 {
		t.Errorf("%d addresses are compared with each other", n)
	}
}

func TestPodCIDRs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		spec corev1.NodeSpec
		want []string
	}{
		{},
		{spec: corev1.NodeSpec{PodCIDR: "10.0.0.0/24"}, want: []string{"10.0.0.0/24"}},
		{spec: corev1.NodeSpec{PodCIDR: "10.0.0.0/24", PodCIDRs: []string{"10.0.0.0/24", "fd00::/64"}},
			want: []string{"10.0.0.0/24", "fd00::/64"}},
	} {
		if got := nodes.PodCIDRs(&corev1.Node{Spec: test.spec}); fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("%+v: %v, want %v", test.spec, got, test.want)
		}
	}
}
