package nlb_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/ecs"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/nlb"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/vpc"
)

// The beginnings of stories.
const (
	zoneA  = " ZoneMappings.1.ZoneId=cn-hangzhou-a ZoneMappings.1.VSwitchId=vsw-a"
	zoneB  = " ZoneMappings.2.ZoneId=cn-hangzhou-b ZoneMappings.2.VSwitchId=vsw-b"
	begun  = "CreateLoadBalancer AddressType=Internet VpcId=vpc-emulator" + zoneA + zoneB
	keepLB = " > lb=LoadbalancerId\nwait 1m\n"
	active = begun + keepLB

	newGroup = "CreateServerGroup ServerGroupName=web VpcId=vpc-emulator"
	keepSGP  = " > group=ServerGroupId\nwait 1s\n"
	group    = newGroup + keepSGP
	both     = active + group
	tls      = newGroup + " Protocol=TCPSSL" + keepSGP + active

	newListener = "CreateListener LoadBalancerId=$lb ServerGroupId=$group "
	tcp80       = newListener + "ListenerProtocol=TCP ListenerPort=80"
	tls443      = newListener + "ListenerProtocol=TCPSSL ListenerPort=443"
	listener    = both + tcp80 + " > listener=ListenerId\nwait 1s\n"
	secure      = tls + tls443 + " CertificateIds.1=cert-1 > listener=ListenerId\nwait 1s\n"

	add       = "AddServersToServerGroup ServerGroupId=$group"
	basic     = "ecs:CreateSecurityGroup VpcId=vpc-emulator > basic=SecurityGroupId\n"
	advanced  = "ecs:CreateSecurityGroup VpcId=vpc-emulator SecurityGroupType=enterprise > advanced=SecurityGroupId\n"
	join      = "LoadBalancerJoinSecurityGroup LoadBalancerId=$lb SecurityGroupIds.1="
	byTraffic = "vpc:AllocateEipAddress InternetChargeType=PayByTraffic > eip=AllocationId\n"
	associate = "AssociateAdditionalCertificatesWithListener ListenerId=$listener AdditionalCertificateIds.1="
)

// servers are parameters for servers, each of a type, an id and a port: "Ecs i-1 80".
func servers(items ...string) string {
	var text strings.Builder
	for i, item := range items {
		fields := strings.Fields(item)
		fmt.Fprintf(&text, " Servers.%d.ServerType=%s Servers.%d.ServerId=%s Servers.%d.Port=%s", i+1, fields[0], i+1, fields[1], i+1, fields[2])
	}
	return text.String() + "\n"
}

// config has two instances and three certificates.
func config(changes ...func(*cloud.Config)) func(*cloud.Config) {
	return func(c *cloud.Config) {
		for _, id := range []string{"i-1", "i-2"} {
			c.Instances = append(c.Instances, cloud.InstanceConfig{ID: id, VSwitchID: "vsw-a"})
		}
		c.Certificates = []cloud.CertificateConfig{{ID: "cert-1"}, {ID: "cert-2"}, {ID: "cert-3"}}
		for _, change := range changes {
			change(c)
		}
	}
}

func quota(change func(*cloud.Limits)) func(*cloud.Config) {
	return config(func(c *cloud.Config) { change(&c.Quotas) })
}

// otherVPC has another VPC beside the usual one.
func otherVPC(c *cloud.Config) {
	c.VPCs = append(c.VPCs, cloud.VPCConfig{ID: "vpc-2", CIDR: "192.168.0.0/16"})
	c.RouteTables = append(c.RouteTables, cloud.RouteTableConfig{ID: "vtb-2", VPCID: "vpc-2"})
}

