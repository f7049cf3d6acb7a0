// Package audit verifies the provider IDs of nodes.
//
// It reads and compares only: package initor sets IDs, and nobody can change one.
package audit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/node"
)

// Verdict is the result for one node.
type Verdict string

// The verdicts.
const (
	// VerdictOK says that nothing speaks against the node's provider ID.
	VerdictOK Verdict = "ok"
	// VerdictMissing says that the node has no provider ID; the initializer can set it.
	VerdictMissing Verdict = "missing"
	// VerdictForeign says that the ID is of another cloud or product. That is wrong only where an ECS instance has the node's
	// address.
	VerdictForeign Verdict = "foreign"
	// VerdictWrong says that the ID cannot be read, is another node's too, or is not that of the node's instance.
	VerdictWrong Verdict = "wrong"
	// VerdictNotECS says that there is nothing to do: a label excludes the node, or ECS knows no instance with its address and it
	// has no ID of ours.
	VerdictNotECS Verdict = "not-ecs"
	// VerdictUnverified says that the ID reads well and that ECS shows no such instance to this key: it may be of another region or
	// account.
	VerdictUnverified Verdict = "unverified"
)

// NodeVerdict is the result for one node, with its reason.
type NodeVerdict struct {
	Node       string  `json:"node"`
	ProviderID string  `json:"providerID"`
	Verdict    Verdict `json:"verdict"`
	// Reason explains the verdict; empty for ok and missing.
	Reason string `json:"reason,omitempty"`
	// Instance is the provider ID of the instance with the node's address where the node has another one. Only then is it certain
	// that the node's ID is wrong.
	Instance string `json:"instance,omitempty"`
}

// Bad reports whether the node needs attention.
func (v NodeVerdict) Bad() bool {
	switch v.Verdict {
	case VerdictOK, VerdictNotECS, VerdictUnverified:
		return false
	case VerdictForeign:
		return v.Instance != ""
	}
	return true
}

// Verify returns the verdict of each node, in the order of names. The findings, by node name, are what ECS says of the nodes;
// without them (nil) an ID is wrong only if it contradicts itself or another node.
func Verify(all []*corev1.Node, findings map[string]initor.Finding) []NodeVerdict {
	users := map[node.ProviderID][]string{}
	for _, n := range all {
		if id, err := node.ParseProviderID(n.Spec.ProviderID); err == nil {
			users[id] = append(users[id], n.Name)
		}
	}
	verdicts := make([]NodeVerdict, 0, len(all))
	for _, n := range all {
		verdict := NodeVerdict{Node: n.Name, ProviderID: n.Spec.ProviderID}
		verdict.Verdict, verdict.Reason = alone(n, users)
		if label := nodes.ExclusionLabel(n); label != "" {
			verdict.Verdict, verdict.Reason = VerdictNotECS, "the label "+label+" excludes the node"
		} else if finding, known := findings[n.Name]; known {
			verdict.compare(finding)
		}
		verdicts = append(verdicts, verdict)
	}
	slices.SortFunc(verdicts, func(a, b NodeVerdict) int { return cmp.Compare(a.Node, b.Node) })
	return verdicts
}

// alone considers the ID, the node's region label and the other nodes.
func alone(n *corev1.Node, users map[node.ProviderID][]string) (Verdict, string) {
	id, err := node.ParseProviderID(n.Spec.ProviderID)
	switch {
	case errors.Is(err, node.ErrProviderIDEmpty):
		return VerdictMissing, ""
	case errors.Is(err, node.ErrProviderIDForeign):
		return VerdictForeign, "it is not of Alibaba Cloud ECS"
	case err != nil:
		return VerdictWrong, err.Error()
	}
	if others := slices.DeleteFunc(slices.Clone(users[id]), func(other string) bool { return other == n.Name }); len(others) > 0 {
		return VerdictWrong, "it is also the ID of " + strings.Join(others, ", ")
	}
	if region := n.Labels[corev1.LabelTopologyRegion]; region != "" && region != id.Region {
		return VerdictWrong, fmt.Sprintf("the node's label %s is %q", corev1.LabelTopologyRegion, region)
	}
	return VerdictOK, ""
}

// compare takes in what ECS says of the node.
func (v *NodeVerdict) compare(finding initor.Finding) {
	absent := errors.Is(finding.Err, initor.ErrNotECS)
	id, err := node.ParseProviderID(v.ProviderID)
	switch {
	case absent && (v.Verdict == VerdictMissing || v.Verdict == VerdictForeign):
		v.Verdict, v.Reason = VerdictNotECS, finding.Err.Error()
	case absent && v.Verdict == VerdictOK:
		v.Verdict, v.Reason = VerdictUnverified, finding.Err.Error()
	case absent:
	case finding.Err != nil:
		v.Reason = cmp.Or(v.Reason, finding.Err.Error())
	case err == nil && id == finding.ProviderID:
		v.Verdict, v.Reason = VerdictOK, "" // also if another node has the same ID: that one is wrong
	default:
		if v.Verdict == VerdictOK {
			v.Verdict = VerdictWrong
		}
		v.Reason = fmt.Sprintf("the instance with the node's address is %q", finding.ProviderID)
		if v.Verdict != VerdictMissing {
			v.Instance = finding.ProviderID.String()
		}
	}
}
