package annotation

import (
	"slices"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// preserveValues are those of the annotation preserve-lb-on-delete that say what they mean.
var preserveValues = []string{"true", "false", "off"}

// A rule relates two annotations. When broken, the Service is told; invalid says whether that also stops the writes.
type rule struct {
	broken  func(Params) bool
	invalid bool
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

// rules are checked once all annotations were read. A legal value with nothing to act on is told and changes nothing
// else; only what the API would refuse or misread is invalid.
var rules = []rule{
	{needs(is(ConnectionDrain, "on"), ConnectionDrainTimeout), true, "loadbalancer-connection-drain: on needs loadbalancer-connection-drain-timeout"},
	{without(ConnectionDrainTimeout, is(ConnectionDrain, "on")), false, "loadbalancer-connection-drain-timeout has no effect without loadbalancer-connection-drain: on"},
	{needs(is(StickySession, "on"), StickySessionType), true, "loadbalancer-sticky-session: on needs loadbalancer-sticky-session-type"},
	{needs(is(StickySessionType, "insert"), CookieTimeout), true, "loadbalancer-sticky-session-type: insert needs loadbalancer-cookie-timeout"},
	{needs(is(StickySessionType, "server"), Cookie), true, "loadbalancer-sticky-session-type: server needs loadbalancer-cookie"},
	{needs(is(ACLStatus, "on"), ACLID), true, "loadbalancer-acl-status: on needs loadbalancer-acl-id"},
	{needs(is(ACLStatus, "on"), ACLType), true, "loadbalancer-acl-status: on needs loadbalancer-acl-type"},
	{without(ACLID, is(ACLStatus, "on")), false, "loadbalancer-acl-id has no effect without loadbalancer-acl-status: on"},
	{without(ACLType, is(ACLStatus, "on")), false, "loadbalancer-acl-type has no effect without loadbalancer-acl-status: on"},
	{without(VSwitchID, intranet), false, "loadbalancer-vswitch-id has no effect without loadbalancer-address-type: intranet"},
	{without(ChargeType, internet), false, "loadbalancer-charge-type has no effect with loadbalancer-address-type: intranet"},
	{without(Bandwidth, is(ChargeType, "paybybandwidth")), false, "loadbalancer-bandwidth has no effect without loadbalancer-charge-type: paybybandwidth"},
	{without(Spec, is(InstanceChargeType, "PayBySpec")), false, "loadbalancer-spec has no effect without loadbalancer-instance-charge-type: PayBySpec"},
	{without(ForceOverrideListeners, has(LoadBalancerID)), false, "loadbalancer-force-override-listeners has no effect without loadbalancer-id"},
	{without(VGroupPort, has(LoadBalancerID)), false, "loadbalancer-vgroup-port has no effect without loadbalancer-id"},
	{has(Type), false, "loadbalancer-type is not read: the feature gate " + GateLoadBalancerType + " is off"},
	{without(NetworkType, func(p Params) bool { return intranet(p) || p.Get(NetworkType) == NetworkVPC }), false,
		"loadbalancer-network-type: classic has no effect without loadbalancer-address-type: intranet"},
	{func(p Params) bool {
		return p.Has(PreserveOnDelete) && !slices.Contains(preserveValues, p.Get(PreserveOnDelete))
	}, false,
		"loadbalancer-preserve-lb-on-delete: every value other than false and off counts as true; write true"},
	{without(Weight, has(VGroupPort)), false, "loadbalancer-weight has no effect without loadbalancer-vgroup-port"},
}

func crossCheck(params Params) []problem.Problem {
	var problems []problem.Problem
	for _, rule := range rules {
		switch {
		case !rule.broken(params):
		case rule.invalid:
			problems = append(problems, problem.Problem{Reason: problem.ReasonInvalidAnnotation, Message: rule.message})
		default:
			problems = append(problems, problem.Problem{Reason: problem.ReasonAnnotationNoEffect, Message: rule.message})
		}
	}
	return problems
}
