package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor/audit"
)

// ProviderIDs verifies the provider IDs of nodes. The findings are what ECS says of them, nil when it could not be asked. waits says
// of a node that its initialization takes too long.
func ProviderIDs(all []*corev1.Node, findings map[string]initor.Finding, waits func(*corev1.Node) bool) []Check {
	var checks []Check
	good, unverified := 0, 0
	waiting := map[string]bool{}
	for _, node := range all {
		waiting[node.Name] = waits(node)
	}
	for _, verdict := range audit.Verify(all, findings) {
		switch {
		case !verdict.Bad() && waiting[verdict.Node]:
			checks = append(checks, Check{
				Area: AreaNodes, Subject: "initialization of " + verdict.Node, Status: Wrong,
				Detail: strings.TrimSpace(fmt.Sprintf("it has waited for more than a minute; provider ID: %s %s", verdict.Verdict, verdict.Reason)),
				Fix:    "start the manager, and see the events of the node",
			})
			continue
		case !verdict.Bad() &&
			(verdict.Verdict == audit.VerdictUnverified || findings != nil && verdict.Reason != "" && verdict.Verdict == audit.VerdictOK):
			unverified++
			continue
		case !verdict.Bad():
			good++
			continue
		}
		check := Check{Area: AreaNodes, Subject: "provider ID of " + verdict.Node, Status: Wrong, Detail: string(verdict.Verdict)}
		if verdict.ProviderID != "" {
			check.Detail += fmt.Sprintf(" (%s)", verdict.ProviderID)
		}
		if verdict.Reason != "" {
			check.Detail += ": " + verdict.Reason
		}
		check.Fix = fixOf(verdict)
		checks = append(checks, check)
	}
	compared := "compared with ECS"
	if findings == nil {
		compared = "not compared with ECS"
	}
	checks = Limit(checks)
	if unverified > 0 {
		checks = append(checks, Check{
			Area: AreaNodes, Subject: "provider IDs", Status: Optional,
			Detail: fmt.Sprintf("%d of %d nodes are unverified: ECS shows no instance with their addresses", unverified, len(all)),
			Fix:    "check the instances, Global.region and the account of the access key",
		})
	}
	return append(checks,
		Check{Area: AreaNodes, Subject: "provider IDs", Status: OK,
			Detail: fmt.Sprintf("%d of %d nodes are right, %s", good, len(all), compared)})
}

// fixOf advises to delete a Node only where ECS shows that another instance is the node's: to lose a legitimate Node is worse than
// an ID that nobody can verify.
func fixOf(verdict audit.NodeVerdict) string {
	switch {
	case verdict.Verdict == audit.VerdictMissing:
		return "run \"provider-initor run\", or wait until the manager initializes the node"
	case verdict.Instance != "":
		return "delete the Node and let its kubelet register it again, because a provider ID cannot be changed"
	}
	return "find out which ECS instance the node is; the Node may be legitimate, so do not delete it before"
}

// PodCIDRs checks that every node has a pod CIDR inside the cluster's ranges, without which it gets no route. Nodes that get
// none on purpose are left out by routed.
func PodCIDRs(all []*corev1.Node, ranges []netip.Prefix, routed func(*corev1.Node) bool) []Check {
	var checks []Check
	good, routedNodes := 0, 0
	for _, node := range all {
		if !routed(node) {
			continue
		}
		routedNodes++
		check := Check{Area: AreaNodes, Subject: "pod CIDR of " + node.Name, Status: Wrong}
		inside, err := insideOf(node.Spec.PodCIDRs, ranges)
		switch {
		case len(node.Spec.PodCIDRs) == 0:
			check.Detail = "none"
			check.Fix = "start the kube-controller-manager with --allocate-node-cidrs=true and --cluster-cidr, or set spec.podCIDR"
		case err != nil:
			check.Detail, check.Fix = err.Error(), "correct spec.podCIDRs of the node"
		case !inside:
			check.Detail = fmt.Sprintf("%v is outside of --cluster-cidr %v", node.Spec.PodCIDRs, ranges)
			check.Fix = "give the manager the --cluster-cidr of the kube-controller-manager"
		default:
			good++
			continue
		}
		checks = append(checks, check)
	}
	return append(Limit(checks),
		Check{Area: AreaNodes, Subject: "pod CIDRs", Status: OK,
			Detail: fmt.Sprintf("%d of %d nodes have one inside %v", good, routedNodes, ranges)})
}

func insideOf(cidrs []string, ranges []netip.Prefix) (bool, error) {
	for _, text := range cidrs {
		cidr, err := netip.ParsePrefix(text)
		if err != nil {
			return false, err
		}
		if !slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return r.Contains(cidr.Addr()) && r.Bits() <= cidr.Bits() }) {
			return false, nil
		}
	}
	return len(cidrs) > 0, nil
}
