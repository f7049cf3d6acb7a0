package nlb

import (
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/annotationpage"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

const fixed = "no"

// Company that several annotations need.
var (
	withID     = map[annotation.Suffix]string{annotation.LoadBalancerID: "nlb-1"}
	withTLS    = map[annotation.Suffix]string{annotation.ProtocolPort: "tcpssl:443", annotation.CertID: "cert-1"}
	withCheck  = map[annotation.Suffix]string{annotation.HealthCheckFlag: "on"}
	withHTTP   = map[annotation.Suffix]string{annotation.HealthCheckFlag: "on", annotation.HealthCheckType: "http"}
	withProxy  = map[annotation.Suffix]string{annotation.ProxyProtocol: "on"}
	withDual   = map[annotation.Suffix]string{annotation.IPVersion: "DualStack"}
	newGroups  = "yes; with new server groups"
	newOnes    = "yes; the listener is re-created, which ends its connections"
	zonesMay   = "zones may be added and removed, two stay; vSwitch, address and EIP of a zone are fixed"
	moves      = "yes; the Service gets the name of another NLB, and serves there before it leaves the other one"
	addressMay = "yes; the name stays, the addresses change"
)

var explanations = annotationpage.Explanations{
	annotation.ZoneMaps: {Meaning: "The zones of the NLB, 2 to 10, each with its vSwitch, and optionally a private IPv4 address and an EIP (zone:vswitch:address:eip, or zone:vswitch::eip without an address).", Change: zonesMay, Other: "cn-hangzhou-a:vsw-1,cn-hangzhou-b:vsw-2,cn-hangzhou-c:vsw-3"},
	annotation.AddressType: {Meaning: "Whether the name of the NLB resolves to public addresses, or to private ones in the vSwitches.",
		Change: addressMay, Other: "internet"},
	annotation.IPVersion: {Meaning: "Whether the NLB has an IPv6 address in each zone, in addition to the IPv4 address. The vSwitches need IPv6.", Change: fixed, Other: "ipv4"},
	annotation.IPv6AddressType: {Meaning: "Whether the IPv6 addresses can be reached from the internet. The VPC needs an IPv6 gateway.",
		Other: "intranet", With: withDual},
	annotation.ResourceGroupID:        {Meaning: "The resource group of the NLB, its server groups and its security group. Defaults to the one in the cloud-config.", Change: fixed, Other: "rg-2"},
	annotation.LoadBalancerID:         {Meaning: "An existing NLB to use. The manager never deletes one of yours, and manages its listeners only with force-override-listeners.", Change: moves, Other: "nlb-2"},
	annotation.ForceOverrideListeners: {Meaning: "Whether the manager manages the listeners of the Service's ports on an existing NLB. It takes over unmarked listeners, and never those of other Services.", Other: "false", With: withID},
	annotation.Name:                   {Meaning: "The name of the NLB, 2 to 128 characters, the first of them a letter.", Other: "shop"},
	annotation.CrossZoneEnabled:       {Meaning: "Whether each zone sends connections to the backend servers of all zones.", Other: "on"},
	annotation.SecurityGroupIDs:       {Meaning: "The security groups that the NLB joins, at most 4. Accept rules alone restrict nothing: a group needs a drop rule with priority 100.", Other: "sg-1,sg-2"},
	annotation.BandwidthPackageID:     {Meaning: "The Internet Shared Bandwidth instance that the public addresses join.", Other: "cbwp-2"},
	annotation.AdditionalTags:         {Meaning: "Tags of the NLB, in addition to those of the manager. Tags that you add in the console stay. A key has at most 64 characters, a value 128.", Other: "team=shop"},
	annotation.DeleteProtection:       {Meaning: "Whether the console and the API refuse to delete the NLB. The manager disables it before it deletes the NLB. An existing NLB keeps its own setting.", Other: "on"},
	annotation.ModificationProtection: {Meaning: "Whether the console refuses changes of the NLB. An existing NLB keeps its own setting.",
		Other: "ConsoleProtection"},
	annotation.PreserveOnDelete: {Meaning: "Whether the NLB and its listeners stay after the Service is deleted. Every value except false and off keeps them. The manager removes its protections and its tags, and no longer manages it.", Other: "on"},
	annotation.Hostname:         {Meaning: "The name that the status of the Service shows instead of the name of the NLB, for example a CNAME record of your domain.", Other: "shop.example.com"},
	annotation.TunnelType:       {Meaning: "Hands the Service to another controller, whatever the value.", Example: "tunnel"},
	annotation.Type:             {Meaning: "With the feature gate LoadBalancerTypeAnnotation of the cloud-config, nlb selects NLB for a Service without a class. Adding it to a Service that has a CLB has no effect.", Example: "nlb", Change: "removal deletes the NLB"},

	annotation.ProtocolPort: {Meaning: "The protocols of listeners; a listener that is not listed has the protocol of its port.",
		Change: newOnes, Example: "tcpssl:443", Other: "tcp:80", With: map[annotation.Suffix]string{annotation.CertID: "cert-1"}},
	annotation.ListenerPortRange: {Meaning: "Ranges of ports that a listener accepts in place of the port of the Service (first-last:port). Needs pods as backend servers, which get each connection on the port that the client used.", Change: newOnes, Example: "8000-8100:80", Other: "9000-9100:80", With: map[annotation.Suffix]string{annotation.BackendType: "eni"}},
	annotation.IdleTimeout:       {Meaning: "The time without traffic after which a connection ends; at most 20 s for UDP listeners, which ignore longer times.", Example: "60", Other: "300"},
	annotation.Cps: {Meaning: "The maximum number of new connections per second in each zone; 0 means no maximum.",
		Example: "10000", Other: "0"},
	annotation.ProxyProtocol: {Meaning: "Whether connections to backend servers begin with a PROXY protocol v2 header. While you switch it, backend servers must accept both.", Other: "off"},
	annotation.PPV2EpID:      {Meaning: "Whether the header has the ID of the PrivateLink endpoint.", Other: "off", With: withProxy},
	annotation.PPV2EpsID: {Meaning: "Whether the header has the ID of the PrivateLink endpoint service.", Other: "off",
		With: withProxy},
	annotation.PPV2VPCID: {Meaning: "Whether the header has the ID of the VPC of the client.", Other: "off", With: withProxy},
	annotation.CertID: {Meaning: "The certificate of TCPSSL listeners.", Other: "cert-2",
		With: map[annotation.Suffix]string{annotation.ProtocolPort: "tcpssl:443"}},
	annotation.AdditionalCertIDs: {Meaning: "Additional certificates of TCPSSL listeners, selected by the server name that the client requests.", Other: "cert-2,cert-3", With: withTLS},
	annotation.CACert: {Meaning: "Whether TCPSSL listeners require client certificates.", Other: "off",
		With: map[annotation.Suffix]string{annotation.ProtocolPort: "tcpssl:443", annotation.CertID: "cert-1", annotation.CACertID: "ca-1"}},
	annotation.CACertID: {Meaning: "The CA certificate that verifies the certificates of clients.", Example: "ca-1", Other: "ca-2",
		With: map[annotation.Suffix]string{annotation.ProtocolPort: "tcpssl:443", annotation.CertID: "cert-1", annotation.CACert: "on"}},
	annotation.TLSCipherPolicy: {Meaning: "The TLS versions and ciphers of TCPSSL listeners: a predefined policy, or the ID of a custom one.",
		Other: "tls_cipher_policy_1_2_strict", With: withTLS},
	annotation.ALPN: {Meaning: "Whether TCPSSL listeners negotiate the application protocol (ALPN).", Other: "off",
		With: map[annotation.Suffix]string{annotation.ProtocolPort: "tcpssl:443", annotation.CertID: "cert-1",
			annotation.ALPNPolicy: "HTTP2Preferred"}},
	annotation.ALPNPolicy: {Meaning: "The protocols that TCPSSL listeners offer.", Other: "HTTP2Only",
		With: map[annotation.Suffix]string{annotation.ProtocolPort: "tcpssl:443", annotation.CertID: "cert-1", annotation.ALPN: "on"}},

	annotation.Group: {
		Meaning: "The name of a group of Services that share NLBs, which the manager creates and deletes; for a group of another namespace, namespace/name. The oldest Service determines the attributes of an NLB.",
		Change:  moves, Other: "shop",
	},
	annotation.GroupOverflow: {
		Meaning: "Whether the Service uses another NLB of its group if its ports are taken or the NLB has no room for it.",
		With:    map[annotation.Suffix]string{annotation.Group: "web"},
	},
	annotation.MoveGrace:       {Meaning: "How long the former NLB serves, too, after the status of a Service that moves shows the new one. The condition Moving says until when.", Change: "yes, also during a move", Example: "1h", Other: "10m"},
	annotation.ServerGroupType: {Meaning: "Whether a server group has instances and network interfaces, or IP addresses. With `Ip`, pods need no network interface in the VPC, only a route.", Change: newGroups, Other: "Instance"},
	annotation.Scheduler:       {Meaning: "How a listener selects the backend server: by weight (wrr), in turn (rr), by connections (wlc), by source (sch), by source and port (tch), or by QUIC connection (qch, UDP only).", Example: "sch", Other: "wlc"},
	annotation.ConnectionDrain: {Meaning: "Whether open connections to a backend server that is being removed continue for a while.",
		Other: "off"},
	annotation.ConnectionDrainTimeout: {Meaning: "How long they continue.", Example: "30", Other: "300",
		With: map[annotation.Suffix]string{annotation.ConnectionDrain: "on"}},
	annotation.PreserveClientIP: {Meaning: "Whether backend servers see the address of the client. With it, a backend server cannot reach itself through the NLB. Does not apply to TCPSSL listeners and to server groups of type Ip.", Other: "on"},
	annotation.HealthCheck:      {Meaning: "Whether the health of nodes is checked at the port of the Service (port), or where kube-proxy reports whether the node serves the Service (node): the health check node port with externalTrafficPolicy Local, else 10256, with the path /healthz. Other health-check annotations take precedence. The official CCM ignores this annotation.", Example: "node", Other: "port"},
	annotation.HealthCheckFlag:  {Meaning: "Whether the NLB checks the health of backend servers. Without this annotation, the other health-check annotations have no effect; new UDP listeners have no check.", Other: "on"},
	annotation.HealthCheckType: {Meaning: "Whether the check is a TCP connection, an HTTP request, or, for UDP listeners, a UDP datagram.",
		Other: "tcp", With: withCheck},
	annotation.HealthCheckConnectPort: {Meaning: "The port to check; 0 is the port of the backend server.", Example: "8081", Other: "0",
		With: withCheck},
	annotation.HealthCheckConnectTimeout: {
		Meaning: "The timeout of a check.", Example: "10", Other: "5", With: withCheck,
	},
	annotation.HealthCheckInterval: {Meaning: "The interval between two checks: for checks by UDP at least the timeout, for listeners that are not UDP at most 50 s.", Example: "10", Other: "5", With: withCheck},
	annotation.HealthyThreshold: {Meaning: "The number of successful checks after which a backend server gets traffic.", Other: "3",
		With: withCheck},
	annotation.UnhealthyThreshold: {Meaning: "The number of failed checks after which a backend server gets no traffic.", Other: "3",
		With: withCheck},
	annotation.HealthCheckURI: {Meaning: "The path of the HTTP request.", Other: "/ready", With: withHTTP},
	annotation.HealthCheckDomain: {Meaning: "The host of the HTTP request; $SERVER_IP is the address of the backend server.",
		Example: "web.example.com", Other: "$SERVER_IP", With: withHTTP},
	annotation.HealthCheckMethod: {Meaning: "The method of the HTTP request.", Example: "head", Other: "get", With: withHTTP},
	annotation.HealthCheckHTTPCode: {Meaning: "The HTTP status codes of a healthy backend server.", Example: "http_2xx,http_3xx",
		Other: "http_2xx", With: withHTTP},

	annotation.HealthCheckHTTPVersion: {Meaning: "The version of HTTP of the request.", Example: "HTTP1.1", Other: "HTTP1.0", With: withHTTP},

	annotation.BackendLabel:             {Meaning: "Only nodes with all of these labels are backend servers. If no node has them, the backend servers stay unchanged.", Example: "pool=web", Other: "pool=shop"},
	annotation.RemoveUnscheduledBackend: {Meaning: "Whether a cordoned node leaves the backend servers, through weight 0.", Other: "off"},
	annotation.BackendIPVersion:         {Meaning: "Whether the backend servers of a dual-stack NLB are the IPv4 addresses of pods, the IPv6 addresses, or both, each for clients of its version.", Change: newGroups, Other: "dualstack", With: map[annotation.Suffix]string{annotation.IPVersion: "DualStack", annotation.BackendType: "eni"}},
	annotation.VGroupPort: {Meaning: "Existing server groups, and the ports of the Service whose backend servers join them.",
		Other: "sgp-1:443", With: withID},
	annotation.Weight:             {Meaning: "The share of the Service in a group that it joined, spread over its backend servers. It holds for all ports of the Service, also those that joined no group.", Example: "50", Other: "10", With: map[annotation.Suffix]string{annotation.LoadBalancerID: "nlb-1", annotation.VGroupPort: "sgp-1:80"}},
	annotation.DefaultWeight:      {Meaning: "The weight of each backend server. With externalTrafficPolicy Local, the weight is the number of endpoints.", Other: "10"},
	annotation.IgnoreWeightUpdate: {Meaning: "Whether weights that others have changed stay. A backend that drains gets 0 all the same, and then its weight again.", Other: "off"},
	annotation.GracefulShutdown:   {Meaning: "Accepted, without effect: pods that terminate and still serve always stay with weight 0 until they are gone, so that their connections can finish.", Example: "true", Other: "false", With: map[annotation.Suffix]string{annotation.BackendType: "eni"}},
	annotation.BackendSubset:      {Meaning: "How many nodes are backends with externalTrafficPolicy Cluster: all while the quotas of the cloud allow it, then as many as they allow (auto); all (off); or this number. The field backendSubset of the cloud-config changes the default. The official CCM ignores this annotation.", Example: "2", Other: "1"},
	annotation.BackendType:        {Meaning: "Whether the backend servers are nodes with their node port, or pods with their own address. Pods need addresses of network interfaces (Terway, ECI).", Change: newGroups, Other: "ecs"},
}
