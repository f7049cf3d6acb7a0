package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// maxSilentAge is how old an answer about a node may be that has been silent for long, if half of [GuardOptions].Over is not
// less.
const maxSilentAge = time.Minute

// InstanceExists reports whether the node's instance exists. An answer of false deletes the Node, so it is given only when
//
//   - the node's Ready condition is Unknown: a kubelet that reports, ready or not, is better evidence than any list;
//   - the provider ID is one of ours, of this region;
//   - several consecutive answers over minutes lacked the instance, and each of them showed another instance;
//   - a last call for this instance and a few others confirms it;
//   - the Node is then still the same object in the same condition;
//   - the cap of the interval is not used up.
//
// Short of that the Node is kept: the answer is true, and a log line says why whenever that changes. An error means that ECS
// could not be read.
func (i *Instances) InstanceExists(ctx context.Context, node *corev1.Node) (bool, error) {
	// One that waits for a finalizer is deleted already, and takes no other's turn.
	if _, silent := nodes.Silent(node); !silent || node.DeletionTimestamp != nil {
		i.guard.present(node.UID)
		return true, nil
	}
	id, err := i.idOf(node)
	if err != nil {
		i.reportUnserved(node, err)
		return true, nil //nolint:nilerr // without an instance there is none that could be gone
	}
	instance, answer, err := i.snapshot.current(ctx, id, i.silentAge(node))
	if errors.Is(err, errRefusedID) {
		i.reportUnserved(node, err)
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if instance.ID != "" {
		if i.guard.present(node.UID) {
			klog.FromContext(ctx).Info("ECS shows the node's instance again", "node", node.Name, "instance", id)
		}
		return true, nil
	}
	reason, why, err := i.whyKept(ctx, node, id, answer)
	if err != nil {
		return false, err
	}
	current := i.asRead(node)
	if reason == "" && current == nil {
		reason, why = keptChanged, hasChanged
	}
	if reason != "" {
		i.keep(ctx, node, id, reason, why)
		return true, nil
	}
	i.opts.Permits.allow(current)
	deletionsConfirmed.Inc()
	klog.FromContext(ctx).Info("The node's instance is gone; the Node may be deleted", "node", node.Name, "uid", node.UID, "instance", id)
	return false, nil
}

// silentAge returns how old an answer may be about a node. Nodes that fell silent just now
// are read in every pass, and those that have been so for long, such as a stopped half of the cluster, with a call per hundred
// of them and minute. Missing instances are read as often as their absences count.
func (i *Instances) silentAge(node *corev1.Node) (age time.Duration) {
	longest := min(maxSilentAge, i.opts.Guard.Over/2)
	if since, silent := nodes.Silent(node); silent {
		age = min(time.Since(since)/8, longest)
	}
	id, err := i.idOf(node)
	switch {
	case err == nil && i.snapshot.knownOf(id).lacked():
		age = i.opts.Guard.spacing()
	case nodes.ShutDown(node): // why it is silent is known
		age = longest
	}
	return max(age, i.opts.existsTTL())
}

// InstanceShutdown reports whether the node's instance is stopped. Nodes that are none of ours are not, and neither is one
// that ECS does not show.
//
// A node that has the taint already gets the answer false: the stock controller would read the Node again, and change
// nothing. It takes the taint off when the node is ready, without asking.
func (i *Instances) InstanceShutdown(ctx context.Context, node *corev1.Node) (bool, error) {
	if nodes.ShutDown(node) {
		return false, nil
	}
	id, err := i.idOf(node)
	if err != nil {
		return false, nil //nolint:nilerr // without an instance there is none that could be stopped
	}
	instance, _, err := i.snapshot.current(ctx, id, i.silentAge(node))
	if err != nil && !errors.Is(err, errRefusedID) {
		return false, err
	}
	return instance.Status == alicloud.InstanceStopped, nil
}

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

	keptTried  = "tried" // was tried a moment ago, which the log says
	hasChanged = "the Node has changed meanwhile"
)

