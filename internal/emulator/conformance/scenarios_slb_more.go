package conformance

import (
	"fmt"
	"strconv"
)

func slbMoreScenarios() []Scenario {
	return []Scenario{
		{Name: "slb/listeners", Product: "slb", run: slbListeners},
		{Name: "slb/listeners of every protocol", Product: "slb", run: slbProtocols},
		{Name: "slb/certificates", Product: "slb", run: slbCertificates},
		{Name: "slb/access control", Product: "slb", run: slbAccess},
	}
}

func slbListeners(r *R) {
	lb := r.balancer()
	group := r.vServerGroup(lb)
	key := P{"LoadBalancerId": lb, "ListenerPort": "80"}
	r.do("slb", "DescribeLoadBalancerTCPListenerAttribute", key, refused("slb.ListenerNotFound"))
	p := r.listener(lb, 80, group)
	p["HealthCheckSwitch"] = "off"
	r.do("slb", "CreateLoadBalancerTCPListener", p)
	r.do("slb", "DescribeLoadBalancerTCPListenerAttribute", key, shows("slb.listener-created-stopped", "Status", "stopped"))
	r.do("slb", "CreateLoadBalancerTCPListener", p, refused("slb.ListenerAlreadyExists"))
	r.do("slb", "StopLoadBalancerListener", key, refused("slb.OperationFailed.ListenerStatusNotSupport"))
	r.do("slb", "AddVServerGroupBackendServers", P{"VServerGroupId": group, "BackendServers": r.servers(1)})
	r.do("slb", "StartLoadBalancerListener", key)
	r.do("slb", "DescribeLoadBalancerTCPListenerAttribute", key, until("", "Status", "running"))
	r.do("slb", "DescribeHealthStatus", key,
		shows("slb.unchecked-unavailable", "BackendServers.BackendServer.0.ServerHealthStatus", "unavailable"))
	r.do("slb", "DescribeLoadBalancerListeners", P{"LoadBalancerId.1": lb, "MaxResults": "50"}, shows("", "Listeners.#", 1))
	r.do("slb", "StopLoadBalancerListener", key)
	r.do("slb", "DescribeLoadBalancerTCPListenerAttribute", key, until("", "Status", "stopped"))
}

func slbProtocols(r *R) {
	lb := r.balancer()
	group := r.vServerGroup(lb)
	for i, protocol := range []string{"UDP", "HTTP"} {
		p := r.listener(lb, 80+i, group)
		key := P{"LoadBalancerId": lb, "ListenerPort": strconv.Itoa(80 + i)}
		if protocol == "HTTP" {
			p["HealthCheck"], p["StickySession"] = "off", "off"
		}
		r.do("slb", "CreateLoadBalancer"+protocol+"Listener", p)
		read := "DescribeLoadBalancer" + protocol + "ListenerAttribute"
		if protocol == "HTTP" {
			r.do("slb", read, key, shows("slb.forward-off", "ListenerForward", "off"))
		} else {
			r.do("slb", read, key)
		}
		set := P{"LoadBalancerId": lb, "ListenerPort": strconv.Itoa(80 + i), "Description": "conformance"}
		r.do("slb", "SetLoadBalancer"+protocol+"ListenerAttribute", set)
	}
	r.do("slb", "CreateLoadBalancerTCPListener", r.listener(lb, 90, group))
	r.do("slb", "SetLoadBalancerTCPListenerAttribute", P{"LoadBalancerId": lb, "ListenerPort": "90", "Scheduler": "wlc"})
}

