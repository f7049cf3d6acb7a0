package provider

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// trimCaches keeps out of the caches who wrote which field: nothing here reads it, and it can be half of an object. An update
// without it leaves it as it is. The kube-controller-manager trims its caches alike.
func trimCaches(factory informers.SharedInformerFactory, endpointSlices bool) error {
	trimmed := []cache.SharedIndexInformer{factory.Core().V1().Nodes().Informer(), factory.Core().V1().Services().Informer()}
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

// dropManagedFields is a [cache.TransformFunc]. It sees the markers of deleted objects, too, which have nothing to drop.
func dropManagedFields(obj any) (any, error) {
	if accessor, err := meta.Accessor(obj); err == nil && accessor.GetManagedFields() != nil {
		accessor.SetManagedFields(nil)
	}
	return obj, nil
}
