package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// Reuse says which existing load balancers Services may use.
type Reuse string

// The values of [Reuse].
const (
	// ReuseAny lets a Service use every load balancer of the account that no controller made, as the official CCM does.
	ReuseAny Reuse = "any"
	// ReuseTagged lets a Service use a load balancer whose tag [TagAllow] names the cluster or the namespace.
	ReuseTagged Reuse = "tagged"
	// ReuseOff lets no Service use an existing load balancer.
	ReuseOff Reuse = "off"
)

// Addresses says which addresses of EndpointSlices may be backend servers.
type Addresses string

// The values of [Addresses].
const (
	// AddressesAny lets a Service send to every network interface of the VPC, as the official CCM does.
	AddressesAny Addresses = "any"
	// AddressesPods lets a Service send to addresses of Pods in its namespace, and to those of [Policy.AllowedAddresses].
	AddressesPods Addresses = "pods"
)

// Policy is what the cluster's owner lets the authors of Services use. Its zero value restricts nothing, as the official CCM.
type Policy struct {
	// LoadBalancerReuse says which existing load balancers Services may use. Default [ReuseAny].
	LoadBalancerReuse Reuse `json:"loadBalancerReuse,omitempty"`
	// AllowedIDs say which resources annotations may name by ID. Without any rule they may name all.
	AllowedIDs []IDRule `json:"allowedIDs,omitempty"`
	// EndpointAddresses says which addresses of EndpointSlices may be backend servers. Nodes as backend servers are not affected. Default
	// [AddressesAny].
	EndpointAddresses Addresses `json:"endpointAddresses,omitempty"`
	// AllowedAddresses are accepted in addition to those of Pods, for Services without a selector.
	AllowedAddresses []AddressRule `json:"allowedAddresses,omitempty"`
	// AllowedGroups let Services share load balancers with Services of other namespaces. Without any rule they share with those of their own.
	AllowedGroups []GroupRule `json:"allowedGroups,omitempty"`
}

// GroupRule lets Services join groups of other namespaces.
type GroupRule struct {
	// Namespaces are patterns of the namespaces of the Services, in which * stands for any characters.
	Namespaces []string `json:"namespaces"`
	// Groups are patterns of groups as namespace/name, in which * stands for any characters but a slash.
	Groups []string `json:"groups"`
}

// AddressRule lets Services send to addresses that no Pod has.
type AddressRule struct {
	// Namespaces are patterns of namespaces, in which * stands for any characters.
	Namespaces []string `json:"namespaces"`
	// CIDRs are address blocks.
	CIDRs []string `json:"cidrs"`
}

// IDRule lets namespaces name resources by ID.
type IDRule struct {
	// Namespaces are patterns of namespaces, in which * stands for any characters.
	Namespaces []string `json:"namespaces"`
	// IDs are patterns of IDs of vServer groups, certificates, access control lists, resource groups and vSwitches.
	IDs []string `json:"ids"`
}

// With returns the policy with those fields of other that are set in place of its own.
func (p Policy) With(other Policy) Policy {
	if other.LoadBalancerReuse != "" {
		p.LoadBalancerReuse = other.LoadBalancerReuse
	}
	if len(other.AllowedIDs) > 0 {
		p.AllowedIDs = other.AllowedIDs
	}
	if other.EndpointAddresses != "" {
		p.EndpointAddresses = other.EndpointAddresses
	}
	if len(other.AllowedAddresses) > 0 {
		p.AllowedAddresses = other.AllowedAddresses
	}
	if len(other.AllowedGroups) > 0 {
		p.AllowedGroups = other.AllowedGroups
	}
	return p
}

// Reuse returns the rule for existing load balancers, with its default.
func (p Policy) Reuse() Reuse {
	if p.LoadBalancerReuse == "" {
		return ReuseAny
	}
	return p.LoadBalancerReuse
}

// Check names all fields with a value that is not accepted. A rule that matches nothing by mistake must not wait for the day on which it is
// needed.
func (p Policy) Check() error {
	var problems []error
	accepted := []Reuse{ReuseAny, ReuseTagged, ReuseOff}
	if !slices.Contains(accepted, p.Reuse()) {
		problems = append(problems, fmt.Errorf("loadBalancerReuse: %q, accepted: %q", p.LoadBalancerReuse, accepted))
	}
	for i, rule := range p.AllowedIDs {
		problems = append(problems,
			checkPatterns(fmt.Sprintf("allowedIDs[%d].namespaces", i), rule.Namespaces),
			checkPatterns(fmt.Sprintf("allowedIDs[%d].ids", i), rule.IDs))
	}
	if addresses := []Addresses{AddressesAny, AddressesPods}; p.EndpointAddresses != "" && !slices.Contains(addresses, p.EndpointAddresses) {
		problems = append(problems, fmt.Errorf("endpointAddresses: %q, accepted: %q", p.EndpointAddresses, addresses))
	}
	for i, rule := range p.AllowedAddresses {
		problems = append(problems,
			checkPatterns(fmt.Sprintf("allowedAddresses[%d].namespaces", i), rule.Namespaces),
			checkBlocks(fmt.Sprintf("allowedAddresses[%d].cidrs", i), rule.CIDRs))
	}
	for i, rule := range p.AllowedGroups {
		problems = append(problems,
			checkPatterns(fmt.Sprintf("allowedGroups[%d].namespaces", i), rule.Namespaces),
			checkPatterns(fmt.Sprintf("allowedGroups[%d].groups", i), rule.Groups))
	}
	return errors.Join(problems...)
}

func checkPatterns(field string, patterns []string) error {
	if len(patterns) == 0 {
		return fmt.Errorf("%s: empty, accepted: at least one pattern such as \"team-*\"", field)
	}
	for _, pattern := range patterns {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return fmt.Errorf("%s: %q, accepted: a pattern such as \"team-*\"", field, pattern)
		}
	}
	return nil
}

func checkBlocks(field string, blocks []string) error {
	if len(blocks) == 0 {
		return fmt.Errorf("%s: empty, accepted: at least one block such as \"10.0.8.0/24\"", field)
	}
	for _, block := range blocks {
		if _, err := netip.ParsePrefix(block); err != nil {
			return fmt.Errorf("%s: %q, accepted: a block such as \"10.0.8.0/24\"", field, block)
		}
	}
	return nil
}

// matchesAny reports whether one of the patterns matches. [Policy.Check] has rejected patterns that are malformed.
func matchesAny(patterns []string, text string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		matched, err := path.Match(pattern, text)
		return err == nil && matched
	})
}

// String says what applies, for people.
func (p Policy) String() string {
	text := map[Reuse]string{
		ReuseAny:    "any: Services may use every CLB that no controller made, as with the official CCM (the default)",
		ReuseTagged: "tagged: Services may use CLBs with the tag " + mark.TagAllow,
		ReuseOff:    "off: Services may use no existing CLB",
	}[p.Reuse()]
	text = "loadBalancerReuse " + text
	if len(p.AllowedIDs) > 0 {
		text += fmt.Sprintf("; allowedIDs has %d rules", len(p.AllowedIDs))
	}
	if p.RestrictsAddresses() {
		text += fmt.Sprintf("; endpointAddresses pods: only addresses of Pods, and those of %d rules, are backend servers",
			len(p.AllowedAddresses))
	}
	return text
}
