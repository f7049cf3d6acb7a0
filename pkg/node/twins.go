package node

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
)

// nodesOfInstance is the index of Nodes by the instance that their provider ID names.
const nodesOfInstance = "alicloud-instance"

// indexNodes adds the index to the informer, unless somebody else has done so.
func (i *Instances) indexNodes(informer cache.SharedIndexInformer) {
	if _, ok := informer.GetIndexer().GetIndexers()[nodesOfInstance]; ok {
		return
	}
	err := informer.AddIndexers(cache.Indexers{nodesOfInstance: func(object any) ([]string, error) {
		if node, ok := object.(*corev1.Node); ok {
			if id, err := i.idOf(node); err == nil {
				return []string{id}, nil
			}
		}
		return nil, nil
	}})
	if err != nil { // the informer was stopped
		klog.Background().Error(err, "Cannot index the Nodes by their instance")
	}
}

// ownerOf returns the oldest other Node with the instance's provider ID, nil when there is none.
func (i *Instances) ownerOf(instanceID, except string) *corev1.Node {
	if i.indexer == nil {
		return nil
	}
	objects, err := i.indexer.ByIndex(nodesOfInstance, instanceID)
	if err != nil {
		return nil // there is no index, which the log says
	}
	var owner *corev1.Node
	for _, object := range objects {
		if node, ok := object.(*corev1.Node); ok && node.Name != except && (owner == nil || nodes.ByAge(node, owner) < 0) {
			owner = node
		}
	}
	return owner
}

// reportTwin emits an event on a Node whose instance an older Node stands for: a kubelet writes the provider ID of its Node itself.
func (i *Instances) reportTwin(node *corev1.Node, instanceID string) {
	owner := i.ownerOf(instanceID, node.Name)
	if owner == nil || nodes.ByAge(owner, node) >= 0 {
		return
	}
	i.events.Warnf(node, reasonInstanceAmbiguous, "Instance %s belongs to node %s, which is older, so this Node is not a backend server of load balancers. If the "+
		"machine was renamed, delete node %s", instanceID, owner.Name, owner.Name)
}
