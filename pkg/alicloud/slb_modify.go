package alicloud

import "context"

// SetInternetSpec changes what a public CLB's traffic is charged by, and its bandwidth in Mbit/s, which applies with
// [PayByBandwidth] only. A change of the charge type takes effect at 00:00 of the next day; until then the old value is read.
func (c *Client) SetInternetSpec(ctx context.Context, id, chargeType string, bandwidth int) error {
	in := params{"LoadBalancerId": id}.set("InternetChargeType", chargeType)
	if bandwidth > 0 {
		in.setInt("Bandwidth", bandwidth)
	}
	return c.slbWrite(ctx, "ModifyLoadBalancerInternetSpec", in)
}

// SetInstanceChargeType changes what a CLB is charged by. The API goes from [PayBySpec] to
// [PayByCLCU] and never back.
func (c *Client) SetInstanceChargeType(ctx context.Context, id, chargeType string) error {
	return c.slbWrite(ctx, "ModifyLoadBalancerInstanceChargeType", params{"LoadBalancerId": id, "InstanceChargeType": chargeType})
}

// SetInstanceSpec changes the specification of a CLB that is charged by it ([PayBySpec]), for example to "slb.s2.small".
func (c *Client) SetInstanceSpec(ctx context.Context, id, spec string) error {
	return c.slbWrite(ctx, "ModifyLoadBalancerInstanceSpec", params{"LoadBalancerId": id, "LoadBalancerSpec": spec})
}
