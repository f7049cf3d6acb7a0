package annotation

import (
	"fmt"
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// preserveValues are those of the annotation preserve-lb-on-delete that say what they mean.
var preserveValues = []string{"true", "false", "off"}

// A rule relates annotations. A broken rule is reported.
type rule struct {
	broken func(Params) bool
	// refuses are the annotations that a broken rule makes invalid together. A rule without any reports one that has no effect.
	refuses []Suffix
	message string
}

func valueIs(suffix Suffix, value string) func(Params) bool {
	return func(p Params) bool { return p.Get(suffix) == value }
}

// needsSuffix is broken when cond holds and the annotation is absent.
func needsSuffix(cond func(Params) bool, suffix Suffix) func(Params) bool {
	return func(p Params) bool { return cond(p) && !p.Has(suffix) }
}

// presentWithout is broken when the annotation is present and cond does not hold.
func presentWithout(suffix Suffix, cond func(Params) bool) func(Params) bool {
	return func(p Params) bool { return p.Has(suffix) && !cond(p) }
}

func hasSuffix(suffix Suffix) func(Params) bool { return func(p Params) bool { return p.Has(suffix) } }

func isIntranet(p Params) bool { return p.AddressType() == alicloud.AddressIntranet }
func isInternet(p Params) bool { return !isIntranet(p) }

// rules are those of a CLB. They are checked once all annotations were read. Only what the API would refuse or misread is invalid.
var rules = []rule{
	{needsSuffix(valueIs(ConnectionDrain, "on"), ConnectionDrainTimeout), []Suffix{ConnectionDrain, ConnectionDrainTimeout},
		fmt.Sprintf("%s: \"on\" needs %s", ConnectionDrain, ConnectionDrainTimeout)},
	{presentWithout(ConnectionDrainTimeout, valueIs(ConnectionDrain, "on")), nil,
		fmt.Sprintf("%s has no effect without %s: \"on\"", ConnectionDrainTimeout, ConnectionDrain)},
	{needsSuffix(valueIs(StickySession, "on"), StickySessionType), []Suffix{StickySession, StickySessionType},
		fmt.Sprintf("%s: \"on\" needs %s", StickySession, StickySessionType)},
	{needsSuffix(valueIs(StickySessionType, "insert"), CookieTimeout), sticky,
		fmt.Sprintf("%s: insert needs %s", StickySessionType, CookieTimeout)},
	{needsSuffix(valueIs(StickySessionType, "server"), Cookie), sticky, fmt.Sprintf("%s: server needs %s", StickySessionType, Cookie)},
	{needsSuffix(valueIs(ACLStatus, "on"), ACLID), accessLists, fmt.Sprintf("%s: \"on\" needs %s", ACLStatus, ACLID)},
	{needsSuffix(valueIs(ACLStatus, "on"), ACLType), accessLists, fmt.Sprintf("%s: \"on\" needs %s", ACLStatus, ACLType)},
	{presentWithout(ACLID, valueIs(ACLStatus, "on")), nil, fmt.Sprintf("%s has no effect without %s: \"on\"", ACLID, ACLStatus)},
	{presentWithout(ACLType, valueIs(ACLStatus, "on")), nil, fmt.Sprintf("%s has no effect without %s: \"on\"", ACLType, ACLStatus)},
	{presentWithout(VSwitchID, isIntranet), nil, fmt.Sprintf("%s has no effect without %s: intranet", VSwitchID, AddressType)},
	{presentWithout(ChargeType, isInternet), nil, fmt.Sprintf("%s has no effect with %s: intranet", ChargeType, AddressType)},
	{presentWithout(Bandwidth, valueIs(ChargeType, "paybybandwidth")), nil,
		fmt.Sprintf("%s has no effect without %s: paybybandwidth", Bandwidth, ChargeType)},
	{presentWithout(ForceOverrideListeners, hasSuffix(LoadBalancerID)), nil,
		fmt.Sprintf("%s has no effect without %s", ForceOverrideListeners, LoadBalancerID)},
	{presentWithout(VGroupPort, hasSuffix(LoadBalancerID)), nil, fmt.Sprintf("%s has no effect without %s", VGroupPort, LoadBalancerID)},
	groupRule, overflowRule,
	{hasSuffix(Type), nil, fmt.Sprintf("%s has no effect, because the feature gate %s is off", Type, GateLoadBalancerType)},
	{presentWithout(NetworkType, func(p Params) bool { return isIntranet(p) || p.Get(NetworkType) == networkVPC }), nil,
		fmt.Sprintf("%s: classic has no effect without %s: intranet", NetworkType, AddressType)},
	preserveRule,
	{cutsTag, nil, fmt.Sprintf("%s: the value of a tag ends at its first equals sign; what follows has no effect", AdditionalTags)},
	{presentWithout(Weight, hasSuffix(VGroupPort)), nil, fmt.Sprintf("%s has no effect without %s", Weight, VGroupPort)},
}

var preserveRule = rule{func(p Params) bool {
	return p.Has(PreserveOnDelete) && !slices.Contains(preserveValues, p.Get(PreserveOnDelete))
}, nil, fmt.Sprintf("%s: every value other than false and off means true; use \"true\"", PreserveOnDelete)}

var (
	groupRule = rule{
		func(p Params) bool { return p.Has(Group) && p.Has(LoadBalancerID) }, nil,
		fmt.Sprintf("%s has no effect with %s, which names the load balancer", Group, LoadBalancerID),
	}
	overflowRule = rule{presentWithout(GroupOverflow, hasSuffix(Group)), nil, fmt.Sprintf("%s has no effect without %s", GroupOverflow, Group)}
)

// sticky and accessLists are annotations that only make sense together.
var (
	sticky      = []Suffix{StickySession, StickySessionType, CookieTimeout, Cookie}
	accessLists = []Suffix{ACLStatus, ACLID, ACLType}
)

func (p *Params) crossCheck() []problem.Problem {
	var problems []problem.Problem
	var refused []Suffix
	for _, rule := range p.familyOf().rules {
		switch {
		case !rule.broken(*p):
		case len(rule.refuses) > 0:
			problems = append(problems, problem.Problem{Reason: problem.ReasonInvalidAnnotation, Message: rule.message})
			refused = append(refused, rule.refuses...)
		default:
			problems = append(problems, problem.Problem{Reason: problem.ReasonAnnotationNoEffect, Message: rule.message})
		}
	}
	p.refuseSuffixes(refused...) // only now: a rule must not see what another one refuses
	return problems
}
