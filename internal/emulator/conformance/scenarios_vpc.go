package conformance

import "fmt"

// table makes a route table and waits until it is available. Routes are made there only, so that nothing is ever routed.
func (r *R) table() string {
	table := text(r.do("vpc", "CreateRouteTable", P{"VpcId": r.env.VPC, "RouteTableName": "conformance"}), "RouteTableId")
	r.do("vpc", "DescribeRouteTableList", P{"VpcId": r.env.VPC, "RouteTableId": table},
		until("vpc.table-available", "RouterTableList.RouterTableListType.0.Status", "Available"))
	return table
}

func (r *R) entry(table, cidr string) P {
	return P{"RouteTableId": table, "DestinationCidrBlock": cidr, "NextHopId": r.env.Instances[0], "NextHopType": "Instance"}
}

func (r *R) entries(table string, cidrs ...string) P {
	p := P{}
	for i, cidr := range cidrs {
		key := fmt.Sprintf("RouteEntries.%d.", i+1)
		p[key+"RouteTableId"], p[key+"DstCidrBlock"], p[key+"NextHop"], p[key+"NextHopType"] = table, cidr, r.env.Instances[0], "Instance"
	}
	return p
}

// settledEntries waits until all entries of a table can be changed.
func (r *R) settledEntries(table string) {
	r.do("vpc", "DescribeRouteEntryList", P{"RouteTableId": table, "RouteEntryType": "Custom"},
		until("vpc.entry-available", "RouteEntrys.RouteEntry.0.Status", "Available"))
}

func vpcScenarios() []Scenario {
	return []Scenario{
		{Name: "vpc/networks", Product: "vpc", run: vpcNetworks},
		{Name: "vpc/route table", Product: "vpc", run: vpcTable},
		{Name: "vpc/route entries", Product: "vpc", run: vpcEntries},
		{Name: "vpc/route batches", Product: "vpc", run: vpcBatches},
		{Name: "vpc/IPv6", Product: "vpc", Fixture: true, run: func(r *R) {
			p := r.entries("vtb-six", "2001:db8:1:100::/64")
			p["RouteEntries.1.IpVersion"], p["RouteEntries.1.NextHop"] = "6", "i-six"
			r.do("vpc", "CreateRouteEntries", p, shows("", "SuccessCount", 1))
			r.do("vpc", "DescribeRouteEntryList", P{"RouteTableId": "vtb-six", "NextHopType": "Instance"},
				shows("vpc.lists-both-versions", "RouteEntrys.RouteEntry.#", 1))
			p["RouteEntries.1.IpVersion"] = ""
			r.do("vpc", "DescribeRouteEntryList", P{"RouteTableId": "vtb-six", "NextHopType": "Instance", "IpVersion": "IPv6"},
				until("", "RouteEntrys.RouteEntry.0.Status", "Available"))
			r.do("vpc", "DeleteRouteEntries", p, shows("", "SuccessCount", 1))
			table := text(r.do("vpc", "CreateRouteTable", P{"VpcId": "vpc-six"}), "RouteTableId")
			r.do("vpc", "DescribeRouteTableList", P{"VpcId": "vpc-six", "RouteTableId": table},
				until("vpc.table-available", "RouterTableList.RouterTableListType.0.Status", "Available"))
			r.do("vpc", "DeleteRouteTable", P{"RouteTableId": table}, fits("vpc.table-goes-with-ipv6-default"))
		}},
		{Name: "vpc/elastic IP addresses", Product: "vpc", run: vpcAddresses},
	}
}

