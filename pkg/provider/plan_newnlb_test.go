package provider

import (
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb"
)

// TestPlanOfANewNLB says what a Service lacks that never had an NLB: nothing is there to be looked for twice.
func TestPlanOfANewNLB(t *testing.T) {
	t.Parallel()
	text := planned(t, startCloud(t), testkube.Service("network", testkube.TCP(80), testkube.Class(nlb.Class))).String()
	if !strings.Contains(text, "zone-maps") || strings.Contains(text, "confirmation") {
		t.Errorf("the plan of a Service without zone-maps:\n%s", text)
	}
}
