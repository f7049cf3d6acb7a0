package facts

func nlb() []Fact { return append(nlbBehavior(), nlbRefusals()...) }

func nlbBehavior() []Fact {
	const p = "nlb"
	return []Fact{
		behave(p, "servers-per-call-40", assumed("current pages say 200, older ones 40, which the official CCM sends"), "one call accepts 40 servers, and no more", by("AddServersToServerGroup"), with(`{"quotas":{"nlbServersPerCall":200}}`)),
		behave(p, "groups-tcpssl", assumed("the page of CreateServerGroup does not list it, clients in production use it"), "a server group can have the protocol TCPSSL, and then does not preserve client addresses", by("CreateServerGroup"), with(`{"nlbGroupsRefuseTCPSSL":true}`)),
		behave(p, "udp-checks-of-tcpssl", assumed(noSource), "a server group of the protocol TCPSSL can be checked by UDP", by("CreateServerGroup", "UpdateServerGroupAttribute"), with(`{"nlbTCPSSLRefusesUDPChecks":true}`)),
		behave(p, "group-tags-all", assumed(noSource), "a search for server groups by several tags finds those with all of them", by("ListServerGroups"), with(`{"nlbGroupTagsAny":true}`)),
		behave(p, "one-port-over-tls", assumed(noSource), "a TCPSSL listener has one port, no range", by("CreateListener"), with(`{"nlbRangesOverTLS":true}`)),
		behave(p, "reads-at-first", assumed("the page names a code for it"), "a read of a load balancer by its ID succeeds from the first moment", by("GetLoadBalancerAttribute"), with(`{"nlbReadsFailAtFirst":true}`)),
		behave(p, "ids-per-job-list", assumed("the official CCM sends 20"), "ListAsynJobs accepts 20 IDs", by("ListAsynJobs")),
		behave(p, "unknown-job-fails-list", on(pageNLBJobs), "a list of jobs with one that does not exist fails", by("ListAsynJobs")),
		behave(p, "job-life", assumed(noSource), "a job can be read for an hour", by("GetJobStatus"), byClock),
		behave(p, "token-of-deleted", assumed(noSource), "the ClientToken of a load balancer that was deleted returns its ID again", by("CreateLoadBalancer")),
		behave(p, "zones-2", on(pageNLB), "a load balancer needs two zones", by("CreateLoadBalancer")),
		behave(p, "zones-1-in-small-regions", assumed(noSource), "a load balancer needs one zone in a region with one", by("CreateLoadBalancer"), inTime),
		behave(p, "removing-counts", assumed(noSource), "servers that are Removing count for the quota of their load balancer until they are gone", by("AddServersToServerGroup"), inTime),
		behave(p, "removing-ends-with-job", assumed(noSource), "a server is gone when the job has ended that removes it, also while its connections are drained", by("RemoveServersFromServerGroup")),
		behave(p, "package-with-addresses", assumed(noSource), "BandwidthPackageId goes with elastic IP addresses in ZoneMappings", by("CreateLoadBalancer"), account),
		behave(p, "listener-runs", on(pageNLB), "a new listener is Running when its job has ended", by("CreateListener")),
		behave(p, "small-b", code(codeSDK), "CreateLoadBalancer returns LoadbalancerId, with a lower-case b", by("CreateLoadBalancer")),
		behave(p, "count-is-text", on(pageNLBJobs), "ListAsynJobs returns TotalCount as a string", by("ListAsynJobs")),
		behave(p, "default-name", on("https://www.alibabacloud.com/help/en/slb/product-overview/alb-and-nlb-domain-name-upgrade"), "the name of a load balancer is its ID, the region and nlb.aliyuncsslb.com", by("GetLoadBalancerAttribute")),
		behave(p, "durations", assumed("the intervals of the official CCM"), "creation takes 20 times as long as a job, deletion 10 times", inTime),
	}
}

func nlbRefusals() []Fact { return append(nlbStates(), nlbParameters()...) }

