package slb

import (
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/annotationpage"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

const fixed = "no"

// Company that several annotations need. The ids are those of the cloud that the golden files are made in.
var (
	withHTTP     = map[annotation.Suffix]string{annotation.ProtocolPort: "http:80"}
	withHTTPS    = map[annotation.Suffix]string{annotation.ProtocolPort: "https:443", annotation.CertID: "cert-1"}
	withIntranet = map[annotation.Suffix]string{annotation.AddressType: "intranet"}
	withID       = map[annotation.Suffix]string{annotation.LoadBalancerID: "lb-1"}
	withIPv6Pods = map[annotation.Suffix]string{annotation.IPVersion: "ipv6", annotation.BackendType: "eni"}
	withCheck    = map[annotation.Suffix]string{annotation.HealthCheckType: "http"}
)

var explanations = annotationpage.Explanations{
	annotation.AddressType: {Meaning: "Whether the CLB has a public address, or a private one in a vSwitch.", Change: fixed,
		Other: "Internet"},
	annotation.NetworkType: {Meaning: "Whether a CLB with a private address is in the VPC or in the classic network.",
		Change: fixed, Example: "vpc", Other: "classic", With: withIntranet},
	annotation.VSwitchID: {Meaning: "The vSwitch of the private address. Without it, the manager tries the vSwitches in the cloud-config in turn.", Change: fixed, Other: "vsw-2", With: withIntranet},
	annotation.IP: {Meaning: "The private address of the CLB in the vSwitch. Takes precedence over spec.loadBalancerIP.",
		Change: fixed, Other: "10.1.0.81", With: map[annotation.Suffix]string{annotation.AddressType: "intranet", annotation.VSwitchID: "vsw-1"}},
	annotation.IPVersion:              {Meaning: "The address family of the CLB. ipv6 with nodes as backends requires kube-proxy in IPVS mode.", Change: fixed, Other: "ipv4"},
	annotation.MasterZoneID:           {Meaning: "The primary zone of the CLB.", Change: fixed, Other: "cn-hangzhou-b"},
	annotation.SlaveZoneID:            {Meaning: "The zone that takes over if the primary zone fails.", Change: fixed, Other: "cn-hangzhou-a"},
	annotation.ResourceGroupID:        {Meaning: "The resource group of the CLB and of its access control list. Defaults to the one in the cloud-config.", Change: fixed, Other: "rg-2"},
	annotation.LoadBalancerID:         {Meaning: "An existing CLB to use. The manager never deletes one of yours, and manages its listeners only with force-override-listeners.", Change: fixed, Other: "lb-2"},
	annotation.ForceOverrideListeners: {Meaning: "Whether the manager manages the listeners of an existing CLB. It never changes listeners of other Services and clusters.", With: withID},
	annotation.Group:                  {Meaning: "The name of a group of Services that share CLBs, which the manager creates and deletes; for a group of another namespace, namespace/name. The oldest Service determines the attributes of a CLB.", Change: "yes; the Service gets the address of another CLB, and serves there before it leaves the other one", Other: "shop"},
	annotation.GroupOverflow:          {Meaning: "Whether the Service uses another CLB of its group if its ports are taken or the CLB has no room for it.", With: map[annotation.Suffix]string{annotation.Group: "web"}},
	annotation.Move:                   {Meaning: "Lets the Service move to another CLB, and so to another address, when loadbalancer-id is added, changed or removed. It serves at both for the time of move-grace.", Example: "allow"},
	annotation.MoveGrace:              {Meaning: "How long the former load balancer serves, too, after the status of a Service that moves shows the new one. The condition Moving says until when.", Change: "yes, also during a move", Example: "1h", Other: "10m"},
	annotation.Name:                   {Meaning: "The name of the CLB. The manager does not identify the CLB by its name.", Other: "shop"},
	annotation.InstanceChargeType: {Meaning: "Whether the CLB is billed by specification or by usage.",
		Change: "PayBySpec to PayByCLCU only", Other: "PayByCLCU"},
	annotation.Spec: {Meaning: "The specification of a CLB that is billed by specification.", Example: "slb.s2.small",
		Other: "slb.s3.small", With: map[annotation.Suffix]string{annotation.InstanceChargeType: "PayBySpec"}},
	annotation.ChargeType: {Meaning: "Whether a public CLB is billed by traffic or by bandwidth.",
		Change: "yes; the cloud applies it at midnight", Other: "paybytraffic"},
	annotation.Bandwidth:              {Meaning: "The maximum bandwidth of a public CLB in Mbit/s. Defaults to 50 if only the charge type is set.", Example: "20", Other: "30", With: map[annotation.Suffix]string{annotation.ChargeType: "paybybandwidth"}},
	annotation.AdditionalTags:         {Meaning: "Tags of the CLB. Tags that you remove from the list are deleted; tags that others added stay.", Other: "team=shop"},
	annotation.DeleteProtection:       {Meaning: "Whether the cloud refuses to delete the CLB. The manager disables it when the Service is deleted.", Other: "on"},
	annotation.ModificationProtection: {Meaning: "Whether the console refuses to change the CLB.", Other: "ConsoleProtection"},
	annotation.PreserveOnDelete:       {Meaning: "Whether the CLB stays when the Service is deleted. Every value except false and off keeps it.", Example: "true", Other: "false"},
	annotation.ExternalIPType:         {Meaning: "Shows the elastic IP addresses of the CLB in the status of the Service, instead of its own address."},
	annotation.Hostname: {Meaning: "Shows this name in the status of the Service instead of an address.",
		Other: "shop.example.com"},
	annotation.IPMode: {Meaning: "Whether clients in the cluster reach pods directly at the address of the CLB (VIP), or go through the CLB (Proxy). auto is Proxy if a listener uses the PROXY protocol, HTTP or HTTPS. With Proxy, a pod does not reach itself or pods on its node through its CLB. The field ipMode of the cloud-config changes the default. The official CCM ignores this annotation.", Example: "Proxy", Other: "auto"},
	annotation.TunnelType: {Meaning: "Leaves the Service to another controller. The manager ignores it, and deletes what it created for it.",
		Example: "vxlan"},
	annotation.Type: {Meaning: "With the feature gate LoadBalancerTypeAnnotation of the cloud-config, leaves the Service to another controller; its load balancer stays until the Service is deleted. Ignored without the gate.", Example: "nlb"},

	annotation.ProtocolPort:       {Meaning: "The protocols of listeners by port, instead of those that the Service declares. If the Service declares both TCP and UDP on a port, the listener of the same family has the protocol.", Change: "yes; the listener is deleted and created again", Other: "tcp:80"},
	annotation.Scheduler:          {Meaning: "How connections are distributed to the backends. rr ignores weights; sch, tch and qch select a backend by source address, by connection, and by QUIC ID.", Change: "yes; wrr is the default with externalTrafficPolicy Local", Other: "wlc"},
	annotation.PersistenceTimeout: {Meaning: "How long a client address keeps its backend; 0 disables this. Takes precedence over spec.sessionAffinity, which also acts on udp listeners; the annotation does not.", Other: "60"},
	annotation.EstablishedTimeout: {Meaning: "The timeout of idle connections.", Other: "60"},
	annotation.IdleTimeout:        {Meaning: "The timeout of idle client connections.", Other: "20", With: withHTTP},
	annotation.RequestTimeout: {Meaning: "The time to wait for the response of a backend, before the client gets status 504.",
		Other: "20", With: withHTTP},
	annotation.ProxyProtocol: {Meaning: "Whether backends get the client address through the PROXY protocol, version 2. The servers must support it. A change breaks open connections.", Other: "off"},
	annotation.ConnectionDrain: {Meaning: "Whether connections to a backend that leaves or fails can finish.", Other: "off",
		With: map[annotation.Suffix]string{annotation.ConnectionDrainTimeout: "30"}},
	annotation.ConnectionDrainTimeout: {Meaning: "The time limit for these connections.", Other: "60",
		With: map[annotation.Suffix]string{annotation.ConnectionDrain: "on"}},
	annotation.ForwardPort: {Meaning: "http listeners that only redirect clients to an https listener of the Service.",
		Change: "yes; the listener is deleted and created again",
		With:   map[annotation.Suffix]string{annotation.ProtocolPort: "http:80,https:443", annotation.CertID: "cert-1"}},
	annotation.CertID:           {Meaning: "The server certificate of https listeners. A missing or expired certificate is rejected; one that expires within 30 days causes an event.", Other: "cert-2", With: map[annotation.Suffix]string{annotation.ProtocolPort: "https:443"}},
	annotation.DomainExtensions: {Meaning: "Additional certificates of https listeners, by domain; 3 per listener, more with a higher quota. Extensions that you remove from the list are deleted; others stay.", Other: "a.example.com:cert-2,*.example.org:cert-1", With: withHTTPS},
	annotation.TLSCipherPolicy: {Meaning: "The versions and ciphers of TLS: a predefined policy, or the ID of a custom one.",
		Other: "tls_cipher_policy_1_2_strict_with_1_3", With: withHTTPS},
	annotation.HTTP2Enabled: {Meaning: "Whether clients can use HTTP/2.", Other: "on", With: withHTTPS},
	annotation.ACLStatus:    {Meaning: "Whether an access control list of yours restricts clients. Cannot be combined with spec.loadBalancerSourceRanges.", Other: "off", With: map[annotation.Suffix]string{annotation.ACLID: "acl-1", annotation.ACLType: "white"}},
	annotation.ACLID: {Meaning: "Your access control lists. The manager attaches them and never changes them.", Other: "acl-2",
		With: map[annotation.Suffix]string{annotation.ACLStatus: "on", annotation.ACLType: "white"}},
	annotation.ACLType: {Meaning: "Whether only the listed clients can connect, or all others.", Other: "black",
		With: map[annotation.Suffix]string{annotation.ACLStatus: "on", annotation.ACLID: "acl-1"}},
	annotation.StickySession: {Meaning: "Whether a cookie keeps a client on its backend.", Other: "off",
		With: map[annotation.Suffix]string{annotation.ProtocolPort: "http:80", annotation.StickySessionType: "insert",
			annotation.CookieTimeout: "60"}},
	annotation.StickySessionType: {Meaning: "Whether the CLB inserts the cookie, or rewrites a cookie of the server.", Other: "server",
		With: map[annotation.Suffix]string{annotation.ProtocolPort: "http:80", annotation.StickySession: "on", annotation.CookieTimeout: "60",
			annotation.Cookie: "session"}},
	annotation.CookieTimeout: {Meaning: "The lifetime of a cookie that the CLB inserts.", Example: "60", Other: "120",
		With: map[annotation.Suffix]string{annotation.ProtocolPort: "http:80", annotation.StickySession: "on",
			annotation.StickySessionType: "insert"}},
	annotation.Cookie: {Meaning: "The cookie of the server that the CLB rewrites.", Other: "visit",
		With: map[annotation.Suffix]string{annotation.ProtocolPort: "http:80", annotation.StickySession: "on",
			annotation.StickySessionType: "server"}},
	annotation.XForwardedForProto: {Meaning: "Whether backends get the protocol of the listener in X-Forwarded-Proto.", Other: "off",
		With: withHTTP},
	annotation.XForwardedForSLBPort: {Meaning: "Whether backends get the port of the listener in XForwardedFor_SLBPORT.", Other: "off",
		With: withHTTP},
	annotation.XForwardedForSrcPort: {Meaning: "Whether backends get the port of the client in XForwardedFor_ClientSrcPort.", Other: "off",
		With: withHTTP},

	annotation.HealthCheck:       {Meaning: "Whether the health of nodes is checked at the port of the Service (port), or where kube-proxy reports whether the node serves the Service (node): the health check node port with externalTrafficPolicy Local, else 10256, with the path /healthz. UDP listeners have no such check. Other health-check annotations take precedence. The official CCM ignores this annotation.", Example: "node", Other: "port"},
	annotation.HealthCheckSwitch: {Meaning: "Whether the CLB checks the health of backends.", Other: "on"},
	annotation.HealthCheckFlag:   {Meaning: "Whether the CLB checks the health of backends.", Other: "off", With: withHTTP},
	annotation.HealthCheckType:   {Meaning: "Whether the check is a TCP connection or an HTTP request.", Other: "tcp"},
	annotation.HealthCheckURI:    {Meaning: "The path of the HTTP request.", Other: "/ready", With: withCheck},
	annotation.HealthCheckDomain: {Meaning: "The host of the HTTP request; $_ip is the address of the backend.",
		Example: "web.example.com", Other: "$_ip", With: withCheck},
	annotation.HealthCheckHTTPCode: {Meaning: "The HTTP status codes of a healthy backend.", Example: "http_2xx,http_3xx",
		Other: "http_2xx", With: withCheck},
	annotation.HealthCheckMethod: {Meaning: "The method of the HTTP request.", Other: "get",
		With: map[annotation.Suffix]string{annotation.ProtocolPort: "http:80", annotation.HealthCheckFlag: "on"}},
	annotation.HealthCheckConnectPort: {Meaning: "The port to check; -520 is the port of the backend.", Example: "8081", Other: "-520"},
	annotation.HealthyThreshold:       {Meaning: "The number of successful checks after which a backend gets traffic.", Other: "3"},
	annotation.UnhealthyThreshold:     {Meaning: "The number of failed checks after which a backend gets no traffic.", Other: "3"},
	annotation.HealthCheckInterval:    {Meaning: "The interval between two checks.", Example: "5", Other: "2"},
	annotation.HealthCheckConnectTimeout: {Meaning: "The timeout of a check. Values below the interval count as the interval.", Example: "10",
		Other: "5"},
	annotation.HealthCheckTimeout: {Meaning: "The timeout of a check. Values below the interval count as the interval.", Example: "10",
		Other: "5", With: map[annotation.Suffix]string{annotation.ProtocolPort: "http:80", annotation.HealthCheckFlag: "on"}},

	annotation.BackendLabel:             {Meaning: "Only nodes with all of these labels are backends. If no node has them, the backends stay unchanged.", Example: "pool=web", Other: "pool=shop"},
	annotation.RemoveUnscheduledBackend: {Meaning: "Whether a cordoned node leaves the backends, through weight 0.", Other: "off"},
	annotation.BackendIPVersion: {Meaning: "Whether the backends of an IPv6 CLB are the IPv4 or the IPv6 addresses of pods.",
		Other: "ipv4", With: withIPv6Pods},
	annotation.VGroupPort:         {Meaning: "Existing vServer groups on an existing CLB, and the ports of the Service whose backends join them.", Other: "rsp-1:443", With: withID},
	annotation.Weight:             {Meaning: "The share of the Service in a group that it joined, spread over its backends. It holds for all ports of the Service, also those that joined no group.", Example: "50", Other: "10", With: map[annotation.Suffix]string{annotation.LoadBalancerID: "lb-1", annotation.VGroupPort: "rsp-1:80"}},
	annotation.DefaultWeight:      {Meaning: "The weight of each backend. With externalTrafficPolicy Local, the weight is the number of endpoints.", Other: "10"},
	annotation.IgnoreWeightUpdate: {Meaning: "Whether weights that others have changed stay. A backend that drains gets 0 all the same, and then its weight again.", Other: "off"},
	annotation.GracefulShutdown:   {Meaning: "Accepted, without effect: pods that terminate and still serve always stay with weight 0 until they are gone, so that their connections can finish.", Example: "true", Other: "false", With: map[annotation.Suffix]string{annotation.BackendType: "eni"}},
	annotation.BackendSubset:      {Meaning: "How many nodes are backends with externalTrafficPolicy Cluster: all while the quotas of the cloud allow it, then as many as they allow (auto); all (off); or this number. The field backendSubset of the cloud-config changes the default. The official CCM ignores this annotation.", Example: "2", Other: "1"},
	annotation.BackendType:        {Meaning: "Whether the backends are nodes with their node port, or pods with their own address. Pods need addresses of network interfaces (Terway, ECI).", Change: "yes; with new groups", Other: "ecs"},
}

// documented are the rows of the reference page.
func documented() []annotation.Row { return append(annotation.Table(), annotationpage.BackendType) }

// keyOf is the whole key of an annotation, with the newer prefix.
func keyOf(suffix annotation.Suffix) string { return suffix.Key() }

// firstOf and secondOf are the values of the golden files.
func firstOf(row annotation.Row) string { return explanations.FirstOf(row) }

func secondOf(row annotation.Row) string { return explanations[row.Suffix].Other }