func vpcNetworks(r *R) {
	r.do("vpc", "DescribeVpcs", P{"VpcId": r.env.VPC}, shows("", "Vpcs.Vpc.#", 1))
	r.do("vpc", "DescribeVpcAttribute", P{"VpcId": r.env.VPC})
	r.do("vpc", "DescribeVpcAttribute", P{"VpcId": "vpc-conformance0absent"}, refused("vpc.InvalidVpcId.NotFound"))
	r.do("vpc", "DescribeVSwitches", P{"VSwitchId": r.env.VSwitches[0]}, shows("", "VSwitches.VSwitch.#", 1))
	r.do("vpc", "DescribeVSwitchAttributes", P{"VSwitchId": r.env.VSwitches[0]})
	r.do("vpc", "DescribeVSwitchAttributes", P{"VSwitchId": "vsw-conformance0absent"}, refused("vpc.InvalidVSwitchId.NotFound"))
	r.do("vpc", "CheckCanAllocateVpcPrivateIpAddress", P{"VSwitchId": r.env.VSwitches[0], "PrivateIpAddress": r.env.Address},
		shows("", "CanAllocate", false))
}

func vpcTable(r *R) {
	table := r.table()
	r.do("vpc", "DescribeRouteEntryList", P{"RouteTableId": "vtb-conformance0absent"}, refused("vpc.InvalidRouteTable.NotFound"))
	r.do("vpc", "DescribeRouteEntryList", P{"RouteTableId": table, "MaxResult": "500"}, fits("vpc.page-500"))
	r.do("vpc", "CreateRouteEntry", r.entry("vtb-conformance0absent", "172.31.0.0/24"), refused("vpc.InvalidRouteTableId.NotFound"))
	r.do("vpc", "DeleteRouteTable", P{"RouteTableId": r.env.RouteTable}, refused("vpc.IncorrectRouteTableType"))
	r.do("vpc", "CreateRouteEntry", r.entry(table, "172.31.0.0/24"))
	r.settledEntries(table)
	r.do("vpc", "DeleteRouteTable", P{"RouteTableId": table}, refused("vpc.IncorrectRouteTableStatus.RouteEntryExist"))
	r.do("vpc", "DeleteRouteEntry", P{"RouteTableId": table, "DestinationCidrBlock": "172.31.0.0/24", "NextHopId": r.env.Instances[0]})
	r.do("vpc", "DescribeRouteEntryList", P{"RouteTableId": table, "RouteEntryType": "Custom"}, until("", "RouteEntrys.RouteEntry.#", 0))
	r.do("vpc", "DeleteRouteTable", P{"RouteTableId": table})
}

func vpcEntries(r *R) {
	table := r.table()
	create := func(fact string, p P, more ...check) {
		r.do("vpc", "CreateRouteEntry", p, append(more, refused(fact))...)
	}
	created := text(r.do("vpc", "CreateRouteEntry", r.entry(table, "172.31.0.0/24")), "RouteEntryId")
	r.settledEntries(table)
	create("vpc.InvalidCIDRBlock.Duplicate", r.entry(table, "172.31.0.0/24"))
	create("vpc.InvalidCidrBlock", r.entry(table, "100.64.1.0/24"), fits("vpc.shared-range"))
	create("vpc.InvalidCidrBlock", r.entry(table, r.overlapping()), fits("vpc.vswitch-range"))
	create("vpc.InvalidCidrBlock.Malformed", r.entry(table, "172.31.0.1/24"))
	p := r.entry(table, "172.31.1.0/24")
	p["NextHopId"] = "i-conformance0absent"
	create("vpc.InvalidNextHopId.NotFound", p)
	r.do("vpc", "DeleteRouteEntry", P{"RouteTableId": table, "DestinationCidrBlock": "172.31.9.0/24", "NextHopId": r.env.Instances[0]},
		refused("vpc.InvalidRouteEntry.NotFound"))
	r.do("vpc", "DeleteRouteEntry", P{"RouteEntryId": "rte-conformance0absent"}, refused("vpc.InvalidRouteEntryId.NotFound"))
	list := r.do("vpc", "DescribeRouteEntryList", P{"RouteTableId": table, "RouteEntryType": "System"})
	r.do("vpc", "DeleteRouteEntry", P{"RouteEntryId": text(list, "RouteEntrys.RouteEntry.0.RouteEntryId")}, refused("vpc.OperationDenied"))
	r.do("vpc", "DeleteRouteEntry", P{"RouteEntryId": created})
	extra := text(r.do("ecs", "RunInstances", r.instance()), "InstanceIdSets.InstanceIdSet.0")
	r.running(extra)
	p["NextHopId"] = extra
	r.do("vpc", "CreateRouteEntry", p)
	r.settledEntries(table)
	r.do("ecs", "DeleteInstance", P{"InstanceId": extra, "Force": "true"})
	r.do("vpc", "DescribeRouteEntryList", P{"RouteTableId": table, "RouteEntryType": "Custom"},
		shows("vpc.released-hop-stays", "RouteEntrys.RouteEntry.#", 1))
}

