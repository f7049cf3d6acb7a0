package bench

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cloudproviderapi "k8s.io/cloud-provider/api"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

const (
	hiddenNodes  = 150
	stoppedNodes = 500

	// badWindow is how long the bad cases are watched. They begin right after the nodes fell silent, which is when they cost most.
	badWindow = 2 * time.Minute
	// What the bad cases may cost in a minute: a call per hundred nodes for each of the answers that count, and no more for any of them.
	hiddenMaxCalls  = 12
	stoppedMaxCalls = 20
	stoppedMaxReads = 1
)

const readInstances = "DescribeInstances"

const (
	hiddenPrefix   = "hidden-"
	hiddenInstance = "i-hidden"
)

// badNodes measures nodes that something is wrong with: their instances are not shown, or stopped.
func (e *env) badNodes(ctx context.Context) ([]Figure, error) {
	hidden, err := e.hidden(ctx)
	if err != nil {
		return nil, err
	}
	stopped, err := e.stopped(ctx)
	return append([]Figure{hidden}, stopped...), err
}

// hidden counts the calls for silent nodes whose instances ECS does not show. They wait for their initialization, so that they are never
// deleted.
func (e *env) hidden(ctx context.Context) (Figure, error) {
	nodes := make([]corev1.Node, hiddenNodes)
	for i := range nodes {
		nodes[i] = corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s%d", hiddenPrefix, i)},
			Spec: corev1.NodeSpec{
				ProviderID: fmt.Sprintf("%s.%s%d", cluster.Region, hiddenInstance, i),
				Taints:     []corev1.Taint{{Key: cloudproviderapi.TaintExternalCloudProvider, Value: "true", Effect: corev1.TaintEffectNoSchedule}},
			},
		}
	}
	err := each(ctx, nodes, func(ctx context.Context, node corev1.Node) error {
		if _, err := e.client.CoreV1().Nodes().Create(ctx, &node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create node %s: %w", node.Name, err)
		}
		return nil
	})
	if err != nil {
		return Figure{}, err
	}
	silent := func(node *corev1.Node) bool {
		return strings.HasPrefix(node.Name, hiddenPrefix) && condition(node, corev1.NodeReady) == corev1.ConditionUnknown
	}
	if err = e.untilNodes(ctx, hiddenNodes, "silent", silent); err != nil {
		return Figure{}, err
	}
	operation := fmt.Sprintf("%d silent nodes whose instances ECS does not show: %s for them a minute", hiddenNodes, readInstances)
	calls, _, err := e.perMinute(ctx, operation, func(call emulator.Call) bool {
		return call.Action == readInstances && strings.Contains(call.Parameters["InstanceIds"], hiddenInstance)
	})
	if err != nil {
		return Figure{}, err
	}
	err = each(ctx, nodes, func(ctx context.Context, node corev1.Node) error {
		return e.client.CoreV1().Nodes().Delete(ctx, node.Name, metav1.DeleteOptions{})
	})
	return atMost(operation, calls, "calls", hiddenMaxCalls), err
}

// stopped counts the calls for nodes whose instances are stopped.
func (e *env) stopped(ctx context.Context) ([]Figure, error) {
	for _, instance := range e.cloud.Instances()[:stoppedNodes] {
		if _, err := e.cloud.PutInstance(instance.ID, emulator.InstanceSpec{Status: alicloud.InstanceStopped}); err != nil {
			return nil, fmt.Errorf("stop instance %s: %w", instance.ID, err)
		}
	}
	down := func(node *corev1.Node) bool {
		for _, taint := range node.Spec.Taints {
			if taint.Key == cloudproviderapi.TaintNodeShutdown {
				return true
			}
		}
		return false
	}
	if err := e.untilNodes(ctx, stoppedNodes, "tainted as shut down", down); err != nil {
		return nil, err
	}
	operation := fmt.Sprintf("%d stopped nodes", stoppedNodes)
	calls, reads, err := e.perMinute(ctx, operation, func(call emulator.Call) bool { return call.Action == readInstances })
	return []Figure{
		atMost(operation+": "+readInstances+" a minute", calls, "calls", stoppedMaxCalls),
		atMost(operation+": live GETs of Nodes at the API server a minute", reads, "GETs", stoppedMaxReads),
	}, err
}

// perMinute counts the chosen calls, and how often single Nodes are read at the API server, while nothing changes.
func (e *env) perMinute(ctx context.Context, operation string, chosen filter) (calls, reads float64, err error) {
	e.begin()
	begin := time.Now()
	if err = e.watch(ctx, badWindow); err != nil {
		return 0, 0, err
	}
	t := count(e.since(everything), chosen)
	n, err := e.nodeReads(begin)
	if err != nil {
		return 0, 0, err
	}
	e.say("%s: %s and %d live GETs of Nodes in %s", operation, t, n, badWindow)
	return float64(t.calls()) / badWindow.Minutes(), float64(n) / badWindow.Minutes(), nil
}
