package slb

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

const (
	// accessListPrefix begins the names of the access control lists of ours.
	accessListPrefix = "k8s-clb-"
	// ownAccessList stands for the id of the Service's list, which is known only once the list is made.
	ownAccessList = "(source ranges)"
	// codeSourceRanges in the tag of what was applied says that the Service may have a list. It is no annotation's.
	codeSourceRanges = "sr"
	familyIPv4       = "ipv4"
	familyIPv6       = "ipv6"
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

// accessList asks for the list of the Service's source ranges.
func (b *builder) accessList() {
	if len(askedRanges(b.in.Service)) == 0 {
		return
	}
	if b.in.Reused && !b.model.Override {
		b.problem(ReasonFeatureNotSupported, "loadBalancerSourceRanges are not supported here: the listeners of the CLB are its user's")
		return
	}
	if b.asksForAccessLists() {
		b.problem(ReasonInvalidAnnotation, "loadBalancerSourceRanges and %s, %s or %s exclude each other", ACLStatus, ACLID, ACLType)
		return
	}
	family := b.in.ipVersion()
	blocks, problems := sourceRanges(b.in.Service, family)
	b.problems = append(b.problems, problems...)
	if len(blocks) == 0 {
		return
	}
	b.model.Access = &alicloud.AccessList{
		Name: accessListPrefix + DefaultName(b.in.Service.UID), IPVersion: family, Entries: blocks,
		ResourceGroupID: b.in.Params.or(ResourceGroupID, b.in.Config.ResourceGroupID), Tags: ownerTags(b.in.Service, b.in.ClusterID, ""),
	}
}

// asksForAccessLists reports whether annotations name access control lists of the user.
func (b *builder) asksForAccessLists() bool {
	return slices.ContainsFunc([]Suffix{ACLStatus, ACLID, ACLType}, func(s Suffix) bool { return b.in.Params.Has(s) && !b.in.Params.reverted[s] })
}

// restrict makes a listener admit the source ranges only.
func (b *builder) restrict(attributes alicloud.Attributes) {
	if b.model.Access != nil {
		maps.Copy(attributes, alicloud.Attributes{"AclStatus": "on", "AclType": "white", "AclId": ownAccessList})
	}
}

// withAccessList puts the id of the list in its place.
func withAccessList(attributes alicloud.Attributes, list *alicloud.AccessList) alicloud.Attributes {
	if attributes["AclId"] != ownAccessList || list == nil {
		return attributes
	}
	resolved := maps.Clone(attributes)
	resolved["AclId"] = list.ID
	return resolved
}

// usesAccessList reports whether an observed listener refers to the list.
func usesAccessList(listener *Listener, list *alicloud.AccessList) bool {
	return list != nil && slices.Contains(strings.Split(listener.Attributes["AclId"], ","), list.ID)
}

// mayHaveAccessList reports whether a list of the Service is to be looked for. It is not looked for in vain with every CLB:
// most Services never had one.
func mayHaveAccessList(svc *corev1.Service, params Params, actual *Model) bool {
	if len(askedRanges(svc)) > 0 {
		return true
	}
	if actual == nil {
		return false
	}
	if actual.Reused {
		return params.overridesListeners()
	}
	codes, _ := actual.LoadBalancer.Tag(tagApplied)
	return slices.Contains(strings.Split(codes, "."), codeSourceRanges) || slices.ContainsFunc(actual.Listeners, func(l Listener) bool {
		marked, _, ok := parseMark(l.Description)
		return ok && marked == nameOf(svc) && l.Attributes["AclId"] != "" && !params.Has(ACLID)
	})
}

// observeAccessList returns the list of the Service with its entries, nil when there is none.
func observeAccessList(ctx context.Context, api reader, svc *corev1.Service) (*alicloud.AccessList, error) {
	lists, err := api.DescribeAccessLists(ctx, alicloud.Tag{Key: tagOwner, Value: DefaultName(svc.UID)})
	if err != nil {
		return nil, fmt.Errorf("find the access control list of the Service: %w", err)
	}
	if len(lists) == 0 {
		return nil, nil
	}
	list := lists[0]
	list.Entries, err = api.DescribeAccessListEntries(ctx, list.ID)
	if alicloud.IsNotFound(err) {
		return nil, nil // went between the two reads
	}
	if err != nil {
		return nil, fmt.Errorf("read the access control list %s: %w", list.ID, err)
	}
	return &list, nil
}