func slbCertificates(r *R) {
	p := P{"ServerCertificateName": "conformance", "ServerCertificate": ownCertificate, "PrivateKey": ownKey}
	certificate := text(r.do("slb", "UploadServerCertificate", p), "ServerCertificateId")
	second := text(r.do("slb", "UploadServerCertificate", p), "ServerCertificateId")
	p["PrivateKey"] = otherKey
	r.do("slb", "UploadServerCertificate", p, refused("slb.CertificateNotMatchPrivateKey"))
	r.do("slb", "DescribeServerCertificates", P{"ServerCertificateId": certificate}, shows("", "ServerCertificates.ServerCertificate.#", 1))
	r.do("slb", "DescribeCACertificates", nil)
	lb := r.balancer()
	key := P{"LoadBalancerId": lb, "ListenerPort": "443"}
	https := r.listener(lb, 443, r.vServerGroup(lb))
	https["HealthCheck"], https["StickySession"], https["ServerCertificateId"] = "off", "off", "cert-conformance-absent"
	r.do("slb", "CreateLoadBalancerHTTPSListener", https, refused("slb.CertificateNotExist"))
	https["ServerCertificateId"] = certificate
	r.do("slb", "CreateLoadBalancerHTTPSListener", https)
	r.do("slb", "SetLoadBalancerHTTPSListenerAttribute", P{"LoadBalancerId": lb, "ListenerPort": "443", "EnableHttp2": "off"})
	domain := func(name string) P {
		return P{"LoadBalancerId": lb, "ListenerPort": "443", "Domain": name, "ServerCertificateId": certificate}
	}
	extension := text(r.do("slb", "CreateDomainExtension", domain("a.example.com")), "DomainExtensionId")
	r.do("slb", "DeleteServerCertificate", P{"ServerCertificateId": certificate}, refused("slb.CertificateAndPrivateKeyIsRefered"))
	r.do("slb", "CreateDomainExtension", domain("a.example.com"), refused("slb.DomainExtensionAlreadyExists"))
	for _, name := range []string{"b.example.com", "c.example.com"} {
		r.do("slb", "CreateDomainExtension", domain(name))
	}
	r.do("slb", "CreateDomainExtension", domain("d.example.com"), refused("slb.DomainExtensionNumberOverLimit"))
	r.do("slb", "DescribeLoadBalancerHTTPSListenerAttribute", key, shows("", "DomainExtensions.DomainExtension.#", 3))
	r.do("slb", "DescribeDomainExtensions", key, shows("", "DomainExtensions.DomainExtension.#", 3))
	r.do("slb", "SetDomainExtensionAttribute", P{"DomainExtensionId": extension, "ServerCertificateId": certificate})
	r.do("slb", "SetDomainExtensionAttribute", P{"DomainExtensionId": extension, "ServerCertificateId": second})
	r.do("slb", "DeleteServerCertificate", P{"ServerCertificateId": second}, refused("slb.CertificateRelatedDomainExtensionExist"))
	absent := P{"DomainExtensionId": extension, "ServerCertificateId": "cert-conformance-absent"}
	r.do("slb", "SetDomainExtensionAttribute", absent, refused("slb.InvalidParameter.ServerCertificateId"))
	r.do("slb", "DeleteDomainExtension", P{"DomainExtensionId": extension})
	r.do("slb", "DeleteDomainExtension", P{"DomainExtensionId": extension}, refused("slb.InvalidParameter.DomainExtensionId"))
	r.do("slb", "DeleteLoadBalancer", P{"LoadBalancerId": lb})
	r.do("slb", "DeleteServerCertificate", P{"ServerCertificateId": certificate})
	r.do("slb", "DeleteServerCertificate", P{"ServerCertificateId": second})
}

func slbAccess(r *R) {
	create := func(version string) string {
		return text(r.do("slb", "CreateAccessControlList", P{"AclName": "conformance", "AddressIPVersion": version}), "AclId")
	}
	acl, second, six := create("ipv4"), create("ipv4"), create("ipv6")
	r.do("slb", "AddAccessControlListEntry", P{"AclId": acl, "AclEntrys": `[{"entry":"192.0.2.0/24","comment":"conformance"}]`})
	r.do("slb", "AddAccessControlListEntry", P{"AclId": acl, "AclEntrys": `[{"entry":"192.0.2.0/24"}]`},
		refused("slb.InvalidParam.AclEntryExists"))
	r.do("slb", "AddAccessControlListEntry", P{"AclId": six, "AclEntrys": `[{"entry":"192.0.2.0/24"}]`}, refused("slb.IllegalEntry"))
	r.do("slb", "DescribeAccessControlListAttribute", P{"AclId": acl}, shows("", "AclEntrys.AclEntry.#", 1))
	r.do("slb", "DescribeAccessControlListAttribute", P{"AclId": "acl-conformance0absent"}, refused("slb.AclNotExist"))
	r.do("slb", "DescribeAccessControlLists", P{"AclName": "conformance"})
	lb := r.balancer()
	p := r.listener(lb, 80, r.vServerGroup(lb))
	p["AclStatus"], p["AclType"], p["AclId"] = "on", "white", six
	r.do("slb", "CreateLoadBalancerTCPListener", p, refused("slb.IpVersionConflict"))
	p["AclId"] = acl + "," + second
	r.do("slb", "CreateLoadBalancerTCPListener", p)
	r.do("slb", "DescribeLoadBalancerListeners", P{"LoadBalancerId.1": lb}, shows("slb.several-acls", "Listeners.0.AclId", ""),
		shows("slb.several-acls", "Listeners.0.AclIds.#", 2))
	r.do("slb", "DeleteAccessControlList", P{"AclId": acl}, refused("slb.OperationFailed.AclBindedWithVip"))
	r.do("slb", "RemoveAccessControlListEntry", P{"AclId": acl, "AclEntrys": fmt.Sprintf(`[{"entry":%q}]`, "192.0.2.0/24")})
	r.do("slb", "DeleteLoadBalancer", P{"LoadBalancerId": lb})
	r.do("slb", "DeleteAccessControlList", P{"AclId": acl})
}
