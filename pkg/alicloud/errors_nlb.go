package alicloud

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// The tables below hold the codes of NLB in lower case: the case of the part behind the dot varies between its actions. Source: the error
// tables of each action of https://www.alibabacloud.com/help/en/slb/network-load-balancer/developer-reference/api-nlb-2022-04-30-overview.
var (
	nlbNotFoundCodes = sets.New(
		"resourcenotfound.loadbalancer", "resourcenotfound.listener", "resourcenotfound.servergroup", "resourcenotfound.backendserver",
		"resourcenotfound.jobid", "resourcenotassociated.securitygroup", "resourcenotfound.bandwidthpackage",
	)

	nlbBusyCodes = sets.New(
		"conflict.lock", "incorrectstatus.loadbalancer", "incorrectstatus.listener", "incorrectstatus.servergroup", "incorrectstatus.eni",
		"operationfailed.getxipfailed", "idempotenceprocessing", "resourceinuse.servergroup",
	)
	// nlbBusyPrefixes are busy with whatever object follows.
	nlbBusyPrefixes = []string{"resourceinconfiguring.", "resourceincreating."}

	nlbDuplicateCodes = sets.New("duplicatedparam.listener", "conflict.port", "duplicatedparam.server")

	nlbAmbiguousCodes = sets.New("taginvokeerror", "idempotencesignaturemismatch")

	// badServerCodes say that one of the backend servers of a call does not exist, or not for the load balancer.
	badServerCodes = sets.New(
		"resourcenotfound.ecs", "resourcenotfound.eni", "resourcenotfound.eci", "resourcenotfound.ip", "illegalparam.ip", "missingparam.ip",
		"mismatch.servertype", "mismatch.vpcid", "mismatch.vpc",
	)
)

func hasNLBCode(e *Error, codes sets.Set[string]) bool { return codes.Has(strings.ToLower(e.Code)) }

func isNLBBusy(e *Error) bool {
	if hasNLBCode(e, nlbBusyCodes) {
		return true
	}
	for _, prefix := range nlbBusyPrefixes {
		if strings.HasPrefix(strings.ToLower(e.Code), prefix) {
			return true
		}
	}
	return false
}

// IsNLBNotFound reports whether the cloud answered that there is no such NLB. That it lacks something else, for example a bandwidth
// package, says nothing about the NLB.
func IsNLBNotFound(err error) bool {
	e, ok := asAPIError(err)
	return ok && strings.EqualFold(e.Code, "ResourceNotFound.loadBalancer")
}

// IsBadServer reports whether one of the backend servers of a call on a server group of NLB does not exist, or cannot be in the group.
// The call had no effect.
func IsBadServer(err error) bool {
	e, ok := asAPIError(err)
	return ok && hasNLBCode(e, badServerCodes)
}

// IsTokenReused reports whether a ClientToken was used before with other parameters.
func IsTokenReused(err error) bool {
	e, ok := asAPIError(err)
	return ok && (tokenReusedCodes.Has(e.Code) || strings.EqualFold(e.Code, "IdempotenceSignatureMismatch"))
}
