package annotation

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// The annotations that only an NLB has. It shares the others with a CLB, some of them with other values.
const (
	ZoneMaps           Suffix = "loadbalancer-zone-maps"
	IPv6AddressType    Suffix = "loadbalancer-ipv6-address-type"
	SecurityGroupIDs   Suffix = "loadbalancer-security-group-ids"
	BandwidthPackageID Suffix = "loadbalancer-bandwidth-package-id"
	CrossZoneEnabled   Suffix = "loadbalancer-cross-zone-enabled"

	ListenerPortRange Suffix = "loadbalancer-listener-port-range"
	AdditionalCertIDs Suffix = "loadbalancer-additional-cert-ids"
	CACert            Suffix = "loadbalancer-cacert"
	CACertID          Suffix = "loadbalancer-cacert-id"
	ALPN              Suffix = "loadbalancer-alpn"
	ALPNPolicy        Suffix = "loadbalancer-alpn-policy"
	Cps               Suffix = "loadbalancer-cps"
	PPV2EpID          Suffix = "loadbalancer-ppv2-pvl-ep-id-enabled"
	PPV2EpsID         Suffix = "loadbalancer-ppv2-pvl-eps-id-enabled"
	PPV2VPCID         Suffix = "loadbalancer-ppv2-pvl-vpc-id-enabled"

	ServerGroupType  Suffix = "loadbalancer-server-group-type"
	PreserveClientIP Suffix = "loadbalancer-preserve-client-ip"

	HealthCheckHTTPVersion Suffix = "loadbalancer-health-check-http-version"
)

// Values of annotations of an NLB that count without further words.
const (
	DualStackNLB   = "DualStack"
	FamilyDual     = "dualstack"
	ServerGroupIPs = "Ip"
)

// Bounds of an NLB. Sources:
// https://www.alibabacloud.com/help/en/slb/network-load-balancer/developer-reference/api-nlb-2022-04-30-createloadbalancer,
// …-createlistener.
const (
	// MaxIdleOfUDP is the longest idle timeout of a UDP listener in seconds.
	MaxIdleOfUDP = 20

	maxZones = 10
	maxCps   = 1_000_000

	maxListenerPort = 65535
	minIdle         = 10
	maxIdle         = 900
)

// nlbFamily is the table of all annotations that act on an NLB. Source of values and defaults:
// https://www.alibabacloud.com/help/en/ack/serverless-kubernetes/user-guide/add-annotations-to-the-yaml-file-of-a-service-to-configure-nlb-instances.
var nlbFamily = newFamily("NLB", slices.Concat(nlbInstance, nlbBackendRows()), nlbListenerRows(), nlbRules, elsewhereOfNLB())

// NLBTable is the table of all annotations that act on an NLB.
func NLBTable() []Row { return nlbFamily.rows }

// OfNLB reads the annotations of a Service with an NLB.
func OfNLB(svc *corev1.Service) (Params, []problem.Problem) {
	params, problems := nlbFamily.parseAnnotations(svc.Annotations)
	if svc.Spec.LoadBalancerIP != "" {
		problems = append(problems,
			problem.Newf(problem.ReasonAnnotationNoEffect, "spec.loadBalancerIP has no effect on an NLB: it has an address per zone, see %s",
				ZoneMaps))
	}
	if svc.Spec.SessionAffinity == corev1.ServiceAffinityClientIP && !params.Has(Scheduler) {
		problems = append(problems,
			problem.Newf(problem.ReasonAnnotationNoEffect,
				"spec.sessionAffinity has no effect on an NLB; %s: sch keeps the connections of a client on one backend server", Scheduler))
	}
	return params, problems
}

// NLBInstanceAnnotations are those that concern an NLB itself.
func NLBInstanceAnnotations() []Row { return nlbInstance }

// nlbInstance is built once: every pass over a Service with an NLB reads it many times.
var nlbInstance = nlbInstanceRows()

