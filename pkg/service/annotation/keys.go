package annotation

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
)

// Suffix names an annotation: its key is one of [Prefixes] followed by the suffix.
type Suffix string

// Key is the whole key, with the first of the [Prefixes], so that it can be pasted. [BackendType], [Move] and [MoveGrace] are whole
// keys.
func (s Suffix) Key() string { return buildKey(0, s) }

// Keys are all keys with which people may write the annotation: one for each of the [Prefixes], or the whole key.
func (s Suffix) Keys() []string {
	if s.isWhole() {
		return []string{string(s)}
	}
	keys := fullKeys[s]
	return keys[:]
}

func (s Suffix) isWhole() bool { return strings.Contains(string(s), "/") }

// String is the whole key: what people read must be what they have to write.
func (s Suffix) String() string { return s.Key() }

// The annotations that act on a CLB. [Table] describes them.
const (
	AddressType            Suffix = "loadbalancer-address-type"
	NetworkType            Suffix = "loadbalancer-network-type"
	VSwitchID              Suffix = "loadbalancer-vswitch-id"
	IP                     Suffix = "loadbalancer-ip"
	IPVersion              Suffix = "loadbalancer-ip-version"
	MasterZoneID           Suffix = "loadbalancer-master-zoneid"
	SlaveZoneID            Suffix = "loadbalancer-slave-zoneid"
	ResourceGroupID        Suffix = "loadbalancer-resource-group-id"
	LoadBalancerID         Suffix = "loadbalancer-id"
	ForceOverrideListeners Suffix = "loadbalancer-force-override-listeners"
	Name                   Suffix = "loadbalancer-name"
	InstanceChargeType     Suffix = "loadbalancer-instance-charge-type"
	Spec                   Suffix = "loadbalancer-spec"
	ChargeType             Suffix = "loadbalancer-charge-type"
	Bandwidth              Suffix = "loadbalancer-bandwidth"
	AdditionalTags         Suffix = "loadbalancer-additional-resource-tags"
	DeleteProtection       Suffix = "loadbalancer-delete-protection"
	ModificationProtection Suffix = "loadbalancer-modification-protection"
	PreserveOnDelete       Suffix = "loadbalancer-preserve-lb-on-delete"
	ExternalIPType         Suffix = "loadbalancer-external-ip-type"
	Hostname               Suffix = "loadbalancer-hostname"
	TunnelType             Suffix = "loadbalancer-tunnel-type"
	Type                   Suffix = "loadbalancer-type"
	// IPMode, Group and GroupOverflow are of this program; the official CCM does not know them.
	IPMode        Suffix = "loadbalancer-ip-mode"
	Group         Suffix = "loadbalancer-group"
	GroupOverflow Suffix = "loadbalancer-group-overflow"
	// Move and MoveGrace are of this program, too.
	Move      Suffix = "service.alicloud-ccm.io/move"
	MoveGrace Suffix = "service.alicloud-ccm.io/move-grace"

	ProtocolPort           Suffix = "loadbalancer-protocol-port"
	Scheduler              Suffix = "loadbalancer-scheduler"
	PersistenceTimeout     Suffix = "loadbalancer-persistence-timeout"
	EstablishedTimeout     Suffix = "loadbalancer-established-timeout"
	IdleTimeout            Suffix = "loadbalancer-idle-timeout"
	RequestTimeout         Suffix = "loadbalancer-request-timeout"
	ProxyProtocol          Suffix = "loadbalancer-proxy-protocol"
	ConnectionDrain        Suffix = "loadbalancer-connection-drain"
	ConnectionDrainTimeout Suffix = "loadbalancer-connection-drain-timeout"
	ForwardPort            Suffix = "loadbalancer-forward-port"
	CertID                 Suffix = "loadbalancer-cert-id"
	DomainExtensions       Suffix = "loadbalancer-domain-extensions"
	TLSCipherPolicy        Suffix = "loadbalancer-tls-cipher-policy"
	HTTP2Enabled           Suffix = "loadbalancer-http2-enabled"
	ACLStatus              Suffix = "loadbalancer-acl-status"
	ACLID                  Suffix = "loadbalancer-acl-id"
	ACLType                Suffix = "loadbalancer-acl-type"
	StickySession          Suffix = "loadbalancer-sticky-session"
	StickySessionType      Suffix = "loadbalancer-sticky-session-type"
	CookieTimeout          Suffix = "loadbalancer-cookie-timeout"
	Cookie                 Suffix = "loadbalancer-cookie"
	XForwardedForProto     Suffix = "loadbalancer-xforwardedfor-proto"
	XForwardedForSLBPort   Suffix = "loadbalancer-xforwardedfor-slbport"
	XForwardedForSrcPort   Suffix = "loadbalancer-xforwardedfor-clientsrcport"

	// HealthCheck is of this program; the official CCM does not know it.
	HealthCheck               Suffix = "loadbalancer-health-check"
	HealthCheckSwitch         Suffix = "loadbalancer-health-check-switch"
	HealthCheckFlag           Suffix = "loadbalancer-health-check-flag"
	HealthCheckType           Suffix = "loadbalancer-health-check-type"
	HealthCheckURI            Suffix = "loadbalancer-health-check-uri"
	HealthCheckDomain         Suffix = "loadbalancer-health-check-domain"
	HealthCheckHTTPCode       Suffix = "loadbalancer-health-check-httpcode"
	HealthCheckMethod         Suffix = "loadbalancer-health-check-method"
	HealthCheckConnectPort    Suffix = "loadbalancer-health-check-connect-port"
	HealthyThreshold          Suffix = "loadbalancer-healthy-threshold"
	UnhealthyThreshold        Suffix = "loadbalancer-unhealthy-threshold"
	HealthCheckInterval       Suffix = "loadbalancer-health-check-interval"
	HealthCheckConnectTimeout Suffix = "loadbalancer-health-check-connect-timeout"
	HealthCheckTimeout        Suffix = "loadbalancer-health-check-timeout"

	BackendLabel             Suffix = "loadbalancer-backend-label"
	RemoveUnscheduledBackend Suffix = "loadbalancer-remove-unscheduled-backend"
	BackendIPVersion         Suffix = "loadbalancer-backend-ip-version"
	VGroupPort               Suffix = "loadbalancer-vgroup-port"
	Weight                   Suffix = "loadbalancer-weight"
	DefaultWeight            Suffix = "loadbalancer-default-weight"
	IgnoreWeightUpdate       Suffix = "loadbalancer-ignore-weight-update"
	GracefulShutdown         Suffix = "loadbalancer-graceful-shutdown"
	// BackendSubset is of this program; the official CCM does not know it.
	BackendSubset Suffix = "loadbalancer-backend-subset"
)

