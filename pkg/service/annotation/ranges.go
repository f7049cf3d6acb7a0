package annotation

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// Address families, as the annotations spell them.
const (
	FamilyIPv4 = "ipv4"
	FamilyIPv6 = "ipv6"
)

// SourceRangesOf are the source ranges as the Service has them; the spec counts before the annotation.
func SourceRangesOf(svc *corev1.Service) []string {
	if len(svc.Spec.LoadBalancerSourceRanges) > 0 {
		return svc.Spec.LoadBalancerSourceRanges
	}
	text := strings.TrimSpace(svc.Annotations[corev1.AnnotationLoadBalancerSourceRangesKey])
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

const (
	// maxRanges is how many source ranges a Service may have. It has room for tens of thousands, each of which would wait for the rate limit.
	maxRanges = 1000
	// maxListEntries is how many entries an access control list of CLB takes. The cloud would refuse the others with each pass.
	// Source: https://www.alibabacloud.com/help/en/slb/classic-load-balancer/product-overview/limits.
	maxListEntries = 300
)

func tooManyRanges(svc *corev1.Service) []problem.Problem {
	n := len(SourceRangesOf(svc))
	if n <= maxRanges {
		return nil
	}
	return []problem.Problem{problem.Newf(problem.ReasonInvalidAnnotation,
		"loadBalancerSourceRanges: %d ranges are not accepted; accepted: at most %d", n, maxRanges)}
}

// ParseSourceRanges returns the blocks that may connect, sorted; none means everybody. Blocks of the other family cannot
// connect to the CLB at all and are left out.
func ParseSourceRanges(svc *corev1.Service, family string) ([]string, []problem.Problem) {
	if problems := tooManyRanges(svc); problems != nil {
		return nil, problems
	}
	var blocks, foreign []string
	open := false
	for _, text := range SourceRangesOf(svc) {
		prefix, err := parseBlock(strings.TrimSpace(text))
		switch {
		case err != nil:
			return nil, []problem.Problem{problem.Newf(problem.ReasonInvalidAnnotation,
				"loadBalancerSourceRanges: %q is not an address block; accepted: blocks such as 192.0.2.0/24", text)}
		case prefix.Addr().Is6() != (family == FamilyIPv6):
			foreign = append(foreign, text)
		case prefix.Bits() == 0:
			open = true
		default:
			blocks = append(blocks, prefix.String())
		}
	}
	var problems []problem.Problem
	if len(foreign) > 0 {
		problems = append(problems,
			problem.Newf(problem.ReasonAnnotationNoEffect, "loadBalancerSourceRanges: %s have no effect on a CLB of %s", strings.Join(foreign, ", "),
				family))
	}
	switch {
	case open:
		return nil, problems
	case len(blocks) == 0 && len(foreign) > 0:
		return nil, append(problems,
			problem.Newf(problem.ReasonInvalidAnnotation,
				"loadBalancerSourceRanges: no range remains, and an access control list without entries might admit everyone"))
	}
	slices.Sort(blocks)
	if blocks = slices.Compact(blocks); len(blocks) > maxListEntries {
		return nil, append(problems, problem.Newf(problem.ReasonInvalidAnnotation,
			"loadBalancerSourceRanges: %d ranges are not accepted; accepted: at most %d, as many as an access control list takes", len(blocks),
			maxListEntries))
	}
	return blocks, problems
}

// ParseBothFamilies returns the blocks that may connect to a load balancer, sorted; none means everybody. Without ipv6 the load balancer
// has no such address, and blocks of that family are left out.
func ParseBothFamilies(svc *corev1.Service, ipv6 bool) ([]string, []problem.Problem) {
	if problems := tooManyRanges(svc); problems != nil {
		return nil, problems
	}
	families := []string{FamilyIPv4}
	if ipv6 {
		families = append(families, FamilyIPv6)
	}
	var blocks, foreign []string
	open := map[string]bool{}
	for _, text := range SourceRangesOf(svc) {
		prefix, err := parseBlock(strings.TrimSpace(text))
		if err != nil {
			return nil, []problem.Problem{problem.Newf(problem.ReasonInvalidAnnotation,
				"loadBalancerSourceRanges: %q is not an address block; accepted: blocks such as 192.0.2.0/24", text)}
		}
		family := familyOf(prefix)
		if !slices.Contains(families, family) {
			foreign = append(foreign, text)
			continue
		}
		open[family] = open[family] || prefix.Bits() == 0
		blocks = append(blocks, prefix.String())
	}
	var problems []problem.Problem
	if len(foreign) > 0 {
		problems = append(problems,
			problem.Newf(problem.ReasonAnnotationNoEffect, "loadBalancerSourceRanges: %s have no effect on a load balancer without IPv6",
				strings.Join(foreign, ", ")))
	}
	switch {
	case !slices.ContainsFunc(families, func(f string) bool { return !open[f] }):
		return nil, problems
	case len(blocks) == 0 && len(foreign) > 0:
		return nil, append(problems,
			problem.Newf(problem.ReasonInvalidAnnotation, "loadBalancerSourceRanges: no range remains, so nobody could connect"))
	}
	slices.Sort(blocks)
	return slices.Compact(blocks), problems
}

func familyOf(prefix netip.Prefix) string {
	if prefix.Addr().Is6() {
		return FamilyIPv6
	}
	return FamilyIPv4
}

func parseBlock(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(address, address.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(text)
	return prefix.Masked(), err
}
