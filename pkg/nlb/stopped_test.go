package nlb

import (
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/presence"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// TestAnInactiveNLBIsSaid: no call stops an NLB, so that only the cloud makes one inactive, which is as good as locked: it carries no
// traffic, and takes no changes. The Service says so, also where the cloud names no reason.
func TestAnInactiveNLBIsSaid(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		lb   alicloud.NLB
		want string
	}{
		{alicloud.NLB{ID: "nlb-1", Status: alicloud.NLBInactive}, "NLB nlb-1 is locked (Inactive)"},
		{alicloud.NLB{ID: "nlb-1", Status: alicloud.NLBInactive, Locks: []string{"FinancialLocked"}}, "NLB nlb-1 is locked (FinancialLocked)"},
		{alicloud.NLB{ID: "nlb-1", Status: alicloud.NLBActive, Locks: []string{"FinancialLocked"}}, "NLB nlb-1 is locked (FinancialLocked)"},
	} {
		n := nlb{engine: &engine{}}
		n.observed = n.observed.withLocation(location{Presence: presence.Found(test.lb.ID, false), LB: test.lb})
		decision, err := n.Plan(t.Context(), driver.Inputs{Service: newService("web", testkube.TCP(80))})
		testkit.Check(t, err)
		if len(decision.Problems) != 1 || decision.Problems[0].Reason != problem.ReasonLoadBalancerLocked ||
			!strings.HasPrefix(decision.Problems[0].Message, test.want) {
			t.Errorf("problems %v, want %q", decision.Problems, test.want)
		}
		if p, ok := decision.Plan.(plan); !ok || len(p.Plan.Steps) > 0 {
			t.Errorf("steps %v, want none", p.Plan.Steps)
		}
	}
}
