package facts

import "slices"

func slb() []Fact { return slices.Concat(slbBehavior(), slbRefusals(), slbAccessRefusals()) }

func slbBehavior() []Fact {
	const p = "slb"
	return []Fact{
		behave(p, "created-active", on(pageSLB), "a new load balancer is active at once", by("CreateLoadBalancer")),
		behave(p, "listener-created-stopped", on(pageCLBListener), "a new listener is stopped until it is started", by("CreateLoadBalancerTCPListener")),
		behave(p, "list-charge-code", code(codeCCM), "DescribeLoadBalancers has the charge type as a number in InternetChargeType, and in words in InternetChargeTypeAlias", by("DescribeLoadBalancers")),
		behave(p, "misspelled-ports", on(pageSLB), "DescribeLoadBalancerAttribute has the listeners twice, once as ListenerPortsAndProtocal", by("DescribeLoadBalancerAttribute")),
		behave(p, "charge-type-at-midnight", on(pageCLBInternet), "a new internet charge type comes into force at midnight, a new bandwidth at once", by("ModifyLoadBalancerInternetSpec")),
		behave(p, "tags-any", assumed("a comment of the official CCM"), "several Tags in one search of load balancers find those with one of them", by("DescribeLoadBalancers")),
		behave(p, "default-page", assumed(noSource), "DescribeLoadBalancers without PageSize returns 50 load balancers", by("DescribeLoadBalancers")),
		behave(p, "absent-server-ignored", on(pageCLBRemove), "removing a backend server that is not in the group succeeds", by("RemoveVServerGroupBackendServers")),
		behave(p, "set-keeps-servers", on(pageCLBSet), "SetVServerGroupAttribute without BackendServers keeps them", by("SetVServerGroupAttribute")),
		behave(p, "default-weight", on(pageCLBServers), "a backend server without Weight gets 100", by("AddVServerGroupBackendServers")),
		behave(p, "several-acls", assumed(noSource), "AclId is empty for a listener with several access control lists; AclIds has all", by("DescribeLoadBalancerListeners"), with(`{"severalAcls":"joined"}`)),
		behave(p, "spec-sold", assumed("a page says that sales ended in 2025; not how the API refuses"), "new load balancers can be billed by specification", by("CreateLoadBalancer"), with(`{"specSalesEnded":true}`)),
		behave(p, "usage-by-bandwidth", assumed("the page of CreateLoadBalancer says otherwise"), "a load balancer that is billed by usage can be charged by bandwidth", by("CreateLoadBalancer", "ModifyLoadBalancerInternetSpec"), with(`{"usageByTrafficOnly":true}`)),
		behave(p, "intranet-by-traffic", assumed("the page of error codes refuses the change of an existing one, with ActionNotAllowed"), "an intranet load balancer cannot be charged by bandwidth", by("CreateLoadBalancer")),
		behave(p, "ipv6-needs-range", assumed(noSource), "an intranet load balancer with IPv6 needs a vSwitch with an IPv6 range", by("CreateLoadBalancer")),
		behave(p, "tag-search-current", assumed(noSource), "searches by tag find a load balancer as soon as it is created", by("DescribeLoadBalancers", "ListTagResources"), with(`{"tagSearchLag":"1h"}`)),
		behave(p, "reads-current", assumed(noSource), "reads find a load balancer as soon as it is created", by("DescribeLoadBalancerAttribute"), with(`{"replicaLag":"1h"}`)),
		behave(p, "unchecked-unavailable", on(pageCLBHealth), "the health of a backend server is unavailable where no check is configured", by("DescribeHealthStatus")),
		behave(p, "forward-off", code(codeCCM), "an HTTP listener that does not redirect has ListenerForward off", by("DescribeLoadBalancerHTTPListenerAttribute")),
		behave(p, "servers-per-call-40", assumed("the pages say 20, the official CCM sends 40"), "one call accepts 40 backend servers", by("AddVServerGroupBackendServers"), with(`{"quotas":{"backendsPerCall":20}}`)),
		behave(p, "groups-without-quota", assumed("the page of limits names none, "+pageCLBLimits), "a load balancer can have any number of vServer groups", by("CreateVServerGroup"), account, with(`{"quotas":{"serverGroupsPerLoadBalancer":50}}`)),
		behave(p, "group-servers-without-quota", assumed("the page of limits names the 200 backend servers of a load balancer, and none for a group, "+pageCLBLimits), "a vServer group has no quota of backend servers beside that of its load balancer, which counts those of all its groups", by("AddVServerGroupBackendServers"), account, with(`{"quotas":{"backendsPerServerGroup":200}}`)),
		behave(p, "long-descriptions", assumed("the pages say 80 characters, the official CCM sends more"), "the description of a backend server can have 256 characters", by("AddVServerGroupBackendServers"), with(`{"quotas":{"nameCharacters":80}}`)),
		behave(p, "keys-any-case", code(codeCCM), "the keys of BackendServers are read in upper and lower case, and numbers also in quotes", by("AddVServerGroupBackendServers")),
		behave(p, "released-server-stays", assumed(noSource), "a backend server whose instance is released stays in its group", by("DescribeVServerGroupAttribute")),
	}
}

