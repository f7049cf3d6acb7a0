package vpcroute

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/workers"
)

// Reasons of the NetworkUnavailable condition. The first two are the stock route controller's and the official CCM's, so
// that a change of program changes no node. The last one is for nodes that get no routes from this program.
const (
	conditionCreated  = "RouteCreated"
	conditionMissing  = "NoRouteCreated"
	conditionDisabled = "RoutesNotManaged"
)

var conditionMessages = map[string]string{
	conditionCreated:  "The routes of the node's pod CIDRs are available",
	conditionMissing:  "A route of the node's pod CIDRs is not available yet, or its source/destination check is not known to be off",
	conditionDisabled: "The node's routes are not managed by the cloud controller manager",
}

// conditionWorkers is how many conditions are written at the same time, so that a thousand new nodes do not wait for each
// other.
const conditionWorkers = 8

// conditions writes the nodes' NetworkUnavailable conditions, beside the passes: writing a thousand of them must not keep
// the next batch of routes waiting.
type conditions struct {
	client kubernetes.Interface
	nodes  corelisters.NodeLister
	queue  workqueue.TypedRateLimitingInterface[string]

	mu     sync.Mutex           // guards the map
	wanted map[types.UID]string // the reasons of the conditions that nodes are to have
}

func newConditions(client kubernetes.Interface, nodes corelisters.NodeLister) *conditions {
	return &conditions{
		client: client, nodes: nodes, wanted: map[types.UID]string{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
	}
}

// set replaces the wanted conditions. Nodes that are not named are left alone. Like require, it is called by one goroutine.
func (c *conditions) set(all map[*corev1.Node]string) {
	wanted := make(map[types.UID]string, len(all))
	for node, reason := range all {
		wanted[node.UID] = reason
	}
	c.mu.Lock()
	c.wanted = wanted
	c.mu.Unlock()
	for node := range all {
		c.enqueue(node.Name)
	}
}

// require makes the networks of nodes without a condition unavailable, whatever else is known.
func (c *conditions) require(joining ...*corev1.Node) {
	for _, node := range joining {
		c.mu.Lock()
		c.wanted[node.UID] = cmp.Or(c.wanted[node.UID], conditionMissing)
		c.mu.Unlock()
		c.enqueue(node.Name)
	}
}

func (c *conditions) enqueue(name string) {
	if node, _ := c.due(name); node != nil {
		c.queue.Add(name)
	}
}

// run writes until the context ends.
func (c *conditions) run(ctx context.Context) {
	workers.Run(ctx, c.queue, conditionWorkers, func(ctx context.Context, name string) error {
		err := c.write(ctx, name)
		if err != nil && ctx.Err() == nil {
			utilruntime.HandleErrorWithContext(ctx, err, "Writing the NetworkUnavailable condition", "node", name)
		}
		return err
	})
}

func (c *conditions) write(ctx context.Context, name string) error {
	node, reason := c.due(name)
	if node == nil {
		return nil
	}
	return patchCondition(ctx, c.client, node, reason)
}

// due returns the node, and the reason of the condition that it is to have, if it has another one as far as the cache shows.
func (c *conditions) due(name string) (*corev1.Node, string) {
	node, err := c.nodes.Get(name)
	if err != nil {
		return nil, ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	reason := c.wanted[node.UID]
	if reason == "" || conditionHolds(node, reason != conditionMissing) {
		return nil, ""
	}
	return node, reason
}

// conditionHolds accepts any reason for an available network: a network plugin may have written its own.
func conditionHolds(node *corev1.Node, available bool) bool {
	condition := nodes.Condition(node, corev1.NodeNetworkUnavailable)
	if condition == nil {
		return false
	}
	return (condition.Status == corev1.ConditionFalse) == available
}

// lacksCondition reports whether a node joins and has no word about its network yet that counts. What a network plugin has written while
// the node waits for its initialization says that the plugin runs, and nothing of routes: without them, pods would land too early.
func lacksCondition(node *corev1.Node, routable bool, now time.Time) bool {
	if !joins(node, routable, now) {
		return false
	}
	condition := nodes.Condition(node, corev1.NodeNetworkUnavailable)
	if condition == nil {
		return true
	}
	ours := condition.Reason == conditionCreated || condition.Reason == conditionDisabled
	return nodes.Uninitialized(node) && condition.Status == corev1.ConditionFalse && !ours
}

// BeginJoining makes the network of a node unavailable that is new here and has no such condition yet. A caller that awaits it
// before it takes the node's uninitialized taint off leaves no moment in which pods land on a node without a route.
func BeginJoining(ctx context.Context, client kubernetes.Interface, node *corev1.Node, routable bool) error {
	if !lacksCondition(node, routable, time.Now()) {
		return nil
	}
	return patchCondition(ctx, client, node, conditionMissing)
}

// patchCondition writes one condition of one Node object; a Node of the same name that was registered since is not meant.
func patchCondition(ctx context.Context, client kubernetes.Interface, node *corev1.Node, reason string) error {
	now := metav1.Now()
	condition := corev1.NodeCondition{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionFalse, Reason: reason,
		Message: conditionMessages[reason], LastHeartbeatTime: now, LastTransitionTime: now}
	if reason == conditionMissing {
		condition.Status = corev1.ConditionTrue
	}
	patch, err := nodes.ConditionPatch(node, condition, "")
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Nodes().PatchStatus(ctx, node.Name, patch)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("set condition %s of node %s to %s: %w", condition.Type, node.Name, condition.Status, err)
	}
	return nil
}

// availability is whether a node's pods can be reached. The worst of several wins.
type availability int

const (
	up availability = iota
	// unknown leaves a condition that says the one or the other as it is.
	unknown
	down
)

// wantedConditions says of every node with a pod CIDR whether its network is available: its routes, of both IP versions, work in
// the table that its vSwitch uses, and for the first time only once they work in all others too; and its source/destination check
// is off. Nodes about which nothing is known are left out. tableOf returns the table that the node's vSwitch uses, "" when that is not known,
// and check what an instance's source/destination check means for its node.
func wantedConditions(
	d *desired, plans []*plan, tableOf func(*corev1.Node) string, check func(instance string) availability,
) map[*corev1.Node]string {
	worst := map[*corev1.Node]availability{}
	note := func(node *corev1.Node, a availability) {
		worst[node] = max(worst[node], a)
	}
	for cidr, want := range d.routes {
		note(want.node, availabilityOf(cidr, plans, tableOf(want.node)))
		note(want.node, check(want.instance))
	}
	for _, problem := range d.problems {
		_, routed := worst[problem.node]
		switch {
		case problem.keepCondition:
			note(problem.node, unknown)
		case problem.reason != reasonIPv6 || !routed: // where the VPC has no IPv6, an IPv4 route is enough
			note(problem.node, down)
		}
	}
	all := map[*corev1.Node]string{}
	for _, node := range d.joining {
		all[node] = conditionMissing
	}
	for node, a := range worst {
		switch a {
		case up:
			all[node] = conditionCreated
		case down:
			all[node] = conditionMissing
		}
	}
	for _, node := range d.unmanaged {
		all[node] = conditionDisabled
	}
	return all
}

// availabilityOf is that of one route in all tables, of which the node uses its own.
func availabilityOf(cidr netip.Prefix, plans []*plan, own string) availability {
	managed := slices.ContainsFunc(plans, func(p *plan) bool { return p.id == own })
	result := up
	for _, plan := range plans {
		decides := plan.id == own || !managed
		switch {
		case plan.err != nil && decides:
			result = unknown
		case plan.err != nil, plan.states[cidr] == stateAvailable:
		case decides:
			return down
		default:
			result = unknown
		}
	}
	return result
}
