package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const initorRuns = 20

// initor measures the initializer as its pods run it, once for each node. The project has set no goals for it beside none: no call of the
// cloud's API where the metadata service answers.
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
	kubeconfig, err := w.identify(ctx, "provider-initor.yaml", "provider-initor")
	if err != nil {
		return nil, err
	}
	var took []time.Duration
	var largest float64
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
		largest = max(largest, peakMiB(cmd.ProcessState))
	}
	calls := count(w.since(everything), everything)
	const operation = "provider ID of a node set by provider-initor"
	return []Figure{
		atMost(operation+": calls of the cloud's API", float64(calls.calls()), "calls", 0),
		withoutGoal(fmt.Sprintf("%s: median of %d", operation, initorRuns), quantile(took, 0.5).Seconds(), "s"),
		withoutGoal(operation+": largest resident memory", largest, "MiB"),
	}, nil
}

// peakMiB is the largest resident memory of a process that has ended.
func peakMiB(state *os.ProcessState) float64 {
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return float64(usage.Maxrss) / 1024 // KiB on Linux
}