func slbRefusals() []Fact {
	const p = "slb"
	errors := on(pageCLBErrors)
	return []Fact{
		refuse(p, "InvalidLoadBalancerId.NotFound", 404, errors, "the load balancer does not exist"),
		refuse(p, "InvalidParameter", 404, errors, "the vServer group does not exist; the status differs from that of other invalid parameters", named("slb.group-not-found"), as("ResourceNotFound.VServerGroup")),
		refuse(p, "ResourceNotFound.VServerGroup", 400, on(pageCLBListener), "the vServer group of a new TCP listener does not exist", by("CreateLoadBalancerTCPListener")),
		refuse(p, "ListenerNotFound", 404, errors, "the listener does not exist"),
		refuse(p, "CheckedListenerNotFound", 404, errors, "the listener does not exist", provoked),
		refuse(p, "ListenerAlreadyExists", 400, errors, "the port already has a listener of the same protocol family"),
		refuse(p, "ListenerNumberOverLimit", 400, errors, "the load balancer has reached its quota of listeners", account),
		refuse(p, "VipTooManyListeners", 400, errors, "the load balancer has reached its quota of listeners", provoked),
		refuse(p, "ListenerProcessing", 400, on(pageCLBListener), "the listener created before is pending", provoked, transient),
		refuse(p, "OperationFailed.ListenerStatusNotSupport", 400, code(codeTerraform), "the listener is not stopped, or not running", by("StartLoadBalancerListener", "StopLoadBalancerListener"), transient),
		refuse(p, "ServiceIsStopping", 409, errors, "the listener is stopping", provoked, transient),
		refuse(p, "ServiceIsConfiguring", 400, errors, "the listener is being configured", provoked, transient),
		refuse(p, "BackendServer.configuring", 409, errors, "an earlier change of the backend servers is in progress", provoked, transient),
		refuse(p, "VServerGroupProcessing", 400, errors, "an earlier change of the vServer group is in progress", provoked, transient),
		refuse(p, "OperationFailed.ServiceGroupProcessing", 400, on(pageCLBServers), "an earlier change of the vServer group is in progress", provoked, transient),
		refuse(p, "OperationBusy", 400, errors, "another operation is in progress", provoked, transient),
		refuse(p, "ProcessingSameRequest", 400, errors, "the first call with the ClientToken is still in progress", provoked, transient),
		refuse(p, "SystemBusy", 449, errors, "the system is busy", provoked, transient),
		refuse(p, "VpcSystemBusy", 400, on(pageCLBServers), "the network is busy", provoked, transient),
		refuse(p, "RspoolVipExist", 400, on(pageCLBGroup), "a listener uses the vServer group, or did a moment ago", by("DeleteVServerGroup"), transient),
		refuse(p, "TooManyBackendServers", 400, errors, "one call has too many backend servers", by("AddVServerGroupBackendServers")),
		refuse(p, "InstanceBackendServerNumberOverLimit", 400, code(codeCCM), "the load balancer has reached its quota of backend servers", account),
		refuse(p, "ObtainIpFail", 400, errors, "the instance of a backend server does not run"),
		refuse(p, "InvalidServerId.NotExist", 400, on(pageCLBServers), "the instance of a backend server does not exist"),
		refuse(p, "ResourceNotFound.vServers", 404, on(pageCLBServers), "the network interface of a backend server does not exist"),
		refuse(p, "InvalidBackendServers.ServerIpConflict", 400, assumed("the page names the code for an address that is there twice"), "the address is not one of the network interface"),
		refuse(p, "NetworkConflict", 400, assumed("the page names the code for another case"), "a backend server is in another VPC than its load balancer", account, with(`{"otherVpcCode":"InvalidParameter"}`)),
		refuse(p, "QuotaExceeded.AttachedLoadBalancers", 400, assumed("the quota is published, the code is not"), "the instance has reached its quota of load balancers", account, with(`{"attachedQuotaCode":"ServerAttachedOverLimit"}`)),
		refuse(p, "VSwitchAvailableIpNotExist", 400, on(pageCCM), "the vSwitch has no free address", account),
		refuse(p, "InvalidVSwitchId.NotFound", 404, errors, "the vSwitch does not exist", by("CreateLoadBalancer")),
		refuse(p, "ShareSlbHaltSales", 400, assumed("the page names the code for shared-performance instances"), "load balancers that are billed by specification are no longer sold", account),
		refuse(p, "OperationDenied.PayByCLCU", 400, errors, "the specification of a load balancer that is billed by usage cannot change", by("ModifyLoadBalancerInstanceSpec")),
		refuse(p, "Operation.NotAllowed", 400, on(pageCLBCharge), "the charge type changes only from PayBySpec to PayByCLCU", by("ModifyLoadBalancerInstanceChargeType")),
		refuse(p, "OperationDenied.DeleteProtectionIsOn", 400, on(pageSLB), "the load balancer is protected from deletion", by("DeleteLoadBalancer")),
		refuse(p, "InvalidChargeType", 400, on(pageSLB), "a subscription cannot be deleted", by("DeleteLoadBalancer"), account),
		refuse(p, "LbStatusNotSupport", 400, on(pageCLBServers), "the load balancer is inactive or locked", by("StartLoadBalancerListener", "AddVServerGroupBackendServers")),
		refuse(p, "ActionNotAllowed", 400, errors, "the load balancer is locked", account),
		refuse(p, "ORDER.QUOTA_EXCEEDED", 400, errors, "the account has reached its quota of load balancers", account),
		refuse(p, "ORDER.QUANTITY_INVALID", 400, errors, "the account has reached its quota of load balancers", provoked),
		refuse(p, "OverQuota", 400, errors, "a quota of the account is used up", provoked),
		refuse(p, "LX_REQUEST_TOKEN_CONFLICT", 400, errors, "the ClientToken was used before with other parameters", by("CreateLoadBalancer")),
	}
}