// nlbStates are refusals because of what exists.
func nlbStates() []Fact {
	const p = "nlb"
	page := on(pageNLB)
	return []Fact{
		refuse(p, "ResourceNotFound.loadBalancer", 404, page, "the load balancer does not exist"),
		refuse(p, "ResourceNotFound.listener", 404, page, "the listener does not exist"),
		refuse(p, "ResourceNotFound.serverGroup", 404, page, "the server group does not exist"),
		refuse(p, "ResourceNotFound.BackendServer", 404, page, "one of the servers is not in the group; the whole call fails", by("RemoveServersFromServerGroup", "UpdateServerGroupServersAttribute")),
		refuse(p, "ResourceNotFound.JobId", 404, page, "the job does not exist", by("GetJobStatus")),
		refuse(p, "ResourceNotFound.Ecs", 404, page, "the instance of a server does not exist", by("AddServersToServerGroup")),
		refuse(p, "ResourceNotFound.Eni", 404, page, "the network interface of a server does not exist", by("AddServersToServerGroup")),
		refuse(p, "ResourceNotFound.Eci", 404, page, "the container instance of a server does not exist", by("AddServersToServerGroup"), provoked),
		refuse(p, "ResourceNotFound.Ip", 404, page, "the address of a server does not exist", by("AddServersToServerGroup"), provoked),
		refuse(p, "ResourceNotFound.Vpc", 404, page, "the VPC does not exist"),
		refuse(p, "ResourceNotFound.VSwitch", 404, page, "the vSwitch does not exist in the VPC"),
		refuse(p, "ResourceNotFound.SecurityGroup", 404, page, "the security group does not exist"),
		refuse(p, "ResourceNotFound.Certificate", 404, page, "the certificate does not exist"),
		refuse(p, "ResourceNotFound.CaCertificate", 404, page, "the certificate of an authority does not exist"),
		refuse(p, "ResourceNotFound.securitypolicy", 404, page, "the security policy does not exist"),
		refuse(p, "ResourceNotFound.Eip", 404, assumed(noSource), "the elastic IP address does not exist"),
		refuse(p, "ResourceNotFound.ResourceId", 404, assumed(noSource), "the resource to tag does not exist"),
		refuse(p, "ResourceNotFound.BandwidthPackage", 404, assumed(noSource), "the load balancer does not have this bandwidth package", by("DetachCommonBandwidthPackageFromLoadBalancer")),
		refuse(p, "ResourceNotAssociated.SecurityGroup", 400, assumed(noSource), "the load balancer is not in the security group", by("LoadBalancerLeaveSecurityGroup")),
		refuse(p, "ResourceAlreadyAssociated.SecurityGroup", 400, assumed(noSource), "the load balancer is already in the security group", by("LoadBalancerJoinSecurityGroup")),
		refuse(p, "ResourceAlreadyAssociated.Certificate", 400, page, "the listener already has the certificate"),
		refuse(p, "ResourceAlreadyAssociated.AllocationId", 400, page, "the elastic IP address is in use"),
		refuse(p, "ResourceAlreadyAssociated.BandwidthPackageId", 400, assumed(noSource), "the load balancer already has a bandwidth package"),
		refuse(p, "SystemBusy", 400, on(pageNLBJobs), "the system is busy", provoked, transient),
		refuse(p, "Conflict.Lock", 400, page, "the load balancer is being configured", provoked, transient),
		refuse(p, "IncorrectStatus.loadbalancer", 400, page, "the load balancer is being created or deleted", provoked, transient),
		refuse(p, "IncorrectStatus.listener", 400, page, "the listener is not in the state that the call needs", by("StartListener", "StopListener"), transient),
		refuse(p, "IncorrectStatus.serverGroup", 400, page, "the server group is being created or configured", provoked, transient),
		refuse(p, "IncorrectStatus.Eni", 400, page, "the network interface is in transition", provoked, transient),
		refuse(p, "OperationFailed.GetXipFailed", 400, page, "the addresses of a load balancer are not known yet", by("GetLoadBalancerAttribute"), provoked, transient),
		refuse(p, "IdempotenceProcessing", 400, assumed("the page of ALB"), "the first call with the ClientToken is still in progress", provoked, transient),
		refuse(p, "IdempotenceSignatureMismatch", 400, page, "the ClientToken was used before with other parameters"),
		refuse(p, "ResourceInUse.ServerGroup", 400, page, "a listener uses the server group", by("DeleteServerGroup"), transient),
		refuse(p, "ResourceInUse.IP", 400, page, "the address is in use"),
		refuse(p, "ResourceNotEnough.VSwitchIp", 400, page, "the vSwitch has no free address", account),
		refuse(p, "DuplicatedParam.listener", 400, page, "the port already has a listener of the same protocol", by("CreateListener")),
		refuse(p, "DuplicatedParam.Server", 400, page, "the server is in the group, or twice in the call", by("AddServersToServerGroup")),
		refuse(p, "DuplicatedParam.AllocationId", 400, page, "an elastic IP address is given for two zones"),
		refuse(p, "Conflict.Port", 400, page, "the port already has a listener of another protocol of the same transport", by("CreateListener")),
		refuse(p, "Conflict.SecurityGroup", 400, page, "basic and advanced security groups cannot be mixed"),
		refuse(p, "TagInvokeError", 400, page, "the service of tags failed", provoked),
		refuse(p, "QuotaExceeded.QuotaInsufficient", 400, page, "a quota is used up", account),
		refuse(p, "QuotaExceeded.TagsPerResource", 400, assumed("the quota is published, the code is not"), "the resource would have more than 20 tags", by("TagResources")),
		refuse(p, "IllegalParamSize.Servers", 400, assumed("the quota is published, the code is not"), "one call has too many servers", by("AddServersToServerGroup")),
		refuse(p, "IllegalParamSize.certificateIds", 400, page, "a TCPSSL listener accepts one certificate"),
		refuse(p, "InvalidZones", 400, page, "the load balancer has too few zones"),
		refuse(p, "OperationFailed.DuplicateZones.", 400, page, "a zone is given twice; the dot at the end is the cloud's", named("nlb.OperationFailed.DuplicateZones")),
		refuse(p, "OperationFailed.vSwitchNotSupportIpv6", 400, page, "the vSwitch has no IPv6"),
		refuse(p, "Mismatch.ZoneIdAndVswitchId", 400, page, "the vSwitch is not in the zone"),
		refuse(p, "Mismatch.VpcId", 400, page, "a security group or a server group is in another VPC", account),
		refuse(p, "Mismatch.vpc", 400, page, "a server is in another VPC", provoked),
		refuse(p, "Mismatch.Protocol", 400, page, "the server group has a protocol that the listener cannot use", by("CreateListener")),
		refuse(p, "Mismatch.ServerType", 400, page, "the server group does not accept servers of the type", by("AddServersToServerGroup")),
	}
}

