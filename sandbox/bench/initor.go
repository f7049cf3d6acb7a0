package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

const initorRuns = 20

// initor measures the initializer as its pods run it, once for each node. Where the metadata service answers it must not call the cloud's
// API at all; the project has set no other goal for it. Its memory is not told: a process so short-lived shows its parent's.
func initor(ctx context.Context, r run) (figures []Figure, err error) {
	w, err := newWorld(ctx, r, worldOptions{nodes: initorRuns})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.stop(ctx)) }()
	if _, err := w.addMachines(initorRuns, false); err != nil {
		return nil, err
	}
	if err := w.untilNodes(ctx, initorRuns, "joined", joined); err != nil {
		return nil, err
	}
	kubeconfig, err := w.identify(ctx, "provider-initor.yaml")
	if err != nil {
		return nil, err
	}
	var took []time.Duration
	w.begin()
	for _, instance := range w.cloud.Instances() {
		begin := time.Now()
		cmd := exec.CommandContext(ctx, w.program("provider-initor"))
		cmd.Env = append(os.Environ(),
			"NODE_NAME="+instance.Name, "KUBECONFIG="+kubeconfig, "METADATA_ENDPOINT="+w.url+"/metadata/"+instance.ID)
		if output, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("initialise node %s: %w: %s", instance.Name, err, output)
		}
		took = append(took, time.Since(begin))
	}
	calls := count(w.since(everything), everything)
	const operation = "provider ID of a node set by provider-initor"
	return []Figure{
		atMost(operation+": calls of the cloud's API", float64(calls.calls()), "calls", 0),
		withoutGoal(fmt.Sprintf("%s: median of %d", operation, initorRuns), quantile(took, 0.5).Seconds(), "s"),
	}, nil
}