// Prefixes of the keys. Where both are present the first wins.
var Prefixes = [...]string{
	"service.beta.kubernetes.io/alibaba-cloud-",
	"service.beta.kubernetes.io/alicloud-",
}

// BackendType chooses what the backends are: "ecs" (nodes at the node port) or "eni" (addresses of pods).
const BackendType = "service.beta.kubernetes.io/backend-type"

// ExternalEIP is the value of [ExternalIPType] that shows the elastic addresses of the load balancer.
const ExternalEIP = "eip"

// Values of [IPMode].
const (
	IPModeVIP   = "VIP"
	IPModeProxy = "Proxy"
	IPModeAuto  = "auto"
)

// MoveAllow is the value of [Move] that lets a Service move to another CLB when [LoadBalancerID] changes, and so to another address.
const MoveAllow = "allow"

// Values of [HealthCheck]: nodes are checked at the port of the Service, or at that at which kube-proxy says whether it serves the Service
// there.
const (
	CheckPort = "port"
	CheckNode = "node"
)

// GateLoadBalancerType is the feature gate, by the name that it has in the official CCM, behind which the annotation [Type]
// says which kind of load balancer a Service has: an NLB, or one of another controller.
const GateLoadBalancerType = "LoadBalancerTypeAnnotation"

// Lookup returns the value of the annotation as written. An empty value is an absent annotation, and hides one with the second prefix:
// charts render empty values, and the official CCM reads them the same way.
func Lookup(annotations map[string]string, suffix Suffix) (string, bool) {
	if len(annotations) == 0 {
		return "", false
	}
	for i := range Prefixes {
		if value, ok := annotations[fullKey(i, suffix)]; ok {
			return value, strings.TrimSpace(value) != ""
		}
	}
	return "", false
}

