package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	initorRuns      = 20
	initorFleetSize = 1000
)

// initor measures the initializer as its pods run it, once for each node. Where the metadata service answers it must not call the cloud's
// API at all; the project has set no other goal for it. Its memory is not a figure: a process so short-lived shows its parent's.
func (e *env) initor(ctx context.Context) ([]Figure, error) {
	if err := e.addJoined(ctx, initorRuns); err != nil {
		return nil, err
	}
	kubeconfig, err := e.identify(ctx, "provider-initor.yaml")
	if err != nil {
		return nil, err
	}
	var took []time.Duration
	e.begin()
	for _, instance := range e.cloud.Instances() {
		begin := time.Now()
		cmd := exec.CommandContext(ctx, e.program("provider-initor"))
		cmd.Env = append(os.Environ(),
			"NODE_NAME="+instance.Name, "KUBECONFIG="+kubeconfig, "METADATA_ENDPOINT="+e.url+"/metadata/"+instance.ID)
		if output, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("initialize node %s: %w: %s", instance.Name, err, output)
		}
		took = append(took, time.Since(begin))
	}
	calls := count(e.since(everything), everything)
	const operation = "provider ID of a node set by provider-initor"
	return []Figure{
		atMost(operation+": calls of the cloud's API", float64(calls.calls()), "calls", 0),
		withoutGoal(fmt.Sprintf("%s: median of %d", operation, initorRuns), quantile(took, 0.5).Seconds(), "s"),
	}, nil
}

// initorFleet measures `provider-initor run` on many nodes, with the real OpenKruise manager: from the command's start until it has
// reported what became of each node and removed what it made. Each node's pod runs the program as a process of this machine.
func (e *env) initorFleet(ctx context.Context) ([]Figure, error) {
	if err := e.addJoined(ctx, initorFleetSize); err != nil {
		return nil, err
	}
	e.begin()
	begin := time.Now()
	cmd := exec.CommandContext(ctx, e.program("provider-initor"), "run", "--kubeconfig="+e.sandbox.Kubeconfig(), "--output=json")
	if output, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initialize %d nodes: %w: %s", initorFleetSize, err, output[max(0, len(output)-4<<10):])
	}
	took := time.Since(begin)
	withID := func(node *corev1.Node) bool { return node.Spec.ProviderID != "" }
	if err := e.untilNodes(ctx, initorFleetSize, "initialized", withID); err != nil {
		return nil, err
	}
	const operation = "provider IDs of 1,000 nodes set by provider-initor run with OpenKruise"
	return []Figure{
		atMost(operation, took.Seconds(), "s", 60),
		atMost(operation+": calls of the cloud's API", float64(count(e.since(everything), everything).calls()), "calls", 0),
	}, nil
}
