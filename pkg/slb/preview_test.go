package slb

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/diff"
)

// preview returns the first plan for a Service.
func (w *world) preview(name string) service.Preview {
	w.t.Helper()
	previews, err := w.PreviewAll(w.t.Context(), []*corev1.Service{w.get(name)})
	if err != nil {
		w.t.Fatal(err)
	}
	return previews[0]
}

func TestPreviewWritesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.put(testService("web", 80))
	planned := func() []string {
		t.Helper()
		preview := w.preview("web")
		if preview.Err != nil {
			t.Fatal(preview.Err)
		}
		if writes := writesOf(w.calls()); len(writes) != 0 {
			t.Errorf("writes %v", writes)
		}
		return linesOf(preview.Steps)
	}
	if got := planned(); len(got) != 4 {
		t.Errorf("plan of a new Service: %q, want 4 steps", got)
	}
	w.mustPass("web")
	w.calls()
	if got := planned(); got != nil {
		t.Errorf("plan of an unchanged Service: %q, want none", got)
	}
	w.change("web", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP })
	if got := planned(); len(got) != 2 {
		t.Errorf("plan of a Service that left: %q, want 2 steps", got)
	}
}

func TestStepsHaveAJSONForm(t *testing.T) {
	t.Parallel()
	desired, _ := newBuildCase(80).build()
	text, err := json.Marshal(plan{Plan: diff.Diff(desired, nil, testName, testCluster)}.Steps()[3])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"op":"start listener","target":"tcp:80"}`, string(text)); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

// linesOf returns steps, one line each.
func linesOf(steps []driver.Step) []string {
	var lines []string
	for _, step := range steps {
		lines = append(lines, step.String())
	}
	return lines
}
