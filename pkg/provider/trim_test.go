package provider

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

// TestCachesHoldOnlyWhatIsRead: who wrote which field, and most of the status of a Node, are not in the caches.
func TestCachesHoldOnlyWhatIsRead(t *testing.T) {
	t.Parallel()
	kept := corev1.NodeStatus{
		Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: "n1", Labels: map[string]string{"kept": "yes"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
		}, Status: corev1.NodeStatus{
			Addresses: kept.Addresses, Conditions: kept.Conditions,
			Images: []corev1.ContainerImage{{Names: []string{"a:1"}}}, Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
		}})
		factory := informers.NewSharedInformerFactory(client, 0)
		if err := trimCaches(factory, true); err != nil {
			t.Fatal(err)
		}
		factory.Start(t.Context().Done())
		factory.WaitForCacheSync(t.Context().Done())
		nodes, err := factory.Core().V1().Nodes().Lister().List(labels.Everything())
		if err != nil || len(nodes) != 1 {
			t.Fatalf("nodes %v, error %v", nodes, err)
		}
		if nodes[0].ManagedFields != nil || nodes[0].Labels["kept"] != "yes" {
			t.Errorf("the cache holds %v", nodes[0].ObjectMeta)
		}
		if diff := cmp.Diff(kept, nodes[0].Status); diff != "" {
			t.Errorf("the status in the cache differs (-want +got):\n%s", diff)
		}
		if err := trimCaches(factory, true); err == nil {
			t.Error("informers that run are trimmed without an error")
		}
	})
}
