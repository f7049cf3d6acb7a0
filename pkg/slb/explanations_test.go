package slb

// explanation is what the reference page and the golden files say of an annotation beside what the table does.
type explanation struct {
	// meaning is one sentence.
	meaning string
	// change says what holds once the CLB stands; empty: it may change at any time.
	change string
	// example is an accepted value where that of [exampleOf] does not serve; other is a second one, for a change.
	example, other string
	// with are the annotations that it needs to have an effect.
	with map[Suffix]string
}

const fixed = "no; told in an event, everything else is applied"

// Company that several annotations need. The ids are those of the cloud that the golden files are made in.
var (
	withHTTP     = map[Suffix]string{ProtocolPort: "http:80"}
	withHTTPS    = map[Suffix]string{ProtocolPort: "https:443", CertID: "cert-1"}
	withIntranet = map[Suffix]string{AddressType: "intranet"}
	withID       = map[Suffix]string{LoadBalancerID: "lb-1"}
	withIPv6Pods = map[Suffix]string{IPVersion: "ipv6", AnnotationBackendType: "eni"}
	withCheck    = map[Suffix]string{HealthCheckType: "http"}
)

var explanations = map[Suffix]explanation{
	AddressType:            {meaning: "Whether the CLB has a public address or one of a vSwitch.", change: fixed, other: "Internet"},
	NetworkType:            {meaning: "Whether a CLB with a private address is in the VPC or in the old classic network.", change: fixed, example: "vpc", other: "classic", with: withIntranet},
	VSwitchID:              {meaning: "The vSwitch of the CLB's private address. Without it, those of the cloud-config are tried in turn.", change: fixed, other: "vsw-2", with: withIntranet},
	IP:                     {meaning: "The CLB's private address, one of the vSwitch. The same as spec.loadBalancerIP, and counts before it.", change: fixed, other: "10.1.0.81", with: map[Suffix]string{AddressType: "intranet", VSwitchID: "vsw-1"}},
	IPVersion:              {meaning: "The address family of the CLB. ipv6 with nodes as members needs kube-proxy in IPVS mode.", change: fixed, other: "ipv4"},
	MasterZoneID:           {meaning: "The zone in which the CLB works.", change: fixed, other: "cn-hangzhou-b"},
	SlaveZoneID:            {meaning: "The zone that takes over when the first one fails.", change: fixed, other: "cn-hangzhou-a"},
	ResourceGroupID:        {meaning: "The resource group of the CLB and of its access control list. Without it, that of the cloud-config.", change: fixed, other: "rg-2"},
	LoadBalancerID:         {meaning: "A CLB that you made: it is used and never deleted. Its listeners stay yours without force-override-listeners.", change: fixed, other: "lb-2"},
	ForceOverrideListeners: {meaning: "Whether the listeners of a CLB that you made are managed. Those of other Services and clusters never are.", with: withID},
	Name:                   {meaning: "The CLB's name. Nothing is recognised by it.", other: "shop"},
	InstanceChargeType:     {meaning: "Whether the CLB is paid by its specification or by use.", change: "PayBySpec to PayByCLCU only", other: "PayByCLCU"},
	Spec:                   {meaning: "The specification of a CLB that is paid by it.", example: "slb.s2.small", other: "slb.s3.small", with: map[Suffix]string{InstanceChargeType: "PayBySpec"}},
	ChargeType:             {meaning: "Whether a public CLB's traffic or its bandwidth is paid.", change: "yes; the cloud applies it at midnight", other: "paybytraffic"},
	Bandwidth:              {meaning: "The largest bandwidth of a public CLB in Mbit/s; 50 where only the charge type is given.", example: "20", other: "30", with: map[Suffix]string{ChargeType: "paybybandwidth"}},
	AdditionalTags:         {meaning: "Tags of the CLB. Those that leave the list are removed, tags of others never are.", other: "team=shop"},
	DeleteProtection:       {meaning: "Whether the cloud refuses to delete the CLB. It is switched off when the Service goes.", other: "on"},
	ModificationProtection: {meaning: "Whether the console refuses to change the CLB.", other: "ConsoleProtection"},
	PreserveOnDelete:       {meaning: "Whether the CLB stays as it is when the Service goes. Anything but false and off keeps it.", example: "true", other: "false"},
	ExternalIPType:         {meaning: "Shows the elastic addresses that are bound to the CLB in the Service's status, not the CLB's own."},
	Hostname:               {meaning: "Shows this name in the Service's status in place of an address.", other: "shop.example.com"},
	TunnelType:             {meaning: "Hands the Service to another controller: nothing is done for it, and what was made is removed.", example: "vxlan"},
	Type:                   {meaning: "With the feature gate LoadBalancerTypeAnnotation of the cloud-config, hands the Service to another controller; what was made stays until the Service goes. Not read without the gate.", example: "nlb"},

	ProtocolPort:           {meaning: "The protocols of listeners: tcp, http or https for a TCP port of the Service, udp for a UDP port.", change: "yes; the listener is deleted and made anew", other: "tcp:80"},
	Scheduler:              {meaning: "How connections are spread over the members. rr ignores weights; sch, tch and qch keep to a member by address, by the whole connection, and by QUIC id.", change: "yes; wrr is the default with externalTrafficPolicy Local", other: "wlc"},
	PersistenceTimeout:     {meaning: "How long an address keeps its member; 0 is not at all. The same as spec.sessionAffinity, and counts before it.", other: "60"},
	EstablishedTimeout:     {meaning: "When an idle connection is forgotten.", other: "60"},
	IdleTimeout:            {meaning: "When an idle connection to a client is closed.", other: "20", with: withHTTP},
	RequestTimeout:         {meaning: "When a member's answer is no longer waited for and the client gets status 504.", other: "20", with: withHTTP},
	ProxyProtocol:          {meaning: "Whether members get the client's address by the PROXY protocol, version 2. Servers must expect it, and a change breaks open connections.", other: "off"},
	ConnectionDrain:        {meaning: "Whether connections to a member that leaves or fails may end by themselves.", other: "off", with: map[Suffix]string{ConnectionDrainTimeout: "30"}},
	ConnectionDrainTimeout: {meaning: "How long they may.", other: "60", with: map[Suffix]string{ConnectionDrain: "on"}},
	ForwardPort:            {meaning: "http listeners that only send clients on to an https listener of the Service.", change: "yes; the listener is deleted and made anew", with: map[Suffix]string{ProtocolPort: "http:80,https:443", CertID: "cert-1"}},
	CertID:                 {meaning: "The server certificate of https listeners. One that is missing or expired is refused; one that expires within 30 days is told.", other: "cert-2", with: map[Suffix]string{ProtocolPort: "https:443"}},
	DomainExtensions:       {meaning: "Further certificates of https listeners, by domain; 3 per listener, more with a higher quota. Those that leave the list are removed, others never are.", other: "a.example.com:cert-2,*.example.org:cert-1", with: withHTTPS},
	TLSCipherPolicy:        {meaning: "The versions and ciphers of TLS: one of the vendor's policies or the id of your own.", other: "tls_cipher_policy_1_2_strict_with_1_3", with: withHTTPS},
	HTTP2Enabled:           {meaning: "Whether clients may use HTTP/2.", other: "on", with: withHTTPS},
	ACLStatus:              {meaning: "Whether an access control list of yours decides who may connect. Not together with spec.loadBalancerSourceRanges.", other: "off", with: map[Suffix]string{ACLID: "acl-1", ACLType: "white"}},
	ACLID:                  {meaning: "Your access control lists. They are attached and never edited.", other: "acl-2", with: map[Suffix]string{ACLStatus: "on", ACLType: "white"}},
	ACLType:                {meaning: "Whether only those on the list may connect, or all others.", other: "black", with: map[Suffix]string{ACLStatus: "on", ACLID: "acl-1"}},
	StickySession:          {meaning: "Whether a cookie keeps a client with its member.", other: "off", with: map[Suffix]string{ProtocolPort: "http:80", StickySessionType: "insert", CookieTimeout: "60"}},
	StickySessionType:      {meaning: "Whether the CLB makes the cookie, or rewrites one of the server's.", other: "server", with: map[Suffix]string{ProtocolPort: "http:80", StickySession: "on", CookieTimeout: "60", Cookie: "session"}},
	CookieTimeout:          {meaning: "When a cookie of the CLB's expires.", example: "60", other: "120", with: map[Suffix]string{ProtocolPort: "http:80", StickySession: "on", StickySessionType: "insert"}},
	Cookie:                 {meaning: "The server's cookie that the CLB rewrites.", other: "visit", with: map[Suffix]string{ProtocolPort: "http:80", StickySession: "on", StickySessionType: "server"}},
	XForwardedForProto:     {meaning: "Whether members get the listener's protocol in X-Forwarded-Proto.", other: "off", with: withHTTP},
	XForwardedForSLBPort:   {meaning: "Whether members get the listener's port in XForwardedFor_SLBPORT.", other: "off", with: withHTTP},
	XForwardedForSrcPort:   {meaning: "Whether members get the client's port in XForwardedFor_ClientSrcPort.", other: "off", with: withHTTP},

	HealthCheckSwitch:         {meaning: "Whether the health of members is checked.", other: "on"},
	HealthCheckFlag:           {meaning: "Whether the health of members is checked.", other: "off", with: withHTTP},
	HealthCheckType:           {meaning: "Whether a connection is enough, or an answer to a request of HTTP is needed.", other: "tcp"},
	HealthCheckURI:            {meaning: "The path that is asked for.", other: "/ready", with: withCheck},
	HealthCheckDomain:         {meaning: "The host that is asked for; $_ip is the member's address.", example: "web.example.com", other: "$_ip", with: withCheck},
	HealthCheckHTTPCode:       {meaning: "The statuses that are healthy.", example: "http_2xx,http_3xx", other: "http_2xx", with: withCheck},
	HealthCheckMethod:         {meaning: "The method of the request.", other: "get", with: map[Suffix]string{ProtocolPort: "http:80", HealthCheckFlag: "on"}},
	HealthCheckConnectPort:    {meaning: "The port that is checked; -520 is that of the member.", example: "8081", other: "-520"},
	HealthyThreshold:          {meaning: "After how many good checks a member gets traffic.", other: "3"},
	UnhealthyThreshold:        {meaning: "After how many bad checks a member gets none.", other: "3"},
	HealthCheckInterval:       {meaning: "The time between two checks.", example: "5", other: "2"},
	HealthCheckConnectTimeout: {meaning: "When a check has failed. Less than the interval counts as the interval.", example: "10", other: "5"},
	HealthCheckTimeout:        {meaning: "When a check has failed. Less than the interval counts as the interval.", example: "10", other: "5", with: map[Suffix]string{ProtocolPort: "http:80", HealthCheckFlag: "on"}},

	BackendLabel:             {meaning: "Only nodes with all of these labels are members. When no node has them, the members stay as they are.", example: "pool=web", other: "pool=shop"},
	RemoveUnscheduledBackend: {meaning: "Whether a cordoned node leaves, through weight 0.", other: "off"},
	BackendIPVersion:         {meaning: "Whether IPv4 or IPv6 addresses of pods are the members of an IPv6 CLB.", other: "ipv4", with: withIPv6Pods},
	VGroupPort:               {meaning: "vServer groups that you made on your CLB, and the ports of the Service whose members join them.", other: "rsp-1:443", with: withID},
	Weight:                   {meaning: "The share of the Service in a group that it joined, spread over its members.", example: "50", other: "10", with: map[Suffix]string{LoadBalancerID: "lb-1", VGroupPort: "rsp-1:80"}},
	DefaultWeight:            {meaning: "The weight of each member. With externalTrafficPolicy Local it is the number of endpoints.", other: "10"},
	IgnoreWeightUpdate:       {meaning: "Whether weights that were changed elsewhere stay.", other: "off"},
	AnnotationBackendType:    {meaning: "Whether nodes at their node port or pods at their own addresses are the members. Pods need addresses of network interfaces (Terway, ECI).", change: "yes; with new groups", other: "ecs"},
}

// backendTypeRow stands for the one annotation whose key has no prefix of the family.
var backendTypeRow = Annotation{
	Suffix: AnnotationBackendType, Value: Value{Kind: Enum, Values: []string{"ecs", "eni"}}, Default: "ecs",
}

// documented are the rows of the reference page.
func documented() []Annotation { return append(Annotations(), backendTypeRow) }

// keyOf is the whole key of an annotation, with the newer prefix.
func keyOf(suffix Suffix) string {
	if suffix == AnnotationBackendType {
		return string(suffix)
	}
	return Prefixes[0] + string(suffix)
}

// firstOf and secondOf are the values of the golden files.
func firstOf(row Annotation) string {
	if text := explanations[row.Suffix].example; text != "" {
		return text
	}
	return exampleOf(row)
}

func secondOf(row Annotation) string { return explanations[row.Suffix].other }
