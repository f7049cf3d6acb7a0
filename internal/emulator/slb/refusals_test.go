package slb_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/slb"
)

// The beginnings of stories.
const (
	clb      = "CreateLoadBalancer > lb=LoadBalancerId\n"
	private  = "CreateLoadBalancer AddressType=intranet VSwitchId=vsw-a > lb=LoadBalancerId\n"
	group    = clb + "CreateVServerGroup LoadBalancerId=$lb > group=VServerGroupId\nwait 1s\n"
	listener = group + "CreateLoadBalancerTCPListener LoadBalancerId=$lb ListenerPort=80 VServerGroupId=$group\nwait 1s\n"
	secure   = group +
		"CreateLoadBalancerHTTPSListener LoadBalancerId=$lb ListenerPort=443 VServerGroupId=$group ServerCertificateId=cert-1\nwait 1s\n"
	list = "CreateAccessControlList AclName=office > acl=AclId\n"

	add     = "AddVServerGroupBackendServers VServerGroupId=$group BackendServers="
	onPort  = " LoadBalancerId=$lb ListenerPort=80"
	forward = " LoadBalancerId=$lb BackendServerPort=30080 ListenerPort="
	admits  = " AclStatus=on AclType=white AclId=$acl"
)

// backends is the value of BackendServers, of instances or of JSON objects.
func backends(items ...string) string {
	objects := make([]string, len(items))
	for i, item := range items {
		if objects[i] = item; !strings.HasPrefix(item, "{") {
			objects[i] = fmt.Sprintf(`{"ServerId":%q,"Port":30080}`, item)
		}
	}
	return "[" + strings.Join(objects, ",") + "]\n"
}

// withInstances has three instances, the last of which is stopped, and a certificate.
func withInstances(changes ...func(*cloud.Config)) func(*cloud.Config) {
	return func(c *cloud.Config) {
		for _, id := range []string{"i-1", "i-2", "i-3"} {
			c.Instances = append(c.Instances, cloud.InstanceConfig{ID: id, VSwitchID: "vsw-a"})
		}
		c.Instances[2].Status = cloud.Stopped
		c.Certificates = []cloud.CertificateConfig{{ID: "cert-1"}, {ID: "cert-2"}}
		for _, change := range changes {
			change(c)
		}
	}
}

func quota(change func(*cloud.Limits)) func(*cloud.Config) {
	return withInstances(func(c *cloud.Config) { change(&c.Quotas) })
}

