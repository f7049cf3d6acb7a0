package deploy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb/model"
)

// Error codes that mean something to this package alone.
// Source: https://www.alibabacloud.com/help/en/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-errorcodes.
const (
	codeTooManyTags = "TooManyTags"
	codeNoACL       = "AclNotExist"
)

// isTagQuota reports whether the CLB has as many tags as it can have. Then everything but the tags is done.
func isTagQuota(err error) bool {
	return alicloud.IsQuota(err) || alicloud.HasCode(err, codeTooManyTags)
}

// chargeRefusals are the codes with which the cloud may refuse what a CLB is to be charged by. Only the first one names the
// reason; with the others it is the likely one where a rule below applies, too.
// Source: https://www.alibabacloud.com/help/en/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-errorcodes.
var chargeRefusals = []string{
	"ShareSlbHaltSales", "InvalidChargeType", "OperationDenied", "OperationDenied.PayByCLCU", "Operation.NotAllowed", "InvalidParameter",
}

// A chargeRule is a rule of the cloud that does not hold everywhere, so that it is left to the cloud to refuse what breaks
// it. Its code alone would not lead the user to the annotation.
type chargeRule struct {
	ops    []model.Op
	broken func(alicloud.LoadBalancer) bool
	text   string
}

// Sources: https://www.alibabacloud.com/help/en/server-load-balancer/latest/createloadbalancer-2 and
// https://alibabacloud.com/help/en/slb/api-modifyloadbalancerinstancechargetype.
var chargeRules = []chargeRule{
	{
		[]model.Op{model.OpCreateLoadBalancer},
		func(lb alicloud.LoadBalancer) bool { return strings.EqualFold(lb.InstanceChargeType, model.PayBySpec) },
		fmt.Sprintf("%s: %q is no longer sold everywhere; accepted everywhere: %s", annotation.InstanceChargeType, model.PayBySpec,
			model.PayByCLCU),
	},
	{
		[]model.Op{model.OpCreateLoadBalancer, model.OpSetCharge, model.OpSetInternet},
		func(lb alicloud.LoadBalancer) bool {
			return strings.EqualFold(lb.InstanceChargeType, model.PayByCLCU) && lb.InternetChargeType == model.PayByBandwidth
		},
		fmt.Sprintf("%s: %q may be refused with %s: %s; accepted with it: paybytraffic", annotation.ChargeType, model.PayByBandwidth,
			annotation.InstanceChargeType, model.PayByCLCU),
	},
}

// sureName is how many characters every cloud takes as a name. Pages of its API differ: 80 in older ones, 256 in newer ones, and the
// official CCM, whose marks these are, does not check. So longer ones are written, and the user shortens them where the cloud refuses.
// Source: https://www.alibabacloud.com/help/en/slb/classic-load-balancer/developer-reference/api-slb-2014-05-15-createloadbalancertcplistener.
const sureName = 80

// explainRefusal adds to an error the rule that the step probably broke. have is the CLB as it is.
func explainRefusal(step model.Step, have alicloud.LoadBalancer, err error) error {
	if name := step.Name(); len(name) > sureName && alicloud.HasCode(err, "InvalidParameter") {
		return fmt.Errorf("%w; the name %s has %d characters: up to %d are accepted everywhere, so give the Service, its Namespace or the cluster (clusterID) a shorter name",
			err, name, len(name), sureName)
	}
	lists := step.Listener.Attributes[alicloud.AttributeACLIDs]
	if lists != "" && lists != model.OwnAccessList && alicloud.HasCode(err, codeNoACL) {
		return &problem.RefusedError{Err: err, Problem: problem.Newf(problem.ReasonInvalidAnnotation,
			"%s: %s names a list that does not exist in the region; accepted: IDs of access control lists of CLB", annotation.ACLID,
			problem.Value(lists))}
	}
	return explainCharge(step, have, err)
}

func explainCharge(step model.Step, have alicloud.LoadBalancer, err error) error {
	if !alicloud.HasCode(err, chargeRefusals...) {
		return err
	}
	asked := step.LoadBalancer
	if asked.InstanceChargeType == "" {
		asked.InstanceChargeType = have.InstanceChargeType
	}
	for _, rule := range chargeRules {
		if slices.Contains(rule.ops, step.Op) && rule.broken(asked) {
			return fmt.Errorf("%w; %s", err, rule.text)
		}
	}
	return err
}
