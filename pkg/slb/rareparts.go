package slb

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// mayHaveAccessList reports whether a list of the Service is to be looked for. It is not looked for in vain with every CLB:
// most Services never had one.
func mayHaveAccessList(svc *corev1.Service, params Params, actual *Model, record Record) bool {
	if len(askedRanges(svc)) > 0 {
		return true
	}
	if actual == nil {
		return false
	}
	if actual.Reused {
		return params.overridesListeners()
	}
	return slices.Contains(record.Annotations, recordedSourceRanges) || slices.ContainsFunc(actual.Listeners, func(l Listener) bool {
		marked, _, ok := parseMark(l.Description)
		return ok && marked == nameOf(svc) && l.Attributes["AclId"] != "" && !params.Has(ACLID)
	})
}

// mayHaveExtensions reports whether extensions need to be read. Most Services never had any.
func mayHaveExtensions(params Params, actual *Model, record Record) bool {
	if actual == nil || actual.Reused && !params.overridesListeners() {
		return false
	}
	return params.Has(DomainExtensions) || len(record.Domains)+len(record.legacyDomains) > 0
}
