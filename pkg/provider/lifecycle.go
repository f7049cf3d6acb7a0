package provider

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	coreinformers "k8s.io/client-go/informers/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
)

// LifecycleNodes is the Nodes as the stock node lifecycle controller is to see them: only those for which it does anything. It lists all of
// them every five seconds, and copies every Node that it sees. In a cluster of thousands of healthy nodes these copies, and the garbage
// that they become, were most of what the manager did. It is called once for an informer.
func LifecycleNodes(all coreinformers.NodeInformer) (coreinformers.NodeInformer, error) {
	err := all.Informer().AddIndexers(cache.Indexers{lifecycleIndex: func(obj any) ([]string, error) {
		// Of a Node that is ready, it only takes the taint of a stopped instance.
		if node, ok := obj.(*corev1.Node); ok && (!nodes.Ready(node) || nodes.ShutDown(node)) {
			return []string{""}, nil
		}
		return nil, nil
	}})
	if err != nil {
		return nil, fmt.Errorf("index the Nodes that are not ready: %w", err)
	}
	return lifecycleNodes{all}, nil
}

// lifecycleIndex has the Nodes that the controller sees, with an empty value.
const lifecycleIndex = "lifecycle"

type lifecycleNodes struct{ coreinformers.NodeInformer }

// Lister implements [coreinformers.NodeInformer].
func (n lifecycleNodes) Lister() corelisters.NodeLister {
	return lifecycleLister{n.NodeInformer.Lister(), n.Informer().GetIndexer()}
}

type lifecycleLister struct {
	corelisters.NodeLister
	indexer cache.Indexer
}

// List implements [corelisters.NodeLister].
func (l lifecycleLister) List(selector labels.Selector) ([]*corev1.Node, error) {
	seen, err := l.indexer.ByIndex(lifecycleIndex, "")
	if err != nil {
		return nil, fmt.Errorf("list the Nodes that are not ready: %w", err)
	}
	var found []*corev1.Node
	for _, obj := range seen {
		if node, ok := obj.(*corev1.Node); ok && selector.Matches(labels.Set(node.Labels)) {
			found = append(found, node)
		}
	}
	return found, nil
}
