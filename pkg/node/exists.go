package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// controls is how many instances that were seen last are asked for together with one that seems gone. That all of them
// are visible proves that key, region and permission are right and that the answer is whole.
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
	if nodes.Ready(node) {
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
	instance, answer, err := i.snapshot.current(ctx, id, i.opts.existsTTL())
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
		return false, i.noControl(node, id, "and so is every other instance of the same answer")
	}
	if age := time.Since(node.CreationTimestamp.Time); !i.snapshot.seen(id) && age < i.opts.Guard.UnseenAge {
		i.reportNotShown(node, id)
		return false, i.doubt(doubtUnseen, "instance %s was never seen and its node is only %s old; %s", id, age.Round(time.Second), checkPermission)
	}
	count, enough := i.guard.missing(node.UID, answer.asked)
	if !enough {
		return false, i.doubt(doubtUnconfirmed, "instance %s is missing, confirmation %d", id, count)
	}
	nodes := len(i.nodes())
	if !i.guard.room(node.UID, nodes, time.Now()) {
		return false, i.capped(node, id)
	}
	if err := i.lookAgain(ctx, node, id); err != nil {
		return false, err
	}
	if !i.guard.grant(node.UID, nodes, time.Now()) {
		return false, i.capped(node, id)
	}
	deletionsConfirmed.Inc()
	return false, nil
}

// noControl refuses because the answer shows nothing that proves it right: a key without permission gets an empty list, too.
func (i *Instances) noControl(node *corev1.Node, id, why string) error {
	i.reportNotShown(node, id)
	return i.doubt(doubtNoControl, "instance %s is missing, %s; %s", id, why, checkPermission)
}

// capped tells that the node would be reported as gone, were the cap not reached.
func (i *Instances) capped(node *corev1.Node, id string) error {
	i.events.Warnf(node, reasonDeletionDeferred, "Instance %s is missing; the Node stays for now because the cap on deletions "+
		"(%d nodes or %d %% in %s) is reached", id, i.opts.Guard.MaxDeletions, i.opts.Guard.MaxPercent, i.opts.Guard.Interval)
	return i.doubt(doubtCapped, "instance %s is missing, but the cap on deletions is reached", id)
}

// lookAgain asks for the one instance and a few that are known to exist. A nil error means that it is gone.
func (i *Instances) lookAgain(ctx context.Context, node *corev1.Node, id string) error {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	known := i.snapshot.recent(id, controls)
	query := alicloud.InstanceQuery{IDs: append([]string{id}, known...)}
	if len(known) == 0 {
		// Where the cluster never had another instance, any instance of its VPC is as good a control. Where it had, that
		// all of them are missing smells of a wrong account; so would the list of no VPC.
		if i.opts.VPCID == "" || !i.snapshot.onlyEver(id) {
			return i.noControl(node, id, "and no other instance is known to compare with")
		}
		query = alicloud.InstanceQuery{VPCID: i.opts.VPCID}
	}
	found, err := i.snapshot.api.DescribeInstances(ctx, query)
	if err != nil {
		return fmt.Errorf("look again for instance %s: %w", id, err)
	}
	visible := sets.New[string]()
	for at := range found {
		visible.Insert(found[at].ID)
	}
	if visible.Has(id) {
		i.guard.present(node.UID)
		return i.doubt(doubtUnconfirmed, "instance %s was missing and is there again", id)
	}
	if visible.Len() == 0 || !visible.HasAll(known...) {
		return i.noControl(node, id, "and so are others of the same answer that were just there")
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
	instance, _, err := i.snapshot.current(ctx, id, i.opts.existsTTL())
	if err != nil {
		return false, err
	}
	return instance.Status == alicloud.InstanceStopped, nil
}