func nlbInstanceRows() []Row {
	inOrOut := Value{Kind: Enum, Values: []string{"internet", "intranet"}, FoldCase: true}
	rows := InstanceAnnotations()
	shared := func(suffix Suffix) Row {
		return rows[slices.IndexFunc(rows, func(r Row) bool { return r.Suffix == suffix })]
	}
	return []Row{
		{Suffix: ZoneMaps, Scope: ScopeCreation, Value: Value{
			Kind: List, Pattern: `[a-z0-9-]+:vsw-[\w-]+(:[0-9.]*(:(eip-[\w-]+)?)?)?`,
			Sample: "cn-hangzhou-a:vsw-1,cn-hangzhou-b:vsw-2:192.0.2.10:eip-1",
		}},
		{Suffix: AddressType, Reverts: true, Scope: ScopeCreation, Value: inOrOut, Default: "internet"},
		{Suffix: IPVersion, Scope: ScopeCreation, Value: Value{Kind: Enum, Values: []string{FamilyIPv4, DualStackNLB}, FoldCase: true},
			Default: FamilyIPv4},
		{Suffix: IPv6AddressType, Reverts: true, Value: inOrOut, Default: "intranet"},
		{Suffix: ResourceGroupID, Scope: ScopeCreation, Value: idValue("rg")},
		{Suffix: LoadBalancerID, Scope: ScopeCreation, Value: idValue("nlb")},
		shared(ForceOverrideListeners), shared(Group), shared(GroupOverflow), shared(MoveGrace),
		{Suffix: Name, Reverts: true,
			Value: Value{Kind: Pattern, Pattern: `[A-Za-z][\w.-]{1,127}`, Except: DefaultNames, Sample: "web", Rule: balancerNames}},
		{Suffix: CrossZoneEnabled, Reverts: true, Value: onOff, Default: "on"},
		{Suffix: SecurityGroupIDs, Reverts: true, Scope: ScopeCreation, Value: Value{Kind: List, Pattern: `sg-[\w-]+`, Sample: "sg-1"}},
		{Suffix: BandwidthPackageID, Reverts: true, Value: idValue("cbwp")},
		{Suffix: AdditionalTags, Value: Value{Kind: Tags}},
		shared(DeleteProtection), shared(ModificationProtection), shared(PreserveOnDelete), shared(Hostname), shared(TunnelType), shared(Type),
	}
}

var (
	tcpAndUDP = []string{"tcp", "udp"}
	tlsOnly   = []string{"tcpssl"}
	allOfNLB  = []string{"tcp", "udp", "tcpssl"}
)

func nlbListenerRows() []Row {
	certificate := Value{Kind: Pattern, Pattern: CertificatePattern, Sample: "cert-1"}
	rows := []Row{
		{Suffix: ProtocolPort, Protocols: allOfNLB, Value: Value{Kind: List, Pattern: `(?i:tcp|udp|tcpssl):\d{1,5}`, Sample: "tcpssl:443"}},
		{Suffix: ListenerPortRange, Protocols: tcpAndUDP, Value: Value{Kind: List, Pattern: `\d{1,5}-\d{1,5}:\d{1,5}`, Sample: "80-400:80"}},
		{Suffix: IdleTimeout, Reverts: true, Protocols: allOfNLB, Value: secondsValue(minIdle, maxIdle), Default: strconv.Itoa(maxIdle)},
		{Suffix: Cps, Reverts: true, Protocols: allOfNLB, Value: Value{Kind: Integer, Max: maxCps}, Default: "0"},
		{Suffix: ProxyProtocol, Reverts: true, Protocols: allOfNLB, Value: onOff, Default: "off"},
		{Suffix: PPV2EpID, Reverts: true, Protocols: allOfNLB, Value: onOff, Default: "off"},
		{Suffix: PPV2EpsID, Reverts: true, Protocols: allOfNLB, Value: onOff, Default: "off"},
		{Suffix: PPV2VPCID, Reverts: true, Protocols: allOfNLB, Value: onOff, Default: "off"},
		{Suffix: CertID, Protocols: tlsOnly, Value: certificate},
		{Suffix: AdditionalCertIDs, Protocols: tlsOnly, Value: Value{Kind: List, Pattern: CertificatePattern, Sample: "cert-2"}},
		{Suffix: CACert, Reverts: true, Protocols: tlsOnly, Value: onOff, Default: "off"},
		{Suffix: CACertID, Protocols: tlsOnly, Value: Value{Kind: Pattern, Pattern: CertificatePattern, Sample: "ca-1"}},
		{Suffix: TLSCipherPolicy, Reverts: true, Protocols: tlsOnly, Default: "tls_cipher_policy_1_0",
			Value: Value{Kind: Pattern, Pattern: `tls_cipher_policy_1_(0|1|2|2_strict|2_strict_with_1_3)|tls-[\w-]+`,
				Sample: "tls_cipher_policy_1_2"}},
		{Suffix: ALPN, Reverts: true, Protocols: tlsOnly, Value: onOff, Default: "off"},
		{Suffix: ALPNPolicy, Protocols: tlsOnly,
			Value: Value{Kind: Enum, Values: []string{"HTTP1Only", "HTTP2Only", "HTTP2Optional", "HTTP2Preferred"}}},
	}
	for i := range rows {
		rows[i].Scope = ScopeListeners
	}
	return rows
}