// overlapping is a range inside the first vSwitch: that of one of its addresses.
func (r *R) overlapping() string { return r.env.Address + "/32" }

func vpcBatches(r *R) {
	table := r.table()
	p := r.entries(table, "172.31.0.0/24", "172.31.1.0/24")
	p["RouteEntries.2.NextHop"] = "i-conformance0absent"
	r.do("vpc", "CreateRouteEntries", p, fits("vpc.batch-in-part"), shows("vpc.batch-in-part", "SuccessCount", 1),
		shows("vpc.batch-in-part", "FailedCount", 1))
	r.settledEntries(table)
	r.do("vpc", "CreateRouteEntries", r.entries(table, "172.31.0.0/24"),
		shows("vpc.batch-duplicate", "FailedRouteEntries.0.FailedCode", "VPC_ROUTE_ENTRY_CIDR_BLOCK_DUPLICATE"))
	r.do("vpc", "DeleteRouteEntries", r.entries(table, "172.31.9.0/24"),
		shows("vpc.batch-missing", "FailedRouteEntries.0.FailedCode", "VPC_ROUTER_ENTRY_NOT_EXIST"))
	q := r.entries(table, "172.31.3.0/24")
	q["RouteEntries.1.Describption"] = "conformance"
	r.do("vpc", "CreateRouteEntries", q, shows("", "SuccessCount", 1))
	r.settledEntries(table)
	r.do("vpc", "DescribeRouteEntryList", P{"RouteTableId": table, "DestinationCidrBlock": "172.31.3.0/24"},
		shows("vpc.misspelled-description", "RouteEntrys.RouteEntry.0.Description", "conformance"))
	r.do("vpc", "DeleteRouteEntries", r.entries(table, "172.31.0.0/24", "172.31.3.0/24"), shows("", "SuccessCount", 2))
}

func vpcAddresses(r *R) {
	id := text(r.do("vpc", "AllocateEipAddress", P{"Bandwidth": "1", "InternetChargeType": "PayByTraffic"}), "AllocationId")
	other := text(r.do("vpc", "AllocateEipAddress", P{"Bandwidth": "1", "InternetChargeType": "PayByTraffic"}), "AllocationId")
	status := func(fact, want string) {
		r.do("vpc", "DescribeEipAddresses", P{"AllocationId": id}, until(fact, "EipAddresses.EipAddress.0.Status", want))
	}
	status("vpc.eip-states", "Available")
	bind := func(address, kind, instance string, checks ...check) {
		r.do("vpc", "AssociateEipAddress", P{"AllocationId": address, "InstanceType": kind, "InstanceId": instance}, checks...)
	}
	bind("eip-conformance0absent", "SlbInstance", absent, refused("vpc.InvalidAllocationId.NotFound"))
	bind(id, "SlbInstance", absent, refused("vpc.InvalidInstanceId.NotFound"))
	bind(id, "HaVip", "havip-conformance0absent", refused("vpc.InvalidInstanceType.ValueNotSupported"))
	r.do("vpc", "UnassociateEipAddress", P{"AllocationId": id}, refused("vpc.IncorrectEipStatus"))
	lb := r.balancer()
	bind(id, "SlbInstance", lb)
	status("vpc.eip-states", "InUse")
	bind(other, "SlbInstance", lb, refused("vpc.InvalidAssociation.Duplicated"))
	r.do("vpc", "UnassociateEipAddress", P{"AllocationId": id, "InstanceType": "SlbInstance", "InstanceId": lb})
	status("", "Available")
	r.do("vpc", "ReleaseEipAddress", P{"AllocationId": id})
}
