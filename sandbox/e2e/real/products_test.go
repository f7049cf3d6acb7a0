//go:build linux && real

package real

import (
	"context"
	"testing"
)

// product is a kind of load balancer.
type product struct {
	name string
	// annotation and spec are lines that a Service needs to get one.
	annotation, spec string
	// addresses waits for those of the load balancer that a status shows. servers lists its backend servers, each as many times as it has
	// groups with it.
	addresses func(t *testing.T, shown string) []string
	servers   func(ctx context.Context, shown string) ([]string, error)
}

// products are those of which each takes the same steps in a test.
var products = []product{
	{name: "clb", addresses: func(_ *testing.T, shown string) []string { return []string{shown} }, servers: backends},
	{
		name: "nlb", annotation: annotations + "zone-maps: " + twoZones + "\n    " + annotations + `health-check-flag: "on"`,
		spec:      "loadBalancerClass: alibabacloud.com/nlb",
		addresses: func(t *testing.T, shown string) []string { return zonesOf(t, shown, 2) },
		servers: func(ctx context.Context, shown string) ([]string, error) {
			_, servers, err := stateOf(ctx, shown)
			return servers, err
		},
	},
}

// service is a Service of the product, see [serviceOf].
func (p product) service(name, ports, annotation string) string {
	return serviceOf(name, ports, annotation+"\n    "+p.annotation, p.spec)
}
