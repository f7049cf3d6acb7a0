package deploy

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// TestRefusedAgain: what was found out about a call that the cloud refused is not found out again with each attempt.
func TestRefusedAgain(t *testing.T) {
	t.Parallel()
	weights := backends(model.OpSetBackends, "g", servers("i-1", "i-2", "i-3"), servers("i-1", "i-2", "i-3"))
	for _, test := range []struct {
		name, refused string
		step          model.Step
		first, again  []string // calls of the first attempt and of a later one
		accepted      []string // calls of the one that the cloud accepts
	}{
		{
			"a group, with servers and without", "CreateVServerGroup", newGroup("n", "i-1", "i-2"),
			[]string{"CreateVServerGroup n [i-1 i-2] = InvalidParameter", "CreateVServerGroup n [] = InvalidParameter"},
			[]string{"CreateVServerGroup n [] = InvalidParameter"},
			[]string{"CreateVServerGroup n []", "AddBackends id-n [i-1 i-2]"},
		},
		{
			"weights, together and one by one", "SetBackends", weights,
			[]string{"SetBackends id-g [i-1 i-2 i-3] = InvalidParameter", "SetBackends id-g [i-1] = InvalidParameter",
				"SetBackends id-g [i-2 i-3] = InvalidParameter", "SetBackends id-g [i-2] = InvalidParameter",
				"SetBackends id-g [i-3] = InvalidParameter"},
			[]string{"SetBackends id-g [i-1] = InvalidParameter", "SetBackends id-g [i-2] = InvalidParameter",
				"SetBackends id-g [i-3] = InvalidParameter"},
			[]string{"SetBackends id-g [i-1]", "SetBackends id-g [i-2 i-3]"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var memory Memory
				pass := func(refuses map[string]error, want []string) {
					t.Helper()
					cloud := &recorder{refuses: refuses}
					_, _ = run(t.Context(), cloud, &memory, there(group("g", "i-1", "i-2", "i-3")), test.step)
					if diff := cmp.Diff(want, cloud.calls); diff != "" {
						t.Errorf("calls (-want +got):\n%s", diff)
					}
					time.Sleep(waits.Refused)
				}
				refuses := map[string]error{test.refused: answer("InvalidParameter")}
				pass(refuses, test.first)
				pass(refuses, test.again)
				pass(nil, test.accepted)
			})
		})
	}
}

// noGroupWriter refuses to hear of the group of a listener.
type noGroupWriter struct{ recorder }

func (w *noGroupWriter) SetListener(_ context.Context, _ string, l alicloud.Listener) error {
	text := fmt.Sprint(l.VServerGroupID, " ", l.Attributes[alicloud.AttributeServerCertificateID])
	if l.VServerGroupID != "" {
		return w.refused(text, answer("InvalidParameter"))
	}
	return w.call(text)
}

// TestCertificateRotatesWithoutGroup: the group of a listener stays out of the call that gives it its certificate.
func TestCertificateRotatesWithoutGroup(t *testing.T) {
	t.Parallel()
	cloud := &noGroupWriter{}
	observed := there(group("old", "i-1"))
	observed.Listeners[0].Attributes = alicloud.Attributes{alicloud.AttributeScheduler: "rr", alicloud.AttributeServerCertificateID: "cert-1"}
	step := listener(model.OpSetListener, tcp80, "old")
	step.Listener.Description = "old"
	step.Listener.Attributes = alicloud.Attributes{alicloud.AttributeScheduler: "wrr", alicloud.AttributeServerCertificateID: "cert-2"}
	a := New(cloud, &Memory{}, observed)
	if err := a.Run(t.Context(), model.Plan{Steps: []model.Step{step}}); err == nil {
		t.Error("the refusal was not reported")
	}
	if diff := cmp.Diff([]string{"id-old cert-2 = InvalidParameter", " cert-2"}, cloud.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if have := a.model.Listeners[0]; have.GroupID != "id-old" || have.Attributes[alicloud.AttributeServerCertificateID] != "cert-2" {
		t.Errorf("listener %+v", have)
	}
}
