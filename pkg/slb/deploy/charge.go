package deploy

import (
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// PendingCharge is an internet charge type that was asked for. The cloud reads back the old one until the day ends; without
// this memory every drift pass until then would ask again.
// Source: https://www.alibabacloud.com/help/en/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-modifyloadbalancerinternetspec.
type PendingCharge struct {
	loadBalancerID, Asked string
	until                 time.Time
}

var (
	// BillingZone is where the days of the bills begin.
	BillingZone = time.FixedZone("UTC+8", 8*60*60)
)

// AskedCharge notes that a charge type was asked for.
func AskedCharge(loadBalancerID, asked string, now time.Time) PendingCharge {
	year, month, day := now.In(BillingZone).Date()
	return PendingCharge{loadBalancerID, asked, time.Date(year, month, day+1, 0, 0, 0, 0, BillingZone).Add(waits.ChargeType)}
}

// Correct makes of the CLB as it was read what it will be when the day ends.
func (p PendingCharge) Correct(lb *alicloud.LoadBalancer, now time.Time) {
	if p.loadBalancerID == lb.ID && p.Asked != "" && now.Before(p.until) {
		lb.InternetChargeType = p.Asked
	}
}
