package annotation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

func TestParseSourceRanges(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, family string
		ranges       []string
		want         []string
		reasons      []string
	}{
		{"blocks", "ipv4", []string{"192.0.2.0/24", " 10.1.2.3/8 ", "192.0.2.0/24"}, []string{"10.0.0.0/8", "192.0.2.0/24"}, nil},
		{"one address", "ipv4", []string{"192.0.2.1"}, []string{"192.0.2.1/32"}, nil},
		{"everybody", "ipv4", []string{"192.0.2.0/24", "0.0.0.0/0"}, nil, nil},
		{"the other family", "ipv4", []string{"192.0.2.0/24", "2001:db8::/32"}, []string{"192.0.2.0/24"},
			[]string{problem.ReasonAnnotationNoEffect}},
		{"only the other family", "ipv6", []string{"192.0.2.0/24"}, nil,
			[]string{problem.ReasonAnnotationNoEffect, problem.ReasonInvalidAnnotation}},
		{"IPv6", FamilyIPv6, []string{"2001:db8::1"}, []string{"2001:db8::1/128"}, nil},
		{"no block", "ipv4", []string{"office"}, nil, []string{problem.ReasonInvalidAnnotation}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			svc := testkube.Service("web")
			svc.Annotations[corev1.AnnotationLoadBalancerSourceRangesKey] = strings.Join(test.ranges, ",")
			got, problems := ParseSourceRanges(svc, test.family)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("ranges (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.reasons, reasons(problems)); diff != "" {
				t.Errorf("reasons (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTooManySourceRanges: nothing is made of more ranges than any list takes, for either product.
func TestTooManySourceRanges(t *testing.T) {
	t.Parallel()
	svc := testkube.Service("web")
	for i := range 20_000 {
		svc.Spec.LoadBalancerSourceRanges = append(svc.Spec.LoadBalancerSourceRanges, fmt.Sprintf("10.%d.%d.0/24", i/250, i%250))
	}
	for product, parse := range map[string]func() ([]string, []problem.Problem){
		"CLB": func() ([]string, []problem.Problem) { return ParseSourceRanges(svc, FamilyIPv4) },
		"NLB": func() ([]string, []problem.Problem) { return ParseBothFamilies(svc, true) },
	} {
		blocks, problems := parse()
		if len(blocks) > 0 || len(problems) != 1 || problems[0].Reason != problem.ReasonInvalidAnnotation ||
			!strings.Contains(problems[0].Message, "20000 ranges are not accepted") {
			t.Errorf("%s: %d blocks, problems %v", product, len(blocks), problems)
		}
	}
}
