package annotation

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// TestNLBValues: what is refused names the annotation, its value and what is accepted, and what another product has names that.
func TestNLBValues(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		values map[Suffix]string
		// want is part of a message, empty for none.
		want string
	}{
		"zones":             {map[Suffix]string{ZoneMaps: "cn-hangzhou-a:vsw-1, cn-hangzhou-b:vsw-2::eip-1"}, ""},
		"one zone twice":    {map[Suffix]string{ZoneMaps: "cn-hangzhou-a:vsw-1,cn-hangzhou-a:vsw-2"}, "one entry for each zone, at most 10"},
		"no vSwitch":        {map[Suffix]string{ZoneMaps: "cn-hangzhou-a"}, `loadbalancer-zone-maps: "cn-hangzhou-a" is not accepted`},
		"bad address":       {map[Suffix]string{ZoneMaps: "cn-hangzhou-a:vsw-1:10.0.0"}, "each address an IPv4 address"},
		"address type":      {map[Suffix]string{AddressType: "INTRANET"}, ""},
		"IPv6 alone":        {map[Suffix]string{IPVersion: "ipv6"}, "accepted: ipv4, DualStack"},
		"id of a CLB":       {map[Suffix]string{LoadBalancerID: "lb-1"}, "this value is for CLBs, and this Service has an NLB"},
		"protocol of a CLB": {map[Suffix]string{ProtocolPort: "https:443"}, "this value is for CLBs"},
		"capitals": {map[Suffix]string{ProtocolPort: "TCPSSL:443", Scheduler: "WRR", ServerGroupType: "ip", HealthCheckFlag: "on",
			HealthCheckType: "HTTP"}, ""},
		"two certificates": {map[Suffix]string{CertID: "a,b"},
			`loadbalancer-cert-id: "a,b" is not accepted (a listener has one certificate of its own; service.beta.kubernetes.io/alibaba-cloud-loadbalancer-additional-cert-ids takes the others)`},
		"an authority":       {map[Suffix]string{CACert: "on"}, "loadbalancer-cacert: \"on\" needs loadbalancer-cacert-id"},
		"ALPN":               {map[Suffix]string{ALPN: "on"}, "loadbalancer-alpn: \"on\" needs loadbalancer-alpn-policy"},
		"policy in small":    {map[Suffix]string{ALPN: "on", ALPNPolicy: "http2only"}, "HTTP2Only"},
		"idle timeout":       {map[Suffix]string{IdleTimeout: "9"}, "10 to 900"},
		"drain without time": {map[Suffix]string{ConnectionDrain: "on"}, ""},
		"check without flag": {map[Suffix]string{HealthyThreshold: "3"}, "has no effect without loadbalancer-health-check-flag"},
		"key of a CLB": {map[Suffix]string{EstablishedTimeout: "60"},
			"only CLBs support it, and this Service has an NLB; use loadbalancer-idle-timeout instead"},
		"access list": {map[Suffix]string{ACLID: "acl-1"}, "use loadbalancer-security-group-ids instead"},
		"misspelled": {map[Suffix]string{"loadbalancer-zone-map": "x"},
			"did you mean service.beta.kubernetes.io/alibaba-cloud-loadbalancer-zone-maps?"},
		"package on intranet": {map[Suffix]string{AddressType: "intranet", BandwidthPackageID: "cbwp-1"},
			"has no effect with loadbalancer-address-type: intranet"},
		"force override":       {map[Suffix]string{ForceOverrideListeners: "on"}, "accepted: true, false"},
		"IPv6 without address": {map[Suffix]string{IPv6AddressType: "internet"}, "has no effect without loadbalancer-ip-version: DualStack"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, prefix := range Prefixes {
				svc := testkube.Service("web")
				for suffix, value := range test.values {
					svc.Annotations[prefix+string(suffix)] = value
				}
				_, problems := OfNLB(svc)
				var said []string
				for _, p := range problems {
					said = append(said, p.Message)
				}
				text := strings.Join(said, "\n")
				if test.want == "" && text != "" ||
					test.want != "" &&
						!strings.Contains(strings.ReplaceAll(strings.ReplaceAll(text, Prefixes[1], Prefixes[0]), Prefixes[0], ""),
							strings.ReplaceAll(test.want, Prefixes[0], "")) {
					t.Errorf("%s: %q, want %q", prefix, text, test.want)
				}
			}
		})
	}
}

func TestZonesOf(t *testing.T) {
	t.Parallel()
	svc := testkube.Service("web", testkube.Annotation(Prefixes[1]+string(ZoneMaps), "a-1:vsw-1:192.0.2.1:eip-1, a-2:vsw-2::eip-2,a-3:vsw-3"))
	params, _ := OfNLB(svc)
	want := []alicloud.NLBZone{
		{ZoneID: "a-1", VSwitchID: "vsw-1", PrivateIPv4: "192.0.2.1", AllocationID: "eip-1"},
		{ZoneID: "a-2", VSwitchID: "vsw-2", AllocationID: "eip-2"}, {ZoneID: "a-3", VSwitchID: "vsw-3"},
	}
	if diff := cmp.Diff(want, ZonesOf(params)); diff != "" {
		t.Errorf("zones (-want +got):\n%s", diff)
	}
}

func TestRangesOfBothFamilies(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ranges   []string
		ipv6     bool
		want     []string
		problems int
	}{
		"canonical":           {[]string{"192.0.2.7/24", "192.0.2.0/24"}, false, []string{"192.0.2.0/24"}, 0},
		"both":                {[]string{"192.0.2.0/24", "2001:db8::1/32"}, true, []string{"192.0.2.0/24", "2001:db8::/32"}, 0},
		"IPv6 without IPv6":   {[]string{"192.0.2.0/24", "2001:db8::/32"}, false, []string{"192.0.2.0/24"}, 1},
		"everybody":           {[]string{"0.0.0.0/0"}, false, nil, 0},
		"everybody over IPv4": {[]string{"0.0.0.0/0"}, true, []string{"0.0.0.0/0"}, 0},
		"nobody left":         {[]string{"2001:db8::/32"}, false, nil, 2},
		"no block":            {[]string{"everywhere"}, false, nil, 1},
	} {
		got, problems := ParseBothFamilies(&corev1.Service{Spec: corev1.ServiceSpec{LoadBalancerSourceRanges: test.ranges}}, test.ipv6)
		if diff := cmp.Diff(test.want, got); diff != "" || len(problems) != test.problems {
			t.Errorf("%s: %d problems, (-want +got):\n%s", name, len(problems), diff)
		}
	}
}
