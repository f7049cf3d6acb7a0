package node

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

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
	since, silent := nodes.Silent(node)
	if !silent {
		i.guard.present(node.UID)
		return true, nil
	}
	id, err := i.idOf(node)
	if err != nil {
		i.reportMalformed(node, err)
		return true, nil //nolint:nilerr // without an instance there is none that could be gone
	}
	instance, answer, err := i.snapshot.current(ctx, id, i.silentAge(node, since))
	if errors.Is(err, errRefusedID) {
		i.reportMalformed(node, err)
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if instance.ID != "" {
		i.visible(ctx, node, id)
		return true, nil
	}
	gone, err := i.confirmGone(ctx, node, id, answer)
	return !gone, err
}

// silentAge returns how old an answer may be about a node that has been silent since then. Nodes that fell silent just now
// are read in every pass, and those that have been so for long, such as a stopped half of the cluster, with a call per hundred
// of them and minute. Missing instances are read as often as their absences count.
func (i *Instances) silentAge(node *corev1.Node, since time.Time) time.Duration {
	longest := min(maxSilentAge, i.opts.Guard.Over/2)
	age := min(time.Since(since)/8, longest)
	switch {
	case i.guard.counts(node.UID), i.missing(node):
		age = i.opts.Guard.spacing()
	case nodes.ShutDown(node): // why it is silent is known
		age = longest
	}
	return max(age, i.opts.existsTTL())
}

// missing reports whether the last answer about the node's instance did not show it.
func (i *Instances) missing(node *corev1.Node) bool {
	id, err := i.idOf(node)
	return err == nil && i.snapshot.isMissing(id)
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
	switch {
	case untouchable(err), errors.Is(err, ErrProviderIDEmpty), errors.Is(err, ErrProviderIDMalformed):
		return false, nil
	case err != nil:
		return false, err
	}
	since, silent := nodes.Silent(node)
	if !silent {
		since = time.Now()
	}
	instance, _, err := i.snapshot.current(ctx, id, i.silentAge(node, since))
	if errors.Is(err, errRefusedID) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return instance.Status == alicloud.InstanceStopped, nil
}
