package alicloud

import "testing"

func TestHost(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		endpoints Endpoints
		want      string
	}{
		"default":           {Endpoints{}, "slb-vpc.cn-hangzhou.aliyuncs.com"},
		"public":            {Endpoints{Network: "public"}, "slb.cn-hangzhou.aliyuncs.com"},
		"another network":   {Endpoints{Network: "share"}, "slb-share.cn-hangzhou.aliyuncs.com"},
		"host and port":     {Endpoints{SLB: "127.0.0.1:18080"}, "127.0.0.1:18080"},
		"URL":               {Endpoints{SLB: "https://slb.example.com:8443/slb"}, "slb.example.com:8443"},
		"of another action": {Endpoints{ECS: "127.0.0.1:1"}, "slb-vpc.cn-hangzhou.aliyuncs.com"},
	}
	for name, test := range tests {
		if got := test.endpoints.host(productSLB, "cn-hangzhou"); got != test.want {
			t.Errorf("%s: host %q, want %q", name, got, test.want)
		}
	}
	for network, endpoints := range map[string]Endpoints{"vpc": {}, "public": {Network: "public"}} {
		if got := endpoints.host(productQuotas, "cn-hangzhou"); got != "quotas.aliyuncs.com" {
			t.Errorf("%s: the Quota Center is at %q, and has one endpoint for all regions", network, got)
		}
	}
}
