package annotation

import (
	"slices"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// documentedValues are values at and just outside of the bounds that the documentation of Alibaba Cloud gives, per annotation. They
// are written down here a second time, so that a slip in the table of annotations shows. The first list is accepted, the second is
// not.
var documentedValues = map[Suffix][2][]string{
	AddressType:            {{"internet", "intranet", "Internet", "INTRANET"}, {"public"}},
	NetworkType:            {{"vpc", "classic"}, {"VPC"}},
	VSwitchID:              {{"vsw-bp1"}, {"sw-1", "vsw-", "vsw-1,vsw-2"}},
	IP:                     {{"10.1.2.3"}, {"10.1.2", "10.1.2.3/32", "2001:db8::1"}},
	IPVersion:              {{"ipv4", "ipv6"}, {"IPv6", "dualstack"}},
	MasterZoneID:           {{"cn-hangzhou-a"}, {"CN-HANGZHOU-A"}},
	SlaveZoneID:            {{"cn-hangzhou-b"}, {"b zone"}},
	ResourceGroupID:        {{"rg-acfm"}, {"acfm"}},
	LoadBalancerID:         {{"lb-bp1"}, {"nlb-1", "bp1", "lb-1 lb-2"}},
	ForceOverrideListeners: {{"true", "false"}, {"True", "yes", `"true"`, "1"}},
	Name: {{"a", "服务-1.b_c", "a" + strings.Repeat("b", 127)},
		{"1a", "-a", "a b", "http://a", "https://a", "a" + strings.Repeat("b", 128)}},
	InstanceChargeType: {{"PayBySpec", "PayByCLCU", "paybyclcu", "PAYBYSPEC"}, {"PayByTraffic"}},
	Spec: {{"slb.s1.small", "slb.s2.small", "slb.s2.medium", "slb.s3.small", "slb.s3.medium", "slb.s3.large", "slb.s4.large"},
		{"nlb.s1.small", "s1.small"}},
	ChargeType: {{"paybytraffic", "paybybandwidth"}, {"PayByTraffic"}},
	Bandwidth:  {{"1", "5000", "5120"}, {"0", "-1", "5121", "10M", "1.5"}},
	AdditionalTags: {{"k=v,k2=v2", "k", "k=", "k=a=b"},
		{"=v", "k=1,k=2", "aliyunk=1", "acs:k=1", "k=acs:v", "k=http://a", "kubernetes.do.not.delete=a", "ack.aliyun.com=c",
			"kubernetes.reused.by.user=true"}},
	DeleteProtection:       {{"on", "off"}, {"true", "ON"}},
	ModificationProtection: {{"ConsoleProtection", "NonProtection"}, {"on", "consoleprotection"}},
	PreserveOnDelete:       {{"true", "false", "off", "yes"}, {}},
	ExternalIPType:         {{"eip"}, {"EIP", "ip"}},
	Hostname:               {{"web.example.com", "web"}, {"Web.example.com", "10.0.0.1", "web_1", strings.Repeat("a.", 126) + "ab"}},
	TunnelType:             {{"tunnel"}, nil},
	Move:                   {{"allow"}, {"true", "Allow"}},
	MoveGrace:              {{"0s", "30s", "59m59s", "1h"}, {"-1s", "30", "1d", "1h1s"}},
	Type:                   {{"nlb"}, nil},

	ProtocolPort:           {{"tcp:80", "udp:53,http:80,https:443"}, {"tcpssl:443", "http", "80:http", "HTTP:80", "http:80,http:80"}},
	Scheduler:              {{"wrr", "wlc", "rr", "sch", "tch", "qch"}, {"WRR", "random"}},
	PersistenceTimeout:     {{"0", "3600"}, {"-1", "3601"}},
	EstablishedTimeout:     {{"10", "900"}, {"9", "901"}},
	IdleTimeout:            {{"1", "60"}, {"0", "61"}},
	RequestTimeout:         {{"1", "180"}, {"0", "181"}},
	ProxyProtocol:          {{"on", "off"}, {"true"}},
	ConnectionDrain:        {{"on", "off"}, {"true"}},
	ConnectionDrainTimeout: {{"10", "900"}, {"9", "901"}},
	ForwardPort:            {{"80:443", "80:443,81:444"}, {"80", "80-443", "http:443"}},
	CertID:                 {{"123_cn-hangzhou", "cert-1"}, {"a b"}},
	DomainExtensions: {{"a.example.com:cert-1", "*.example.com:cert-1,b.example.com:2"},
		{"a.example.com", "a.example.com:1,a.example.com:2", ":cert-1"}},
	TLSCipherPolicy: {{"tls_cipher_policy_1_0", "tls_cipher_policy_1_1", "tls_cipher_policy_1_2", "tls_cipher_policy_1_2_strict",
		"tls_cipher_policy_1_2_strict_with_1_3", "tls-bp1"},
		{"tls_cipher_policy_1_3", "TLSv1.2"}},
	HTTP2Enabled: {{"on", "off"}, {"true"}},

	ACLStatus:            {{"on", "off"}, {"true"}},
	ACLID:                {{"acl-1", "acl-1,acl-2"}, {"1", "acl-1,acl-1", "acl-1;acl-2"}},
	ACLType:              {{"white", "black"}, {"allow"}},
	StickySession:        {{"on", "off"}, {"true"}},
	StickySessionType:    {{"insert", "server"}, {"cookie"}},
	CookieTimeout:        {{"1", "86400"}, {"0", "86401"}},
	Cookie:               {{"a", "Session1", "route-id", "a_b.c"}, {"a b", "a,b", "a;b", "$a"}},
	XForwardedForProto:   {{"on", "off"}, {"true"}},
	XForwardedForSLBPort: {{"on", "off"}, {"true"}},
	XForwardedForSrcPort: {{"on", "off"}, {"true"}},

	HealthCheckSwitch:         {{"on", "off"}, {"true"}},
	HealthCheckFlag:           {{"on", "off"}, {"true"}},
	HealthCheckType:           {{"tcp", "http"}, {"https", "TCP"}},
	HealthCheckURI:            {{"/", "/a", "/" + strings.Repeat("a", 79)}, {"a", "/a b", "/" + strings.Repeat("a", 80)}},
	HealthCheckDomain:         {{"$_ip", "a.example.com", strings.Repeat("a", 80)}, {"$ip", "a_b", strings.Repeat("a", 81)}},
	HealthCheckHTTPCode:       {{"http_2xx", "http_2xx,http_3xx,http_4xx,http_5xx"}, {"200", "http_1xx", "http_2xx,http_2xx"}},
	HealthCheckMethod:         {{"head", "get"}, {"HEAD", "post"}},
	HealthCheckConnectPort:    {{"-520", "1", "65535"}, {"0", "-1", "65536"}},
	HealthyThreshold:          {{"2", "10"}, {"1", "11"}},
	UnhealthyThreshold:        {{"2", "10"}, {"1", "11"}},
	HealthCheckInterval:       {{"1", "50"}, {"0", "51"}},
	HealthCheckConnectTimeout: {{"1", "300"}, {"0", "301"}},
	HealthCheckTimeout:        {{"1", "300"}, {"0", "301"}},

	BackendLabel:             {{"a=b", "a.example.com/b=c,d=e"}, {"a", "a!=b", "=b"}},
	RemoveUnscheduledBackend: {{"on", "off"}, {"true"}},
	BackendIPVersion:         {{"ipv4", "ipv6"}, {"dualstack"}},
	VGroupPort:               {{"rsp-1:80", "rsp-1:80,rsp-2:443"}, {"80:rsp-1", "rsp-1", "sgp-1:80"}},
	Weight:                   {{"0", "100"}, {"-1", "101"}},
	DefaultWeight:            {{"0", "100"}, {"-1", "101"}},
	IgnoreWeightUpdate:       {{"on", "off", "On"}, {"true"}},
	Group:                    {{"web", "a-1", "infra/web"}, {"Web", "-a", "a/b/c", "a b", "web/"}},
	GracefulShutdown:         {{"true", "false"}, {"on", "True"}},
	HealthCheck:              {{"node", "port"}, {"Node", "on"}},
	IPMode:                   {{"VIP", "Proxy", "auto", "proxy"}, {"vips", "true"}},
	GroupOverflow:            {{"true", "false"}, {"on", "yes"}},
	BackendSubset:            {{"auto", "off", "1", "25", "9999"}, {"0", "-1", "all", "10000", "025", "2.5", "Auto"}},
}

// TestDocumentedValues reads every value under both prefixes. One that is not accepted is reported with the annotation, the value
// and what is accepted, and has no value.
func TestDocumentedValues(t *testing.T) {
	t.Parallel()
	for _, row := range Table() {
		values, ok := documentedValues[row.Suffix]
		if !ok {
			t.Errorf("no documented values of %s", row.Suffix)
		}
		for prefix := range Prefixes {
			key := fullKey(prefix, row.Suffix)
			for _, value := range values[0] {
				_, problems := Parse(map[string]string{key: value})
				if slices.ContainsFunc(problems, func(p problem.Problem) bool { return strings.Contains(p.Message, "; accepted: ") }) {
					t.Errorf("%s: %q is not accepted: %v", key, value, problems)
				}
			}
			for _, value := range values[1] {
				params, problems := Parse(map[string]string{key: value})
				reported := slices.ContainsFunc(problems, func(p problem.Problem) bool {
					return p.Reason == problem.ReasonInvalidAnnotation && strings.Contains(p.Message, string(row.Suffix)+": ") &&
						strings.Contains(p.Message, strings.Trim(value[:min(len(value), 90)], `"`)) &&
						strings.Contains(p.Message, "; accepted: "+row.Value.Accepts())
				})
				if params.Has(row.Suffix) || !params.Invalid || !reported {
					t.Errorf("%s: %q is accepted: %v, stops writes: %v, is reported: %v: %v",
						key, value, params.Has(row.Suffix), params.Invalid, reported, problems)
				}
			}
		}
	}
}