// TestRefusals: what the emulated CLB refuses, and with which code.
func TestRefusals(t *testing.T) {
	t.Parallel()
	story := emulatortest.Story
	elsewhere := map[string]string{
		"ActionNotAllowed":                       "only a person locks a load balancer",
		"VSwitchAvailableIpNotExist":             "a vSwitch has more addresses than a story can take",
		"CertificateNotMatchPrivateKey":          "needs a pair of keys: internal/emulator tests it",
		"InvalidBackendServers.ServerIpConflict": "needs the id of an instance's network interface, which no answer of CLB has",
		"VServerGroupProcessing":                 "the second in turn of those that say that a group is busy",
		"OperationBusy":                          "the third in turn",
		"SystemBusy":                             "the fourth in turn",
		"VpcSystemBusy":                          "the fourth in turn of those that say that a listener is busy",
	}
	emulatortest.CheckRefusals(t, emulatortest.Products{slb.Product}, elsewhere,
		story("a CLB that is not there", "DeleteLoadBalancer LoadBalancerId=lb-9", "InvalidLoadBalancerId.NotFound"),
		story("no id", "DeleteLoadBalancer", "MissingParameter"),
		story("more CLBs than the account may have", clb+clb, "ORDER.QUOTA_EXCEEDED", quota(func(l *cloud.Limits) { l.LoadBalancers = 1 })),
		story("a token with other parameters",
			"CreateLoadBalancer ClientToken=t LoadBalancerName=a\nCreateLoadBalancer ClientToken=t LoadBalancerName=b", "LX_REQUEST_TOKEN_CONFLICT"),
		story("pay by specification where it is no longer sold", "CreateLoadBalancer LoadBalancerSpec=slb.s1.small", "ShareSlbHaltSales",
			func(c *cloud.Config) { c.SpecSalesEnded = true }),
		story("an intranet CLB without a vSwitch", "CreateLoadBalancer AddressType=intranet", "MissingParameter"),
		story("a vSwitch that is not there", "CreateLoadBalancer AddressType=intranet VSwitchId=vsw-9", "InvalidVSwitchId.NotFound"),
		story("a vSwitch of another VPC", "CreateLoadBalancer AddressType=intranet VSwitchId=vsw-a VpcId=vpc-9", "InvalidParameter"),
		story("a zone that is not there", "CreateLoadBalancer MasterZoneId=cn-hangzhou-z", "InvalidParameter"),
		story("charged by bandwidth on the intranet",
			"CreateLoadBalancer AddressType=intranet VSwitchId=vsw-a InternetChargeType=paybybandwidth", "InvalidParameter"),
		story("delete protection", "CreateLoadBalancer DeleteProtection=on > lb=LoadBalancerId\nDeleteLoadBalancer LoadBalancerId=$lb",
			"OperationDenied.DeleteProtectionIsOn"),
		story("a subscription", "CreateLoadBalancer PayType=PrePay > lb=LoadBalancerId\nDeleteLoadBalancer LoadBalancerId=$lb",
			"InvalidChargeType"),
		story("a specification of a CLB that is paid by use",
			clb+"ModifyLoadBalancerInstanceSpec LoadBalancerId=$lb LoadBalancerSpec=slb.s1.small", "OperationDenied.PayByCLCU"),
		story("back to pay by specification", clb+"ModifyLoadBalancerInstanceChargeType LoadBalancerId=$lb InstanceChargeType=PayBySpec",
			"Operation.NotAllowed"),
		story("from pay by specification to use",
			"CreateLoadBalancer LoadBalancerSpec=slb.s1.small > lb=LoadBalancerId\nModifyLoadBalancerInstanceChargeType LoadBalancerId=$lb "+
				"InstanceChargeType=PayByCLCU", ""),
		story("bandwidth of an intranet CLB", private+"ModifyLoadBalancerInternetSpec LoadBalancerId=$lb Bandwidth=5", "InvalidParameter"),
		story("tags of a CLB that is not there", "TagResources ResourceType=instance ResourceId.1=lb-9 Tag.1.Key=k",
			"InvalidLoadBalancerId.NotFound"),
		story("tags of a list that is not there", "TagResources ResourceType=acl ResourceId.1=acl-9 Tag.1.Key=k", "InvalidResourceId.NotFound"),
		story("more tags than a resource may have", manyTags(cloud.MaxTags+1), "TooManyTags"),

		story("a port that has a listener", listener+"CreateLoadBalancerHTTPListener"+forward+"80", "ListenerAlreadyExists"),
		story("a port of UDP beside one of TCP", listener+"CreateLoadBalancerUDPListener"+forward+"80", ""),
		story("more listeners than a CLB may have", listener+"CreateLoadBalancerTCPListener"+forward+"81", "ListenerNumberOverLimit",
			quota(func(l *cloud.Limits) { l.ListenersPerLB = 1 })),
		story("a listener right after another one", clb+"CreateLoadBalancerTCPListener"+forward+"80\nCreateLoadBalancerTCPListener"+forward+"81",
			"ListenerProcessing"),
		story("a TCP listener on a group that is not there", clb+"CreateLoadBalancerTCPListener VServerGroupId=rsp-9"+onPort,
			"ResourceNotFound.VServerGroup"),
		story("a UDP listener on a group that is not there", clb+"CreateLoadBalancerUDPListener VServerGroupId=rsp-9"+onPort, "InvalidParameter"),
		story("a listener without backend servers", clb+"CreateLoadBalancerTCPListener"+onPort, "MissingParameter"),
		story("HTTPS without a certificate", clb+"CreateLoadBalancerHTTPSListener"+forward+"443", "MissingParameter"),
		story("a certificate that is not there", clb+"CreateLoadBalancerHTTPSListener ServerCertificateId=cert-9"+forward+"443",
			"CertificateNotExist"),
		story("a listener that is not there", clb+"StartLoadBalancerListener"+onPort, "ListenerNotFound"),
		story("a listener that runs is started", listener+"StartLoadBalancerListener"+onPort+"\nwait 1s\nStartLoadBalancerListener"+onPort,
			"OperationFailed.ListenerStatusNotSupport"),
		story("a listener that is stopped is stopped", listener+"StopLoadBalancerListener"+onPort, "OperationFailed.ListenerStatusNotSupport"),
		story("a listener that is stopping", listener+"StartLoadBalancerListener"+onPort+"\nwait 1s\nStopLoadBalancerListener"+
			onPort+"\nDeleteLoadBalancerListener"+onPort, "ServiceIsStopping"),
		story("a listener right after a change", listener+"SetLoadBalancerTCPListenerAttribute Description=a"+
			onPort+"\nDeleteLoadBalancerListener"+onPort, "ServiceIsConfiguring"),
		story("a listener of an inactive CLB",
			listener+"SetLoadBalancerStatus LoadBalancerId=$lb LoadBalancerStatus=inactive\nStartLoadBalancerListener"+onPort, "LbStatusNotSupport"),
		story("a listener starts, stops and goes", listener+"StartLoadBalancerListener"+onPort+"\nwait 1s\nStopLoadBalancerListener"+
			onPort+"\nwait 1s\nDeleteLoadBalancerListener"+onPort, ""),

		story("a group that is not there", "DeleteVServerGroup VServerGroupId=rsp-9", "InvalidParameter"),
		story("more groups than a CLB may have", group+"CreateVServerGroup LoadBalancerId=$lb", "OverQuota",
			quota(func(l *cloud.Limits) { l.GroupsPerLB = 1 })),
		story("a group right after a change", group+add+backends("i-1")+add+backends("i-2"), "BackendServer.configuring", withInstances()),
		story("a group that is deleted right after a change", group+add+backends("i-1")+"DeleteVServerGroup VServerGroupId=$group",
			"OperationFailed.ServiceGroupProcessing", withInstances()),
		story("a group that a listener uses", listener+"DeleteVServerGroup VServerGroupId=$group", "RspoolVipExist"),
		story("a group that a listener has just left", listener+"DeleteLoadBalancerListener"+onPort+"\nDeleteVServerGroup VServerGroupId=$group",
			"RspoolVipExist"),
		story("a group that a listener has left", listener+"DeleteLoadBalancerListener"+
			onPort+"\nwait 1s\nDeleteVServerGroup VServerGroupId=$group", ""),
		story("more backend servers than a call takes", group+add+backends("i-1", "i-2"), "TooManyBackendServers",
			quota(func(l *cloud.Limits) { l.BackendsPerCall = 1 })),
		story("more backend servers than a CLB may have", group+add+backends("i-1", "i-2"), "InstanceBackendServerNumberOverLimit",
			quota(func(l *cloud.Limits) { l.BackendsPerLB = 1 })),
		story("more backend servers than a group may have", group+add+backends("i-1", "i-2"), "InstanceBackendServerNumberOverLimit",
			quota(func(l *cloud.Limits) { l.BackendsPerGroup = 1 })),
		story("the same backend server twice counts once", group+add+backends("i-1", "i-1"), "",
			quota(func(l *cloud.Limits) { l.BackendsPerLB = 1 })),
		story("an instance that is not there", group+add+backends("i-9"), "InvalidServerId.NotExist"),
		story("an instance that is stopped", group+add+backends("i-3"), "ObtainIpFail", withInstances()),
		story("an instance of another VPC", private+"CreateVServerGroup LoadBalancerId=$lb BackendServers="+backends("i-1"), "NetworkConflict",
			func(c *cloud.Config) {
				c.VPCs = append(c.VPCs, cloud.VPCConfig{ID: "vpc-2", CIDR: "192.168.0.0/16"})
				c.RouteTables = append(c.RouteTables, cloud.RouteTableConfig{ID: "vtb-2", VPCID: "vpc-2"})
				c.VSwitches = append(c.VSwitches, cloud.VSwitchConfig{ID: "vsw-2", VPCID: "vpc-2", Zone: "cn-hangzhou-a", CIDR: "192.168.1.0/24"})
				c.Instances = []cloud.InstanceConfig{{ID: "i-1", VSwitchID: "vsw-2"}}
			}),
		story("an instance behind as many CLBs as it may be", group+add+backends("i-1")+group+add+backends("i-1"),
			"QuotaExceeded.AttachedLoadBalancers", quota(func(l *cloud.Limits) { l.LBsPerInstance = 1 })),
		story("a network interface that is not there", group+add+backends(`{"ServerId":"eni-9","Port":80,"Type":"eni"}`),
			"ResourceNotFound.vServers"),
		story("a backend server without a port", group+add+backends(`{"ServerId":"i-1"}`), "InvalidParameter", withInstances()),
		story("a weight that is too large", group+add+backends(`{"ServerId":"i-1","Port":80,"Weight":101}`), "InvalidParameter", withInstances()),
		story("a weight of one that is not in the group", group+"SetVServerGroupAttribute VServerGroupId=$group BackendServers="+backends("i-1"),
			"InvalidServerId.NotExist", withInstances()),
		story("one that is not in the group leaves it", group+"RemoveVServerGroupBackendServers VServerGroupId=$group BackendServers="+
			backends("i-1"), "", withInstances()),

		story("a list that is not there", "DeleteAccessControlList AclId=acl-9", "AclNotExist"),
		story("more lists than the account may have", list+list, "QuotaLimitExceeds.AclNumber", quota(func(l *cloud.Limits) { l.ACLs = 1 })),
		story("an entry of IPv6 in a list of IPv4", list+entries("2001:db8::/32"), "IllegalEntry"),
		story("an entry that the list has", list+entries("10.0.0.0/8")+entries("10.0.0.0/8"), "InvalidParam.AclEntryExists"),
		story("more entries than a list may have", list+entries("10.0.0.0/8", "192.0.2.0/24"), "QuotaLimitExceeds.TotalAclEntry",
			quota(func(l *cloud.Limits) { l.ACLEntries = 1 })),
		story("more entries than a call takes", list+entries("10.0.0.0/8", "192.0.2.0/24"), "InvalidParameter",
			quota(func(l *cloud.Limits) { l.ACLEntriesPerCall = 1 })),
		story("an entry that is no block", list+entries("office"), "InvalidParameter"),
		story("a list that a listener uses", clb+list+"CreateLoadBalancerTCPListener"+admits+forward+"80\nDeleteAccessControlList AclId=$acl",
			"OperationFailed.AclBindedWithVip"),
		story("a list of another IP version",
			clb+"CreateAccessControlList AclName=office AddressIPVersion=ipv6 > acl=AclId\nCreateLoadBalancerTCPListener"+admits+forward+"80",
			"IpVersionConflict"),
		story("a list on as many listeners as it may be", clb+list+"CreateLoadBalancerTCPListener"+
			admits+forward+"80\nwait 1s\nCreateLoadBalancerTCPListener"+admits+forward+"81",
			"QuotaLimitExceeds.AclAttachedToListener", quota(func(l *cloud.Limits) { l.ListenersPerACL = 1 })),
		story("access control without a list", clb+"CreateLoadBalancerTCPListener AclStatus=on AclType=white"+forward+"80", "MissingParameter"),

		story("a domain twice", secure+extension("a.example")+extension("a.example"), "DomainExtensionAlreadyExists", withInstances()),
		story("more domains than a listener may have", secure+extension("a.example")+extension("b.example"), "DomainExtensionNumberOverLimit",
			quota(func(l *cloud.Limits) { l.DomainExtensions = 1 })),
		story("a domain with a certificate that is not there", secure+strings.Replace(extension("a.example"), "cert-2", "cert-9", 1),
			"InvalidParameter.ServerCertificateId", withInstances()),
		story("a domain of a listener that is not HTTPS", listener+extension("a.example"), "ListenerNotFound", withInstances()),
		story("a domain that is not there", "DeleteDomainExtension DomainExtensionId=de-9", "InvalidParameter.DomainExtensionId"),
		story("a certificate of a listener", secure+"DeleteServerCertificate ServerCertificateId=cert-1", "CertificateAndPrivateKeyIsRefered",
			withInstances()),
		story("a certificate of a domain", secure+extension("a.example")+"DeleteServerCertificate ServerCertificateId=cert-2",
			"CertificateRelatedDomainExtensionExist", withInstances()),
	)
}

func manyTags(n int) string {
	var story strings.Builder
	story.WriteString(clb)
	for i := range n {
		fmt.Fprintf(&story, "TagResources ResourceType=instance ResourceId.1=$lb Tag.1.Key=k%d\n", i)
	}
	return story.String()
}

func entries(blocks ...string) string {
	objects := make([]string, len(blocks))
	for i, block := range blocks {
		objects[i] = fmt.Sprintf(`{"entry":%q}`, block)
	}
	return "AddAccessControlListEntry AclId=$acl AclEntrys=[" + strings.Join(objects, ",") + "]\n"
}

func extension(domain string) string {
	return "CreateDomainExtension LoadBalancerId=$lb ListenerPort=443 ServerCertificateId=cert-2 Domain=" + domain + "\n"
}
