package alicloud

import (
	"slices"
	"strconv"
	"strings"
)

// Attributes are the settings of a listener by the API's parameter name, for example "Scheduler": "wrr" or
// "HealthCheckInterval": "2". A name that is absent is not managed: it is neither sent nor compared.
// Source: https://www.alibabacloud.com/help/en/slb/classic-load-balancer/developer-reference (the listener actions).
type Attributes map[string]string

// Names of listener attributes, as the API spells them. A value is text as the API takes it: numbers in decimal, switches as
// [On] or [Off].
const (
	AttributeScheduler = "Scheduler"
	AttributeBandwidth = "Bandwidth"

	// AttributeACLStatus switches access control on; AttributeACLType is [ACLWhite] or [ACLBlack]. AttributeACLIDs has the ids
	// of the access control lists, joined by commas and sorted where they were read; see [Attributes.ACLIDs].
	AttributeACLStatus = "AclStatus"
	AttributeACLType   = "AclType"
	AttributeACLIDs    = "AclId"

	AttributePersistenceTimeout     = "PersistenceTimeout"
	AttributeEstablishedTimeout     = "EstablishedTimeout"
	AttributeIdleTimeout            = "IdleTimeout"
	AttributeRequestTimeout         = "RequestTimeout"
	AttributeConnectionDrain        = "ConnectionDrain"
	AttributeConnectionDrainTimeout = "ConnectionDrainTimeout"
	AttributeProxyProtocol          = "ProxyProtocolV2Enabled"

	AttributeServerCertificateID = "ServerCertificateId"
	AttributeCACertificateID     = "CACertificateId"
	AttributeTLSCipherPolicy     = "TLSCipherPolicy"
	AttributeHTTP2               = "EnableHttp2"
	AttributeGzip                = "Gzip"
	AttributeXForwardedForProto  = "XForwardedFor_proto"
	AttributeXForwardedForPort   = "XForwardedFor_SLBPORT"
	AttributeXForwardedForClient = "XForwardedFor_ClientSrcPort"

	AttributeStickySession     = "StickySession"
	AttributeStickySessionType = "StickySessionType"
	AttributeCookie            = "Cookie"
	AttributeCookieTimeout     = "CookieTimeout"

	// AttributeListenerForward makes an HTTP listener redirect to the HTTPS listener on AttributeForwardPort.
	AttributeListenerForward = "ListenerForward"
	AttributeForwardPort     = "ForwardPort"

	// AttributeHealthCheckSwitch is for TCP and UDP what AttributeHealthCheck is for HTTP and HTTPS.
	AttributeHealthCheckSwitch         = "HealthCheckSwitch"
	AttributeHealthCheck               = "HealthCheck"
	AttributeHealthCheckType           = "HealthCheckType"
	AttributeHealthCheckURI            = "HealthCheckURI"
	AttributeHealthCheckDomain         = "HealthCheckDomain"
	AttributeHealthCheckHTTPCode       = "HealthCheckHttpCode"
	AttributeHealthCheckMethod         = "HealthCheckMethod"
	AttributeHealthCheckConnectPort    = "HealthCheckConnectPort"
	AttributeHealthCheckConnectTimeout = "HealthCheckConnectTimeout"
	AttributeHealthCheckTimeout        = "HealthCheckTimeout"
	AttributeHealthCheckInterval       = "HealthCheckInterval"
	AttributeHealthyThreshold          = "HealthyThreshold"
	AttributeUnhealthyThreshold        = "UnhealthyThreshold"
)

// The values of attributes that are switches.
const (
	On  = "on"
	Off = "off"
)

// Values of [AttributeACLType]: a white list admits its entries only, a black list refuses them.
const (
	ACLWhite = "white"
	ACLBlack = "black"
)

// Values of [AttributeScheduler] that this project chooses by itself. Users may ask for others.
const (
	SchedulerRoundRobin         = "rr"
	SchedulerWeightedRoundRobin = "wrr"
)

// BackendPort is the [AttributeHealthCheckConnectPort] that checks each backend on its own port. 0 and an absent value mean
// the same.
const BackendPort = "-520"

// On reports whether the switch of the name is on. Absent means off.
func (a Attributes) On(name string) bool { return a[name] == On }

// ACLIDs returns the ids of the access control lists of the listener, sorted.
func (a Attributes) ACLIDs() []string {
	if a[AttributeACLIDs] == "" {
		return nil
	}
	ids := strings.Split(a[AttributeACLIDs], ",")
	slices.Sort(ids)
	return ids
}

// ForwardPort returns the port to which an HTTP listener redirects, and false where it does not redirect.
func (a Attributes) ForwardPort() (int, bool) {
	port, err := strconv.Atoi(a[AttributeForwardPort])
	return port, err == nil && a.On(AttributeListenerForward)
}

// Same reports whether a and b have the same value of an attribute, which the API spells in several ways.
func (a Attributes) Same(name string, b Attributes) bool {
	return canonical(name, a[name]) == canonical(name, b[name])
}

// canonical returns one spelling for all values that mean the same.
func canonical(name, value string) string {
	switch name {
	case AttributeHealthCheckHTTPCode, AttributeACLIDs:
		items := strings.Split(value, ",")
		slices.Sort(items)
		return strings.Join(items, ",")
	case AttributeHealthCheckConnectPort:
		if value == "" || value == "0" {
			return BackendPort
		}
	case AttributeListenerForward, AttributeACLStatus, AttributeConnectionDrain:
		if value == "" {
			return Off
		}
	}
	return value
}
