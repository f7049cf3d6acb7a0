package vpc_test

import (
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/slb"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/vpc"
)

// The parts of stories.
const (
	entry   = "CreateRouteEntry RouteTableId=vtb-emulator NextHopId=i-1 DestinationCidrBlock="
	podCIDR = entry + "172.20.1.0/24 > entry=RouteEntryId\n"
	batch   = "CreateRouteEntries RouteEntries.1.RouteTableId=vtb-emulator RouteEntries.1.NextHop=i-1 RouteEntries.1.DstCidrBlock="
	table   = "CreateRouteTable VpcId=vpc-emulator > table=RouteTableId\n"
	address = "AllocateEipAddress > eip=AllocationId\n"
	bind    = "AssociateEipAddress AllocationId=$eip InstanceId="
)

// config has an instance.
func config(changes ...func(*cloud.Config)) func(*cloud.Config) {
	return func(c *cloud.Config) {
		c.Instances = []cloud.InstanceConfig{{ID: "i-1", VSwitchID: "vsw-a"}}
		for _, change := range changes {
			change(c)
		}
	}
}

// TestRefusals: what the emulated VPC refuses, and with which code.
func TestRefusals(t *testing.T) {
	t.Parallel()
	story := emulatortest.Story
	emulatortest.CheckRefusals(t, emulatortest.Products{vpc.Product, slb.Product}, nil,
		story("a route table that is not there", "CreateRouteEntry RouteTableId=vtb-9 DestinationCidrBlock=172.20.1.0/24 NextHopId=i-1",
			"InvalidRouteTableId.NotFound"),
		story("the entries of a route table that is not there", "DescribeRouteEntryList RouteTableId=vtb-9", "InvalidRouteTable.NotFound"),
		story("several next hops", entry+"172.20.1.0/24 NextHopList.1.NextHopId=i-1", "UnsupportedParameter"),
		story("a destination that is no block", entry+"172.20.1.0", "InvalidCidrBlock.Malformed"),
		story("a destination with an address in it", entry+"172.20.1.1/24", "InvalidCidrBlock.Malformed"),
		story("a destination of the cloud's own services", entry+"100.64.1.0/24", "InvalidCidrBlock"),
		story("a destination within a vSwitch", entry+"10.1.1.0/24", "InvalidCidrBlock"),
		story("IPv6 in a VPC without it", entry+"2001:db8::/64", "InvalidCidrBlock"),
		story("a default route", entry+"0.0.0.0/0", "", config()),
		story("a next hop that is not there", entry+"172.20.1.0/24", "InvalidNextHopId.NotFound"),
		story("a destination twice", podCIDR+"wait 1s\n"+podCIDR, "InvalidCIDRBlock.Duplicate", config()),
		story("more entries than a table may have", podCIDR+"wait 1s\n"+entry+"172.20.2.0/24", "QuotaExceeded",
			config(func(c *cloud.Config) { c.Quotas.RouteEntriesPerTable = 1 })),
		story("an entry while another one is pending", podCIDR+entry+"172.20.2.0/24", "IncorrectRouteEntryStatus", config()),
		story("an entry that is pending is deleted", podCIDR+"DeleteRouteEntry RouteEntryId=$entry", "IncorrectRouteEntryStatus", config()),
		story("an entry is deleted, and comes again", podCIDR+"wait 1s\nDeleteRouteEntry RouteEntryId=$entry\nwait 1s\n"+podCIDR, "", config()),
		story("an entry that is not there", "DeleteRouteEntry RouteEntryId=rte-9", "InvalidRouteEntryId.NotFound"),
		story("an entry that is not there, by its destination", "DeleteRouteEntry RouteTableId=vtb-emulator DestinationCidrBlock=172.20.1.0/24",
			"InvalidRouteEntry.NotFound"),
		story("an entry with another next hop",
			podCIDR+"wait 1s\nDeleteRouteEntry RouteTableId=vtb-emulator DestinationCidrBlock=172.20.1.0/24 NextHopId=i-2",
			"InvalidRouteEntry.NotFound", config()),
		story("an entry of nothing", "DeleteRouteEntry", "MissingParameter"),
		story("an entry of the system", "DeleteRouteEntry RouteTableId=vtb-emulator DestinationCidrBlock=10.1.0.0/16", "OperationDenied"),
		story("a token with other parameters", entry+"172.20.1.0/24 ClientToken=t\n"+entry+"172.20.2.0/24 ClientToken=t",
			"IdempotentParameterMismatch", config()),
		story("the same token again while the entry is pending", entry+"172.20.1.0/24 ClientToken=t\n"+entry+"172.20.1.0/24 ClientToken=t", "",
			config()),
		story("a batch right after another one", batch+"172.20.1.0/24\n"+batch+"172.20.2.0/24", "TaskConflict", config()),
		story("a batch after another one", batch+"172.20.1.0/24\nwait 1s\n"+batch+"172.20.2.0/24", "", config()),
		story("a batch in part", batch+"10.1.1.0/24", "", config()),
		story("a batch whose next hop is refused as a whole", batch+"172.20.1.0/24", "InvalidNextHopId.NotFound",
			func(c *cloud.Config) { c.RouteBatchesWhole = true }),

		story("a VPC that is not there", "CreateRouteTable VpcId=vpc-9", "InvalidVpcId.NotFound"),
		story("a table while another one is being created", table+table, "OperationConflict"),
		story("more tables than a VPC may have", table+"wait 1s\n"+table, "QuotaExceeded.RouteTable",
			func(c *cloud.Config) { c.Quotas.RouteTablesPerVPC = 1 }),
		story("a table that is being created is deleted", table+"DeleteRouteTable RouteTableId=$table", "IncorrectStatus.RouteTableStatus"),
		story("the table of the system", "DeleteRouteTable RouteTableId=vtb-emulator", "IncorrectRouteTableType"),
		story("a table with entries",
			table+"wait 1s\nCreateRouteEntry RouteTableId=$table NextHopId=i-1 DestinationCidrBlock=172.20.1.0/24\nwait 1s\nDeleteRouteTable "+
				"RouteTableId=$table", "IncorrectRouteTableStatus.RouteEntryExist", config()),
		story("a table without entries", table+"wait 1s\nDeleteRouteTable RouteTableId=$table", ""),
		story("a vSwitch that is not there", "DescribeVSwitchAttributes VSwitchId=vsw-9", "InvalidVSwitchId.NotFound"),

		story("an address that is not there", "ReleaseEipAddress AllocationId=eip-9", "InvalidAllocationId.NotFound"),
		story("an address of an instance is released", address+bind+"i-1\nwait 1s\nReleaseEipAddress AllocationId=$eip", "IncorrectEipStatus",
			config()),
		story("an address comes and goes",
			address+bind+"i-1\nwait 1s\nUnassociateEipAddress AllocationId=$eip\nwait 1s\nReleaseEipAddress AllocationId=$eip", "", config()),
		story("an address of a subscription",
			"AllocateEipAddress InstanceChargeType=PrePaid > eip=AllocationId\nReleaseEipAddress AllocationId=$eip", "OperationDenied"),
		story("an address for an instance that is not there", address+bind+"i-9", "InvalidInstanceId.NotFound"),
		story("a second address for an instance", address+bind+"i-1\nwait 1s\n"+address+bind+"i-1", "InvalidAssociation.Duplicated", config()),
		story("an address for a CLB of the internet", "slb:CreateLoadBalancer > lb=LoadBalancerId\n"+address+bind+"$lb InstanceType=SlbInstance",
			"OperationDenied"),
		story("an address for a NAT gateway", address+bind+"ngw-1 InstanceType=Nat", "InvalidInstanceType.ValueNotSupported"),
	)
}
