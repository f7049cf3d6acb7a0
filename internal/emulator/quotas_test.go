package emulator_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

type quotaList struct {
	TotalCount int
	NextToken  string
	Quotas     []struct {
		QuotaActionCode        string
		TotalQuota, TotalUsage float64
		Consumable             bool
		Dimensions             map[string]string
	}
}

func (a *account) quotas(params map[string]string) quotaList {
	a.t.Helper()
	var list quotaList
	testkit.Must(0, json.Unmarshal([]byte(testkit.Must(a.call("quotas", "ListProductQuotas", params))(a.t)), &list))(a.t)
	return list
}

// TestQuotas: the Quota Center shows the limits that the other products enforce, and what the account uses of them.
func TestQuotas(t *testing.T) {
	t.Parallel()
	config := cloud.DefaultConfig()
	config.Quotas.ListenersPerLB = 7
	a := newAccount(t, emulator.Options{Config: config})
	a.newLB()
	one := a.quotas(map[string]string{"ProductCode": "slb", "QuotaActionCode": "slb_quota_instances_num"}).Quotas[0]
	wantEqual(t, "CLBs", fmt.Sprint(one.TotalQuota, one.TotalUsage, one.Consumable), "60 1 true")
	one = a.quotas(map[string]string{"ProductCode": "slb", "QuotaActionCode": "slb_quota_listeners_num"}).Quotas[0]
	wantEqual(t, "listeners", fmt.Sprint(one.TotalQuota, one.TotalUsage, one.Consumable), "7 0 false")
	wantEqual(t, "rates", a.quotas(map[string]string{"ProductCode": "slb", "QuotaCategory": "FlowControl"}).TotalCount, 0)
	wantEqual(t, "a product without quotas", a.quotas(map[string]string{"ProductCode": "sts"}).TotalCount, 0)
	wantEqual(t, "a keyword", a.quotas(map[string]string{"ProductCode": "vpc", "KeyWord": "entries"}).TotalCount, 1)

	seen, token := map[string]bool{}, ""
	for range 10 {
		page := a.quotas(map[string]string{"ProductCode": "slb", "MaxResults": "3", "NextToken": token})
		for _, q := range page.Quotas {
			seen[q.QuotaActionCode] = true
		}
		if token = page.NextToken; token == "" {
			break
		}
	}
	wantEqual(t, "pages", len(seen), a.quotas(map[string]string{"ProductCode": "slb"}).TotalCount)
	for params, code := range map[string]string{"": "MissingParameter", "101": "InvalidParameter"} {
		in := map[string]string{"MaxResults": params}
		if params != "" {
			in["ProductCode"] = "slb"
		}
		_, err := a.call("quotas", "ListProductQuotas", in)
		wantCode(t, err, code, 400)
	}
}

// TestQuotasOfRegions: with the facts flipped, each region has quotas of its own, and nothing is counted.
func TestQuotasOfRegions(t *testing.T) {
	t.Parallel()
	a := newAccount(t, emulator.Options{})
	testkit.Must(0, a.Change(func(s *emulator.Settings) {
		s.Flipped = []string{"quotas.no-region", "quotas.usage", "quotas.default-general"}
	}))(t)
	clbs := map[string]string{"ProductCode": "slb", "QuotaActionCode": "slb_quota_instances_num"}
	wantEqual(t, "without a category", a.quotas(clbs).TotalCount, 0)
	clbs["QuotaCategory"] = "CommonQuota"
	wantEqual(t, "regions", a.quotas(clbs).TotalCount, 2)
	clbs["Dimensions.1.Key"], clbs["Dimensions.1.Value"] = "regionId", region
	list := a.quotas(clbs)
	wantEqual(t, "of this region", list.TotalCount, 1)
	wantEqual(t, "value", fmt.Sprint(list.Quotas[0].TotalQuota, list.Quotas[0].Consumable), "60 false")
}
