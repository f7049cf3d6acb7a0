package slb

import (
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// explanation is what the reference page and the golden files say of an annotation beside what the table does.
type explanation struct {
	// meaning is one sentence.
	meaning string
	// change says what holds once the CLB stands; empty: it may change at any time.
	change string
	// example is an accepted value where that of [exampleOf] does not serve; other is a second one, for a change.
	example, other string
	// with are the annotations that it needs to have an effect.
	with map[annotation.Suffix]string
}

const fixed = "no; a Warning event reports it, everything else is applied"

// Company that several annotations need. The ids are those of the cloud that the golden files are made in.
var (
	withHTTP     = map[annotation.Suffix]string{annotation.ProtocolPort: "http:80"}
	withHTTPS    = map[annotation.Suffix]string{annotation.ProtocolPort: "https:443", annotation.CertID: "cert-1"}
	withIntranet = map[annotation.Suffix]string{annotation.AddressType: "intranet"}
	withID       = map[annotation.Suffix]string{annotation.LoadBalancerID: "lb-1"}
	withIPv6Pods = map[annotation.Suffix]string{annotation.IPVersion: "ipv6", annotation.BackendType: "eni"}
	withCheck    = map[annotation.Suffix]string{annotation.HealthCheckType: "http"}
)

var explanations = map[annotation.Suffix]explanation{
	annotation.AddressType:            {meaning: "Whether the CLB has a public address, or a private one in a vSwitch.", change: fixed, other: "Internet"},
	annotation.NetworkType:            {meaning: "Whether a CLB with a private address is in the VPC or in the classic network.", change: fixed, example: "vpc", other: "classic", with: withIntranet},
	annotation.VSwitchID:              {meaning: "The vSwitch of the private address. Without it, the manager tries the vSwitches in the cloud-config in turn.", change: fixed, other: "vsw-2", with: withIntranet},
	annotation.IP:                     {meaning: "The private address of the CLB in the vSwitch. Takes precedence over spec.loadBalancerIP.", change: fixed, other: "10.1.0.81", with: map[annotation.Suffix]string{annotation.AddressType: "intranet", annotation.VSwitchID: "vsw-1"}},
	annotation.IPVersion:              {meaning: "The address family of the CLB. ipv6 with nodes as backends requires kube-proxy in IPVS mode.", change: fixed, other: "ipv4"},
	annotation.MasterZoneID:           {meaning: "The primary zone of the CLB.", change: fixed, other: "cn-hangzhou-b"},
	annotation.SlaveZoneID:            {meaning: "The zone that takes over if the primary zone fails.", change: fixed, other: "cn-hangzhou-a"},
	annotation.ResourceGroupID:        {meaning: "The resource group of the CLB and of its access control list. Defaults to the one in the cloud-config.", change: fixed, other: "rg-2"},
	annotation.LoadBalancerID:         {meaning: "An existing CLB to use. The manager never deletes it, and manages its listeners only with force-override-listeners.", change: fixed, other: "lb-2"},
	annotation.ForceOverrideListeners: {meaning: "Whether the manager manages the listeners of an existing CLB. It never changes listeners of other Services and clusters.", with: withID},
	annotation.Name:                   {meaning: "The name of the CLB. The manager does not identify the CLB by its name.", other: "shop"},
	annotation.InstanceChargeType:     {meaning: "Whether the CLB is billed by specification or by usage.", change: "PayBySpec to PayByCLCU only", other: "PayByCLCU"},
	annotation.Spec:                   {meaning: "The specification of a CLB that is billed by specification.", example: "slb.s2.small", other: "slb.s3.small", with: map[annotation.Suffix]string{annotation.InstanceChargeType: "PayBySpec"}},
	annotation.ChargeType:             {meaning: "Whether a public CLB is billed by traffic or by bandwidth.", change: "yes; the cloud applies it at midnight", other: "paybytraffic"},
	annotation.Bandwidth:              {meaning: "The maximum bandwidth of a public CLB in Mbit/s. Defaults to 50 if only the charge type is set.", example: "20", other: "30", with: map[annotation.Suffix]string{annotation.ChargeType: "paybybandwidth"}},
	annotation.AdditionalTags:         {meaning: "Tags of the CLB. Tags removed from the list are deleted; tags of others stay.", other: "team=shop"},
	annotation.DeleteProtection:       {meaning: "Whether the cloud refuses to delete the CLB. The manager disables it when the Service is deleted.", other: "on"},
	annotation.ModificationProtection: {meaning: "Whether the console refuses to change the CLB.", other: "ConsoleProtection"},
	annotation.PreserveOnDelete:       {meaning: "Whether the CLB stays when the Service is deleted. Every value except false and off keeps it.", example: "true", other: "false"},
	annotation.ExternalIPType:         {meaning: "Shows the elastic IP addresses of the CLB in the status of the Service, instead of its own address."},
	annotation.Hostname:               {meaning: "Shows this name in the status of the Service instead of an address.", other: "shop.example.com"},
	annotation.TunnelType:             {meaning: "Leaves the Service to another controller. The manager ignores it, and deletes what it created for it.", example: "vxlan"},
	annotation.Type:                   {meaning: "With the feature gate LoadBalancerTypeAnnotation of the cloud-config, hands the Service to another controller; what was made stays until the Service goes. Not read without the gate.", example: "nlb"},

	annotation.ProtocolPort:           {meaning: "The protocols of listeners, by port, whatever protocol the Service declares there. Where it declares both TCP and UDP on a port, the listener of the same family.", change: "yes; the listener is deleted and created again", other: "tcp:80"},
	annotation.Scheduler:              {meaning: "How connections are distributed to the backends. rr ignores weights; sch, tch and qch select a backend by source address, by connection, and by QUIC ID.", change: "yes; wrr is the default with externalTrafficPolicy Local", other: "wlc"},
	annotation.PersistenceTimeout:     {meaning: "How long a client address keeps its backend; 0 disables this. Takes precedence over spec.sessionAffinity, which also acts on udp listeners; the annotation does not.", other: "60"},
	annotation.EstablishedTimeout:     {meaning: "The timeout of idle connections.", other: "60"},
	annotation.IdleTimeout:            {meaning: "The timeout of idle client connections.", other: "20", with: withHTTP},
	annotation.RequestTimeout:         {meaning: "The time to wait for the response of a backend, before the client gets status 504.", other: "20", with: withHTTP},
	annotation.ProxyProtocol:          {meaning: "Whether backends get the client address through the PROXY protocol, version 2. The servers must support it. A change breaks open connections.", other: "off"},
	annotation.ConnectionDrain:        {meaning: "Whether connections to a backend that leaves or fails can finish.", other: "off", with: map[annotation.Suffix]string{annotation.ConnectionDrainTimeout: "30"}},
	annotation.ConnectionDrainTimeout: {meaning: "The time limit for these connections.", other: "60", with: map[annotation.Suffix]string{annotation.ConnectionDrain: "on"}},
	annotation.ForwardPort:            {meaning: "http listeners that only redirect clients to an https listener of the Service.", change: "yes; the listener is deleted and created again", with: map[annotation.Suffix]string{annotation.ProtocolPort: "http:80,https:443", annotation.CertID: "cert-1"}},
	annotation.CertID:                 {meaning: "The server certificate of https listeners. A missing or expired certificate is rejected; one that expires within 30 days causes an event.", other: "cert-2", with: map[annotation.Suffix]string{annotation.ProtocolPort: "https:443"}},
	annotation.DomainExtensions:       {meaning: "Additional certificates of https listeners, by domain; 3 per listener, more with a higher quota. Extensions removed from the list are deleted; others stay.", other: "a.example.com:cert-2,*.example.org:cert-1", with: withHTTPS},
	annotation.TLSCipherPolicy:        {meaning: "The versions and ciphers of TLS: a predefined policy, or the ID of a custom one.", other: "tls_cipher_policy_1_2_strict_with_1_3", with: withHTTPS},
	annotation.HTTP2Enabled:           {meaning: "Whether clients can use HTTP/2.", other: "on", with: withHTTPS},
	annotation.ACLStatus:              {meaning: "Whether an access control list of yours restricts clients. Cannot be combined with spec.loadBalancerSourceRanges.", other: "off", with: map[annotation.Suffix]string{annotation.ACLID: "acl-1", annotation.ACLType: "white"}},
	annotation.ACLID:                  {meaning: "Your access control lists. The manager attaches them and never changes them.", other: "acl-2", with: map[annotation.Suffix]string{annotation.ACLStatus: "on", annotation.ACLType: "white"}},
	annotation.ACLType:                {meaning: "Whether only the listed clients can connect, or all others.", other: "black", with: map[annotation.Suffix]string{annotation.ACLStatus: "on", annotation.ACLID: "acl-1"}},
	annotation.StickySession:          {meaning: "Whether a cookie keeps a client on its backend.", other: "off", with: map[annotation.Suffix]string{annotation.ProtocolPort: "http:80", annotation.StickySessionType: "insert", annotation.CookieTimeout: "60"}},
	annotation.StickySessionType:      {meaning: "Whether the CLB inserts the cookie, or rewrites a cookie of the server.", other: "server", with: map[annotation.Suffix]string{annotation.ProtocolPort: "http:80", annotation.StickySession: "on", annotation.CookieTimeout: "60", annotation.Cookie: "session"}},
	annotation.CookieTimeout:          {meaning: "The lifetime of a cookie that the CLB inserts.", example: "60", other: "120", with: map[annotation.Suffix]string{annotation.ProtocolPort: "http:80", annotation.StickySession: "on", annotation.StickySessionType: "insert"}},
	annotation.Cookie:                 {meaning: "The cookie of the server that the CLB rewrites.", other: "visit", with: map[annotation.Suffix]string{annotation.ProtocolPort: "http:80", annotation.StickySession: "on", annotation.StickySessionType: "server"}},
	annotation.XForwardedForProto:     {meaning: "Whether backends get the protocol of the listener in X-Forwarded-Proto.", other: "off", with: withHTTP},
	annotation.XForwardedForSLBPort:   {meaning: "Whether backends get the port of the listener in XForwardedFor_SLBPORT.", other: "off", with: withHTTP},
	annotation.XForwardedForSrcPort:   {meaning: "Whether backends get the port of the client in XForwardedFor_ClientSrcPort.", other: "off", with: withHTTP},

	annotation.HealthCheckSwitch:         {meaning: "Whether the CLB checks the health of backends.", other: "on"},
	annotation.HealthCheckFlag:           {meaning: "Whether the CLB checks the health of backends.", other: "off", with: withHTTP},
	annotation.HealthCheckType:           {meaning: "Whether the check is a TCP connection or an HTTP request.", other: "tcp"},
	annotation.HealthCheckURI:            {meaning: "The path of the HTTP request.", other: "/ready", with: withCheck},
	annotation.HealthCheckDomain:         {meaning: "The host of the HTTP request; $_ip is the address of the backend.", example: "web.example.com", other: "$_ip", with: withCheck},
	annotation.HealthCheckHTTPCode:       {meaning: "The HTTP status codes of a healthy backend.", example: "http_2xx,http_3xx", other: "http_2xx", with: withCheck},
	annotation.HealthCheckMethod:         {meaning: "The method of the HTTP request.", other: "get", with: map[annotation.Suffix]string{annotation.ProtocolPort: "http:80", annotation.HealthCheckFlag: "on"}},
	annotation.HealthCheckConnectPort:    {meaning: "The port to check; -520 is the port of the backend.", example: "8081", other: "-520"},
	annotation.HealthyThreshold:          {meaning: "The number of successful checks after which a backend gets traffic.", other: "3"},
	annotation.UnhealthyThreshold:        {meaning: "The number of failed checks after which a backend gets no traffic.", other: "3"},
	annotation.HealthCheckInterval:       {meaning: "The interval between two checks.", example: "5", other: "2"},
	annotation.HealthCheckConnectTimeout: {meaning: "The timeout of a check. Values below the interval count as the interval.", example: "10", other: "5"},
	annotation.HealthCheckTimeout:        {meaning: "The timeout of a check. Values below the interval count as the interval.", example: "10", other: "5", with: map[annotation.Suffix]string{annotation.ProtocolPort: "http:80", annotation.HealthCheckFlag: "on"}},

	annotation.BackendLabel:             {meaning: "Only nodes with all of these labels are backends. If no node has them, the backends stay unchanged.", example: "pool=web", other: "pool=shop"},
	annotation.RemoveUnscheduledBackend: {meaning: "Whether a cordoned node leaves the backends, through weight 0.", other: "off"},
	annotation.BackendIPVersion:         {meaning: "Whether the backends of an IPv6 CLB are the IPv4 or the IPv6 addresses of pods.", other: "ipv4", with: withIPv6Pods},
	annotation.VGroupPort:               {meaning: "Existing vServer groups on an existing CLB, and the ports of the Service whose backends join them.", other: "rsp-1:443", with: withID},
	annotation.Weight:                   {meaning: "The share of the Service in a group that it joined, spread over its backends. It holds for all ports of the Service, also those that joined no group.", example: "50", other: "10", with: map[annotation.Suffix]string{annotation.LoadBalancerID: "lb-1", annotation.VGroupPort: "rsp-1:80"}},
	annotation.DefaultWeight:            {meaning: "The weight of each backend. With externalTrafficPolicy Local, the weight is the number of endpoints.", other: "10"},
	annotation.IgnoreWeightUpdate:       {meaning: "Whether weights that others have changed stay.", other: "off"},
	annotation.BackendType:              {meaning: "Whether the backends are nodes with their node port, or pods with their own address. Pods need addresses of network interfaces (Terway, ECI).", change: "yes; with new groups", other: "ecs"},
}

// backendTypeRow stands for the one annotation whose key has no prefix of the family.
var backendTypeRow = annotation.Row{
	Suffix: annotation.BackendType, Value: annotation.Value{Kind: annotation.Enum, Values: []string{"ecs", "eni"}}, Default: "ecs",
}

// documented are the rows of the reference page.
func documented() []annotation.Row { return append(annotation.Table(), backendTypeRow) }

// keyOf is the whole key of an annotation, with the newer prefix.
func keyOf(suffix annotation.Suffix) string {
	if suffix == annotation.BackendType {
		return string(suffix)
	}
	return annotation.Prefixes[0] + string(suffix)
}

// firstOf and secondOf are the values of the golden files.
func firstOf(row annotation.Row) string {
	if text := explanations[row.Suffix].example; text != "" {
		return text
	}
	return exampleOf(row)
}

func secondOf(row annotation.Row) string { return explanations[row.Suffix].other }
