package build_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

func TestPlaceOfACLB(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name       string
		annotation map[annotation.Suffix]string
		want       []string // of VSwitchIDs
		reasons    []string
	}{
		{"own zones", map[annotation.Suffix]string{annotation.MasterZoneID: "cn-hangzhou-b", annotation.SlaveZoneID: "cn-hangzhou-a"},
			[]string{"vsw-a"}, nil},
		{"zone of another region", map[annotation.Suffix]string{annotation.MasterZoneID: "cn-beijing-a"}, []string{"vsw-a"},
			[]string{problem.ReasonInvalidAnnotation}},
		{"classic network", map[annotation.Suffix]string{annotation.NetworkType: "classic"}, []string{""}, nil},
		{"VPC", map[annotation.Suffix]string{annotation.NetworkType: "vpc", annotation.VSwitchID: "vsw-9"}, []string{"vsw-9"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newFixture(80)
			c.config.Region = "cn-hangzhou"
			for suffix, value := range test.annotation {
				annotate(c.svc, suffix, value)
			}
			model, problems := c.build()
			if diff := cmp.Diff(test.want, model.VSwitchIDs); diff != "" {
				t.Errorf("vSwitches (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.reasons, reasons(problems)); diff != "" {
				t.Errorf("reasons (-want +got):\n%s\n%v", diff, problems)
			}
		})
	}
}
