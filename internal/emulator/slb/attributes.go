package slb

import (
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
)

// attribute is one setting of a listener: how it is sent, checked, defaulted and answered. Create, Set and both Describe
// answers are made from these tables, so they cannot disagree.
type attribute struct {
	api.Param
	// name is the name in answers.
	name string
	// create and set are the parameter names, "" where the call does not take it. They differ for a few real names.
	create, set string
	def         string
	// top attributes stand beside the protocol's config object in DescribeLoadBalancerListeners.
	top bool
}

func attr(rule api.Param, def string) attribute {
	return attribute{Param: rule, name: rule.Name, create: rule.Name, set: rule.Name, def: def}
}

func (a attribute) atTop() attribute            { a.top = true; return a }
func (a attribute) createAs(s string) attribute { a.create = s; return a }
func (a attribute) setAs(s string) attribute    { a.set = s; return a }

func num(name string, lo, hi int, def string) attribute { return attr(api.Num(name, lo, hi), def) }
func toggle(name, def string) attribute                 { return attr(onOff(name), def) }
func text(name string) attribute                        { return attr(api.Str(name), "") }

// anyPort is the health check port that stands for each backend's own.
const anyPort = -520

func commonAttributes() []attribute {
	return []attribute{
		attr(api.Num("Bandwidth", 1, maxBandwidth, api.Also(-1)), "-1").atTop(),
		attr(api.Str("Scheduler", api.OneOf("wrr", "wlc", "rr", "sch", "tch", "qch")), "wrr").atTop(),
		toggle("AclStatus", "off").atTop(),
		attr(api.Str("AclType", api.OneOf("white", "black")), "").atTop(),
		text("AclId").atTop(),
		num("BackendServerPort", 1, 65535, "").setAs("").atTop(),
		num("HealthyThreshold", 2, 10, "3"), num("UnhealthyThreshold", 2, 10, "3"),
		attr(api.Num("HealthCheckConnectPort", 1, 65535, api.Also(anyPort)), ""),
		attr(api.Str("HealthCheckURI", api.Len(1, 80)), ""), attr(api.Str("HealthCheckDomain", api.Len(1, 80)), ""),
		text("HealthCheckHttpCode"), attr(api.Str("HealthCheckMethod", api.OneOf("head", "get")), ""),
		num("MaxConnection", -1, 0, ""),
	}
}

func layer4Attributes(healthCheckType string) []attribute {
	return []attribute{
		toggle("HealthCheckSwitch", "on"),
		attr(api.Str("HealthCheckType", api.OneOf(healthCheckType, "http")), healthCheckType),
		num("HealthCheckConnectTimeout", 1, 300, "5"),
		num("HealthCheckInterval", 1, 50, "2").createAs("healthCheckInterval"),
		toggle("ConnectionDrain", "off"), num("ConnectionDrainTimeout", 10, 900, ""),
		attr(api.Flag("ProxyProtocolV2Enabled"), "false"), num("PersistenceTimeout", 0, 3600, "0"),
		text("MasterSlaveServerGroupId"), attr(api.Flag("FullNatEnabled"), "false"),
	}
}

func layer7Attributes() []attribute {
	attributes := []attribute{
		toggle("HealthCheck", "off"), attr(api.Str("HealthCheckType", api.OneOf("http")), "http"),
		num("HealthCheckInterval", 1, 50, "2"), num("HealthCheckTimeout", 1, 300, "5"),
		text("HealthCheckHttpVersion").setAs(""), toggle("StickySession", "off"),
		attr(api.Str("StickySessionType", api.OneOf("insert", "server")), ""), attr(api.Str("Cookie", api.Len(1, 200)), ""),
		num("CookieTimeout", 1, 86400, ""), toggle("XForwardedFor", "on"), num("IdleTimeout", 1, 60, "15"),
		num("RequestTimeout", 1, 180, "60"), toggle("Gzip", "on"),
	}
	for _, header := range []string{"SLBIP", "SLBID", "proto", "SLBPORT", "ClientSrcPort"} {
		attributes = append(attributes, toggle("XForwardedFor_"+header, "off"))
	}
	return attributes
}

// cipherPolicies are the vendor's; ids of the account's own begin with "tls-".
// Source: https://www.alibabacloud.com/help/document_detail/86531.htm.
var cipherPolicies = []string{
	"tls_cipher_policy_1_0", "tls_cipher_policy_1_1", "tls_cipher_policy_1_2", "tls_cipher_policy_1_2_strict",
	"tls_cipher_policy_1_2_strict_with_1_3",
}

// protocol is one kind of listener.
type protocol struct {
	// name is how answers spell it; title how action names do.
	name, title string
	attributes  []attribute
}

var protocols = []protocol{
	{"tcp", "TCP", slices.Concat(commonAttributes(), layer4Attributes("tcp"), []attribute{
		num("EstablishedTimeout", 10, 900, "900"), attr(api.Flag("HealthCheckTcpFastCloseEnabled"), "false"),
		attr(api.Str("SynProxy", api.OneOf("enable", "disable")), "").createAs(""),
	})},
	{"udp", "UDP", slices.Concat(commonAttributes(), layer4Attributes("udp"), []attribute{
		text("HealthCheckReq").createAs("healthCheckReq").setAs("healthCheckReq"),
		text("HealthCheckExp").createAs("healthCheckExp").setAs("healthCheckExp"), text("QuicVersion"),
	})},
	{"http", "HTTP", slices.Concat(commonAttributes(), layer7Attributes(), []attribute{
		toggle("ListenerForward", "off").setAs(""), num("ForwardPort", 1, 65535, "").setAs(""), num("ForwardCode", 301, 308, ""),
	})},
	{"https", "HTTPS", slices.Concat(commonAttributes(), layer7Attributes(), []attribute{
		text("ServerCertificateId"), text("CACertificateId"), toggle("EnableHttp2", "on"),
		attr(api.Str("TLSCipherPolicy", api.OneOf(cipherPolicies...), api.OrPrefix("tls-")), ""), text("BackendProtocol").atTop(),
	})},
}

// params are the rules of Create or Set for a protocol's attributes; name picks the call's spelling.
func (p protocol) params(name func(attribute) string) []api.Param {
	var rules []api.Param
	for _, a := range p.attributes {
		if n := name(a); n != "" {
			rule := a.Param
			rule.Name = n
			rules = append(rules, rule)
		}
	}
	return rules
}

// value types an attribute's text for an answer: numbers as numbers, booleans as booleans. A number that was never set is
// left out by its caller.
func (a attribute) value(values api.Params) any {
	switch a.Type {
	case api.Int:
		return values.Int(a.name, 0)
	case api.Bool:
		return values.Bool(a.name, false)
	default:
		return values.Str(a.name)
	}
}
