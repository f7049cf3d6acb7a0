package slb

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// TestServiceThatCannotBeWritten: which change of the Service the API server refuses is one event, with the reason that the
// official CCM gives; nothing is made in the cloud before the finalizer stands, and the next pass goes on.
func TestServiceThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason string
		act    func(*world)
		// refused is what a patch holds that the API server refuses.
		refused string
		writes  bool
	}{
		{problem.ReasonFailedAddFinalizer, func(w *world) { w.put(testService("web", 80)) }, "finalizers", false},
		{problem.ReasonFailedUpdateStatus, func(w *world) { w.put(testService("web", 80)) }, `"loadBalancer":`, true},
		{problem.ReasonFailedRemoveFinalizer, func(w *world) {
			w.put(testService("web", 80))
			w.mustPass("web")
			w.change("web", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP })
		}, "finalizers", true},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			threeNodes(w)
			test.act(w)
			w.newEvents()
			w.calls()
			refusing := true
			w.kube.PrependReactor("patch", "services", func(action clienttesting.Action) (bool, runtime.Object, error) {
				patch, ok := action.(clienttesting.PatchAction)
				refuse := refusing && ok && bytes.Contains(patch.GetPatch(), []byte(test.refused))
				return refuse, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "web", nil)
			})
			for range 2 {
				if err := w.pass("web"); !apierrors.IsForbidden(err) {
					t.Errorf("error %v, want that of the API server", err)
				}
			}
			if events := w.newEvents(); len(events) != 1 || !strings.HasPrefix(events[0], "Warning "+test.reason) {
				t.Errorf("events %q, want one %s", events, test.reason)
			}
			if writes := writesOf(w.calls()); (len(writes) > 0) != test.writes {
				t.Errorf("writes %v, want some: %v", writes, test.writes)
			}
			refusing = false
			w.converge("web")
		})
	}
}
