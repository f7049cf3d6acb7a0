package alicloud

import (
	"context"
	"fmt"
	"maps"
)

// Products by their codes in the Quota Center:
// https://www.alibabacloud.com/help/en/quota-center/product-overview/alibaba-cloud-services-that-support-quota-center.
const (
	QuotasOfCLB = "slb"
	QuotasOfNLB = "nlb"
	QuotasOfVPC = "vpc"
)

// QuotaConsole is where the owner of the account can ask for more.
const QuotaConsole = "https://quotas.console.aliyun.com/"

// RaiseQuota is the first way out of a quota, for texts.
const RaiseQuota = "raise the quota (" + QuotaConsole + ")"

// The codes of quotas that several packages name in texts.
const (
	QuotaBackendsPerCLB  = "slb_quota_backendservers_num"
	QuotaCLBsPerInstance = "slb_quota_backendserver_attached_num"
	QuotaServersPerNLB   = "nlb_quota_loadbalancer_noeci_servers_num"
	QuotaGroupsPerServer = "nlb_quota_server_added_num"
	QuotaRouteEntries    = "vpc_quota_route_entrys_num"
)

const (
	// quotaPage is the largest page that all versions of the documentation accept.
	quotaPage = 100
	// dimensionRegion is the dimension of a quota that an account has in each region. Other dimensions make a quota one of something smaller.
	dimensionRegion = "regionId"
)

// ProductQuota is a quota of the account as the Quota Center shows it.
type ProductQuota struct {
	// Code is for example "slb_quota_listeners_num".
	Code string
	// Total is the value, Used what of it the account uses; nil where the Quota Center does not count that.
	Total int
	Used  *int
}

// quotaItem is a quota on the wire.
type quotaItem struct {
	QuotaActionCode string
	TotalQuota      *float64
	TotalUsage      float64
	Consumable      bool
	Dimensions      map[string]any
}

// ListProductQuotas returns the general quotas that the account has of a product in the region. Those that depend on more than the region
// are not among them. The Quota Center is one for all regions, and a network may have no way to it.
func (c *Client) ListProductQuotas(ctx context.Context, productCode string) ([]ProductQuota, error) {
	in := params{"ProductCode": productCode, "QuotaCategory": "CommonQuota"}.setInt("MaxResults", quotaPage)
	items, err := tokenPages("ListProductQuotas", in, quotaItem.identity, func() (tokenPage[quotaItem], error) {
		out := struct {
			answer
			tokens
			Quotas []quotaItem
		}{answer: newAnswer()}
		err := c.call(ctx, "ListProductQuotas", productQuotas, in, &out)
		return tokenPage[quotaItem]{answer: out.answer, tokens: out.tokens, items: out.Quotas}, err
	})
	if err != nil {
		return nil, err
	}
	return c.quotasHere(items), nil
}

// countsHere reports whether a quota is one of the whole account, or of this region, which it reports as well.
func (c *Client) countsHere(item quotaItem) (ofRegion, ok bool) {
	dimensions := maps.Clone(item.Dimensions)
	region, ofRegion := dimensions[dimensionRegion]
	delete(dimensions, dimensionRegion)
	if ofRegion && region != c.opts.Region || len(dimensions) > 0 {
		return ofRegion, false
	}
	return ofRegion, item.QuotaActionCode != "" && item.TotalQuota != nil && *item.TotalQuota >= 0
}

// quotasHere are the quotas of the account in this region. One of the region counts more than one without a region.
func (c *Client) quotasHere(items []quotaItem) []ProductQuota {
	var all []ProductQuota
	at, regional := map[string]int{}, map[string]bool{}
	for _, item := range items {
		ofRegion, ok := c.countsHere(item)
		if !ok {
			continue
		}
		quota := ProductQuota{Code: item.QuotaActionCode, Total: int(*item.TotalQuota)}
		if item.Consumable {
			quota.Used = new(int(item.TotalUsage))
		}
		i, known := at[quota.Code]
		switch {
		case !known:
			at[quota.Code] = len(all)
			all = append(all, quota)
		case ofRegion || !regional[quota.Code]:
			all[i] = quota
		}
		regional[quota.Code] = regional[quota.Code] || ofRegion
	}
	return all
}

// identity tells quotas apart: one action may have several, for different dimensions.
func (q quotaItem) identity() string { return fmt.Sprint(q.QuotaActionCode, " ", q.Dimensions) }
