package node

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Reasons of the events on nodes.
const (
	reasonInstanceNotFound  = "InstanceNotFound"
	reasonInstanceAmbiguous = "InstanceAmbiguous"
	reasonProviderIDInvalid = "InvalidProviderID"
	reasonDeletionDeferred  = "NodeDeletionDeferred"
)

// eventInterval is how long the same problem of a node is not reported again: the callers ask every few seconds.
const eventInterval = time.Hour

func (i *Instances) reportMalformed(node *corev1.Node, err error) {
	if errors.Is(err, ErrProviderIDMalformed) || errors.Is(err, errRefusedID) {
		i.events.Warnf(node, reasonProviderIDInvalid, "spec.providerID %q is malformed, expected \"<region>.<instance id>\". It cannot be changed: "+
			"delete the Node and let its kubelet register it again", node.Spec.ProviderID)
	}
}

func (i *Instances) reportRegion(node *corev1.Node, err error) {
	if errors.Is(err, ErrOtherRegion) {
		i.events.Warnf(node, reasonProviderIDInvalid, "spec.providerID %q names a region other than that of the cluster, %s; the manager ignores the node. If it "+
			"is wrong, delete the Node and let its kubelet register it again", node.Spec.ProviderID, i.opts.Region)
	}
}

func (i *Instances) reportCapped(node *corev1.Node, id string) {
	i.events.Warnf(node, reasonDeletionDeferred, "Instance %s no longer exists; the Node is kept for now, because the limit on deletions "+
		"(%d nodes in %s) is reached", id, i.opts.Guard.limit(i.ours()), i.opts.Guard.Interval)
}

// listLag is how long a new instance may be missing in the list before an event says so.
const listLag = 10 * time.Second

// reportNotShown emits an event about an instance that ECS does not show, once that is no longer the list's lag.
func (i *Instances) reportNotShown(node *corev1.Node, id string) {
	if time.Since(node.CreationTimestamp.Time) >= listLag {
		i.events.Warnf(node, reasonInstanceNotFound, "ECS does not show instance %s of region %s; %s", id, i.opts.Region, checkPermission)
	}
}
