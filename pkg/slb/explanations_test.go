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
	annotation.AddressType:            {meaning: "Whether the CLB has a public address or one of a vSwitch.", change: fixed, other: "Internet"},
	annotation.NetworkType:            {meaning: "Whether a CLB with a private address is in the VPC or in the old classic network.", change: fixed, example: "vpc", other: "classic", with: withIntranet},
	annotation.VSwitchID:              {meaning: "The vSwitch of the CLB's private address. Without it, those of the cloud-config are tried in turn.", change: fixed, other: "vsw-2", with: withIntranet},
	annotation.IP:                     {meaning: "The CLB's private address, one of the vSwitch. The same as spec.loadBalancerIP, and counts before it.", change: fixed, other: "10.1.0.81", with: map[annotation.Suffix]string{annotation.AddressType: "intranet", annotation.VSwitchID: "vsw-1"}},
	annotation.IPVersion:              {meaning: "The address family of the CLB. ipv6 with nodes as members needs kube-proxy in IPVS mode.", change: fixed, other: "ipv4"},
	annotation.MasterZoneID:           {meaning: "The zone in which the CLB works.", change: fixed, other: "cn-hangzhou-b"},
	annotation.SlaveZoneID:            {meaning: "The zone that takes over when the first one fails.", change: fixed, other: "cn-hangzhou-a"},
	annotation.ResourceGroupID:        {meaning: "The resource group of the CLB and of its access control list. Without it, that of the cloud-config.", change: fixed, other: "rg-2"},
	annotation.LoadBalancerID:         {meaning: "A CLB that you made: it is used and never deleted. Its listeners stay yours without force-override-listeners.", change: fixed, other: "lb-2"},
	annotation.ForceOverrideListeners: {meaning: "Whether the listeners of a CLB that you created are managed. Those of other Services and clusters never are.", with: withID},
	annotation.Name:                   {meaning: "The CLB's name. Nothing is recognised by it.", other: "shop"},
	annotation.InstanceChargeType:     {meaning: "Whether the CLB is paid by its specification or by use.", change: "PayBySpec to PayByCLCU only", other: "PayByCLCU"},
	annotation.Spec:                   {meaning: "The specification of a CLB that pays by it, whether the annotation or the existing CLB says so.", example: "slb.s2.small", other: "slb.s3.small", with: map[annotation.Suffix]string{annotation.InstanceChargeType: "PayBySpec"}},
	annotation.ChargeType:             {meaning: "Whether a public CLB's traffic or its bandwidth is paid.", change: "yes; the cloud applies it at midnight", other: "paybytraffic"},
	annotation.Bandwidth:              {meaning: "The largest bandwidth of a public CLB in Mbit/s; without it a CLB that begins to pay by bandwidth gets 50, and one that does already keeps what it has.", example: "20", other: "30", with: map[annotation.Suffix]string{annotation.ChargeType: "paybybandwidth"}},
	annotation.AdditionalTags:         {meaning: "Tags of the CLB. Those that leave the list are removed, tags of others never are.", other: "team=shop"},
	annotation.DeleteProtection:       {meaning: "Whether the cloud refuses to delete the CLB. It is switched off when the Service goes.", other: "on"},
	annotation.ModificationProtection: {meaning: "Whether the console refuses to change the CLB.", other: "ConsoleProtection"},
	annotation.PreserveOnDelete:       {meaning: "Whether the CLB stays as it is when the Service goes. Anything but false and off keeps it.", example: "true", other: "false"},
	annotation.ExternalIPType:         {meaning: "Shows the elastic addresses that are bound to the CLB in the Service's status, not the CLB's own."},
	annotation.Hostname:               {meaning: "Shows this name in the Service's status in place of an address.", other: "shop.example.com"},
	annotation.TunnelType:             {meaning: "Hands the Service to another controller: nothing is done for it, and what was made is removed.", example: "vxlan"},
	annotation.Type:                   {meaning: "With the feature gate LoadBalancerTypeAnnotation of the cloud-config, hands the Service to another controller; what was made stays until the Service goes. Not read without the gate.", example: "nlb"},

	annotation.ProtocolPort:           {meaning: "The protocols of listeners, by port, whatever protocol the Service declares there. Where it declares both TCP and UDP on a port, the listener of the same family.", change: "yes; the listener is deleted and made anew", other: "tcp:80"},
	annotation.Scheduler:              {meaning: "How connections are spread over the members. rr ignores weights; sch, tch and qch keep to a member by address, by the whole connection, and by QUIC id.", change: "yes; wrr is the default with externalTrafficPolicy Local", other: "wlc"},
	annotation.PersistenceTimeout:     {meaning: "How long an address keeps its member; 0 is not at all. The same as spec.sessionAffinity, and counts before it.", other: "60"},
	annotation.EstablishedTimeout:     {meaning: "When an idle connection is forgotten.", other: "60"},
	annotation.IdleTimeout:            {meaning: "When an idle connection to a client is closed.", other: "20", with: withHTTP},
	annotation.RequestTimeout:         {meaning: "When a member's answer is no longer waited for and the client gets status 504.", other: "20", with: withHTTP},
	annotation.ProxyProtocol:          {meaning: "Whether members get the client's address by the PROXY protocol, version 2. Servers must expect it, and a change breaks open connections.", other: "off"},
	annotation.ConnectionDrain:        {meaning: "Whether connections to a member that leaves or fails may end by themselves.", other: "off", with: map[annotation.Suffix]string{annotation.ConnectionDrainTimeout: "30"}},
	annotation.ConnectionDrainTimeout: {meaning: "How long they may.", other: "60", with: map[annotation.Suffix]string{annotation.ConnectionDrain: "on"}},
	annotation.ForwardPort:            {meaning: "http listeners that only redirect clients to an https listener of the Service.", change: "yes; the listener is deleted and made anew", with: map[annotation.Suffix]string{annotation.ProtocolPort: "http:80,https:443", annotation.CertID: "cert-1"}},
	annotation.CertID:                 {meaning: "The server certificate of https listeners. One that is missing or expired is refused; one that expires within 30 days is reported.", other: "cert-2", with: map[annotation.Suffix]string{annotation.ProtocolPort: "https:443"}},
	annotation.DomainExtensions:       {meaning: "Further certificates of https listeners, by domain; 3 per listener, more with a higher quota. Those that leave the list are removed, others never are.", other: "a.example.com:cert-2,*.example.org:cert-1", with: withHTTPS},
	annotation.TLSCipherPolicy:        {meaning: "The versions and ciphers of TLS: one of the vendor's policies or the id of your own.", other: "tls_cipher_policy_1_2_strict_with_1_3", with: withHTTPS},
	annotation.HTTP2Enabled:           {meaning: "Whether clients may use HTTP/2.", other: "on", with: withHTTPS},
	annotation.ACLStatus:              {meaning: "Whether an access control list of yours decides who may connect. Not together with spec.loadBalancerSourceRanges.", other: "off", with: map[annotation.Suffix]string{annotation.ACLID: "acl-1", annotation.ACLType: "white"}},
	annotation.ACLID:                  {meaning: "Your access control lists. They are attached and never edited.", other: "acl-2", with: map[annotation.Suffix]string{annotation.ACLStatus: "on", annotation.ACLType: "white"}},
	annotation.ACLType:                {meaning: "Whether only those on the list may connect, or all others.", other: "black", with: map[annotation.Suffix]string{annotation.ACLStatus: "on", annotation.ACLID: "acl-1"}},
	annotation.StickySession:          {meaning: "Whether a cookie keeps a client with its backend.", other: "off", with: map[annotation.Suffix]string{annotation.ProtocolPort: "http:80", annotation.StickySessionType: "insert", annotation.CookieTimeout: "60"}},
	annotation.StickySessionType:      {meaning: "Whether the CLB makes the cookie, or rewrites one of the server's.", other: "server", with: map[annotation.Suffix]string{annotation.ProtocolPort: "http:80", annotation.StickySession: "on", annotation.CookieTimeout: "60", annotation.Cookie: "session"}},
	annotation.CookieTimeout:          {meaning: "When a cookie of the CLB's expires.", example: "60", other: "120", with: map[annotation.Suffix]string{annotation.ProtocolPort: "http:80", annotation.StickySession: "on", annotation.StickySessionType: "insert"}},
	annotation.Cookie:                 {meaning: "The server's cookie that the CLB rewrites.", other: "visit", with: map[annotation.Suffix]string{annotation.ProtocolPort: "http:80", annotation.StickySession: "on", annotation.StickySessionType: "server"}},
	annotation.XForwardedForProto:     {meaning: "Whether members get the listener's protocol in X-Forwarded-Proto.", other: "off", with: withHTTP},
	annotation.XForwardedForSLBPort:   {meaning: "Whether members get the listener's port in XForwardedFor_SLBPORT.", other: "off", with: withHTTP},
	annotation.XForwardedForSrcPort:   {meaning: "Whether members get the client's port in XForwardedFor_ClientSrcPort.", other: "off", with: withHTTP},

	annotation.HealthCheckSwitch:         {meaning: "Whether the health of members is checked.", other: "on"},
	annotation.HealthCheckFlag:           {meaning: "Whether the health of members is checked.", other: "off", with: withHTTP},
	annotation.HealthCheckType:           {meaning: "Whether a connection is enough, or an answer to a request of HTTP is needed.", other: "tcp"},
	annotation.HealthCheckURI:            {meaning: "The path that is asked for.", other: "/ready", with: withCheck},
	annotation.HealthCheckDomain:         {meaning: "The host that is asked for; $_ip is the member's address.", example: "web.example.com", other: "$_ip", with: withCheck},
	annotation.HealthCheckHTTPCode:       {meaning: "The statuses that are healthy.", example: "http_2xx,http_3xx", other: "http_2xx", with: withCheck},
	annotation.HealthCheckMethod:         {meaning: "The method of the request.", other: "get", with: map[annotation.Suffix]string{annotation.ProtocolPort: "http:80", annotation.HealthCheckFlag: "on"}},
	annotation.HealthCheckConnectPort:    {meaning: "The port that is checked; -520 is that of the member.", example: "8081", other: "-520"},
	annotation.HealthyThreshold:          {meaning: "After how many good checks a member gets traffic.", other: "3"},
	annotation.UnhealthyThreshold:        {meaning: "After how many bad checks a member gets none.", other: "3"},
	annotation.HealthCheckInterval:       {meaning: "The time between two checks.", example: "5", other: "2"},
	annotation.HealthCheckConnectTimeout: {meaning: "When a check has failed. Less than the interval counts as the interval.", example: "10", other: "5"},
	annotation.HealthCheckTimeout:        {meaning: "When a check has failed. Less than the interval counts as the interval.", example: "10", other: "5", with: map[annotation.Suffix]string{annotation.ProtocolPort: "http:80", annotation.HealthCheckFlag: "on"}},

	annotation.BackendLabel:             {meaning: "Only nodes with all of these labels are members. When no node has them, the members stay as they are.", example: "pool=web", other: "pool=shop"},
	annotation.RemoveUnscheduledBackend: {meaning: "Whether a cordoned node leaves, through weight 0.", other: "off"},
	annotation.BackendIPVersion:         {meaning: "Whether IPv4 or IPv6 addresses of pods are the members of an IPv6 CLB.", other: "ipv4", with: withIPv6Pods},
	annotation.VGroupPort:               {meaning: "vServer groups that you made on your CLB, and the ports of the Service whose members join them.", other: "rsp-1:443", with: withID},
	annotation.Weight:                   {meaning: "The share of the Service in a group that it joined, spread over its backends. It holds for all ports of the Service, also those that joined no group.", example: "50", other: "10", with: map[annotation.Suffix]string{annotation.LoadBalancerID: "lb-1", annotation.VGroupPort: "rsp-1:80"}},
	annotation.DefaultWeight:            {meaning: "The weight of each member. With externalTrafficPolicy Local it is the number of endpoints.", other: "10"},
	annotation.IgnoreWeightUpdate:       {meaning: "Whether weights that were changed elsewhere stay.", other: "off"},
	annotation.BackendType:              {meaning: "Whether nodes at their node port or pods at their own addresses are the members. Pods need addresses of network interfaces (Terway, ECI).", change: "yes; with new groups", other: "ecs"},
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
