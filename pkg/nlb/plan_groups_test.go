package nlb

import (
	"slices"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
)

// all returns the Services of the API server, the oldest first.
func (w *world) all() []*corev1.Service {
	w.t.Helper()
	list := testkit.Must(w.kube.CoreV1().Services(metav1.NamespaceAll).List(w.t.Context(), metav1.ListOptions{}))(w.t)
	var all []*corev1.Service
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	slices.SortFunc(all, func(a, b *corev1.Service) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return all
}

// plan returns what a process that has just started plans for all Services, and checks that it writes nothing.
func (w *world) plan() []service.Preview {
	w.t.Helper()
	w.restart()
	w.fillServices()
	w.calls()
	before := w.all()
	previews := testkit.Must(w.PreviewAll(w.t.Context(), before))(w.t)
	if found := writes(w.calls()); len(found) > 0 {
		w.t.Errorf("the plan writes %v", found)
	}
	if diff := cmp.Diff(before, w.all()); diff != "" {
		w.t.Errorf("the plan changes Services (-before +after):\n%s", diff)
	}
	return previews
}
