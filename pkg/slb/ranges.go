package slb

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Address families, as the annotations spell them.
const (
	familyIPv4 = "ipv4"
	familyIPv6 = "ipv6"
)

// askedRanges are the source ranges as the Service has them; the spec counts before the annotation.
func askedRanges(svc *corev1.Service) []string {
	if len(svc.Spec.LoadBalancerSourceRanges) > 0 {
		return svc.Spec.LoadBalancerSourceRanges
	}
	text := strings.TrimSpace(svc.Annotations[corev1.AnnotationLoadBalancerSourceRangesKey])
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// sourceRanges returns the blocks that may connect, sorted; none means everybody. Blocks of the other family cannot
// connect to the CLB at all and are left out.
func sourceRanges(svc *corev1.Service, family string) ([]string, []Problem) {
	var blocks, foreign []string
	open := false
	for _, text := range askedRanges(svc) {
		prefix, err := parseBlock(strings.TrimSpace(text))
		switch {
		case err != nil:
			return nil, []Problem{problemf(ReasonInvalidAnnotation, "loadBalancerSourceRanges: %q is no address block; accepted: for example 192.0.2.0/24", text)}
		case prefix.Addr().Is6() != (family == familyIPv6):
			foreign = append(foreign, text)
		case prefix.Bits() == 0:
			open = true
		default:
			blocks = append(blocks, prefix.String())
		}
	}
	var problems []Problem
	if len(foreign) > 0 {
		problems = append(problems, problemf(ReasonAnnotationNoEffect, "loadBalancerSourceRanges: %s have no effect on a CLB of %s", strings.Join(foreign, ", "), family))
	}
	switch {
	case open:
		return nil, problems
	case len(blocks) == 0 && len(foreign) > 0:
		return nil, append(problems, problemf(ReasonInvalidAnnotation, "loadBalancerSourceRanges: no range is left, and a list without ranges may admit everybody"))
	}
	slices.Sort(blocks)
	return slices.Compact(blocks), problems
}

func parseBlock(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(address, address.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(text)
	return prefix.Masked(), err
}
