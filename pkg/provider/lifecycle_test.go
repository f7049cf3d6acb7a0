package provider

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	cloudproviderapi "k8s.io/cloud-provider/api"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// TestLifecycleNodes: the stock node lifecycle controller sees a Node that is not ready, or that has its taint, and no other; by name it
// finds any.
func TestLifecycleNodes(t *testing.T) {
	t.Parallel()
	node := func(name string, ready corev1.ConditionStatus, taints ...string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if ready != "" {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue},
				{Type: corev1.NodeReady, Status: ready}}
		}
		for _, key := range taints {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
		}
		return n
	}
	informer := informers.NewSharedInformerFactory(fake.NewClientset(), 0).Core().V1().Nodes()
	for _, n := range []*corev1.Node{
		node("ready", corev1.ConditionTrue), node("ready, with another taint", corev1.ConditionTrue, "other"),
		node("not ready", corev1.ConditionFalse), node("silent", corev1.ConditionUnknown), node("new", ""),
		node("stopped", corev1.ConditionUnknown, cloudproviderapi.TaintNodeShutdown),
		node("started again", corev1.ConditionTrue, cloudproviderapi.TaintNodeShutdown),
	} {
		testkit.Check(t, informer.Informer().GetStore().Add(n))
	}
	lister := testkit.Must(LifecycleNodes(informer))(t).Lister()
	var names []string
	for _, n := range testkit.Must(lister.List(labels.Everything()))(t) {
		names = append(names, n.Name)
	}
	slices.Sort(names)
	if want := []string{"new", "not ready", "silent", "started again", "stopped"}; !slices.Equal(names, want) {
		t.Errorf("it sees %q, want %q", names, want)
	}
	if n := testkit.Must(lister.Get("ready"))(t); n.Name != "ready" {
		t.Errorf("by name it finds %q", n.Name)
	}
	if n := len(testkit.Must(informer.Lister().List(labels.Everything()))(t)); n != 7 {
		t.Errorf("all others see %d Nodes, want all 7", n)
	}
}
