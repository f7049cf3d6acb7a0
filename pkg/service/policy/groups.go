package policy

import (
	"slices"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// AllowsGroup reports whether Services of a namespace may share load balancers with the group of a namespace.
func (p Policy) AllowsGroup(namespace, groupNamespace, group string) bool {
	return namespace == groupNamespace || slices.ContainsFunc(p.AllowedGroups, func(rule GroupRule) bool {
		return matchesAny(rule.Namespaces, namespace) && matchesAny(rule.Groups, groupNamespace+"/"+group)
	})
}

// restrictGroup refuses the group of another namespace, as if its value were invalid.
func (p Policy) restrictGroup(namespace string, params annotation.Params) (annotation.Params, []problem.Problem) {
	groupNamespace, group, other := strings.Cut(params.Get(annotation.Group), "/")
	if !other || p.AllowsGroup(namespace, groupNamespace, group) {
		return params, nil
	}
	return params.Refusing(annotation.Group), []problem.Problem{problem.Newf(problem.ReasonInvalidAnnotation,
		"%s: %q is not accepted in namespace %s; accepted: the name of a group in the namespace, because allowedGroups has no rule for the group",
		annotation.Group, groupNamespace+"/"+group, namespace)}
}
