package build_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

func TestForwardPort(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, protocols, forward string
		order                    []string
		reasons                  []string
	}{
		{"after its target", "http:80,https:443", "80:443", []string{"https:443", "http:80"}, nil},
		{"no such target", "http:80,https:443", "80:444", []string{"https:443", "http:80"}, []string{problem.ReasonInvalidAnnotation}},
		{"target not https", "http:80", "80:443", []string{"tcp:443", "http:80"}, []string{problem.ReasonInvalidAnnotation}},
		{"source not http", "https:443", "80:443", []string{"tcp:80", "https:443"}, []string{problem.ReasonInvalidAnnotation}},
		{"source twice", "http:80,https:443", "80:443,80:8443", []string{"https:443", "http:80"},
			[]string{problem.ReasonInvalidAnnotation, problem.ReasonInvalidAnnotation}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newFixture(80, 443)
			annotate(c.svc, annotation.ProtocolPort, test.protocols)
			annotate(c.svc, annotation.CertID, "cert-1")
			annotate(c.svc, annotation.ForwardPort, test.forward)
			model, problems := c.build()
			var order []string
			for _, listener := range model.Listeners {
				order = append(order, listener.String())
			}
			if diff := cmp.Diff(test.order, order); diff != "" {
				t.Errorf("listeners (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.reasons, reasons(problems)); diff != "" {
				t.Errorf("reasons (-want +got):\n%s\n%v", diff, problems)
			}
		})
	}
}
