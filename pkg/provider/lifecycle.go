package provider

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	coreinformers "k8s.io/client-go/informers/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
)

// LifecycleNodes is the Nodes as the stock node lifecycle controller is to see them: only those for which it does anything. It copies every Node that it
// sees every five seconds. In a cluster of thousands of healthy nodes these copies, and the garbage that they become, were most of what the manager did.
func LifecycleNodes(all coreinformers.NodeInformer) coreinformers.NodeInformer {
	return lifecycleNodes{all}
}

type lifecycleNodes struct{ coreinformers.NodeInformer }

// Lister implements [coreinformers.NodeInformer].
func (n lifecycleNodes) Lister() corelisters.NodeLister {
	return lifecycleLister{n.NodeInformer.Lister()}
}

type lifecycleLister struct{ corelisters.NodeLister }

// List implements [corelisters.NodeLister]. Of a Node that is ready, the controller only takes the taint of a stopped instance.
func (l lifecycleLister) List(selector labels.Selector) ([]*corev1.Node, error) {
	all, err := l.NodeLister.List(selector)
	return slices.DeleteFunc(all, func(node *corev1.Node) bool { return nodes.Ready(node) && !nodes.ShutDown(node) }), err
}
