package alicloud

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
)

// vpcPageSize is the largest page of the VPC lists that is known to be served.
const vpcPageSize = 50

// routeTableSystem is the type of the one route table that every VPC has from its start.
const routeTableSystem = "System"

// VSwitch is a subnet of a VPC in one zone.
type VSwitch struct {
	ID        string
	VPCID     string
	ZoneID    string
	CIDRBlock string
	// IPv6CIDRBlock is empty where the vSwitch has no IPv6.
	IPv6CIDRBlock string
	// RouteTableID is the route table that machines in the vSwitch use; InSystemTable says that it is the VPC's system table.
	RouteTableID  string
	InSystemTable bool
	// AvailableIPs counts the addresses that are still free.
	AvailableIPs int
}

// DescribeVSwitches returns the vSwitches of a VPC.
func (c *Client) DescribeVSwitches(ctx context.Context, vpcID string) ([]VSwitch, error) {
	return pages("DescribeVSwitches", func(v VSwitch) string { return v.ID }, func(number int) (page[VSwitch], error) {
		in := params{"VpcId": vpcID}.setInt("PageNumber", number).setInt("PageSize", vpcPageSize)
		out := &describeVSwitchesResponse{answer: newAnswer()}
		if err := c.call(ctx, "DescribeVSwitches", productVPC, in, out); err != nil {
			return page[VSwitch]{}, err
		}
		if out.VSwitches == nil {
			return withoutList[VSwitch](out.answer, "DescribeVSwitches", out.TotalCount)
		}
		var found []VSwitch
		for _, w := range out.VSwitches.VSwitch {
			if w.VpcId != vpcID {
				return page[VSwitch]{}, out.unusable("DescribeVSwitches", "asked for the vSwitches of %q, got one of %q", vpcID, w.VpcId)
			}
			found = append(found, VSwitch{
				ID: w.VSwitchId, VPCID: w.VpcId, ZoneID: w.ZoneId, CIDRBlock: w.CidrBlock, IPv6CIDRBlock: w.Ipv6CidrBlock,
				RouteTableID: w.RouteTable.RouteTableId, InSystemTable: w.RouteTable.RouteTableType == routeTableSystem,
				AvailableIPs: w.AvailableIpAddressCount,
			})
		}
		return page[VSwitch]{out.answer, found, out.TotalCount}, nil
	})
}

type describeVSwitchesResponse struct {
	answer
	TotalCount *int
	VSwitches  *struct {
		VSwitch []struct {
			VSwitchId, VpcId, ZoneId, CidrBlock, Ipv6CidrBlock string
			AvailableIpAddressCount                            int
			RouteTable                                         struct{ RouteTableId, RouteTableType string }
		}
	}
}

// RouteTable is a route table of a VPC.
type RouteTable struct {
	ID    string
	VPCID string
	// System tells the one table that every VPC has from custom ones.
	System bool
	// VSwitchIDs are the vSwitches that use the table.
	VSwitchIDs []string
	Tags       []Tag
}

// DescribeRouteTables returns the route tables of a VPC.
func (c *Client) DescribeRouteTables(ctx context.Context, vpcID string) ([]RouteTable, error) {
	return pages("DescribeRouteTableList", func(t RouteTable) string { return t.ID }, func(number int) (page[RouteTable], error) {
		in := params{"VpcId": vpcID}.setInt("PageNumber", number).setInt("PageSize", vpcPageSize)
		out := &describeRouteTablesResponse{answer: newAnswer()}
		if err := c.call(ctx, "DescribeRouteTableList", productVPC, in, out); err != nil {
			return page[RouteTable]{}, err
		}
		if out.RouterTableList == nil {
			return withoutList[RouteTable](out.answer, "DescribeRouteTableList", out.TotalCount)
		}
		var found []RouteTable
		for _, w := range out.RouterTableList.RouterTableListType {
			if w.VpcId != vpcID {
				return page[RouteTable]{}, out.unusable("DescribeRouteTableList", "asked for the tables of %q, got one of %q", vpcID, w.VpcId)
			}
			table := RouteTable{ID: w.RouteTableId, VPCID: w.VpcId, System: w.RouteTableType == routeTableSystem, VSwitchIDs: w.VSwitchIds.VSwitchId}
			for _, tag := range w.Tags.Tag {
				table.Tags = append(table.Tags, Tag(tag))
			}
			found = append(found, table)
		}
		return page[RouteTable]{out.answer, found, out.TotalCount}, nil
	})
}

type describeRouteTablesResponse struct {
	answer
	TotalCount      *int
	RouterTableList *struct {
		RouterTableListType []struct {
			RouteTableId, RouteTableType, VpcId string
			VSwitchIds                          struct{ VSwitchId []string }
			Tags                                struct{ Tag []struct{ Key, Value string } }
		}
	}
}

// DescribeVPCBlocks returns the address blocks that vSwitches of a VPC can have, of both families; none when there is no
// such VPC.
// Source: https://www.alibabacloud.com/help/en/vpc/developer-reference/api-vpc-2016-04-28-describevpcs-vpcs.
func (c *Client) DescribeVPCBlocks(ctx context.Context, vpcID string) ([]netip.Prefix, error) {
	out := &describeVPCsResponse{answer: newAnswer()}
	if err := c.call(ctx, "DescribeVpcs", productVPC, params{"VpcId": vpcID}, out); err != nil {
		return nil, err
	}
	var texts []string
	for i := range out.Vpcs.Vpc {
		wire := &out.Vpcs.Vpc[i]
		if wire.VpcId != vpcID {
			continue
		}
		texts = append(append(texts, wire.CidrBlock), wire.SecondaryCidrBlocks.SecondaryCidrBlock...)
		for _, block := range wire.Ipv6CidrBlocks.Ipv6CidrBlock {
			texts = append(texts, block.Ipv6CidrBlock)
		}
		texts = append(texts, wire.Ipv6CidrBlock)
	}
	var blocks []netip.Prefix
	for _, text := range texts {
		if text == "" {
			continue
		}
		block, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("DescribeVpcs: block of %s: %w", vpcID, err)
		}
		if !slices.Contains(blocks, block) {
			blocks = append(blocks, block)
		}
	}
	return blocks, nil
}

type describeVPCsResponse struct {
	answer
	Vpcs struct {
		Vpc []struct {
			VpcId, CidrBlock, Ipv6CidrBlock string
			SecondaryCidrBlocks             struct{ SecondaryCidrBlock []string }
			Ipv6CidrBlocks                  struct {
				Ipv6CidrBlock []struct{ Ipv6CidrBlock string }
			}
		}
	}
}
