package annotation

import "github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"

// ListenerTable is the part of the table that sets listener attributes.
func ListenerTable() []Row { return clbListeners }

// listenerRows makes that part of the table. A row is all that a further attribute needs.
func listenerRows() []Row {
	rows := []Row{
		{Suffix: ProtocolPort, Protocols: all, Value: Value{Kind: List, Pattern: `(tcp|udp|http|https):\d{1,5}`, Sample: "http:80"}},
		{Suffix: Scheduler, Reverts: true, Attribute: alicloud.AttributeScheduler, Protocols: all, Default: "rr", AtCreation: true,
			Value: Value{Kind: Enum, Values: []string{"rr", "wrr", "wlc", "sch", "tch", "qch"}}},
		{Suffix: PersistenceTimeout, Reverts: true, Attribute: alicloud.AttributePersistenceTimeout, Protocols: Layer4, Default: "0",
			Value: secondsValue(0, 3600)},
		{Suffix: EstablishedTimeout, Reverts: true, Attribute: alicloud.AttributeEstablishedTimeout, Protocols: tcpOnly, Default: "900",
			Value: secondsValue(10, 900)},
		{Suffix: IdleTimeout, Reverts: true, Attribute: alicloud.AttributeIdleTimeout, Protocols: Layer7, Default: "15",
			Value: secondsValue(1, 60)},
		{Suffix: RequestTimeout, Reverts: true, Attribute: alicloud.AttributeRequestTimeout, Protocols: Layer7, Default: "60",
			Value: secondsValue(1, 180)},
		{Suffix: ProxyProtocol, Reverts: true, Attribute: alicloud.AttributeProxyProtocol, Protocols: Layer4, Default: "off", Value: onOff,
			Encode: boolean},
		{Suffix: ConnectionDrain, Reverts: true, Attribute: alicloud.AttributeConnectionDrain, Protocols: Layer4, Default: "off", Value: onOff},
		{Suffix: ConnectionDrainTimeout, Attribute: alicloud.AttributeConnectionDrainTimeout, Protocols: Layer4, Value: secondsValue(10, 900)},
		{Suffix: ForwardPort, Protocols: httpOnly, Value: Value{Kind: List, Pattern: `\d{1,5}:\d{1,5}`, Sample: "80:443"}},
	}
	rows = append(rows, tlsAnnotations()...)
	rows = append(rows, accessAnnotations()...)
	rows = append(rows, healthCheckAnnotations()...)
	for i := range rows {
		rows[i].Scope = ScopeListeners
	}
	return rows
}

// CertificatePattern is the form of certificate ids: a number and a name, or several numbers.
const CertificatePattern = `[\w-]+`

// cookiePattern refuses only what cannot be sent as the name of a cookie: everything but 1 to 200 printable ASCII characters without
// comma, semicolon and leading dollar sign. The API's page names letters and digits only, but the cloud accepts more.
// Source: https://www.alibabacloud.com/help/en/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-createloadbalancerhttplistener.
const cookiePattern = `[!-#%-+\--:<-~][!-+\--:<-~]{0,199}`

func tlsAnnotations() []Row {
	return []Row{
		{Suffix: CertID, Attribute: alicloud.AttributeServerCertificateID, Protocols: httpsOnly,
			Value: Value{Kind: Pattern, Pattern: CertificatePattern, Sample: "cert-1"}},
		{Suffix: DomainExtensions, Protocols: httpsOnly, Value: Value{Kind: Domains}},
		{Suffix: TLSCipherPolicy, Reverts: true, Attribute: alicloud.AttributeTLSCipherPolicy, Protocols: httpsOnly,
			Default: "tls_cipher_policy_1_0",
			Value: Value{Kind: Pattern, Pattern: `tls_cipher_policy_1_(0|1|2|2_strict|2_strict_with_1_3)|tls-[\w-]+`,
				Sample: "tls_cipher_policy_1_2"}},
		{Suffix: HTTP2Enabled, Reverts: true, Attribute: alicloud.AttributeHTTP2, Protocols: httpsOnly, Default: "on", Value: onOff},
	}
}

