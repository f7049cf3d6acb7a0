package provider

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
)

// Endpoints replace the default addresses, by product: "slb", "nlb", "vpc", "ecs", "sts" and "quotas" ("host", "host:port" or a URL, of
// which only host and port count), and "metadata" (a URL). Empty values mean the default.
type Endpoints map[string]string

// endpointNames are the keys of [Endpoints].
var endpointNames = []string{"slb", "nlb", "vpc", "ecs", "sts", "quotas", "metadata"}

// check names the places as place says, with the key spelled by spell.
func (e Endpoints) check(place string, spell func(string) string) error {
	var problems problemList
	for _, name := range slices.Sorted(maps.Keys(e)) {
		value, where := e[name], fmt.Sprintf(place, spell(name))
		switch {
		case !slices.Contains(endpointNames, name):
			problems.addf("%s: %q, accepted: one of %s", where, value, strings.Join(endpointNames, ", "))
		case value == "":
		case name == "metadata" && !isURL(value):
			problems.addf("%s: %q, accepted: a URL such as %q", where, value, alicloud.DefaultMetadataEndpoint)
		case name != "metadata" && !isURL(value) && (strings.Contains(value, "://") || !isURL("https://"+value)):
			problems.addf("%s: %q, accepted: \"host\", \"host:port\" or a URL", where, value)
		}
	}
	return problems.err()
}

func isURL(text string) bool {
	parsed, err := url.Parse(text)
	return err == nil && parsed.Hostname() != "" && (parsed.Scheme == "http" || parsed.Scheme == "https")
}

// Over returns e with the gaps filled from lower.
func (e Endpoints) Over(lower Endpoints) Endpoints {
	merged := maps.Clone(lower)
	if merged == nil {
		merged = Endpoints{}
	}
	for name, value := range e {
		if value != "" {
			merged[name] = value
		}
	}
	return merged
}

// endpoints are those of the flags, else of the environment, else of the file.
func (c *Cloud) endpoints() Endpoints {
	return c.settings.Endpoints.Over(c.env.Endpoints.Over(c.config.Endpoints))
}

// readsQuotas reports whether the quotas of the account are read. Where other products are at an address of their own, the Quota Center at
// its usual address may be that of another cloud.
func (c *Cloud) readsQuotas() bool {
	endpoints := c.endpoints()
	if c.config.DisableQuotaCenter {
		return false
	}
	return endpoints["quotas"] != "" || endpoints["slb"] == "" && endpoints["vpc"] == "" && endpoints["ecs"] == ""
}

// clientEndpoints is what the cloud client takes.
func (c *Cloud) clientEndpoints() alicloud.Endpoints {
	return c.endpoints().ForClient(c.settings.Network, c.env.PlainHTTP)
}

// ForClient is what the cloud client takes, see [alicloud.Endpoints].
func (e Endpoints) ForClient(network string, plainHTTP bool) alicloud.Endpoints {
	return alicloud.Endpoints{
		Network: network, PlainHTTP: plainHTTP, SLB: e["slb"], NLB: e["nlb"], VPC: e["vpc"], ECS: e["ecs"], STS: e["sts"],
		Quotas: e["quotas"],
	}
}

// checkSettings returns what is wrong with environment and flags.
func (c *Cloud) checkSettings() error {
	return initor.OneLine(c.env.Check(), c.settings.Endpoints.check("--endpoints: %s", strings.ToLower))
}