// nlbParameters are refusals because of what a call asks for.
func nlbParameters() []Fact {
	const p = "nlb"
	page := on(pageNLB)
	return []Fact{
		refuse(p, "MissingParam.Certificate", 400, page, "a TCPSSL listener needs a certificate", by("CreateListener")),
		refuse(p, "MissingParam.CaCertificate", 400, assumed(noSource), "mutual authentication needs the certificate of an authority", by("CreateListener")),
		refuse(p, "MissingParam.AlpnPolicy", 400, assumed(noSource), "ALPN needs a policy", by("CreateListener")),
		refuse(p, "MissingParam.IP", 400, page, "the server needs an address", by("AddServersToServerGroup")),
		refuse(p, "IllegalParam.IP", 400, page, "the address of a server is public", by("AddServersToServerGroup")),
		refuse(p, "IllegalParam.PreserveClientIpSwitch", 400, page, "the server group or the listener cannot preserve client addresses"),
		refuse(p, "IllegalParam.AnyPortServerGroupConflictWithHealthCheckConfig", 400, page, "a group for any port needs a port for its health check", by("CreateServerGroup")),
		refuse(p, "IllegalParam.AnyPortListenerConflictWithNonAnyPortServerGroup", 400, page, "a range of ports needs a group for any port", by("CreateListener")),
		refuse(p, "IllegalParam.NonAnyPortListenerConflictWithAnyPortServerGroup", 400, page, "one port needs a group with ports", by("CreateListener")),
		refuse(p, "IllegalParam.RSPortConflictWithServerGroup", 400, page, "the port of a server does not fit the group", by("AddServersToServerGroup")),
		refuse(p, "IlleagalParam.healthCheckUrl", 400, page, "the path of a health check starts with a slash; the misspelling is the cloud's"),
		refuse(p, "IllegalParam.ServerGroupName", 400, page, "a name has 2 to 128 characters"),
		refuse(p, "IllegalParam.Scheduler", 400, assumed(noSource), "qch needs a UDP group"),
		refuse(p, "IllegalParam.healthCheckType", 400, assumed(noSource), "only a UDP group is checked by UDP"),
		refuse(p, "IllegalParam.healthCheckInterval", 400, assumed(noSource), "the interval of a UDP check is at least its timeout, and at most 50 s in groups that are not UDP"),
		refuse(p, "IllegalParam.Port", 400, page, "a range needs StartPort below EndPort"),
		refuse(p, "IllegalParam.IdleTimeout", 400, page, "a UDP listener takes 10 to 20 seconds"),
		refuse(p, "IllegalParam.ProxyProtocolV2Config", 400, assumed(noSource), "the configuration is not a JSON object"),
		refuse(p, "IllegalParam.PrivateIPv4Address", 400, page, "the address is not one of the vSwitch"),
		refuse(p, "IllegalParam.AllocationId", 400, assumed(noSource), "an intranet load balancer does not accept an elastic IP address"),
		refuse(p, "IllegalParam.Protocol", 400, page, "a server group has the protocol TCP, UDP or TCP_UDP", by("CreateServerGroup"), account),
		refuse(p, "OperationDenied.OnlyPayByTrafficSupported", 400, page, "the elastic IP address is not billed by traffic"),
		refuse(p, "OperationDenied.DeletionProtectionEnabled", 400, page, "the load balancer is protected from deletion", by("DeleteLoadBalancer")),
		refuse(p, "OperationDenied.NonDualStackInstance", 400, page, "the load balancer has no IPv6"),
		refuse(p, "OperationDenied.AddressTypeNotChanged", 400, page, "the load balancer already has the address type"),
		refuse(p, "OperationDenied.ZoneVSwitchChanged", 400, page, "the vSwitch of a zone cannot change"),
		refuse(p, "OperationDenied.ProtectedPrivateIPv4AddressChanged", 400, page, "the address in a zone cannot change"),
		refuse(p, "OperationDenied.InternalLoadBalancer", 400, assumed(noSource), "an intranet load balancer does not accept a bandwidth package"),
		refuse(p, "OperationDenied.ServiceLinkedRoleNotExist", 400, on(pageNLB), "the account has no service-linked role for NLB", by("CreateLoadBalancer"), provoked),
		refuse(p, "OperationDenied.LoadBalancerLocked", 400, assumed("the locks are documented, the code is not"), "the load balancer is locked", provoked),
	}
}