// Without returns the annotations without one of them.
func Without(annotations map[string]string, suffix Suffix) map[string]string {
	rest := maps.Clone(annotations)
	for i := range Prefixes {
		delete(rest, fullKey(i, suffix))
	}
	return rest
}

// fullKey returns the key of an annotation with one of the [Prefixes]. Every pass asks for all of them.
func fullKey(prefix int, suffix Suffix) string {
	if known, ok := fullKeys[suffix]; ok {
		return known[prefix]
	}
	return buildKey(prefix, suffix)
}

func buildKey(prefix int, suffix Suffix) string {
	if suffix.isWhole() {
		return string(suffix)
	}
	return Prefixes[prefix] + string(suffix)
}

var fullKeys = func() map[Suffix][len(Prefixes)]string {
	keys := map[Suffix][len(Prefixes)]string{}
	for _, row := range slices.Concat(Table(), NLBTable()) {
		suffix := row.Suffix
		keys[suffix] = [len(Prefixes)]string{buildKey(0, suffix), buildKey(1, suffix)}
	}
	return keys
}()

// Scope is what depends on an annotation: while its value is not accepted, exactly that waits.
type Scope string

// The scopes. The text stands in the reference page.
const (
	// ScopeSelf: only what the annotation sets. A new CLB gets the default.
	ScopeSelf Scope = ""
	// ScopeCreation: no CLB is created. An existing one keeps what it has.
	ScopeCreation Scope = "the creation of the load balancer"
	// ScopeListeners: no listener of [Row.Protocols] is created or replaced. An existing one keeps what it has.
	ScopeListeners Scope = "the creation of those listeners"
	// ScopeBackends: no backend joins that might not belong there, and no weight changes.
	ScopeBackends Scope = "new backends and changes of weights"
	// ScopeStatus: the addresses in the status of the Service stay as they are.
	ScopeStatus Scope = "the status of the Service"
)

// Row describes one annotation. Everything that is said about an annotation anywhere (parsing, listener
// attributes, reference page) is read from here.
type Row struct {
	Suffix Suffix
	// Value is what is accepted.
	Value Value
	// Scope is what a value that is not accepted stops.
	Scope Scope
	// Default counts when the annotation is absent and a CLB or listener is created; empty means none is sent.
	Default string
	// Attribute is the API's parameter name for annotations that set a listener attribute, else "".
	Attribute string
	// Protocols are the listener protocols that have Attribute, or that the annotation decides on.
	Protocols []string
	// AtCreation says that Default is sent when a listener is created, not left to the API.
	AtCreation bool
	// Encode maps the accepted values to those of the API where they differ.
	Encode map[string]string
	// Reverts says that the annotation is recorded where it is applied, and that its removal reverts the setting.
	Reverts bool
	// Revert is the value that removal goes back to where that is not Default.
	Revert string
}

var (
	onOff   = Value{Kind: Enum, Values: []string{"on", "off"}}
	boolean = map[string]string{"on": "true", "off": "false"}

	// Layer4 are the protocols that the load balancer forwards without reading them.
	Layer4 = []string{"tcp", "udp"}
	// Layer7 are the protocols that the load balancer reads.
	Layer7 = []string{"http", "https"}

	tcpOnly    = []string{"tcp"}
	httpOnly   = []string{"http"}
	httpsOnly  = []string{"https"}
	httpChecks = []string{"tcp", "http", "https"}
	all        = []string{"tcp", "udp", "http", "https"}
)

