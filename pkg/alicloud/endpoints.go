package alicloud

import (
	"fmt"
	"net/url"
	"strings"
)

// product is one OpenAPI product: the SDK's name for it, its version and the first part of its host names.
type product struct {
	name    string
	version string
	host    string
}

// Versions are those of https://www.alibabacloud.com/help/en/slb, …/vpc, …/ecs and …/ram (developer reference).
var (
	productSLB = product{name: "Slb", version: "2014-05-15", host: "slb"}
	productVPC = product{name: "Vpc", version: "2016-04-28", host: "vpc"}
	productECS = product{name: "Ecs", version: "2014-05-26", host: "ecs"}
	productNLB = product{name: "Nlb", version: "2022-04-30", host: "nlb"}
	productSTS = product{name: "Sts", version: "2015-04-01", host: "sts"}
	// productQuotas is the Quota Center, which has one endpoint for all regions:
	// https://www.alibabacloud.com/help/en/quota-center/developer-reference/api-quotas-2020-05-10-endpoint.
	productQuotas = product{name: "quotas", version: "2020-05-10", host: "quotas"}
)

// operation names an action among those of all products, for its rate limit and for metrics. NLB has actions with the names of
// actions of CLB, which the cloud counts apart.
func (p product) operation(action string) string {
	if p == productNLB {
		return p.host + operationSeparator + action
	}
	return action
}

// operationSeparator is the one in the names of actions in RAM policies.
const operationSeparator = ":"

// Endpoints says where the products are reached.
type Endpoints struct {
	// Network is the middle part of the default host names "<product>-<network>.<region>.aliyuncs.com". Default "vpc",
	// which is reachable from machines without a public address; "public" leaves it out.
	Network string
	// PlainHTTP sends calls unencrypted. For emulators and tests.
	PlainHTTP bool
	// SLB, NLB, VPC, ECS, STS and Quotas (the Quota Center) replace the default host of one product: "host", "host:port" or a URL, of which
	// only host and port count. Empty means the default.
	SLB, NLB, VPC, ECS, STS, Quotas string
}

func (e Endpoints) scheme() string {
	if e.PlainHTTP {
		return "HTTP"
	}
	return "HTTPS"
}

func (e Endpoints) host(p product, region string) string {
	override := map[string]string{
		productSLB.host: e.SLB, productNLB.host: e.NLB, productVPC.host: e.VPC, productECS.host: e.ECS, productSTS.host: e.STS,
		productQuotas.host: e.Quotas,
	}[p.host]
	if override != "" {
		return hostPort(override)
	}
	switch {
	case p == productQuotas:
		return p.host + ".aliyuncs.com"
	case e.Network == "", e.Network == "vpc":
		return fmt.Sprintf("%s-vpc.%s.aliyuncs.com", p.host, region)
	case e.Network == "public":
		return fmt.Sprintf("%s.%s.aliyuncs.com", p.host, region)
	default:
		return fmt.Sprintf("%s-%s.%s.aliyuncs.com", p.host, e.Network, region)
	}
}

// hostPort reduces an endpoint that was written as a URL to its host and port.
func hostPort(endpoint string) string {
	if !strings.Contains(endpoint, "://") {
		return endpoint
	}
	parsed, err := url.Parse(endpoint)
	if err != nil || parsed.Host == "" {
		return endpoint
	}
	return parsed.Host
}
