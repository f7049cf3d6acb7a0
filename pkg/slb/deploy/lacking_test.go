package deploy

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// TestRefusedServersLeaveNoGroupEmpty: fewer servers are to take the place of others, and the cloud refuses them. Those that take the
// traffic stay.
func TestRefusedServersLeaveNoGroupEmpty(t *testing.T) {
	t.Parallel()
	replace, remove := model.OpReplaceBackends, model.OpRemoveBackends
	const isBad = " = InvalidInstanceId.NotFound"
	for _, test := range []struct {
		name  string
		steps []model.Step
		want  []string
		has   string
	}{
		{"all are refused",
			[]model.Step{backends(replace, "g", servers("i-1"), servers("bad")), backends(remove, "g", servers("i-2", "i-3"), nil)},
			[]string{"ReplaceBackends id-g [i-1] [bad]" + isBad, "AddBackends id-g [bad]" + isBad, "RemoveBackends id-g [i-1]"}, "[i-2 i-3]"},
		{"one comes", []model.Step{backends(replace, "g", servers("i-1"), servers("i-4")), backends(remove, "g", servers("i-2", "i-3"), nil)},
			[]string{"ReplaceBackends id-g [i-1] [i-4]", "RemoveBackends id-g [i-2 i-3]"}, "[i-4]"},
		{"none is to come", []model.Step{backends(remove, "g", servers("i-1", "i-2", "i-3"), nil)}, []string{"RemoveBackends id-g [i-1 i-2 i-3]"},
			"[]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			cloud := recorder{refuses: map[string]error{"bad": answer("InvalidInstanceId.NotFound")}}
			a, _ := run(t.Context(), &cloud, &Memory{}, there(group("g", "i-1", "i-2", "i-3")), test.steps...)
			if diff := cmp.Diff(test.want, cloud.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if has := ids(a.model.Groups[0].Backends); has != test.has {
				t.Errorf("servers %s, want %s", has, test.has)
			}
		})
	}
}

// settingsWriter refuses a listener with the scheduler "bad".
type settingsWriter struct {
	recorder
	code string
}

func (w *settingsWriter) SetListener(ctx context.Context, lb string, l alicloud.Listener) error {
	if err := w.recorder.SetListener(ctx, lb, l); err != nil || l.Attributes[alicloud.AttributeScheduler] != "bad" {
		return err
	}
	return answer(w.code)
}

// TestRefusedSettingHoldsBackNoOther: one setting of a listener that the cloud does not take keeps it neither in a group that nothing
// serves any more nor at its certificate.
func TestRefusedSettingHoldsBackNoOther(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, group, code, scheduler string
		certificate                  string
		// left is the listener afterwards.
		wantGroup, wantCertificate, wantScheduler string
		calls                                     int
	}{
		{"all", "new", "InvalidParameter", "wrr", "cert-2", "id-new", "cert-2", "wrr", 1},
		{"group and certificate", "new", "InvalidParameter", "bad", "cert-2", "id-new", "cert-2", "rr", 3},
		{"the certificate", "old", "InvalidParameter", "bad", "cert-2", "id-old", "cert-2", "rr", 2},
		{"the rest alone", "old", "InvalidParameter", "bad", "cert-1", "id-old", "cert-1", "rr", 1},
		{"no permission", "new", "Forbidden.RAM", "bad", "cert-2", "id-old", "cert-1", "rr", 1},
		{"rate used up", "new", "Throttling.User", "bad", "cert-2", "id-old", "cert-1", "rr", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			cloud := &settingsWriter{code: test.code}
			observed := there(group("old", "i-1"), group("new", "i-1"))
			observed.Listeners[0].Attributes = alicloud.Attributes{alicloud.AttributeScheduler: "rr",
				alicloud.AttributeServerCertificateID: "cert-1"}
			step := listener(model.OpSetListener, tcp80, test.group)
			step.Listener.Description = "old"
			step.Listener.Attributes = alicloud.Attributes{alicloud.AttributeScheduler: test.scheduler,
				alicloud.AttributeServerCertificateID: test.certificate}
			a := New(cloud, &Memory{}, observed)
			err := a.Run(t.Context(), model.Plan{Steps: []model.Step{step}})
			if _, refused := errors.AsType[*alicloud.Error](err); refused != (test.scheduler == "bad") {
				t.Errorf("error %v", err)
			}
			have := a.model.Listeners[0]
			got := []string{have.GroupID, have.Attributes[alicloud.AttributeServerCertificateID], have.Attributes[alicloud.AttributeScheduler]}
			if diff := cmp.Diff([]string{test.wantGroup, test.wantCertificate, test.wantScheduler}, got); diff != "" ||
				len(cloud.calls) != test.calls {
				t.Errorf("%d calls %v, listener (-want +got):\n%s", len(cloud.calls), cloud.calls, diff)
			}
		})
	}
}
