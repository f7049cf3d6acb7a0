// Package audit judges the provider IDs that nodes have.
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

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/node"
)

// Verdict is the judgement of one node.
type Verdict string

// The verdicts.
const (
	// VerdictOK says that nothing speaks against the node's provider ID.
	VerdictOK Verdict = "ok"
	// VerdictMissing says that the node has no provider ID; the initializer can set it.
	VerdictMissing Verdict = "missing"
	// VerdictForeign says that the ID is of another cloud or product.
	VerdictForeign Verdict = "foreign"
	// VerdictWrong says that the ID cannot be read, is another node's too, or is not that of the node's instance.
	VerdictWrong Verdict = "wrong"
	// VerdictNotECS says that ECS knows no instance with the node's address, and that the node has no ID of ours: there is
	// nothing to do. It needs findings.
	VerdictNotECS Verdict = "not-ecs"
)

// NodeVerdict is one line of the answer.
type NodeVerdict struct {
	Node       string  `json:"node"`
	ProviderID string  `json:"providerID"`
	Verdict    Verdict `json:"verdict"`
	// Reason says what is wrong; empty for ok and missing.
	Reason string `json:"reason,omitempty"`
}

// Bad says whether the node needs somebody's attention.
func (v NodeVerdict) Bad() bool { return v.Verdict != VerdictOK && v.Verdict != VerdictNotECS }

// Judge returns the verdict of each node, in the order of names. The findings, by node name, are what ECS says of the nodes;
// without them (nil) an ID is wrong only if it contradicts itself or another node.
func Judge(nodes []*corev1.Node, findings map[string]initor.Finding) []NodeVerdict {
	users := map[node.ProviderID][]string{}
	for _, n := range nodes {
		if id, err := node.ParseProviderID(n.Spec.ProviderID); err == nil {
			users[id] = append(users[id], n.Name)
		}
	}
	verdicts := make([]NodeVerdict, 0, len(nodes))
	for _, n := range nodes {
		verdict := NodeVerdict{Node: n.Name, ProviderID: n.Spec.ProviderID}
		finding, known := findings[n.Name]
		if !known {
			verdict.Verdict, verdict.Reason = judgeAlone(n, users)
		} else {
			verdict.Verdict, verdict.Reason = judgeFound(n, users, finding)
		}
		verdicts = append(verdicts, verdict)
	}
	slices.SortFunc(verdicts, func(a, b NodeVerdict) int { return cmp.Compare(a.Node, b.Node) })
	return verdicts
}

// judgeAlone looks at the ID, the node's region label and the other nodes.
func judgeAlone(n *corev1.Node, users map[node.ProviderID][]string) (Verdict, string) {
	id, err := node.ParseProviderID(n.Spec.ProviderID)
	switch {
	case errors.Is(err, node.ErrProviderIDEmpty):
		return VerdictMissing, ""
	case errors.Is(err, node.ErrProviderIDForeign):
		return VerdictForeign, "it is not of Alibaba Cloud ECS"
	case err != nil:
		return VerdictWrong, err.Error()
	}
	if others := without(users[id], n.Name); len(others) > 0 {
		return VerdictWrong, "it is also the ID of " + strings.Join(others, ", ")
	}
	if region := n.Labels[corev1.LabelTopologyRegion]; region != "" && region != id.Region {
		return VerdictWrong, fmt.Sprintf("the node's label %s is %q", corev1.LabelTopologyRegion, region)
	}
	return VerdictOK, ""
}

// judgeFound compares with what ECS says, if that is anything.
func judgeFound(n *corev1.Node, users map[node.ProviderID][]string, finding initor.Finding) (Verdict, string) {
	alone, reason := judgeAlone(n, users)
	if finding.Err != nil {
		return judgeUnfound(alone, reason, finding.Err)
	}
	instance := fmt.Sprintf("the instance with the node's address is %q", finding.ProviderID)
	id, err := node.ParseProviderID(n.Spec.ProviderID)
	switch {
	case err == nil && id == finding.ProviderID:
		return VerdictOK, "" // also if another node has the same ID: that one is wrong
	case err == nil:
		return VerdictWrong, instance
	default:
		return alone, instance
	}
}

// judgeUnfound is for a node of which ECS knows no instance, or too many.
func judgeUnfound(alone Verdict, reason string, err error) (Verdict, string) {
	switch {
	case !errors.Is(err, initor.ErrNotECS):
		return alone, cmp.Or(reason, err.Error())
	case alone == VerdictMissing, alone == VerdictForeign:
		return VerdictNotECS, err.Error()
	default:
		return VerdictWrong, err.Error()
	}
}

func without(names []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(other string) bool { return other == name })
}
