package slb

import (
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// pendingCharge is an internet charge type that was asked for. The cloud reads back the old one until the day ends; without
// this memory every drift pass until then would ask again.
// Source: https://www.alibabacloud.com/help/en/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-modifyloadbalancerinternetspec.
type pendingCharge struct {
	loadBalancerID, asked string
	until                 time.Time
}

var (
	// billingZone is where the days of the bills begin.
	billingZone = time.FixedZone("UTC+8", 8*60*60)
	// chargeGrace is how long after the day's end the old type may still be read.
	chargeGrace = time.Hour
)

// askedCharge notes that a charge type was asked for.
func askedCharge(loadBalancerID, asked string, now time.Time) pendingCharge {
	year, month, day := now.In(billingZone).Date()
	return pendingCharge{loadBalancerID, asked, time.Date(year, month, day+1, 0, 0, 0, 0, billingZone).Add(chargeGrace)}
}

// correct makes of the CLB as it was read what it will be when the day ends.
func (p pendingCharge) correct(lb *alicloud.LoadBalancer, now time.Time) {
	if p.loadBalancerID == lb.ID && p.asked != "" && now.Before(p.until) {
		lb.InternetChargeType = p.asked
	}
}
