package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

const (
	joinedMaxCalls = 25 // for all nodes but the first few

	unroutableNodes    = 100
	unroutableMaxCalls = 10 // a minute, in the minutes in which most attempts are made

	fullTableNodes    = 200
	fullTableQuota    = 100
	fullTableMaxCalls = 10 // for all of it
)

// joiningRoutes lets nodes join while the manager runs, few and then many, so that it must collect them by itself.
func joiningRoutes(settle time.Duration) func(context.Context, run) ([]Figure, error) {
	return func(ctx context.Context, r run) ([]Figure, error) { return joinRunning(ctx, r, settle) }
}

func joinRunning(ctx context.Context, r run, settle time.Duration) (figures []Figure, err error) {
	e, err := newEnv(ctx, r, envOptions{settle: settle, nodes: manyNodes})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.stop(ctx)) }()
	if err := e.startManager(ctx, append([]string{"--controllers=node-route-controller"}, fastClient...)...); err != nil {
		return nil, err
	}
	nodes := 0
	for _, more := range []int{fewNodes, manyNodes - fewNodes} {
		nodes += more
		if err := e.addMachines(more, false); err != nil {
			return nil, err
		}
		if err := e.untilNodes(ctx, nodes, "joined", joined); err != nil {
			return nil, err
		}
		operation := fmt.Sprintf("routes for %d further nodes that join while the manager runs, settle %s", more, settle)
		t, err := e.during(ctx, operation, ofProduct("vpc"), func(ctx context.Context) error {
			if err := e.setProviderIDs(ctx); err != nil {
				return err
			}
			return e.untilNodes(ctx, nodes, "routed", routed)
		})
		if err != nil {
			return nil, err
		}
		if more != fewNodes {
			figures = append(figures, atMost(operation, float64(t.calls()), "calls", joinedMaxCalls))
		}
	}
	return figures, nil
}

// refusedRoutes measures nodes whose routes the cloud does not accept: their instances are not in the VPC, or the table is full.
func refusedRoutes(ctx context.Context, r run) (figures []Figure, err error) {
	e, err := newEnv(ctx, r, envOptions{nodes: fullTableNodes + unroutableNodes, routeQuota: fullTableQuota})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.stop(ctx)) }()
	if err = e.startManager(ctx, append([]string{"--controllers=node-route-controller"}, fastClient...)...); err != nil {
		return nil, err
	}
	if err = e.addUnroutable(ctx); err != nil {
		return nil, err
	}
	operation := fmt.Sprintf("%d nodes whose instances are not in the VPC", unroutableNodes)
	e.begin()
	if err = e.watch(ctx, badWindow); err != nil {
		return nil, err
	}
	t := count(e.since(ofProduct("vpc")), ofProduct("vpc"))
	e.say("%s: %s in %s", operation, t, badWindow)
	figures = append(figures, atMost(operation+": calls a minute", float64(t.calls())/badWindow.Minutes(), "calls", unroutableMaxCalls))

	if err = e.removeMachines(ctx); err != nil {
		return nil, err
	}
	if err = e.addMachines(fullTableNodes, false); err != nil {
		return nil, err
	}
	if err = e.untilNodes(ctx, fullTableNodes, "joined", joined); err != nil {
		return nil, err
	}
	operation = fmt.Sprintf("%d nodes, and a table that takes %d routes", fullTableNodes, fullTableQuota)
	t, err = e.during(ctx, operation, ofProduct("vpc"), func(ctx context.Context) error {
		if failed := e.setProviderIDs(ctx); failed != nil {
			return failed
		}
		return e.untilNodes(ctx, fullTableQuota, "routed", routed)
	})
	if err != nil {
		return nil, err
	}
	return append(figures, atMost(operation, float64(t.calls()), "calls", fullTableMaxCalls)), nil
}

// addUnroutable registers nodes of instances that the cloud does not have.
func (e *env) addUnroutable(ctx context.Context) error {
	nodes := make([]corev1.Node, unroutableNodes)
	for i := range nodes {
		nodes[i] = corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("unroutable-%d", i)},
			Spec:       corev1.NodeSpec{ProviderID: fmt.Sprintf("%s.i-unroutable%d", cluster.Region, i)},
		}
	}
	err := each(ctx, nodes, func(ctx context.Context, node corev1.Node) error {
		if _, err := e.client.CoreV1().Nodes().Create(ctx, &node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create node %s: %w", node.Name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return e.untilNodes(ctx, unroutableNodes, "given a pod CIDR", func(node *corev1.Node) bool { return node.Spec.PodCIDR != "" })
}