// TestRefusals: what the emulated NLB refuses, and with which code.
func TestRefusals(t *testing.T) {
	t.Parallel()
	story := emulatortest.Story
	const full = "QuotaExceeded.QuotaInsufficient"
	elsewhere := map[string]string{
		"OperationDenied.LoadBalancerLocked": "only a person locks a load balancer",
		"ResourceNotEnough.VSwitchIp":        "a vSwitch has more addresses than a story can take",
	}
	emulatortest.CheckRefusals(t, emulatortest.Products{nlb.Product, vpc.Product, ecs.Product}, elsewhere,
		story("an NLB that is not there", "DeleteLoadBalancer LoadBalancerId=nlb-9", "ResourceNotFound.loadBalancer"),
		story("a VPC that is not there", "CreateLoadBalancer AddressType=Internet VpcId=vpc-9"+zoneA+zoneB, "ResourceNotFound.Vpc"),
		story("one zone", "CreateLoadBalancer AddressType=Internet VpcId=vpc-emulator"+zoneA, "InvalidZones"),
		story("a zone twice", strings.ReplaceAll(begun, zoneB, strings.ReplaceAll(zoneA, ".1.", ".2.")), "OperationFailed.DuplicateZones."),
		story("a vSwitch that is not there", strings.Replace(begun, "vsw-b", "vsw-9", 1), "ResourceNotFound.VSwitch"),
		story("a vSwitch of another zone", strings.Replace(begun, "vsw-b", "vsw-a", 1), "Mismatch.ZoneIdAndVswitchId"),
		story("IPv6 in a vSwitch without it", begun+" AddressIpVersion=DualStack", "OperationFailed.vSwitchNotSupportIpv6"),
		story("an address that is taken", begun+" ZoneMappings.1.PrivateIPv4Address=10.1.0.9\n"+
			begun+" ZoneMappings.1.PrivateIPv4Address=10.1.0.9", "ResourceInUse.IP"),
		story("an address of another network", begun+" ZoneMappings.1.PrivateIPv4Address=192.0.2.1", "IllegalParam.PrivateIPv4Address"),
		story("an elastic IP address that is not there", begun+" ZoneMappings.1.AllocationId=eip-9", "ResourceNotFound.Eip"),
		story("an elastic IP address twice", byTraffic+begun+" ZoneMappings.1.AllocationId=$eip ZoneMappings.2.AllocationId=$eip",
			"DuplicatedParam.AllocationId"),
		story("an elastic IP address that is paid by bandwidth", strings.Replace(byTraffic, "PayByTraffic", "PayByBandwidth", 1)+
			begun+" ZoneMappings.1.AllocationId=$eip", "OperationDenied.OnlyPayByTrafficSupported"),
		story("an elastic IP address that another one has", byTraffic+begun+" ZoneMappings.1.AllocationId=$eip\n"+
			begun+" ZoneMappings.1.AllocationId=$eip", "ResourceAlreadyAssociated.AllocationId"),
		story("an elastic IP address of an intranet one", byTraffic+strings.Replace(begun, "Internet", "Intranet", 1)+
			" ZoneMappings.1.AllocationId=$eip", "IllegalParam.AllocationId"),
		story("more NLBs than the account may have", active+begun, full, quota(func(l *cloud.Limits) { l.NLBs = 1 })),
		story("a token with other parameters", begun+" ClientToken=t\n"+begun+" ClientToken=t LoadBalancerName=web",
			"IdempotenceSignatureMismatch"),
		story("a dry run", begun+" DryRun=true", "DryRunOperation"),
		story("one that is being created", begun+" > lb=LoadbalancerId\nUpdateLoadBalancerAttribute LoadBalancerId=$lb LoadBalancerName=web",
			"IncorrectStatus.loadbalancer"),
		story("the addresses of one that is being created", begun+" > lb=LoadbalancerId\nGetLoadBalancerAttribute LoadBalancerId=$lb",
			"OperationFailed.GetXipFailed", func(c *cloud.Config) { c.NLBReadsFailAtFirst = true }),
		story("one that a job changes",
			active+"UpdateLoadBalancerAttribute LoadBalancerId=$lb LoadBalancerName=web\nDeleteLoadBalancer LoadBalancerId=$lb", "Conflict.Lock"),
		story("one that a job has changed",
			active+"UpdateLoadBalancerAttribute LoadBalancerId=$lb LoadBalancerName=web\nwait 1s\nDeleteLoadBalancer LoadBalancerId=$lb", ""),
		story("deletion protection", begun+" DeletionProtectionConfig.Enabled=true"+keepLB+"DeleteLoadBalancer LoadBalancerId=$lb",
			"OperationDenied.DeletionProtectionEnabled"),
		story("IPv6 of one without it", active+"EnableLoadBalancerIpv6Internet LoadBalancerId=$lb", "OperationDenied.NonDualStackInstance"),
		story("the address type that it has", active+"UpdateLoadBalancerAddressTypeConfig LoadBalancerId=$lb AddressType=Internet",
			"OperationDenied.AddressTypeNotChanged"),
		story("another address in a zone", active+"UpdateLoadBalancerZones LoadBalancerId=$lb ZoneMappings.1.PrivateIPv4Address=10.1.9.9"+
			zoneA+zoneB, "OperationDenied.ProtectedPrivateIPv4AddressChanged"),
		story("another vSwitch in a zone", active+"UpdateLoadBalancerZones LoadBalancerId=$lb"+strings.Replace(zoneA, "vsw-a", "vsw-c", 1)+zoneB,
			"OperationDenied.ZoneVSwitchChanged", func(c *cloud.Config) {
				c.VSwitches = append(c.VSwitches, cloud.VSwitchConfig{ID: "vsw-c", VPCID: "vpc-emulator", Zone: "cn-hangzhou-a", CIDR: "10.3.0.0/16"})
			}),
		story("a package of an intranet one", strings.Replace(begun, "Internet", "Intranet", 1)+
			keepLB+"AttachCommonBandwidthPackageToLoadBalancer LoadBalancerId=$lb BandwidthPackageId=cbwp-1",
			"OperationDenied.InternalLoadBalancer"),
		story("a second package", begun+" BandwidthPackageId=cbwp-1"+
			keepLB+"AttachCommonBandwidthPackageToLoadBalancer LoadBalancerId=$lb BandwidthPackageId=cbwp-2",
			"ResourceAlreadyAssociated.BandwidthPackageId"),
		story("a package that it does not have",
			active+"DetachCommonBandwidthPackageFromLoadBalancer LoadBalancerId=$lb BandwidthPackageId=cbwp-1", "ResourceNotFound.BandwidthPackage"),
		story("a security group that is not there", active+join+"sg-9", "ResourceNotFound.SecurityGroup"),
		story("a security group of another VPC", "ecs:CreateSecurityGroup VpcId=vpc-2 > other=SecurityGroupId\n"+active+join+"$other",
			"Mismatch.VpcId", otherVPC),
		story("a security group twice", basic+active+join+"$basic\nwait 1s\n"+join+"$basic", "ResourceAlreadyAssociated.SecurityGroup"),
		story("basic and advanced security groups", basic+advanced+active+join+"$basic\nwait 1s\n"+join+"$advanced", "Conflict.SecurityGroup"),
		story("more security groups than it may have", basic+active+join+"$basic SecurityGroupIds.2=sg-2", full,
			quota(func(l *cloud.Limits) { l.SecurityGroupsPerLB = 1 })),
		story("a security group that it is not in", basic+active+"LoadBalancerLeaveSecurityGroup LoadBalancerId=$lb SecurityGroupIds.1=$basic",
			"ResourceNotAssociated.SecurityGroup"),
		story("a package that is not there", active+"AttachCommonBandwidthPackageToLoadBalancer LoadBalancerId=$lb BandwidthPackageId=cbwp-9",
			"ResourceNotFound.BandwidthPackage"),
		story("one in a package that is not there", begun+" BandwidthPackageId=cbwp-9", "ResourceNotFound.BandwidthPackage"),
		story("a name that begins with a digit", begun+" LoadBalancerName=1web", "IllegalParam.LoadBalancerName"),
		story("a name with a slash", active+"UpdateLoadBalancerAttribute LoadBalancerId=$lb LoadBalancerName=web/1",
			"IllegalParam.LoadBalancerName"),
		story("a tag of the cloud's own", active+"TagResources ResourceType=loadbalancer ResourceId.1=$lb Tag.1.Key=acs:web",
			"IllegalParam.TagKey"),
		story("more tags than a resource may have", manyTags(cloud.MaxTags+1), "QuotaExceeded.TagsPerResource"),

		story("a group that is not there", "DeleteServerGroup ServerGroupId=sgp-9", "ResourceNotFound.serverGroup"),
		story("a group of a VPC that is not there", "CreateServerGroup ServerGroupName=web VpcId=vpc-9", "ResourceNotFound.Vpc"),
		story("a name of one letter", "CreateServerGroup ServerGroupName=w VpcId=vpc-emulator", "IllegalParam.ServerGroupName"),
		story("more groups than the account may have", group+newGroup, full, quota(func(l *cloud.Limits) { l.NLBGroups = 1 })),
		story("a group of TLS where there is none", newGroup+" Protocol=TCPSSL", "IllegalParam.Protocol",
			func(c *cloud.Config) { c.NLBGroupsRefuseTCPSSL = true }),
		story("a group that is being created", newGroup+" > group=ServerGroupId\nDeleteServerGroup ServerGroupId=$group",
			"IncorrectStatus.serverGroup"),
		story("a group that a listener uses", listener+"DeleteServerGroup ServerGroupId=$group", "ResourceInUse.ServerGroup"),
		story("addresses of clients behind TLS", newGroup+" Protocol=TCPSSL PreserveClientIpEnabled=true", "IllegalParam.PreserveClientIpSwitch"),
		story("QUIC ids without UDP", newGroup+" Scheduler=qch", "IllegalParam.Scheduler"),
		story("checks of a group for any port", newGroup+" AnyPortEnabled=true", "IllegalParam.AnyPortServerGroupConflictWithHealthCheckConfig"),
		story("checks by UDP of a TCP group", newGroup+" HealthCheckConfig.HealthCheckType=UDP", "IllegalParam.healthCheckType"),
		story("checks by UDP of a group of TLS", newGroup+" Protocol=TCPSSL HealthCheckConfig.HealthCheckType=udp", ""),
		story("checks by UDP of a group of TLS that refuses them", newGroup+" Protocol=TCPSSL HealthCheckConfig.HealthCheckType=UDP",
			"IllegalParam.healthCheckType",
			func(c *cloud.Config) { c.NLBTCPSSLRefusesUDPChecks = true }),
		story("a path that does not begin with a slash", newGroup+" HealthCheckConfig.HealthCheckType=HTTP HealthCheckConfig.HealthCheckUrl=ok",
			"IlleagalParam.healthCheckUrl"),
		story("checks of TCP too far apart", newGroup+" HealthCheckConfig.HealthCheckInterval=51", "IllegalParam.healthCheckInterval"),
		story("checks of UDP as far apart", newGroup+" Protocol=UDP HealthCheckConfig.HealthCheckInterval=51", ""),

		story("more servers than a call takes", group+add+servers("Ecs i-1 80", "Ecs i-2 80"), "IllegalParamSize.Servers",
			quota(func(l *cloud.Limits) { l.NLBServersPerCall = 1 })),
		story("a server twice in a call", group+add+servers("Ecs i-1 80", "Ecs i-1 80"), "DuplicatedParam.Server", config()),
		story("a server that is in the group", group+add+servers("Ecs i-1 80")+"wait 1s\n"+add+servers("Ecs i-1 80"), "DuplicatedParam.Server",
			config()),
		story("a server at another port", group+add+servers("Ecs i-1 80")+"wait 1s\n"+add+servers("Ecs i-1 81"), "", config()),
		story("an instance that is not there", group+add+servers("Ecs i-9 80"), "ResourceNotFound.Ecs"),
		story("an address in a group of instances", group+add+servers("Ip 10.1.0.9 80"), "Mismatch.ServerType"),
		story("a server without a port", group+add+servers("Ecs i-1 0"), "IllegalParam.RSPortConflictWithServerGroup", config()),
		story("a public address", newGroup+" ServerGroupType=Ip"+keepSGP+add+servers("Ip 8.8.8.8 80"), "IllegalParam.IP"),
		story("a network interface without an address", group+add+servers("Eni eni-1 80"), "MissingParam.IP"),
		story("more servers than a group may have", group+add+servers("Ecs i-1 80", "Ecs i-2 80"), full,
			quota(func(l *cloud.Limits) { l.ServersPerNLBGroup = 1 })),
		story("more servers than an NLB may have", listener+add+servers("Ecs i-1 80", "Ecs i-2 80"), full,
			quota(func(l *cloud.Limits) { l.ServersPerNLB = 1 })),
		story("as many in a group that no listener uses", group+add+servers("Ecs i-1 80", "Ecs i-2 80"), "",
			quota(func(l *cloud.Limits) { l.ServersPerNLB = 1 })),
		story("a server in more groups than it may be", group+add+servers("Ecs i-1 80")+group+add+servers("Ecs i-1 80"), full,
			quota(func(l *cloud.Limits) { l.NLBGroupsPerServer = 1 })),
		story("one that is not in the group leaves it", group+"RemoveServersFromServerGroup ServerGroupId=$group"+servers("Ecs i-1 80"),
			"ResourceNotFound.BackendServer", config()),
		story("one that is on its way out leaves it",
			"CreateServerGroup ServerGroupName=web VpcId=vpc-emulator ConnectionDrainEnabled=true ConnectionDrainTimeout=100"+
				keepSGP+add+servers("Ecs i-1 80")+"wait 1s\nRemoveServersFromServerGroup ServerGroupId=$group"+servers("Ecs i-1 80")+
				"wait 2s\nRemoveServersFromServerGroup ServerGroupId=$group"+servers("Ecs i-1 80"),
			"ResourceNotFound.BackendServer", config()),
		story("a group whose servers a job changes", group+add+servers("Ecs i-1 80")+add+servers("Ecs i-2 80"), "IncorrectStatus.serverGroup",
			config()),

		story("a listener that is not there", "DeleteListener ListenerId=lsn-9", "ResourceNotFound.listener"),
		story("a listener on a group that is not there",
			active+"CreateListener LoadBalancerId=$lb ServerGroupId=sgp-9 ListenerProtocol=TCP ListenerPort=80", "ResourceNotFound.serverGroup"),
		story("a listener on a group of another VPC", active+"CreateServerGroup ServerGroupName=web VpcId=vpc-2"+keepSGP+tcp80, "Mismatch.VpcId",
			otherVPC),
		story("more listeners than an NLB may have", listener+newListener+"ListenerProtocol=TCP ListenerPort=81", full,
			quota(func(l *cloud.Limits) { l.ListenersPerNLB = 1 })),
		story("more listeners on a group than it may have", listener+newListener+"ListenerProtocol=TCP ListenerPort=81", full,
			quota(func(l *cloud.Limits) { l.ListenersPerGroup = 1 })),
		story("a listener on a group with too many servers", both+add+servers("Ecs i-1 80", "Ecs i-2 80")+"wait 1s\n"+tcp80, full,
			quota(func(l *cloud.Limits) { l.ServersPerNLB = 1 })),
		story("the same listener again", listener+tcp80, "DuplicatedParam.listener"),
		story("a range over a port that has a listener", listener+newListener+"ListenerProtocol=TCP ListenerPort=0 StartPort=70 EndPort=90",
			"Conflict.Port"),
		story("a range that ends before it begins", both+newListener+"ListenerProtocol=TCP ListenerPort=0 StartPort=90 EndPort=70",
			"IllegalParam.Port"),
		story("a range on a group with ports", both+newListener+"ListenerProtocol=TCP ListenerPort=0 StartPort=70 EndPort=90",
			"IllegalParam.AnyPortListenerConflictWithNonAnyPortServerGroup"),
		story("a port on a group for any port", active+newGroup+" AnyPortEnabled=true HealthCheckConfig.HealthCheckConnectPort=80"+keepSGP+tcp80,
			"IllegalParam.NonAnyPortListenerConflictWithAnyPortServerGroup"),
		story("UDP on a group of TCP", both+newListener+"ListenerProtocol=UDP ListenerPort=80", "Mismatch.Protocol"),
		story("an idle timeout that TCP does not take", both+tcp80+" IdleTimeout=5", "IllegalParam.IdleTimeout"),
		story("a cipher policy that is not there", tls+tls443+" CertificateIds.1=cert-1 SecurityPolicyId=tls-9",
			"ResourceNotFound.securitypolicy", config()),
		story("a cipher policy of the user's", tls+tls443+" CertificateIds.1=cert-1 SecurityPolicyId=tls-emulator", "", config()),
		story("an idle timeout that UDP does not take", active+newGroup+" Protocol=UDP"+
			keepSGP+newListener+"ListenerProtocol=UDP ListenerPort=80 IdleTimeout=60", "IllegalParam.IdleTimeout"),
		story("TLS without a certificate", tls+tls443, "MissingParam.Certificate"),
		story("TLS with two certificates", tls+tls443+" CertificateIds.1=cert-1 CertificateIds.2=cert-2", "IllegalParamSize.certificateIds",
			config()),
		story("TLS with a certificate that is not there", tls+tls443+" CertificateIds.1=cert-9", "ResourceNotFound.Certificate"),
		story("mutual TLS without an authority", tls+tls443+" CertificateIds.1=cert-1 CaEnabled=true", "MissingParam.CaCertificate", config()),
		story("ALPN without a policy", tls+tls443+" CertificateIds.1=cert-1 AlpnEnabled=true", "MissingParam.AlpnPolicy", config()),
		story("a listener of an NLB that another job changes", both+tcp80+"\n"+newListener+"ListenerProtocol=TCP ListenerPort=81",
			"Conflict.Lock"),
		story("a listener that runs is started", listener+"StartListener ListenerId=$listener", "IncorrectStatus.listener"),
		story("a listener stops, starts and goes",
			listener+"StopListener ListenerId=$listener\nwait 1s\nStartListener ListenerId=$listener\nwait 1s\nDeleteListener "+
				"ListenerId=$listener\nwait 1s\nDeleteServerGroup ServerGroupId=$group", ""),
		story("a further certificate that is the listener's own", secure+associate+"cert-1", "ResourceAlreadyAssociated.Certificate", config()),
		story("more further certificates than an NLB may have", secure+associate+"cert-2 AdditionalCertificateIds.2=cert-3", full,
			quota(func(l *cloud.Limits) { l.CertificatesPerNLB = 1 })),
		story("a job that is not there", "GetJobStatus JobId=job-9", "ResourceNotFound.JobId"),
	)
}

func manyTags(n int) string {
	var story strings.Builder
	story.WriteString(active)
	for i := range n {
		fmt.Fprintf(&story, "TagResources ResourceType=loadbalancer ResourceId.1=$lb Tag.1.Key=k%d\n", i)
	}
	return story.String()
}