// Table is the table of all annotations of the family.
// Source of values and defaults: https://www.alibabacloud.com/help/document_detail/86531.htm and the API pages of
// https://www.alibabacloud.com/help/en/slb/classic-load-balancer/developer-reference.
func Table() []Row { return clbFamily.rows }

var (
	clbRows        = slices.Concat(InstanceAnnotations(), clbListeners, BackendAnnotations())
	clbListeners   = listenerRows()
	clbFamily      = newFamily("CLB", clbRows, clbListeners, rules, elsewhereOfCLB)
	sharedPatterns = []string{DomainPattern, CertificatePattern, DefaultNames, DurationPattern}
)

// InstanceAnnotations are the rows for the load balancer itself.
func InstanceAnnotations() []Row {
	return []Row{
		{Suffix: AddressType, Scope: ScopeCreation, Value: Value{Kind: Enum, Values: []string{"internet", "intranet"}, FoldCase: true},
			Default: "internet"},
		{Suffix: NetworkType, Scope: ScopeCreation, Value: Value{Kind: Enum, Values: []string{"vpc", "classic"}}, Default: "vpc"},
		{Suffix: VSwitchID, Scope: ScopeCreation, Value: idValue("vsw")},
		{Suffix: IP, Scope: ScopeCreation, Value: Value{Kind: IPv4}},
		{Suffix: IPVersion, Scope: ScopeCreation, Value: Value{Kind: Enum, Values: []string{"ipv4", "ipv6"}}, Default: "ipv4"},
		{Suffix: MasterZoneID, Scope: ScopeCreation, Value: Value{Kind: Pattern, Pattern: `[a-z0-9-]+`, Sample: "cn-hangzhou-a"}},
		{Suffix: SlaveZoneID, Scope: ScopeCreation, Value: Value{Kind: Pattern, Pattern: `[a-z0-9-]+`, Sample: "cn-hangzhou-b"}},
		{Suffix: ResourceGroupID, Scope: ScopeCreation, Value: idValue("rg")},
		{Suffix: LoadBalancerID, Scope: ScopeCreation, Value: idValue("lb")},
		{Suffix: ForceOverrideListeners, Scope: ScopeListeners, Value: Value{Kind: Enum, Values: []string{"true", "false"}}, Default: "false"},
		{Suffix: Group, Scope: ScopeCreation, Value: Value{Kind: Pattern, Pattern: groupPattern, Sample: "web", Rule: groupNames}},
		{Suffix: GroupOverflow, Value: Value{Kind: Enum, Values: []string{"true", "false"}}, Default: "false"},
		{Suffix: Move, Value: Value{Kind: Enum, Values: []string{MoveAllow}}},
		{Suffix: MoveGrace, Value: Value{Kind: Duration, Max: int(waits.MovedLongest / time.Second), Sample: "1h"}, Default: waits.Moved.String()},
		{Suffix: Name, Reverts: true,
			Value: Value{Kind: Pattern, Pattern: `[\p{Han}A-Za-z][\p{Han}\w.-]{0,127}`, Except: DefaultNames, Sample: "web", Rule: balancerNames}},
		{Suffix: InstanceChargeType, Scope: ScopeCreation, Reverts: true,
			Value: Value{Kind: Enum, Values: []string{"PayBySpec", "PayByCLCU"}, FoldCase: true}, Default: "PayByCLCU"},
		{Suffix: Spec, Scope: ScopeCreation, Reverts: true, Revert: DefaultSpec,
			Value: Value{Kind: Pattern, Pattern: `slb\.[a-z0-9.]+`, Sample: "slb.s1.small"}},
		{Suffix: ChargeType, Scope: ScopeCreation, Reverts: true, Value: Value{Kind: Enum, Values: []string{"paybytraffic", "paybybandwidth"}},
			Default: "paybytraffic"},
		{Suffix: Bandwidth, Scope: ScopeCreation, Value: Value{Kind: Integer, Min: 1, Max: 5120}},
		{Suffix: AdditionalTags, Value: Value{Kind: Tags}},
		{Suffix: DeleteProtection, Reverts: true, Value: onOff, Default: "on"},
		{Suffix: ModificationProtection, Reverts: true, Value: Value{Kind: Enum, Values: []string{"ConsoleProtection", "NonProtection"}},
			Default: "ConsoleProtection"},
		{Suffix: PreserveOnDelete, Value: Value{Kind: Pattern, Pattern: `.+`, Sample: "true"}},
		{Suffix: ExternalIPType, Scope: ScopeStatus, Value: Value{Kind: Enum, Values: []string{ExternalEIP}}},
		{Suffix: Hostname, Scope: ScopeStatus, Value: Value{Kind: DNSName}},
		{Suffix: IPMode, Scope: ScopeStatus, Value: Value{Kind: Enum, Values: []string{IPModeVIP, IPModeProxy, IPModeAuto}, FoldCase: true},
			Default: IPModeVIP},
		{Suffix: TunnelType, Value: Value{Kind: Pattern, Pattern: `.*`}},
		{Suffix: Type, Value: Value{Kind: Pattern, Pattern: `.*`}},
	}
}

