package provider

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/node"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
)

// TestAPIServersAreFound: a pod reaches the API server by a cluster IP, which no CLB has. What is in front of it shows elsewhere.
func TestAPIServersAreFound(t *testing.T) {
	t.Parallel()
	controlPlane := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cp",
		Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}}, Spec: corev1.NodeSpec{ProviderID: "cn-hangzhou.i-cp"}}
	other := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: corev1.NodeSpec{ProviderID: "cn-hangzhou.i-other"}}
	other.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.9"}}
	worker := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w"}, Spec: corev1.NodeSpec{ProviderID: "cn-hangzhou.i-w"}}
	info := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: "cluster-info"}, Data: map[string]string{
		"kubeconfig": "apiVersion: v1\nkind: Config\nclusters:\n- name: \"\"\n  cluster: {server: \"https://192.0.2.7:6443\"}\n",
	}}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "kubernetes",
			Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.9"}}}, Ports: []discoveryv1.EndpointPort{{Port: new(int32(6443))}},
	}
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	for _, n := range []*corev1.Node{controlPlane, other, worker} {
		if err := factory.Core().V1().Nodes().Informer().GetIndexer().Add(n); err != nil {
			t.Fatal(err)
		}
	}
	if err := factory.Discovery().V1().EndpointSlices().Informer().GetIndexer().Add(slice); err != nil {
		t.Fatal(err)
	}
	c := &Cloud{endpointSlices: true, clusterInfo: clusterInfoAddresses(t.Context(), fake.NewClientset(info))}
	got := c.apiServers(factory, node.InstanceIDOf("cn-hangzhou"))()
	want := policy.APIServer{Addresses: []string{"10.0.0.9", "192.0.2.7"}, Port: 6443, Instances: []string{"i-cp", "i-other"}}
	slices.Sort(got.Instances)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("API servers (-want +got):\n%s", diff)
	}
	if found := clusterInfoAddresses(t.Context(), fake.NewClientset()); len(found) != 0 {
		t.Errorf("without cluster-info: %v", found)
	}
}