func nlbBackendRows() []Row {
	threshold := Value{Kind: Integer, Min: 2, Max: 10}
	rows := []Row{
		{Suffix: ServerGroupType, Scope: ScopeBackends, Value: Value{Kind: Enum, Values: []string{"Instance", ServerGroupIPs}, FoldCase: true},
			Default: "Instance"},
		{Suffix: Scheduler, Reverts: true, Default: "wrr",
			Value: Value{Kind: Enum, Values: []string{"wrr", "rr", "wlc", "sch", "tch", "qch"}, FoldCase: true}},
		{Suffix: ConnectionDrain, Reverts: true, Default: "off", Value: onOff},
		{Suffix: ConnectionDrainTimeout, Value: secondsValue(0, maxIdle)},
		{Suffix: PreserveClientIP, Reverts: true, Default: "on", Value: onOff},
		{Suffix: HealthCheck, Reverts: true, Default: CheckPort, Value: Value{Kind: Enum, Values: []string{CheckNode, CheckPort}}},
		{Suffix: HealthCheckFlag, Reverts: true, Default: "on", Value: onOff},
		{Suffix: HealthCheckType, Reverts: true, Default: "tcp",
			Value: Value{Kind: Enum, Values: []string{"tcp", "http", "udp"}, FoldCase: true}},
		{Suffix: HealthCheckConnectPort, Reverts: true, Default: "0", Value: Value{Kind: Integer, Max: 65535}},
		{Suffix: HealthCheckConnectTimeout, Reverts: true, Default: "5", Value: secondsValue(1, 300)},
		{Suffix: HealthCheckInterval, Reverts: true, Default: "5", Value: secondsValue(1, 300)},
		{Suffix: HealthyThreshold, Reverts: true, Default: "2", Value: threshold},
		{Suffix: UnhealthyThreshold, Reverts: true, Default: "2", Value: threshold},
		{Suffix: HealthCheckURI, Reverts: true, Revert: "/", Value: Value{Kind: Pattern, Pattern: `/\S{0,79}`, Sample: "/healthz"}},
		{Suffix: HealthCheckDomain, Reverts: true, Revert: "$SERVER_IP",
			Value: Value{Kind: Pattern, Pattern: `\$SERVER_IP|[A-Za-z0-9.-]{1,80}`, Sample: "$SERVER_IP"}},
		{Suffix: HealthCheckMethod, Reverts: true, Revert: "get", Value: Value{Kind: Enum, Values: []string{"get", "head"}, FoldCase: true}},
		{Suffix: HealthCheckHTTPCode, Reverts: true, Default: "http_2xx", Value: Value{Kind: List, Pattern: `http_[2345]xx`, Sample: "http_2xx"}},
		{Suffix: HealthCheckHTTPVersion, Reverts: true, Revert: "HTTP1.0",
			Value: Value{Kind: Enum, Values: []string{"HTTP1.0", "HTTP1.1"}, FoldCase: true}},
	}
	for _, row := range BackendAnnotations() {
		switch row.Suffix {
		case BackendIPVersion:
			row.Value.Values = []string{FamilyIPv4, FamilyIPv6, FamilyDual}
			row.Value.FoldCase = true
		case VGroupPort:
			row.Value.Pattern, row.Value.Sample = `sgp-[\w-]+:\d{1,5}`, "sgp-1:80"
		}
		rows = append(rows, row)
	}
	return rows
}