// BackendAnnotations are the rows for backends and their weights.
func BackendAnnotations() []Row {
	return []Row{
		{Suffix: BackendLabel, Scope: ScopeBackends, Value: Value{Kind: Selector}},
		{Suffix: RemoveUnscheduledBackend, Scope: ScopeBackends, Value: onOff, Default: "off"},
		{Suffix: BackendIPVersion, Scope: ScopeBackends, Value: Value{Kind: Enum, Values: []string{"ipv4", "ipv6"}}, Default: "ipv4"},
		{Suffix: VGroupPort, Scope: ScopeBackends, Value: Value{Kind: List, Pattern: `rsp-[\w-]+:\d{1,5}`, Sample: "rsp-1:80"}},
		{Suffix: Weight, Scope: ScopeBackends, Value: Value{Kind: Integer, Min: 0, Max: 100}},
		{Suffix: DefaultWeight, Scope: ScopeBackends, Value: Value{Kind: Integer, Min: 0, Max: 100}, Default: "100"},
		{Suffix: IgnoreWeightUpdate, Scope: ScopeBackends, Value: Value{Kind: Enum, Values: []string{"on", "off"}, FoldCase: true},
			Default: "off"},
		{Suffix: GracefulShutdown, Value: Value{Kind: Enum, Values: []string{"true", "false"}}, Default: "true"},
		{Suffix: BackendSubset, Scope: ScopeBackends,
			Value: Value{Kind: Pattern, Pattern: `auto|off|[1-9]\d{0,3}`, Sample: "25", Rule: subsetSizes}, Default: "auto"},
	}
}

// groupPattern is the name of a group, with its namespace where that is another one than the Service's.
const groupPattern = `(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?/)?[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?`

// DefaultNames are the names of load balancers without the annotation [Name], see pkg/service/mark. With the annotation, a load balancer
// could look like that of another Service.
const DefaultNames = `a[0-9a-f]{31}`

// DurationPattern is the form of a [Duration]: whole hours, minutes and seconds, so that the chart's policy and the program agree on it.
const DurationPattern = `(\d{1,4}h)?(\d{1,4}m)?(\d{1,5}s)?`

// What these patterns accept, for readers.
const (
	groupNames    = "a name of at most 63 lower-case letters, digits and hyphens that begins and ends with a letter or digit, or namespace/name"
	balancerNames = "a name as the console accepts it, but for a and 31 hexadecimal digits, as the manager names load balancers without the annotation"
	subsetSizes   = "auto, off, or a number of nodes from 1 to 9999"
)

func idValue(prefix string) Value {
	return Value{Kind: Pattern, Pattern: prefix + `-[\w-]+`, Sample: prefix + "-1"}
}
