package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor/rollout"
)

const runLong = `Runs provider-initor on every existing node, waits for the results, and deletes the objects that it created.

At the end, it prints one line per node: set, unchanged, skipped (not an ECS instance), failed, or pending if the time ran out. It reports
progress on standard error, also why pods cannot start, and skips virtual-kubelet nodes. A node whose pod has been unable to start
for two minutes fails; one with an invalid image fails at once.

Exit codes:
  0  every node was set, unchanged or skipped
  1  a flag is invalid, OpenKruise is missing, or the API server rejects a request or does not respond
  4  a node failed, or did not finish in time`

// errNodes says that nodes need attention. Standard output lists them.
var errNodes = errors.New("nodes need attention")

func newRunCommand() *cobra.Command {
	w := newWorkstation(os.Getenv)
	command := newWorkstationCommand("run", "Run provider-initor on every node, from a workstation", runLong,
		func(command *cobra.Command) error { return runRun(command, w) })
	w.access.addFlags(command.Flags())
	w.addJobFlags(command.Flags())
	w.addPodFlags(command.Flags())
	w.addOutputFlag(command.Flags())
	return command
}

func runRun(command *cobra.Command, w *workstation) error {
	if err := checkOutput(w.output); err != nil {
		return err
	}
	shown := newProgress(command.ErrOrStderr())
	r, err := w.rollout(shown.show)
	if err != nil {
		return err
	}
	states, err := r.Run(command.Context())
	shown.end()
	switch {
	case errors.Is(err, rollout.ErrNoOpenKruise):
		return fmt.Errorf("%w: install it, or use --driver job, which creates one Job per node", err)
	case err != nil && errors.Is(command.Context().Err(), context.Canceled):
		return fmt.Errorf("interrupted: %w", err)
	case states == nil && err != nil:
		return err
	}
	// What is known of the nodes is shown also if something could not be removed.
	return initor.OneLine(writeStates(command.OutOrStdout(), w.output, states), resultOf(states, true), err)
}

// resultOf returns an error if a node failed or, where all must be finished, is pending.
func resultOf(states []rollout.NodeState, finished bool) error {
	failed, pending := 0, 0
	for _, state := range states {
		switch state.Result {
		case rollout.ResultFailed:
			failed++
		case rollout.ResultPending:
			pending++
		}
	}
	switch {
	case finished && failed+pending > 0:
		return fmt.Errorf("%w: %d of %d failed, %d not finished in time", errNodes, failed, len(states), pending)
	case failed > 0:
		return fmt.Errorf("%w: %d of %d failed", errNodes, failed, len(states))
	}
	return nil
}
