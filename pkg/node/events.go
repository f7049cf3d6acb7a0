package node

import (
	"errors"
	"fmt"
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
	if errors.Is(err, ErrProviderIDMalformed) {
		i.events.Warnf(node, reasonProviderIDInvalid, "spec.providerID %q cannot be read, expected \"<region>.<instance id>\". It cannot be changed: "+
			"delete the Node and let its kubelet register it again", node.Spec.ProviderID)
	}
}

func (i *Instances) reportRegion(node *corev1.Node, err error) {
	if errors.Is(err, ErrOtherRegion) {
		i.events.Warnf(node, reasonProviderIDInvalid, "spec.providerID %q names another region than the cluster's, %s; the node is left alone. If it "+
			"is wrong, delete the Node and let its kubelet register it again", node.Spec.ProviderID, i.opts.Region)
	}
}

// ErrUnconfirmed says that an instance seems gone and that the evidence is not enough to delete its Node.
var ErrUnconfirmed = errors.New("the instance may exist")

// Why an instance that is missing was not reported as gone; the values of a metric label.
const (
	doubtNoControl   = "no_control"
	doubtUnseen      = "never_seen"
	doubtUnconfirmed = "unconfirmed"
	doubtCapped      = "capped"
)

func (i *Instances) doubt(reason, format string, args ...any) error {
	deletionsRefused.WithLabelValues(reason).Inc()
	return fmt.Errorf("%w: %s", ErrUnconfirmed, fmt.Sprintf(format, args...))
}
