package alicloud

import "context"

// eipPageSize is the page of DescribeEipAddresses that is known to be served.
const eipPageSize = 50

// EIPOfLoadBalancer is the kind of resource that a CLB is to an EIP.
const EIPOfLoadBalancer = "SlbInstance"

// EIP is an elastic IP address.
type EIP struct {
	ID      string
	Address string
	// InstanceID is what the address is bound to, empty when it is free.
	InstanceID string
}

// DescribeEIPs returns the elastic IP addresses that are bound to a resource; kind is for example [EIPOfLoadBalancer].
// Source: https://www.alibabacloud.com/help/en/eip/developer-reference/api-vpc-2016-04-28-describeeipaddresses-eips.
func (c *Client) DescribeEIPs(ctx context.Context, kind, id string) ([]EIP, error) {
	in := params{"AssociatedInstanceType": kind, "AssociatedInstanceId": id}.setInt("PageSize", eipPageSize)
	return pages("DescribeEipAddresses", func(eip EIP) string { return eip.ID }, func(number int) (page[EIP], error) {
		out := &describeEIPsResponse{answer: newAnswer()}
		if err := c.call(ctx, "DescribeEipAddresses", productVPC, in.setInt("PageNumber", number), out); err != nil {
			return page[EIP]{}, err
		}
		var found []EIP
		for _, wire := range out.EipAddresses.EipAddress {
			if wire.InstanceId != id {
				return page[EIP]{}, out.unusable("DescribeEipAddresses", "asked for the addresses of %q, got one of %q", id, wire.InstanceId)
			}
			found = append(found, EIP{ID: wire.AllocationId, Address: wire.IpAddress, InstanceID: wire.InstanceId})
		}
		return page[EIP]{out.answer, found, out.TotalCount}, nil
	})
}

type describeEIPsResponse struct {
	answer
	TotalCount   *int
	EipAddresses struct {
		EipAddress []struct{ AllocationId, IpAddress, InstanceId string }
	}
}
