package vpcroute

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
)

// NewUnroutedController returns a controller that does what is left to do for nodes in clusters whose routes are switched off. It clears a
// NetworkUnavailable condition that a route controller left behind: nothing else would ever clear it, and the node would stay
// unschedulable. And it switches off the nodes' source/destination checks: whoever routes pod addresses in the VPC instead, such as
// flannel or a user, needs that too.
func NewUnroutedController(opts Options) (*Controller, error) { return newUnrouted(opts, 0) }

// NewLeftOutController returns a controller for programs that leave the route controller out: it clears conditions only, and only those
// that nobody else has cleared for a while, for the route controller of another program may be at work.
func NewLeftOutController(opts Options) (*Controller, error) {
	opts.SkipSourceDestCheck = true
	return newUnrouted(opts, waits.NodeUnrouted)
}

func newUnrouted(opts Options, patience time.Duration) (*Controller, error) {
	c, err := newController(opts, nil)
	if err != nil {
		return nil, err
	}
	c.run = func(context.Context) (time.Time, error) { return c.clear(patience) }
	return c, nil
}

// clear says which conditions are to be cleared, those that have stood for so long, and which checks are to be off. It returns when the
// next condition has stood for long enough.
func (c *Controller) clear(patience time.Duration) (next time.Time, err error) {
	all, err := c.opts.Nodes.Lister().List(labels.Everything())
	if err != nil {
		return time.Time{}, fmt.Errorf("list nodes: %w", err)
	}
	instances, unmanaged := map[string]*corev1.Node{}, map[string]conditionFor{}
	for _, node := range all {
		if instance, err := c.opts.InstanceID(node); err == nil && nodes.ExclusionLabel(node) == "" && !c.opts.SkipSourceDestCheck {
			instances[instance] = node
		}
		if !leftBehind(node) {
			continue
		}
		if stood := time.Since(nodes.Condition(node, corev1.NodeNetworkUnavailable).LastTransitionTime.Time); stood < patience {
			next = earliest(next, time.Now().Add(min(patience, patience-stood)))
			continue
		}
		unmanaged[node.Name] = conditionFor{uid: node.UID, reason: conditionDisabled}
	}
	c.checks.want(instances)
	c.conditions.set(unmanaged)
	return next, nil
}

// leftBehind reports whether the condition keeps pods away and was written by a route controller.
func leftBehind(node *corev1.Node) bool {
	condition := nodes.Condition(node, corev1.NodeNetworkUnavailable)
	return condition != nil && condition.Status == corev1.ConditionTrue && condition.Reason == conditionMissing
}
