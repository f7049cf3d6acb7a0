package nlb

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// TestLabelOfAnotherSecurityGroup: the label of a Service, which authors write and backup tools restore, names the security group of a
// Service of the same name: one in another cluster, or its predecessor here. That keeps its rules, and stays when the Service goes.
func TestLabelOfAnotherSecurityGroup(t *testing.T) {
	t.Parallel()
	for _, cluster := range []string{testCluster, "c2"} {
		for _, ranges := range [][]string{nil, {"192.0.2.0/24"}} {
			t.Run(fmt.Sprintf("%s, ranges %v", cluster, ranges), func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, w *world) {
					ctx, api := t.Context(), w.account.Client
					theirs := testkit.Must(api.CreateSecurityGroup(ctx, alicloud.SecurityGroup{
						VPCID: emulatortest.VPC, Name: "k8s-nlb-" + mark.DefaultName("another"), Description: "k8s.default.web." + cluster,
						Tags: []alicloud.Tag{{Key: mark.TagOwner, Value: mark.DefaultName("another")}},
					}, "theirs"))(t)
					testkit.Check(t, api.AddSecurityRules(ctx, theirs, []alicloud.SecurityRule{
						{Protocol: "ALL", Ports: "-1/-1", CIDR: "203.0.113.0/24", Priority: 1},
					}))
					before := testkit.Must(api.DescribeSecurityGroup(ctx, theirs))(t)
					w.serve(1, testkube.TCP(80), func(svc *corev1.Service) {
						svc.Labels = map[string]string{driver.LabelSecurityGroupID: theirs}
						svc.Spec.LoadBalancerSourceRanges = ranges
					})
					w.passes("web", time.Hour)
					if got := len(w.securityGroups("web")); got != len(ranges) {
						t.Errorf("%d security groups of its own", got)
					}
					w.change("web", func(svc *corev1.Service) { svc.Labels = map[string]string{driver.LabelSecurityGroupID: theirs} })
					w.restart()
					w.remove("web")
					w.converge("web")
					if diff := cmp.Diff(before, testkit.Must(api.DescribeSecurityGroup(ctx, theirs))(t)); diff != "" {
						t.Errorf("the security group of the other Service (-before +after):\n%s", diff)
					}
					if left := w.securityGroups("web"); len(left) > 0 {
						t.Errorf("left behind: %v", left)
					}
				})
			})
		}
	}
}
