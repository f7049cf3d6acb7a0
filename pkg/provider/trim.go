package provider

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// trimCaches keeps out of the caches what nothing here reads: who wrote which field, which can be half of an object, and most of the status
// of a Node, such as its images. An update without the former leaves it as it is, and so does every update of a Node that is not one of its
// status. The kube-controller-manager trims its caches alike.
func trimCaches(factory informers.SharedInformerFactory, endpointSlices bool) error {
	if err := factory.Core().V1().Nodes().Informer().SetTransform(trimNode); err != nil {
		return fmt.Errorf("trim the cache of Nodes: %w", err)
	}
	trimmed := []cache.SharedIndexInformer{factory.Core().V1().Services().Informer()}
	if endpointSlices {
		trimmed = append(trimmed, factory.Discovery().V1().EndpointSlices().Informer())
	} else {
		trimmed = append(trimmed, factory.Core().V1().Endpoints().Informer())
	}
	for _, informer := range trimmed {
		if err := informer.SetTransform(dropManagedFields); err != nil {
			return fmt.Errorf("trim a cache: %w", err)
		}
	}
	return nil
}

// trimNode is a [cache.TransformFunc]. The status of a Node is only ever patched, with the difference of two Nodes that are both trimmed.
func trimNode(obj any) (any, error) {
	if node, ok := obj.(*corev1.Node); ok {
		node.Status = corev1.NodeStatus{Addresses: node.Status.Addresses, Conditions: node.Status.Conditions}
	}
	return dropManagedFields(obj)
}

// dropManagedFields is a [cache.TransformFunc]. It sees the markers of deleted objects, too, which have nothing to drop.
func dropManagedFields(obj any) (any, error) {
	if accessor, err := meta.Accessor(obj); err == nil && accessor.GetManagedFields() != nil {
		accessor.SetManagedFields(nil)
	}
	return obj, nil
}
