package policy

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// named are the annotations that name resources of the account by ID, and how. The annotation loadbalancer-id is not among them, see
// [Policy.RefusesReuse].
var named = []struct {
	suffix annotation.Suffix
	ids    func(annotation.Params) []string
}{
	{annotation.VGroupPort, func(p annotation.Params) []string {
		ids := sets.New[string]()
		for item := range strings.SplitSeq(p.Get(annotation.VGroupPort), ",") {
			id, _, _ := strings.Cut(item, ":")
			ids.Insert(id)
		}
		return sets.List(ids)
	}},
	{annotation.CertID, listedIDs(annotation.CertID)},
	{annotation.DomainExtensions, func(p annotation.Params) []string {
		ids := sets.New[string]()
		for _, extension := range annotation.DomainExtensionsOf(p) {
			ids.Insert(extension.CertificateID)
		}
		return sets.List(ids)
	}},
	{annotation.ACLID, listedIDs(annotation.ACLID)},
	{annotation.ResourceGroupID, listedIDs(annotation.ResourceGroupID)},
	{annotation.VSwitchID, listedIDs(annotation.VSwitchID)},

	{annotation.ZoneMaps, func(p annotation.Params) []string {
		ids := sets.New[string]()
		for _, zone := range annotation.ZonesOf(p) {
			if ids.Insert(zone.VSwitchID); zone.AllocationID != "" {
				ids.Insert(zone.AllocationID)
			}
		}
		return sets.List(ids)
	}},
	{annotation.SecurityGroupIDs, listedIDs(annotation.SecurityGroupIDs)},
	{annotation.BandwidthPackageID, listedIDs(annotation.BandwidthPackageID)},
	{annotation.AdditionalCertIDs, listedIDs(annotation.AdditionalCertIDs)},
	{annotation.CACertID, listedIDs(annotation.CACertID)},
}

// listedIDs returns the IDs in an annotation that holds one, or several joined by commas.
func listedIDs(suffix annotation.Suffix) func(annotation.Params) []string {
	return func(p annotation.Params) []string {
		var ids []string
		for id := range strings.SplitSeq(p.Get(suffix), ",") {
			ids = append(ids, strings.TrimSpace(id))
		}
		return ids
	}
}

// Restrict refuses annotations that name a resource which the namespace may not use, as if their values were invalid.
func (p Policy) Restrict(namespace string, params annotation.Params) (annotation.Params, []problem.Problem) {
	params, problems := p.restrictGroup(namespace, params)
	if len(p.AllowedIDs) == 0 {
		return params, problems
	}
	for _, row := range named {
		if !params.Has(row.suffix) {
			continue
		}
		i := slices.IndexFunc(row.ids(params), func(id string) bool { return !p.AllowsID(namespace, id) })
		if i < 0 {
			continue
		}
		problems = append(problems, problem.Newf(problem.ReasonInvalidAnnotation, "%s: %q is not accepted in namespace %s; accepted: %s",
			row.suffix, row.ids(params)[i], namespace, p.acceptedIDs(namespace)))
		params = params.Refusing(row.suffix)
	}
	return params, problems
}

// AllowsID reports whether annotations in the namespace may name the resource.
func (p Policy) AllowsID(namespace, id string) bool {
	return len(p.AllowedIDs) == 0 || slices.ContainsFunc(p.AllowedIDs, func(rule IDRule) bool {
		return matchesAny(rule.Namespaces, namespace) && matchesAny(rule.IDs, id)
	})
}

// acceptedIDs says what annotations in the namespace may name.
func (p Policy) acceptedIDs(namespace string) string {
	var ids []string
	for _, rule := range p.AllowedIDs {
		if matchesAny(rule.Namespaces, namespace) {
			ids = append(ids, rule.IDs...)
		}
	}
	if len(ids) == 0 {
		return "no ID, because allowedIDs has no rule for the namespace"
	}
	return fmt.Sprintf("the IDs of allowedIDs, %s", problem.Some(ids))
}