// slbAccessRefusals are refusals about access control lists, certificates and tags.
func slbAccessRefusals() []Fact {
	const p = "slb"
	errors := on(pageCLBErrors)
	return []Fact{
		refuse(p, "AclNotExist", 400, on(pageCLBListener), "the access control list does not exist"),
		refuse(p, "IpVersionConflict", 400, on(pageCLBListener), "a load balancer has another IP version than the access control list"),
		refuse(p, "InvalidParam.AclEntryExists", 400, on(pageCLBACLEntry), "the access control list already has the entry", by("AddAccessControlListEntry")),
		refuse(p, "IllegalEntry", 400, on(pageCLBACLEntry), "the entry has another IP version than the access control list", by("AddAccessControlListEntry")),
		refuse(p, "OperationFailed.AclBindedWithVip", 400, on(pageCLBACLDelete), "a listener uses the access control list; Terraform's provider expects AclInUsed", by("DeleteAccessControlList"), as("AclInUsed")),
		refuse(p, "QuotaLimitExceeds.AclNumber", 400, assumed(noSource), "the account has reached its quota of access control lists", account),
		refuse(p, "QuotaLimitExceeds.TotalAclEntry", 400, on(pageCLBListener), "the access control list has reached its quota of entries", account),
		refuse(p, "QuotaLimitExceeds.AclAttachedToListener", 400, on(pageCLBListener), "the access control list has reached its quota of listeners", account),
		refuse(p, "CertificateNotExist", 400, assumed("the pages of domain extensions have InvalidParameter.ServerCertificateId"), "the certificate of an HTTPS listener does not exist", as("InvalidParameter.ServerCertificateId")),
		refuse(p, "CertificateAndPrivateKeyIsRefered", 400, on(pageCLBCert), "a listener has the certificate", by("DeleteServerCertificate")),
		refuse(p, "CertificateRelatedDomainExtensionExist", 400, on(pageCLBCert), "a domain extension has the certificate", by("DeleteServerCertificate")),
		refuse(p, "CertificateNotMatchPrivateKey", 400, errors, "the private key does not belong to the certificate", by("UploadServerCertificate")),
		refuse(p, "DomainExtensionAlreadyExists", 400, assumed(noSource), "the listener already has an extension for the domain", by("CreateDomainExtension")),
		refuse(p, "InvalidParameter.DomainExtensionId", 400, on(pageCLBExtension), "the domain extension does not exist", by("SetDomainExtensionAttribute", "DeleteDomainExtension")),
		refuse(p, "InvalidParameter.ServerCertificateId", 400, on(pageCLBExtension), "the certificate of a domain extension does not exist", by("CreateDomainExtension", "SetDomainExtensionAttribute")),
		refuse(p, "DomainExtensionProcessing", 400, on(pageCLBExtension), "an earlier change of the domain extension is in progress", provoked, transient),
		refuse(p, "IncorrectStatus.DomainExtension", 400, on(pageCLBExtension), "the listener of the domain extension is being configured", provoked, transient),
		refuse(p, "DomainExtensionNumberOverLimit", 400, assumed("the quota is published, the code is not"), "the listener has reached its quota of domain extensions", by("CreateDomainExtension")),
		refuse(p, "TooManyTags", 400, assumed("the quota is published; the page of error codes has TagCountLimit, for an older action"), "the resource would have more than 20 tags", by("TagResources"), as("TagCountLimit")),
		refuse(p, "InvalidResourceId.NotFound", 404, assumed(noSource), "the resource to tag does not exist", by("TagResources", "UntagResources")),
	}
}
