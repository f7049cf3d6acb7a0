package slb

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/diff"
)

func TestPreviewWritesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.put(testService("web", 80))
	preview := func() []string {
		t.Helper()
		plan, err := w.Preview(t.Context(), w.get("web"))
		if err != nil {
			t.Fatal(err)
		}
		if writes := writesOf(w.calls()); len(writes) != 0 {
			t.Errorf("writes %v", writes)
		}
		return stepLines(plan.Plan)
	}
	if got := preview(); len(got) != 4 {
		t.Errorf("plan of a new Service: %q, want 4 steps", got)
	}
	w.mustPass("web")
	w.calls()
	if got := preview(); got != nil {
		t.Errorf("plan of an unchanged Service: %q, want none", got)
	}
	w.change("web", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP })
	if got := preview(); len(got) != 2 {
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

// stepLines returns the steps of a plan, one line each.
func stepLines(plan service.Plan) []string { return linesOf(plan.Steps()) }

func linesOf(steps []service.Step) []string {
	var lines []string
	for _, step := range steps {
		lines = append(lines, step.String())
	}
	return lines
}