// keep records why a Node whose instance is missing is not deleted. It logs only what is new.
func (i *Instances) keep(ctx context.Context, node *corev1.Node, id, reason, why string) {
	switch reason {
	case keptTried:
		return
	case keptNoControl:
		i.reportNotShown(node, id)
	case keptCapped:
		i.events.Warnf(node, reasonDeletionDeferred, "Instance %s no longer exists; the Node is kept for now, because the limit on deletions "+
			"(%d nodes in %s) is reached", id, i.opts.Guard.limit(i.ours()), i.opts.Guard.Interval)
	}
	deletionsRefused.WithLabelValues(reason).Inc()
	if i.guard.state(node.UID, reason) {
		klog.FromContext(ctx).Info("ECS does not show the node's instance; the Node is kept", "node", node.Name, "instance", id, "reason", reason,
			"why", why)
	}
}

// whyKept returns why the Node is kept: an answer that lacks its instance, together with those before it and a last one, proves nothing, or
// other Nodes come first. It is "" where the Node may be deleted.
func (i *Instances) whyKept(ctx context.Context, node *corev1.Node, id string, answer *batch) (reason, why string, err error) {
	if len(answer.instances) == 0 && len(i.snapshot.recent(id, 1)) > 0 {
		return keptNoControl, "the answer shows no other instance either; " + checkPermission, nil
	}
	seen := i.snapshot.knownOf(id).read
	if seen.IsZero() {
		i.reportNotShown(node, id)
	}
	proven := i.guard.missing(node.UID, answer.asked, seen)
	if reason, why = i.unproven(node, !seen.IsZero(), proven); reason != "" {
		return reason, why, nil
	}
	switch i.guard.grant(node.UID, i.ours(), time.Now()) {
	case capped:
		return keptCapped, "the limit on deletions is reached", nil
	case notDue:
		return keptTried, "", nil
	}
	reason, why, err = i.confirm(ctx, id)
	if reason != "" {
		i.guard.deny(node.UID)
	}
	return reason, why, err
}

// unproven returns why a Node is kept before anything else is asked for, whose instance was seen before or not; "" for no reason.
func (i *Instances) unproven(node *corev1.Node, seen, proven bool) (reason, why string) {
	switch {
	case !seen && nodes.Uninitialized(node):
		return keptUnseen, "it was never seen and the node is not initialized; " + checkPermission
	case !proven && !seen:
		return keptUnseen, "further answers must confirm it"
	case !proven:
		return keptUnconfirmed, "further answers must confirm it"
	case i.asRead(node) == nil:
		return keptChanged, hasChanged
	case i.opts.Paused != nil && i.opts.Paused():
		return keptPaused, "Global.paused of the cloud-config is set"
	}
	return "", ""
}

// confirm reads the one instance and a few that are known to exist. An empty reason means that it is gone.
func (i *Instances) confirm(ctx context.Context, id string) (reason, why string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	known := i.snapshot.recent(id, controls)
	found, err := i.snapshot.read(ctx, alicloud.InstanceQuery{IDs: append([]string{id}, known...)})
	if err != nil {
		return "", "", fmt.Errorf("confirm that instance %s is gone: %w", id, err)
	}
	if len(known) == 0 && len(found) == 0 {
		// Where the cluster never had another instance, any instance of its VPC is as good a control. Where it had, that all of
		// them are missing suggests a wrong account, and so would the list of a VPC.
		if !i.snapshot.onlyEver(id) {
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
	current, err := i.lister.Get(node.Name)
	if err != nil || current.UID != node.UID || current.Spec.ProviderID != node.Spec.ProviderID {
		return nil
	}
	if _, silent := nodes.Silent(current); !silent {
		return nil
	}
	return current
}

// ours returns how many instances of ours have nodes.
func (i *Instances) ours() int { return len(i.indexer.ListIndexFuncValues(nodesOfInstance)) }
