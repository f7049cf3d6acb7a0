package node

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// controls is how many instances that were seen last are read together with one that seems gone. That all of them are
// visible proves that key, region and permission are right and that the answer is whole.
const controls = 5

// Why a Node whose instance is missing is kept; the values of a metric label.
const (
	keptNoControl   = "no_control"
	keptUnseen      = "never_seen"
	keptUnconfirmed = "unconfirmed"
	keptCapped      = "capped"
	keptChanged     = "changed"
	keptPaused      = "paused"
)

// visible ends what was found out about a missing instance.
func (i *Instances) visible(ctx context.Context, node *corev1.Node, id string) {
	if i.guard.present(node.UID) {
		klog.FromContext(ctx).Info("ECS shows the node's instance again", "node", node.Name, "instance", id)
	}
}

// keep records why a Node whose instance is missing is not deleted. It logs only what is new.
func (i *Instances) keep(ctx context.Context, node *corev1.Node, id, reason, why string) {
	deletionsRefused.WithLabelValues(reason).Inc()
	if i.guard.state(node.UID, reason) {
		klog.FromContext(ctx).Info("ECS does not show the node's instance; the Node is kept", "node", node.Name, "instance", id, "reason", reason, "why", why)
	}
}

// confirmGone reports whether an answer that lacks the instance, together with those before it and a last one, proves that the
// instance is gone and its Node may be deleted.
func (i *Instances) confirmGone(ctx context.Context, node *corev1.Node, id string, answer *batch) (bool, error) {
	if len(answer.instances) == 0 && len(i.snapshot.recent(id, 1)) > 0 {
		i.reportNotShown(node, id)
		i.keep(ctx, node, id, keptNoControl, "the answer shows no other instance either; "+checkPermission)
		return false, nil
	}
	seen := i.snapshot.lastSeen(id)
	if seen.IsZero() {
		i.reportNotShown(node, id)
	}
	count, over := i.guard.missing(node.UID, answer.asked, seen)
	if reason, why := i.reasonToKeep(node, !seen.IsZero(), count, over); reason != "" {
		i.keep(ctx, node, id, reason, why)
		return false, nil
	}
	switch i.guard.grant(node.UID, i.ours(), time.Now()) {
	case granted:
		return i.allowDeletion(ctx, node, id)
	case capped:
		i.reportCapped(node, id)
		i.keep(ctx, node, id, keptCapped, "the limit on deletions is reached")
	case notDue: // what is the matter was logged when it was tried
	}
	return false, nil
}

// reasonToKeep returns why a Node is kept although so many answers over a time lack its instance, which was seen before or not; "" for no
// reason.
func (i *Instances) reasonToKeep(node *corev1.Node, seen bool, count int, over time.Duration) (reason, why string) {
	switch {
	case !seen && nodes.Uninitialized(node):
		return keptUnseen, "it was never seen and the node is not initialized; " + checkPermission
	case !i.guard.enough(count, over, seen) && !seen:
		return keptUnseen, "further answers must confirm it"
	case !i.guard.enough(count, over, seen):
		return keptUnconfirmed, "further answers must confirm it"
	case i.asRead(node) == nil:
		return keptChanged, "the Node has changed meanwhile"
	case i.opts.Paused != nil && i.opts.Paused():
		return keptPaused, "Global.paused of the cloud-config is set"
	}
	return "", ""
}

// allowDeletion confirms that the instance is gone by a call of its own and lets the Node be deleted as it is now.
func (i *Instances) allowDeletion(ctx context.Context, node *corev1.Node, id string) (bool, error) {
	reason, why, err := i.confirm(ctx, id)
	if err != nil {
		return false, err
	}
	if reason != "" {
		i.guard.deny(node.UID)
		i.keep(ctx, node, id, reason, why)
	}
	switch reason {
	case keptNoControl:
		i.reportNotShown(node, id)
		return false, nil
	case keptUnconfirmed:
		i.visible(ctx, node, id)
		return false, nil
	}
	current := i.asRead(node)
	if current == nil {
		i.keep(ctx, node, id, keptChanged, "the Node has changed meanwhile")
		return false, nil
	}
	i.opts.Permits.allow(current)
	deletionsConfirmed.Inc()
	klog.FromContext(ctx).Info("The node's instance is gone; the Node may be deleted", "node", node.Name, "uid", node.UID, "instance", id)
	return true, nil
}

// confirm reads the one instance and a few that are known to exist. An empty reason means that it is gone.
func (i *Instances) confirm(ctx context.Context, id string) (reason, why string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	known := i.snapshot.recent(id, controls)
	found, err := i.snapshot.api.DescribeInstances(ctx, alicloud.InstanceQuery{IDs: append([]string{id}, known...)})
	if err != nil {
		return "", "", fmt.Errorf("confirm that instance %s is gone: %w", id, err)
	}
	if len(known) == 0 && len(found) == 0 {
		// Where the cluster never had another instance, any instance of its VPC is as good a control. Where it had, that all of
		// them are missing suggests a wrong account, and so would the list of a VPC.
		if i.opts.VPCID == "" || !i.snapshot.onlyEver(id) {
			return keptNoControl, "no other instance is known to compare with; " + checkPermission, nil
		}
		found, err = i.snapshot.api.DescribeInstances(ctx, alicloud.InstanceQuery{VPCID: i.opts.VPCID, FirstPage: true})
		if err != nil {
			return "", "", fmt.Errorf("look for another instance of %s: %w", i.opts.VPCID, err)
		}
	}
	shown := sets.New[string]()
	for at := range found {
		shown.Insert(found[at].ID)
	}
	switch {
	case shown.Has(id):
		return keptUnconfirmed, "it was missing and is there again", nil
	case shown.Len() == 0 || !shown.HasAll(known...):
		return keptNoControl, "other instances are missing that were just there; " + checkPermission, nil
	}
	return "", "", nil
}

// asRead returns the Node from the cache as it is now, nil unless it is still the same object, silent, and of the same instance.
// The caller's copy may be as old as its pass over all nodes, and a call may have waited for the rate limit since.
func (i *Instances) asRead(node *corev1.Node) *corev1.Node {
	if i.lister == nil {
		return node
	}
	current, err := i.lister.Get(node.Name)
	if err != nil || current.UID != node.UID || current.Spec.ProviderID != node.Spec.ProviderID {
		return nil
	}
	if _, silent := nodes.Silent(current); !silent {
		return nil
	}
	return current
}

// ours returns how many nodes are instances of ours.
func (i *Instances) ours() int {
	count := 0
	for _, node := range i.nodes() {
		if _, err := i.idOf(node); err == nil {
			count++
		}
	}
	return count
}
