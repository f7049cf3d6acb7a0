package facts

func vpc() []Fact { return append(vpcBehavior(), vpcRefusals()...) }

func vpcBehavior() []Fact {
	const p = "vpc"
	return []Fact{
		behave(p, "lists-both-versions", assumed(noSource), "lists of route entries that name no IP version have IPv6 entries", by("DescribeRouteEntryList"), with(`{"routeListsIPv4":true}`)),
		behave(p, "batch-in-part", assumed("the page of CreateRouteEntries describes partial failure, not for which codes"), "the entry with a next hop that is not accepted fails, the others of its batch do not", by("CreateRouteEntries"), with(`{"routeBatchesWhole":true}`)),
		behave(p, "batch-duplicate", on(pageRoutes), "a batch returns 200 with FailedCount, and VPC_ROUTE_ENTRY_CIDR_BLOCK_DUPLICATE for a destination that exists", by("CreateRouteEntries")),
		behave(p, "batch-missing", code(codeCCM), "a batch returns 200 with FailedCount, and VPC_ROUTER_ENTRY_NOT_EXIST for an entry that does not exist", by("DeleteRouteEntries")),
		behave(p, "batch-busy", code(codeCCM), "a batch returns 200 with FailedCount, and VPC_ROUTE_ENTRY_STATUS_ERROR for an entry in transition", by("CreateRouteEntries"), provoked),
		behave(p, "page-500", assumed("the page says 100, the official CCM sends 500"), "a page of route entries can have 500", by("DescribeRouteEntryList")),
		behave(p, "entry-available", on(pageRouteList), "a new route entry becomes Available", by("DescribeRouteEntryList")),
		behave(p, "table-available", assumed("the pages name the states in two ways"), "a new route table becomes Available", by("DescribeRouteTableList")),
		behave(p, "table-goes-with-ipv6-default", assumed("the page names custom entries, and not those that the cloud made"), "a route table whose only custom entry is that for all other IPv6 destinations can be deleted", by("DeleteRouteTable"), account),
		behave(p, "shared-range", on(pageRoutes), "a destination in 100.64.0.0/10 is refused", by("CreateRouteEntry")),
		behave(p, "vswitch-range", on(pageRoute), "a destination that overlaps with a vSwitch is refused", by("CreateRouteEntry")),
		behave(p, "eip-states", on(pageEIPStates), "an elastic IP address is Available, and InUse when it is bound", by("DescribeEipAddresses")),
		behave(p, "released-hop-stays", assumed(noSource), "a route entry whose instance is released stays", by("DescribeRouteEntryList")),
		behave(p, "misspelled-description", code(codeSDK), "CreateRouteEntries reads the description also as Describption", by("CreateRouteEntries")),
	}
}

