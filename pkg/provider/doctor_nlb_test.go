package provider

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/doctor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb"
)

// TestDoctorForgivesMissingNLB: a RAM policy from before NLB, or a region without it, is a fault only where a Service has an NLB or asks
// for one.
func TestDoctorForgivesMissingNLB(t *testing.T) {
	t.Parallel()
	had := func(svc *corev1.Service) { svc.Finalizers = []string{nlb.Finalizer} }
	unreachable := func(_ *testing.T, p *patient) { p.env.Endpoints["nlb"] = "127.0.0.1:1" }
	for name, test := range map[string]struct {
		breaks  func(*testing.T, *patient)
		service func(*corev1.Service) // of the only Service
		off     bool
		subject string
		want    doctor.Status // empty for no line
	}{
		"permission without a Service": {breaks: without("CreateServerGroup"), subject: "nlb:CreateServerGroup", want: doctor.Optional},
		"permission of a Service": {breaks: without("CreateServerGroup"), service: testkube.Class(nlb.Class),
			subject: "nlb:CreateServerGroup", want: doctor.Wrong},
		"permission of a Service that had": {breaks: without("CreateServerGroup"), service: had, subject: "nlb:CreateServerGroup",
			want: doctor.Wrong},
		"permission that is not needed": {breaks: without("CreateServerGroup"), service: had, off: true, subject: "nlb:CreateServerGroup"},
		"endpoint without a Service":    {breaks: unreachable, subject: "NLB endpoint", want: doctor.Optional},
		"endpoint of a Service":         {breaks: unreachable, service: testkube.Class(nlb.Class), subject: "NLB endpoint", want: doctor.Wrong},
		"endpoint that is not needed":   {breaks: unreachable, off: true, subject: "NLB endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t)
			test.breaks(t, p)
			if p.settings.WithoutNLB = test.off; test.service != nil {
				p.nodes = append(p.nodes, testkube.Service("web", testkube.TCP(80), test.service))
			}
			report := p.examine(t)
			found := doctor.Check{}
			if i := slices.IndexFunc(report.Checks, func(c doctor.Check) bool { return c.Subject == test.subject }); i >= 0 {
				found = report.Checks[i]
			}
			if found.Status != test.want || test.want != "" && found.Fix == "" || report.Empty() != (test.want != doctor.Wrong) {
				t.Errorf("%+v, want %q with what to do:\n%s", found, test.want, report)
			}
			if name := "nlb:"; test.subject == "NLB endpoint" && strings.Contains(report.String(), name) {
				t.Errorf("the report has a line for each action of an endpoint that does not answer:\n%s", report)
			}
		})
	}
}