// elsewhereOfNLB are the annotations that only a CLB has, with the one that an NLB has in its place.
func elsewhereOfNLB() map[Suffix]Suffix {
	found := map[Suffix]Suffix{}
	own := suffixesOf(slices.Concat(nlbInstance, nlbBackendRows(), nlbListenerRows()))
	for _, row := range clbRows {
		if !own[row.Suffix] {
			found[row.Suffix] = ""
		}
	}
	found[EstablishedTimeout], found[VSwitchID], found[DomainExtensions] = IdleTimeout, ZoneMaps, AdditionalCertIDs
	found[HealthCheckTimeout], found[HealthCheckSwitch], found[IP] = HealthCheckConnectTimeout, HealthCheckFlag, ZoneMaps
	for _, list := range accessLists {
		found[list] = SecurityGroupIDs
	}
	return found
}

func dualStack(p Params) bool { return p.Get(IPVersion) == DualStackNLB }

// healthChecks are the annotations that count with [HealthCheckFlag] only.
var healthChecks = []Suffix{
	HealthCheckType, HealthCheckConnectPort, HealthCheckConnectTimeout, HealthCheckInterval, HealthyThreshold, UnhealthyThreshold,
	HealthCheckURI, HealthCheckDomain, HealthCheckMethod, HealthCheckHTTPCode, HealthCheckHTTPVersion,
}

var nlbRules = slices.Concat(healthCheckRules(), []rule{
	{badZones, []Suffix{ZoneMaps},
		fmt.Sprintf("%s: one entry for each zone, at most %d, and each address an IPv4 address", ZoneMaps, maxZones)},
	{badRanges, []Suffix{ListenerPortRange},
		fmt.Sprintf("%s: a smaller and a larger port, 1 to 65535; without the annotation the listener has one port", ListenerPortRange)},
	{needsSuffix(valueIs(CACert, "on"), CACertID), []Suffix{CACert, CACertID}, fmt.Sprintf("%s: \"on\" needs %s", CACert, CACertID)},
	{presentWithout(CACertID, valueIs(CACert, "on")), nil, fmt.Sprintf("%s has no effect without %s: \"on\"", CACertID, CACert)},
	{needsSuffix(valueIs(ALPN, "on"), ALPNPolicy), []Suffix{ALPN, ALPNPolicy}, fmt.Sprintf("%s: \"on\" needs %s", ALPN, ALPNPolicy)},
	{presentWithout(ALPNPolicy, valueIs(ALPN, "on")), nil, fmt.Sprintf("%s has no effect without %s: \"on\"", ALPNPolicy, ALPN)},
	{presentWithout(PPV2EpID, valueIs(ProxyProtocol, "on")), nil, fmt.Sprintf("%s has no effect without %s: \"on\"", PPV2EpID, ProxyProtocol)},
	{presentWithout(PPV2EpsID, valueIs(ProxyProtocol, "on")), nil,
		fmt.Sprintf("%s has no effect without %s: \"on\"", PPV2EpsID, ProxyProtocol)},
	{presentWithout(PPV2VPCID, valueIs(ProxyProtocol, "on")), nil,
		fmt.Sprintf("%s has no effect without %s: \"on\"", PPV2VPCID, ProxyProtocol)},
	{presentWithout(ConnectionDrainTimeout, valueIs(ConnectionDrain, "on")), nil,
		fmt.Sprintf("%s has no effect without %s: \"on\"", ConnectionDrainTimeout, ConnectionDrain)},
	{presentWithout(BandwidthPackageID, isInternet), nil, fmt.Sprintf("%s has no effect with %s: intranet", BandwidthPackageID, AddressType)},
	{presentWithout(IPv6AddressType, func(p Params) bool {
		return dualStack(p) || p.Has(LoadBalancerID)
	}), nil, fmt.Sprintf("%s has no effect without %s: DualStack", IPv6AddressType, IPVersion)},
	{presentWithout(ForceOverrideListeners, hasSuffix(LoadBalancerID)), nil,
		fmt.Sprintf("%s has no effect without %s", ForceOverrideListeners, LoadBalancerID)},
	{presentWithout(VGroupPort, hasSuffix(LoadBalancerID)), nil, fmt.Sprintf("%s has no effect without %s", VGroupPort, LoadBalancerID)},
	groupRule, overflowRule,
	{presentWithout(Weight, hasSuffix(VGroupPort)), nil, fmt.Sprintf("%s has no effect without %s", Weight, VGroupPort)},
	{hasSuffix(Type), nil, fmt.Sprintf("%s has no effect, because the feature gate %s is off", Type, GateLoadBalancerType)},
	preserveRule,
})