func accessAnnotations() []Row {
	return []Row{
		{Suffix: ACLStatus, Reverts: true, Attribute: alicloud.AttributeACLStatus, Protocols: all, Default: "off", Value: onOff},
		{Suffix: ACLID, Attribute: alicloud.AttributeACLIDs, Protocols: all, Value: Value{Kind: List, Pattern: `acl-[\w-]+`, Sample: "acl-1"}},
		{Suffix: ACLType, Attribute: alicloud.AttributeACLType, Protocols: all, Value: Value{Kind: Enum, Values: []string{"white", "black"}}},
		{Suffix: StickySession, Reverts: true, Attribute: alicloud.AttributeStickySession, Protocols: Layer7, Default: "off", AtCreation: true,
			Value: onOff},
		{Suffix: StickySessionType, Attribute: alicloud.AttributeStickySessionType, Protocols: Layer7,
			Value: Value{Kind: Enum, Values: []string{"insert", "server"}}},
		{Suffix: CookieTimeout, Attribute: alicloud.AttributeCookieTimeout, Protocols: Layer7, Value: secondsValue(1, 86400)},
		{Suffix: Cookie, Attribute: alicloud.AttributeCookie, Protocols: Layer7,
			Value: Value{Kind: Pattern, Pattern: cookiePattern, Sample: "session"}},
		{Suffix: XForwardedForProto, Reverts: true, Attribute: alicloud.AttributeXForwardedForProto, Protocols: Layer7, Default: "off",
			Value: onOff},
		{Suffix: XForwardedForSLBPort, Reverts: true, Attribute: alicloud.AttributeXForwardedForPort, Protocols: Layer7, Default: "off",
			Value: onOff},
		{Suffix: XForwardedForSrcPort, Reverts: true, Attribute: alicloud.AttributeXForwardedForClient, Protocols: Layer7, Default: "off",
			Value: onOff},
	}
}

func healthCheckAnnotations() []Row {
	threshold := Value{Kind: Integer, Min: 2, Max: 10}
	return []Row{
		{Suffix: HealthCheck, Reverts: true, Protocols: httpChecks, Default: CheckPort,
			Value: Value{Kind: Enum, Values: []string{CheckNode, CheckPort}}},
		{Suffix: HealthCheckSwitch, Reverts: true, Attribute: alicloud.AttributeHealthCheckSwitch, Protocols: Layer4, Default: "on",
			AtCreation: true, Value: onOff},
		{Suffix: HealthCheckFlag, Reverts: true, Attribute: alicloud.AttributeHealthCheck, Protocols: Layer7, Default: "off", AtCreation: true,
			Value: onOff},
		{Suffix: HealthCheckType, Reverts: true, Attribute: alicloud.AttributeHealthCheckType, Protocols: tcpOnly, Default: "tcp",
			Value: Value{Kind: Enum, Values: []string{"tcp", "http"}}},
		{Suffix: HealthCheckURI, Reverts: true, Revert: "/", Attribute: alicloud.AttributeHealthCheckURI, Protocols: httpChecks,
			Value: Value{Kind: Pattern, Pattern: `/\S{0,79}`, Sample: "/healthz"}},
		{Suffix: HealthCheckDomain, Reverts: true, Default: "$_ip", Attribute: alicloud.AttributeHealthCheckDomain, Protocols: httpChecks,
			Value: Value{Kind: Pattern, Pattern: `\$_ip|[A-Za-z0-9.-]{1,80}`, Sample: "$_ip"}},
		{Suffix: HealthCheckHTTPCode, Reverts: true, Attribute: alicloud.AttributeHealthCheckHTTPCode, Protocols: httpChecks, Default: "http_2xx",
			Value: Value{Kind: List, Pattern: `http_[2345]xx`, Sample: "http_2xx"}},
		{Suffix: HealthCheckMethod, Reverts: true, Revert: "head", Attribute: alicloud.AttributeHealthCheckMethod, Protocols: Layer7,
			Value: Value{Kind: Enum, Values: []string{"head", "get"}}},
		{Suffix: HealthCheckConnectPort, Reverts: true, Attribute: alicloud.AttributeHealthCheckConnectPort, Protocols: all, Default: "-520",
			Value: Value{Kind: Integer, Min: 1, Max: 65535, Also: "-520"}},
		{Suffix: HealthyThreshold, Reverts: true, Attribute: alicloud.AttributeHealthyThreshold, Protocols: all, Default: "3", Value: threshold},
		{Suffix: UnhealthyThreshold, Reverts: true, Attribute: alicloud.AttributeUnhealthyThreshold, Protocols: all, Default: "3",
			Value: threshold},
		{Suffix: HealthCheckInterval, Reverts: true, Attribute: alicloud.AttributeHealthCheckInterval, Protocols: all, Default: "2",
			Value: secondsValue(1, 50)},
		{Suffix: HealthCheckConnectTimeout, Reverts: true, Attribute: alicloud.AttributeHealthCheckConnectTimeout, Protocols: Layer4,
			Default: "5", Value: secondsValue(1, 300)},
		{Suffix: HealthCheckTimeout, Reverts: true, Attribute: alicloud.AttributeHealthCheckTimeout, Protocols: Layer7, Default: "5",
			Value: secondsValue(1, 300)},
	}
}

func secondsValue(low, high int) Value { return Value{Kind: Integer, Min: low, Max: high, Unit: "s"} }
