package provider

import (
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

func TestCachesHoldNoManagedFields(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: "n1", Labels: map[string]string{"kept": "yes"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
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
		if err := trimCaches(factory, true); err == nil {
			t.Error("informers that run are trimmed without an error")
		}
	})
}
