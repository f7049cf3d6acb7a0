package alicloud_test

import (
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// TestQuotasOfTheAccount: whether the quotas have a region or not, those of this region are found, each once.
func TestQuotasOfTheAccount(t *testing.T) {
	t.Parallel()
	for name, flipped := range map[string][]string{"for all regions": nil, "by region, not counted": {"quotas.no-region", "quotas.usage"}} {
		c := newCloud(t)
		c.Change(func(s *emulator.Settings) { s.Flipped = flipped })
		testkit.Must(c.CreateLoadBalancer(t.Context(),
			alicloud.LoadBalancer{AddressType: alicloud.AddressInternet, InstanceChargeType: "PayByCLCU"}, "token"))(t)
		found := map[string]alicloud.ProductQuota{}
		for _, q := range testkit.Must(c.ListProductQuotas(t.Context(), alicloud.QuotasOfCLB))(t) {
			if found[q.Code].Code != "" {
				t.Errorf("%s: %s stands twice", name, q.Code)
			}
			found[q.Code] = q
		}
		clbs, listeners := found["slb_quota_instances_num"], found["slb_quota_listeners_num"]
		if clbs.Total != 60 || listeners.Total != 50 || listeners.Used != nil {
			t.Errorf("%s: %+v and %+v", name, clbs, listeners)
		}
		if counted := clbs.Used != nil; counted != (flipped == nil) || counted && *clbs.Used != 1 {
			t.Errorf("%s: used %v", name, clbs.Used)
		}
	}
}
