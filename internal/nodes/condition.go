package nodes

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// ConditionPatch returns a strategic merge patch that sets one condition of one Node object; a Node of the same name that was registered
// since is not meant. With a resource version, the API server refuses it with a conflict where the Node has changed since.
func ConditionPatch(node *corev1.Node, condition corev1.NodeCondition, resourceVersion string) ([]byte, error) {
	return conditionPatch(node, condition, resourceVersion, condition.Type)
}

// ConditionRemoval returns a patch that removes a condition.
func ConditionRemoval(node *corev1.Node, kind corev1.NodeConditionType) ([]byte, error) {
	return conditionPatch(node, map[string]any{"type": kind, "$patch": "delete"}, "", kind)
}

func conditionPatch(node *corev1.Node, condition any, resourceVersion string, kind corev1.NodeConditionType) ([]byte, error) {
	metadata := map[string]any{"uid": node.UID}
	if resourceVersion != "" {
		metadata["resourceVersion"] = resourceVersion
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata, "status": map[string]any{"conditions": []any{condition}}})
	if err != nil {
		return nil, fmt.Errorf("encode condition %s: %w", kind, err)
	}
	return patch, nil
}
