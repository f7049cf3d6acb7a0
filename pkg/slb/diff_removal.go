package slb

import (
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// deletionPlan deletes a CLB of ours; its listeners and vServer groups go with it.
func deletionPlan(actual *Model) Plan {
	plan := Plan{Steps: unprotect(actual)}
	plan.Steps = append(plan.Steps, Step{Op: OpDeleteLoadBalancer, Target: targetLoadBalancer, Before: actual.LoadBalancer.ID, needs: []string{string(OpSetProtection)}})
	if actual.Access != nil {
		plan.Steps = append(plan.Steps, deleteAccessStep(actual.Access))
	}
	return plan
}

// accessListDeletion deletes the access control list of a CLB that no longer exists.
func accessListDeletion(list *alicloud.AccessList) Plan {
	return Plan{Steps: []Step{deleteAccessStep(list)}}
}

// unprotect is the step that a deletion needs first, none where the delete protection is off.
func unprotect(actual *Model) []Step {
	if actual.LoadBalancer.DeleteProtection == alicloud.ProtectionOff {
		return nil
	}
	return []Step{{
		Op: OpSetProtection, Target: targetLoadBalancer, Before: actual.LoadBalancer.DeleteProtection, After: alicloud.ProtectionOff,
		loadBalancer: alicloud.LoadBalancer{DeleteProtection: alicloud.ProtectionOff},
	}}
}

// preservingPlan changes nothing that carries traffic.
func preservingPlan(actual *Model) Plan {
	plan := Plan{Steps: unprotect(actual)}
	if actual.LoadBalancer.ModificationProtection != alicloud.NonProtection {
		plan.Steps = append(plan.Steps, Step{
			Op: OpSetModification, Target: targetLoadBalancer, Before: actual.LoadBalancer.ModificationProtection, After: alicloud.NonProtection,
			loadBalancer: alicloud.LoadBalancer{ModificationProtection: alicloud.NonProtection},
		})
	}
	keys := presentTags(&actual.LoadBalancer, append([]string{tagOwner, tagCluster}, legacyTags()...))
	if len(keys) > 0 {
		plan.Steps = append(plan.Steps, Step{
			// Last: without them the CLB is not found again.
			Op: OpUntag, Target: targetLoadBalancer, Before: strings.Join(keys, " "), tagKeys: keys,
			needs: []string{string(OpSetProtection), string(OpSetModification)},
		})
	}
	return plan
}
