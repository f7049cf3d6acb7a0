package slb

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// TestPauseEndsWithTheNamespace: a Service that is paused by its annotation does not hold the deletion of its namespace, and still holds
// its own.
func TestPauseEndsWithTheNamespace(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: testNamespace}}
	if _, err := w.kube.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.change("web", func(svc *corev1.Service) {
		svc.Annotations[driver.AnnotationPaused] = "true"
		deleteService(svc)
	})
	w.mustPass("web")
	if !driver.HasFinalizer(w.get("web"), Finalizer) || len(w.lbs()) != 1 {
		t.Fatal("the pause does not hold")
	}
	namespace.DeletionTimestamp = new(metav1.Now())
	if _, err := w.kube.CoreV1().Namespaces().Update(t.Context(), namespace, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.mustPass("web")
	if driver.HasFinalizer(w.get("web"), Finalizer) || len(w.lbs()) != 0 {
		t.Errorf("finalizers %v, CLBs %v", w.get("web").Finalizers, w.lbs())
	}
}
