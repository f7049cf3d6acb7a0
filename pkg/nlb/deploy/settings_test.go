package deploy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
)

// update is a step that moves a listener from group a to group b and changes its certificate and its cipher policy, as far as these are
// given.
func update(group, certificate, policy string) model.Step {
	step := oldListener(model.OpUpdateListener, 80)
	if group != "" {
		step.Changes.ServerGroupID, step.Group, step.Listener.Group, step.From, step.Awaits = new(""), alicloud.NLBGroup{Name: group}, group, "sgp-a", true
		step.Needs = []string{model.TargetGroup(group)}
		step.Meanwhile = []model.Step{onServers(model.OpAddServers, "a", "i-9")}
	}
	if certificate != "" {
		step.Changes.CertificateIDs = []string{certificate}
	}
	if policy != "" {
		step.Changes.SecurityPolicyID = &policy
	}
	return step
}

// TestRefusedSettingHoldsBackNoOther: one setting of a listener that the cloud does not take keeps it neither in a group that nothing
// serves any more nor at its certificate.
func TestRefusedSettingHoldsBackNoOther(t *testing.T) {
	t.Parallel()
	const refused, gone = " = IllegalParam.Policy", " = ResourceNotFound.securitypolicy"
	bad := map[string]error{"bad": answer("IllegalParam.Policy")}
	for _, test := range []struct {
		name    string
		step    model.Step
		refuses map[string]error
		want    []string
		jobs    int
		says    string
	}{
		{"all is taken", update("b", "cert", "good"), bad, []string{"UpdateNLBListener lsn-old sgp-b [cert] good"}, 1, ""},
		{"the group first", update("b", "cert", "bad"), bad,
			[]string{"UpdateNLBListener lsn-old sgp-b [cert] bad" + refused, "UpdateNLBListener lsn-old sgp-b"}, 1,
			"IllegalParam.Policy"},
		{"then the certificate", update("", "cert", "bad"), bad,
			[]string{"UpdateNLBListener lsn-old - [cert] bad" + refused, "UpdateNLBListener lsn-old - [cert]"}, 1,
			"IllegalParam.Policy"},
		{"then the others, once", update("", "", "bad"), bad, []string{"UpdateNLBListener lsn-old - bad" + refused}, 0, "IllegalParam.Policy"},
		{"what it names does not exist", update("b", "", "bad"), map[string]error{"bad": answer("ResourceNotFound.securitypolicy")},
			[]string{"UpdateNLBListener lsn-old sgp-b bad" + gone, "UpdateNLBListener lsn-old sgp-b"}, 1, "ResourceNotFound.securitypolicy"},
		{"group and certificate are refused: the others", update("b", "bad", "good"),
			map[string]error{"bad": answer("IllegalParam.Policy"), "sgp-b": answer("IllegalParam.Policy")},
			[]string{"UpdateNLBListener lsn-old sgp-b [bad] good" + refused, "UpdateNLBListener lsn-old sgp-b" + refused,
				"UpdateNLBListener lsn-old - [bad]" + refused,
				"UpdateNLBListener lsn-old - good"}, 1, "IllegalParam.Policy"},
		{"a quota is about the group", update("b", "cert", ""), map[string]error{"sgp-b": answer("QuotaExceeded.Servers")},
			[]string{"UpdateNLBListener lsn-old sgp-b [cert] = QuotaExceeded.Servers", "UpdateNLBListener lsn-old - [cert]"}, 1,
			"QuotaExceeded.Servers"},
		{"rate used up: nothing is taken apart", update("b", "cert", ""), map[string]error{"Update": answer("Throttling.User")},
			[]string{"UpdateNLBListener lsn-old sgp-b [cert] = Throttling.User"}, 0, "Throttling.User"},
		{"nobody knows", update("b", "cert", ""), map[string]error{"Update": answer("InternalError")},
			[]string{"UpdateNLBListener lsn-old sgp-b [cert] = InternalError"}, 0,
			"InternalError"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			cloud := recorder{refuses: test.refuses}
			a := applier(&cloud, &Memory{}, there(group("a", "i-1"), group("b", "i-1")))
			err := a.Run(t.Context(), model.Plan{Steps: []model.Step{test.step}})
			got := cloud.calls
			if test.step.Meanwhile != nil && err != nil && len(got) > 0 && strings.HasPrefix(got[len(got)-1], "AddNLBServers") {
				got = got[:len(got)-1] // the group that it stays in follows, as far as is known
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			jobs := 0
			for _, job := range a.Jobs {
				if job.Work.Op == model.OpUpdateListener {
					jobs++
				}
			}
			if jobs != test.jobs {
				t.Errorf("%d jobs, want %d", jobs, test.jobs)
			}
			if (err != nil) != (test.says != "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want %q", err, test.says)
			}
		})
	}
}

// TestCertificateWaitsForNoGroup: servers of the next group of a listener cannot come, so that it stays in the one that it is in, which
// follows the nodes; it takes its certificate all the same.
func TestCertificateWaitsForNoGroup(t *testing.T) {
	t.Parallel()
	cloud := recorder{refuses: map[string]error{"AddNLBServers sgp-b": answer("Forbidden.RAM")}}
	err := applier(&cloud, &Memory{}, there(group("a", "i-1"), group("b", "i-1"))).Run(t.Context(), model.Plan{Steps: []model.Step{
		onServers(model.OpAddServers, "b", "i-2"), update("b", "cert", ""),
	}})
	want := []string{"AddNLBServers sgp-b [i-2] = Forbidden.RAM", "UpdateNLBListener lsn-old - [cert]", "AddNLBServers sgp-a [i-9]"}
	if diff := cmp.Diff(want, cloud.calls); diff != "" || err == nil {
		t.Errorf("error %v, calls (-want +got):\n%s", err, diff)
	}
}
