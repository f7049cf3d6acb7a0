package vpcroute

import (
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

	mu     sync.Mutex // guards the map
	wanted map[string]conditionFor
}

// conditionFor is the condition that a node is to have.
type conditionFor struct {
	uid    types.UID
	reason string
}

func (c conditionFor) available() bool { return c.reason != conditionMissing }

func newConditions(client kubernetes.Interface, nodes corelisters.NodeLister) *conditions {
	return &conditions{
		client: client, nodes: nodes, wanted: map[string]conditionFor{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
	}
}

// set replaces the wanted conditions, and keeps the map. Nodes that are not named are left alone. Like require, it is called by one goroutine.
func (c *conditions) set(all map[string]conditionFor) {
	c.mu.Lock()
	c.wanted = all
	c.mu.Unlock()
	for name := range all {
		c.enqueue(name)
	}
}

// require makes the networks of nodes without a condition unavailable, whatever else is known.
func (c *conditions) require(joining ...*corev1.Node) {
	for _, node := range joining {
		c.mu.Lock()
		if c.wanted[node.Name].uid != node.UID {
			c.wanted[node.Name] = conditionFor{uid: node.UID, reason: conditionMissing}
		}
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
	node, condition := c.due(name)
	if node == nil {
		return nil
	}
	return patchCondition(ctx, c.client, node, conditionOf(condition.reason))
}

// due returns the node, and the condition that it is to have, if it has another one as far as the cache shows.
func (c *conditions) due(name string) (*corev1.Node, conditionFor) {
	node, err := c.nodes.Get(name)
	if err != nil {
		return nil, conditionFor{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	want, ok := c.wanted[name]
	if !ok || want.uid != node.UID || conditionHolds(node, want.available()) {
		return nil, conditionFor{}
	}
	return node, want
}

// conditionHolds accepts any reason for an available network: a network plugin may have written its own.
func conditionHolds(node *corev1.Node, available bool) bool {
	condition := nodes.Condition(node, corev1.NodeNetworkUnavailable)
	if condition == nil {
		return false
	}
	return (condition.Status == corev1.ConditionFalse) == available
}

func conditionOf(reason string) corev1.NodeCondition {
	condition := corev1.NodeCondition{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionFalse, Reason: reason,
		Message: conditionMessages[reason]}
	if reason == conditionMissing {
		condition.Status = corev1.ConditionTrue
	}
	return condition
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
	return patchCondition(ctx, client, node, conditionOf(conditionMissing))
}

// patchCondition writes one condition of one Node object; a Node of the same name that was registered since is not meant.
func patchCondition(ctx context.Context, client kubernetes.Interface, node *corev1.Node, condition corev1.NodeCondition) error {
	condition.LastHeartbeatTime = metav1.Now()
	condition.LastTransitionTime = condition.LastHeartbeatTime
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

// view is what a pass knows about the tables.
type view struct {
	plans []*plan
	// tableOf returns the table that the node's vSwitch uses, "" when that is not known.
	tableOf func(*corev1.Node) string
	// check returns what an instance's source/destination check means for its node.
	check func(instance string) availability
}

// wantedConditions says of every node with a pod CIDR whether its network is available: its routes, of both IP versions, work in
// the table that its vSwitch uses, and for the first time only once they work in all others too; and its source/destination check
// is off. Nodes about which nothing is known are left out.
func wantedConditions(d *desired, v view) map[string]conditionFor {
	worst := map[*corev1.Node]availability{}
	note := func(node *corev1.Node, a availability) {
		worst[node] = max(worst[node], a)
	}
	for cidr, want := range d.routes {
		note(want.node, v.route(want.node, cidr))
		note(want.node, v.check(want.instance))
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
	all := map[string]conditionFor{}
	want := func(node *corev1.Node, reason string) { all[node.Name] = conditionFor{uid: node.UID, reason: reason} }
	for _, node := range d.joining {
		want(node, conditionMissing)
	}
	for node, a := range worst {
		switch a {
		case up:
			want(node, conditionCreated)
		case down:
			want(node, conditionMissing)
		}
	}
	for _, node := range d.unmanaged {
		want(node, conditionDisabled)
	}
	return all
}

// route is the availability of one route of the node in all tables.
func (v view) route(node *corev1.Node, cidr netip.Prefix) availability {
	own := v.tableOf(node)
	managed := slices.ContainsFunc(v.plans, func(p *plan) bool { return p.id == own })
	result := up
	for _, plan := range v.plans {
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