func healthCheckRules() []rule {
	var found []rule
	for _, suffix := range healthChecks {
		found = append(found,
			rule{presentWithout(suffix, hasSuffix(HealthCheckFlag)), nil, fmt.Sprintf("%s has no effect without %s", suffix, HealthCheckFlag)})
	}
	return found
}

// ZonesOf returns the zones of the annotation zone-maps, nothing where its value was refused.
func ZonesOf(params Params) []alicloud.NLBZone {
	return ZonesIn(params.Get(ZoneMaps))
}

// DefaultOf reads the text of a field of the cloud-config that stands for an annotation where a Service has none. Without ok, accepted says
// what would be.
func DefaultOf(suffix Suffix, text string) (value, accepted string, ok bool) {
	if text = strings.TrimSpace(text); text == "" {
		return "", "", true
	}
	rows := slices.Concat(Table(), NLBTable())
	row := rows[slices.IndexFunc(rows, func(r Row) bool { return r.Suffix == suffix })]
	value, ok = row.Value.Parse(text)
	if ok && suffix == ZoneMaps && badZoneList(ZonesIn(value)) {
		value, ok = "", false
	}
	return value, row.Value.Accepts(), ok
}

// ZonesIn returns the zones in a text in the form of the annotation zone-maps.
func ZonesIn(text string) []alicloud.NLBZone {
	if text == "" {
		return nil
	}
	var zones []alicloud.NLBZone
	for item := range strings.SplitSeq(text, ",") {
		parts := append(strings.Split(item, ":"), "", "")
		zones = append(zones, alicloud.NLBZone{ZoneID: parts[0], VSwitchID: parts[1], PrivateIPv4: parts[2], AllocationID: parts[3]})
	}
	return zones
}

func badZones(p Params) bool { return badZoneList(ZonesOf(p)) }

func badZoneList(zones []alicloud.NLBZone) bool {
	seen := map[string]bool{}
	for _, zone := range zones {
		address, err := netip.ParseAddr(zone.PrivateIPv4)
		if seen[zone.ZoneID] || zone.PrivateIPv4 != "" && (err != nil || !address.Is4()) {
			return true
		}
		seen[zone.ZoneID] = true
	}
	return len(zones) > maxZones
}

func badRanges(p Params) bool {
	return slices.ContainsFunc(ListOf(p, ListenerPortRange), func(item string) bool {
		start, end := RangeOf(item)
		return start < 1 || end > maxListenerPort || start >= end
	})
}

// RangeOf returns the first and the last port of an item of the annotation listener-port-range, in the form first-last:port.
func RangeOf(item string) (first, last int) {
	span, _, _ := strings.Cut(item, ":")
	from, to, _ := strings.Cut(span, "-")
	first, _ = strconv.Atoi(from)
	last, _ = strconv.Atoi(to)
	return first, last
}

// ListOf returns the elements of an annotation that is a list, each once.
func ListOf(params Params, suffix Suffix) []string {
	var items []string
	for item := range strings.SplitSeq(params.Get(suffix), ",") {
		if item != "" && !slices.Contains(items, item) {
			items = append(items, item)
		}
	}
	return items
}

// NLBTagsOf returns the tags that the annotation asks for. The value of a tag ends at the end of the item, unlike for a CLB.
func NLBTagsOf(params Params) []alicloud.Tag {
	var tags []alicloud.Tag
	for _, item := range ListOf(params, AdditionalTags) {
		key, value, _ := strings.Cut(strings.TrimSpace(item), "=")
		tags = append(tags, alicloud.Tag{Key: key, Value: value})
	}
	return tags
}

// Emptied reports whether an annotation is present without a value.
func Emptied(annotations map[string]string, suffix Suffix) bool {
	for i := range Prefixes {
		if value, ok := annotations[fullKey(i, suffix)]; ok {
			return strings.TrimSpace(value) == ""
		}
	}
	return false
}