func vpcRefusals() []Fact {
	const p = "vpc"
	return []Fact{
		refuse(p, "TaskConflict", 400, on(pageRoutes), "another change of routes in the VPC is in progress", provoked, transient),
		refuse(p, "IncorrectRouteEntryStatus", 400, on(pageRouteDelete), "an entry of the table is Pending or Modifying", provoked, transient),
		refuse(p, "IncorrcetRouteEntryStatus", 400, on(pageRouteDelete), "an entry of the table is Pending or Modifying; the misspelling is the cloud's", provoked, transient),
		refuse(p, "IncorrectVpcStatus", 400, code(codeTerraform), "the VPC is in transition", provoked, transient),
		refuse(p, "IncorrectInstanceStatus", 400, on(pageEIP), "the instance is in transition", provoked, transient),
		refuse(p, "IncorrectStatus.VpcRouteEntry", 400, code(codeTerraform), "a route entry is in transition", provoked, transient),
		refuse(p, "IncorrectStatus.RouteTableStatus", 400, code(codeTerraform), "the route table is in transition", provoked, transient),
		refuse(p, "IncorrectVSwitchStatus", 400, code(codeTerraform), "the vSwitch is in transition", provoked, transient),
		refuse(p, "OperationFailed.DistibuteLock", 400, code(codeTerraform), "another operation is in progress; the misspelling is the cloud's", provoked, transient),
		refuse(p, "OperationConflict", 400, code(codeTerraform), "a route table of the VPC is being created or deleted", provoked, transient),
		refuse(p, "LastTokenProcessing", 400, code(codeTerraform), "the first call with the ClientToken is still in progress", provoked, transient),
		refuse(p, "SystemBusy", 400, code(codeTerraform), "the system is busy", provoked, transient),
		refuse(p, "QuotaExceeded", 400, on(pageRoute), "the route table has reached its quota of entries", account),
		refuse(p, "QuotaExceeded.RouteTable", 400, assumed("the quota is published, the code is not"), "the VPC has reached its quota of route tables", account),
		refuse(p, "InvalidCIDRBlock.Duplicate", 400, on(pageRoute), "the route table already has an entry for the destination", by("CreateRouteEntry")),
		refuse(p, "InvalidRouteEntry.Duplicate", 400, on(pageRoute), "the route table already has the entry", provoked),
		refuse(p, "RouterEntryConflict.Duplicated", 400, on(pageRoute), "the route table already has the entry", provoked),
		refuse(p, "Duplicated.VpcNextHop", 400, assumed(noSource), "the route table already has the entry", provoked),
		refuse(p, "InvalidCidrBlock", 400, on(pageRoute), "the destination cannot be routed", by("CreateRouteEntry")),
		refuse(p, "InvalidCidrBlock.Malformed", 400, on(pageRoute), "the destination is not an address range", by("CreateRouteEntry")),
		refuse(p, "InvalidNextHopId.NotFound", 404, on(pageRoute), "the next hop does not exist", by("CreateRouteEntry")),
		refuse(p, "InvalidRouteTableId.NotFound", 404, on(pageRoute), "the route table does not exist"),
		refuse(p, "InvalidRouteTable.NotFound", 400, on(pageRouteList), "the route table does not exist", by("DescribeRouteEntryList")),
		refuse(p, "InvalidVpcId.NotFound", 404, on(pageRoute), "the VPC does not exist"),
		refuse(p, "InvalidVSwitchId.NotFound", 404, on(pageRoute), "the vSwitch does not exist", by("DescribeVSwitchAttributes")),
		refuse(p, "InvalidRouteEntry.NotFound", 400, on(pageRouteDelete), "the route table has no such entry", by("DeleteRouteEntry")),
		refuse(p, "InvalidRouteEntryId.NotFound", 400, on(pageRouteDelete), "the route entry does not exist", by("DeleteRouteEntry")),
		refuse(p, "OperationDenied", 400, on(pageRouteDelete), "the system entry, the bound route table or the address cannot be changed"),
		refuse(p, "UnsupportedParameter", 400, assumed("the tables of the sandbox have one next hop per entry"), "NextHopList is not offered", by("CreateRouteEntry"), account),
		refuse(p, "IncorrectRouteTableType", 400, on(pageTableDelete), "the system route table cannot be deleted", by("DeleteRouteTable")),
		refuse(p, "IncorrectRouteTableStatus.RouteEntryExist", 400, on(pageTableDelete), "the route table has custom entries", by("DeleteRouteTable")),
		refuse(p, "InvalidAllocationId.NotFound", 404, assumed("neither code nor status is documented"), "the elastic IP address does not exist"),
		refuse(p, "IncorrectEipStatus", 400, on(pageEIP), "the elastic IP address is not in the state that the call needs"),
		refuse(p, "InvalidAssociation.Duplicated", 400, assumed(noSource), "the instance already has an elastic IP address", by("AssociateEipAddress")),
		refuse(p, "InvalidInstanceId.NotFound", 400, on(pageEIP), "the instance to bind does not exist"),
		refuse(p, "InvalidInstanceType.ValueNotSupported", 400, on(pageEIP), "instances of the type do not support elastic IP addresses", by("AssociateEipAddress")),
	}
}
