package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	cloudproviderapi "k8s.io/cloud-provider/api"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// writers is how many requests the preparation of a scenario has under way.
const writers = 16

// addMachines puts instances into the cloud, whose nodes then join. With checked, their source/destination check is on, as on new instances
// of ECS.
func (e *env) addMachines(n int, checked bool) error {
	for range n {
		e.added++
		id := benchInstance(e.added)
		spec := emulator.InstanceSpec{Name: nodeName(e.added), VSwitchID: e.vSwitches[e.added%len(e.vSwitches)], SourceDestCheck: checked}
		if _, err := e.cloud.PutInstance(id, spec); err != nil {
			return fmt.Errorf("put instance %s: %w", id, err)
		}
	}
	return nil
}

// addJoined adds machines and waits until their nodes have joined.
func (e *env) addJoined(ctx context.Context, n int) error {
	if err := e.addMachines(n, false); err != nil {
		return err
	}
	return e.untilNodes(ctx, n, "joined", joined)
}

// benchInstance is the id of an instance, as long as real ones: the official CCM finds instances by a part of the id.
func benchInstance(i int) string { return fmt.Sprintf("i-bench%015d", i) }

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

// removeMachines releases all instances and deletes their Nodes.
func (e *env) removeMachines(ctx context.Context) error {
	for _, instance := range e.cloud.Instances() {
		e.cloud.ReleaseInstance(instance.ID)
	}
	nodes, err := e.nodes(ctx)
	if err != nil {
		return err
	}
	return each(ctx, nodes, func(ctx context.Context, node corev1.Node) error {
		err := e.client.CoreV1().Nodes().Delete(ctx, node.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete node %s: %w", node.Name, err)
		}
		return nil
	})
}

func (e *env) nodes(ctx context.Context) ([]corev1.Node, error) {
	// Version 0 is answered from the API server's cache: thousands of nodes are listed often here.
	list, err := e.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("list the nodes: %w", err)
	}
	return list.Items, nil
}

// glance is how often the watched nodes are read: often enough for figures in tenths of a second.
const glance = 20 * time.Millisecond

// untilNodes waits until n nodes are as is says. It watches: lists of thousands of nodes would take the processor from what
// is measured.
func (e *env) untilNodes(ctx context.Context, n int, state string, is nodeState) error {
	return e.untilEvery(ctx, glance, fmt.Sprintf("%d nodes are %s", n, state), func(context.Context) (string, error) {
		nodes, err := e.watched.List(labels.Everything())
		if err != nil {
			return "", fmt.Errorf("list the watched nodes: %w", err)
		}
		good := 0
		for _, node := range nodes {
			if is(node) {
				good++
			}
		}
		if good != n {
			return fmt.Sprintf("%d are", good), nil
		}
		return "", nil
	})
}

// joined is what a node is that registered, is Ready and has its pod CIDR.
func joined(node *corev1.Node) bool {
	return node.Spec.PodCIDR != "" && condition(node, corev1.NodeReady) == corev1.ConditionTrue
}

// initialized is what a node is that the cloud controller manager has initialized.
func initialized(node *corev1.Node) bool {
	return node.Spec.ProviderID != "" && !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == cloudproviderapi.TaintExternalCloudProvider
	})
}

// routed is what a node is whose pods can be reached.
func routed(node *corev1.Node) bool {
	return condition(node, corev1.NodeNetworkUnavailable) == corev1.ConditionFalse
}

// schedulable is what a node is that takes any pod.
func schedulable(node *corev1.Node) bool {
	return joined(node) && initialized(node) && routed(node) && len(node.Spec.Taints) == 0 && !node.Spec.Unschedulable
}

// condition returns the status of a node's condition, empty for a node that does not have it.
func condition(node *corev1.Node, kind corev1.NodeConditionType) corev1.ConditionStatus {
	for _, c := range node.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}

// setProviderIDs writes the provider ID of every node that has none: with no other controller at work this is the moment from which a
// node can be routed.
func (e *env) setProviderIDs(ctx context.Context) error {
	instances := map[string]string{}
	for _, instance := range e.cloud.Instances() {
		instances[instance.Name] = instance.ID
	}
	nodes, err := e.nodes(ctx)
	if err != nil {
		return err
	}
	return each(ctx, nodes, func(ctx context.Context, node corev1.Node) error {
		patch := fmt.Sprintf(`{"spec":{"providerID":%q}}`, cluster.Region+"."+instances[node.Name])
		_, err := e.client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("set the provider ID of node %s: %w", node.Name, err)
		}
		return nil
	})
}

// each does something for every item, several at a time, until the first error.
func each[T any](ctx context.Context, items []T, do func(context.Context, T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, item := range items {
		group.Go(func() error { return do(ctx, item) })
	}
	return group.Wait()
}

// nodeState reports whether a node is as a scenario waits for.
type nodeState func(*corev1.Node) bool
