package annotation

import (
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

func is(suffix Suffix, value string) func(Params) bool {
	return func(p Params) bool { return p.Get(suffix) == value }
}

// needs is broken when cond holds and the annotation is absent.
func needs(cond func(Params) bool, suffix Suffix) func(Params) bool {
	return func(p Params) bool { return cond(p) && !p.Has(suffix) }
}

// without is broken when the annotation is present and cond does not hold.
func without(suffix Suffix, cond func(Params) bool) func(Params) bool {
	return func(p Params) bool { return p.Has(suffix) && !cond(p) }
}

func has(suffix Suffix) func(Params) bool { return func(p Params) bool { return p.Has(suffix) } }

func intranet(p Params) bool { return p.AddressType() == alicloud.AddressIntranet }
func internet(p Params) bool { return !intranet(p) }

// rules are those of a CLB. They are checked once all annotations were read. Only what the API would refuse or misread is invalid.
var rules = []rule{
	{needs(is(ConnectionDrain, "on"), ConnectionDrainTimeout), []Suffix{ConnectionDrain, ConnectionDrainTimeout}, "loadbalancer-connection-drain: on needs loadbalancer-connection-drain-timeout"},
	{without(ConnectionDrainTimeout, is(ConnectionDrain, "on")), nil, "loadbalancer-connection-drain-timeout has no effect without loadbalancer-connection-drain: on"},
	{needs(is(StickySession, "on"), StickySessionType), []Suffix{StickySession, StickySessionType}, "loadbalancer-sticky-session: on needs loadbalancer-sticky-session-type"},
	{needs(is(StickySessionType, "insert"), CookieTimeout), sticky, "loadbalancer-sticky-session-type: insert needs loadbalancer-cookie-timeout"},
	{needs(is(StickySessionType, "server"), Cookie), sticky, "loadbalancer-sticky-session-type: server needs loadbalancer-cookie"},
	{needs(is(ACLStatus, "on"), ACLID), accessLists, "loadbalancer-acl-status: on needs loadbalancer-acl-id"},
	{needs(is(ACLStatus, "on"), ACLType), accessLists, "loadbalancer-acl-status: on needs loadbalancer-acl-type"},
	{without(ACLID, is(ACLStatus, "on")), nil, "loadbalancer-acl-id has no effect without loadbalancer-acl-status: on"},
	{without(ACLType, is(ACLStatus, "on")), nil, "loadbalancer-acl-type has no effect without loadbalancer-acl-status: on"},
	{without(VSwitchID, intranet), nil, "loadbalancer-vswitch-id has no effect without loadbalancer-address-type: intranet"},
	{without(ChargeType, internet), nil, "loadbalancer-charge-type has no effect with loadbalancer-address-type: intranet"},
	{without(Bandwidth, is(ChargeType, "paybybandwidth")), nil, "loadbalancer-bandwidth has no effect without loadbalancer-charge-type: paybybandwidth"},
	{without(ForceOverrideListeners, has(LoadBalancerID)), nil, "loadbalancer-force-override-listeners has no effect without loadbalancer-id"},
	{without(VGroupPort, has(LoadBalancerID)), nil, "loadbalancer-vgroup-port has no effect without loadbalancer-id"},
	{has(Type), nil, "loadbalancer-type is not read: the feature gate " + GateLoadBalancerType + " is off"},
	{without(NetworkType, func(p Params) bool { return intranet(p) || p.Get(NetworkType) == networkVPC }), nil,
		"loadbalancer-network-type: classic has no effect without loadbalancer-address-type: intranet"},
	preserveRule,
	{cutsTag, nil, "loadbalancer-additional-resource-tags: the value of a tag ends at its first equals sign; what follows has no effect"},
	{without(Weight, has(VGroupPort)), nil, "loadbalancer-weight has no effect without loadbalancer-vgroup-port"},
}

var preserveRule = rule{func(p Params) bool {
	return p.Has(PreserveOnDelete) && !slices.Contains(preserveValues, p.Get(PreserveOnDelete))
}, nil, "loadbalancer-preserve-lb-on-delete: every value other than false and off counts as true; write true"}

// sticky and accessLists are annotations that only make sense together.
var (
	sticky      = []Suffix{StickySession, StickySessionType, CookieTimeout, Cookie}
	accessLists = []Suffix{ACLStatus, ACLID, ACLType}
)

func (p *Params) crossCheck() []problem.Problem {
	var problems []problem.Problem
	var refused []Suffix
	for _, rule := range p.of().rules {
		switch {
		case !rule.broken(*p):
		case len(rule.refuses) > 0:
			problems = append(problems, problem.Problem{Reason: problem.ReasonInvalidAnnotation, Message: rule.message})
			refused = append(refused, rule.refuses...)
		default:
			problems = append(problems, problem.Problem{Reason: problem.ReasonAnnotationNoEffect, Message: rule.message})
		}
	}
	p.refuse(refused...) // only now: a rule must not see what another one refuses
	return problems
}
