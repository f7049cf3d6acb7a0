package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// controls is how many instances that are known to exist are asked for together with one that seems gone. One visible
// control proves that key, region and permission are right; several, because a control may itself just be released.
const controls = 5

// InstanceExists tells whether the node's instance exists. An answer of false deletes the Node, so it is given only when
//
//   - the node is not ready, and its provider ID is one of ours, of this region;
//   - several answers over some time lacked the instance, and each of them showed another instance;
//   - a last look at this instance and a few others confirms it;
//   - the cap of the interval is not used up.
//
// Short of that it returns an error, which keeps the Node. Nodes that are none of ours exist.
func (i *Instances) InstanceExists(ctx context.Context, node *corev1.Node) (bool, error) {
	if ready(node) {
		return true, nil
	}
	id, err := i.idOf(node)
	switch {
	case untouchable(err):
		return true, nil
	case errors.Is(err, ErrProviderIDEmpty):
		_, err = i.byAddress(ctx, node)
		return err == nil, err
	case err != nil:
		i.reportMalformed(node, err)
		return false, err
	}
	instance, answer, err := i.snapshot.current(ctx, id, i.opts.ExistsTTL)
	if err != nil {
		return false, err
	}
	if instance.ID != "" {
		i.guard.present(node.UID)
		return true, nil
	}
	return i.confirmGone(ctx, node, id, answer)
}

// confirmGone judges an answer that lacks the instance.
func (i *Instances) confirmGone(ctx context.Context, node *corev1.Node, id string, answer *lookup) (bool, error) {
	if len(answer.instances) == 0 && len(i.snapshot.recent(id, 1)) > 0 {
		return false, i.doubt(doubtNoControl, "instance %s is missing, and so is every other instance of the same answer", id)
	}
	if age := time.Since(node.CreationTimestamp.Time); !i.snapshot.seen(id) && age < i.opts.Guard.UnseenAge {
		return false, i.doubt(doubtUnseen, "instance %s was never seen and its node is only %s old", id, age.Round(time.Second))
	}
	count, enough := i.guard.missing(node.UID, answer.asked)
	if !enough {
		return false, i.doubt(doubtUnconfirmed, "instance %s is missing, confirmation %d", id, count)
	}
	if err := i.lookAgain(ctx, node, id); err != nil {
		return false, err
	}
	if !i.guard.grant(node.UID, len(i.nodes()), time.Now()) {
		i.events.warn(node, reasonDeletionDeferred, "Instance %s is gone; the Node stays for now because the cap on deletions "+
			"(%d nodes or %d %% in %s) is reached", id, i.opts.Guard.MaxDeletions, i.opts.Guard.MaxPercent, i.opts.Guard.Interval)
		return false, i.doubt(doubtCapped, "instance %s is gone, but the cap on deletions is reached", id)
	}
	deletionsConfirmed.Inc()
	return false, nil
}

// lookAgain asks for the one instance and a few that are known to exist. A nil error means that it is gone.
func (i *Instances) lookAgain(ctx context.Context, node *corev1.Node, id string) error {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	query := alicloud.InstanceQuery{IDs: append([]string{id}, i.snapshot.recent(id, controls)...)}
	if len(query.IDs) == 1 {
		// The cluster has no other instance. Any instance of its VPC is as good a control; without a VPC the list could
		// be another account's.
		if i.opts.VPCID == "" || !i.snapshot.seen(id) {
			return i.doubt(doubtNoControl, "instance %s is missing, and no other instance is known to compare with", id)
		}
		query = alicloud.InstanceQuery{VPCID: i.opts.VPCID}
	}
	found, err := i.opts.API.DescribeInstances(ctx, query)
	if err != nil {
		return fmt.Errorf("look again for instance %s: %w", id, err)
	}
	if slices.ContainsFunc(found, func(instance alicloud.Instance) bool { return instance.ID == id }) {
		i.guard.present(node.UID)
		return i.doubt(doubtUnconfirmed, "instance %s was missing and is there again", id)
	}
	if len(found) == 0 {
		return i.doubt(doubtNoControl, "instance %s is missing, and so is every other instance of the same answer", id)
	}
	return nil
}

// InstanceShutdown tells whether the node's instance is stopped. Nodes that are none of ours are not.
func (i *Instances) InstanceShutdown(ctx context.Context, node *corev1.Node) (bool, error) {
	id, err := i.idOf(node)
	switch {
	case untouchable(err), errors.Is(err, ErrProviderIDEmpty):
		return false, nil
	case err != nil:
		return false, err
	}
	instance, _, err := i.snapshot.current(ctx, id, i.opts.ExistsTTL)
	if err != nil {
		return false, err
	}
	return instance.Status == alicloud.InstanceStopped, nil
}
