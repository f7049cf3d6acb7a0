package policy

import (
	"fmt"
	"strings"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// RefusesReuse says why a Service of the namespace may not use an existing load balancer, "" if it may. allow is the value of the tag
// [mark.TagAllow], "" where there is none.
//
// What it says without the tag, [Policy.Missing] says of a load balancer that does not exist, so that nobody finds out which ids the
// account has by naming them.
//
// The tag is on the side of the cloud, because whoever may write Services may write annotations, labels and finalizers as well.
func (p Policy) RefusesReuse(clusterID, namespace, allow string) string {
	switch p.Reuse() {
	case ReuseAny:
		return ""
	case ReuseTagged:
		if Allows(allow, clusterID, namespace) {
			return ""
		}
		return fmt.Sprintf("may not be used, or does not exist: loadBalancerReuse is tagged, and it has no tag %s with the value %s or %s/%s",
			mark.TagAllow, clusterID, clusterID, namespace)
	}
	return "may not be used: loadBalancerReuse is off"
}

// Missing says why a Service of the namespace cannot use a load balancer that does not exist.
func (p Policy) Missing(clusterID, namespace string) string {
	if reason := p.RefusesReuse(clusterID, namespace, ""); reason != "" {
		return reason
	}
	return "does not exist; the manager creates no replacement"
}

// Allows reports whether the value of the tag lets the namespace use the load balancer: "cluster" for all namespaces, "cluster/namespace"
// for one, in which * stands for any characters, and several of them joined by commas.
func Allows(value, clusterID, namespace string) bool {
	for item := range strings.SplitSeq(value, ",") {
		cluster, pattern, limited := strings.Cut(strings.TrimSpace(item), "/")
		if cluster == clusterID && cluster != "" && (!limited || matchesAny([]string{pattern}, namespace)) {
			return true
		}
	}
	return false
}
