package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor/rollout"
)

const statusLong = `Shows the results of a job in the cluster so far: a job that runs, a job that run --keep kept, or with --name the BroadcastJob of
the chart.

Exit codes:
  0  no node failed
  1  a flag is invalid, the job does not exist, or the API server rejects a request or does not respond
  4  a node failed`

func newStatusCommand() *cobra.Command {
	w := newWorkstation(os.Getenv)
	command := newWorkstationCommand("status", "Show the results of a run so far", statusLong,
		func(command *cobra.Command) error { return runStatus(command, w) })
	w.access.addFlags(command.Flags())
	w.addJobFlags(command.Flags())
	w.addOutputFlag(command.Flags())
	return command
}

func runStatus(command *cobra.Command, w *workstation) error {
	if err := checkOutput(w.output); err != nil {
		return err
	}
	r, err := w.rollout(nil)
	if err != nil {
		return err
	}
	states, found, err := r.Status(command.Context())
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("%s %s/%s does not exist", w.config.Driver, w.config.Namespace, w.config.Name)
	}
	if err := writeStates(command.OutOrStdout(), w.output, states); err != nil {
		return err
	}
	return resultOf(states, false)
}

const manifestLong = `Prints the objects that run would apply, as YAML, and changes nothing.

With --driver job, it reads the names of the nodes from the cluster. Otherwise it needs no cluster.`

func newManifestCommand() *cobra.Command {
	w := newWorkstation(os.Getenv)
	command := newWorkstationCommand("manifest", "Print the objects that run would apply", manifestLong,
		func(command *cobra.Command) error { return runManifest(command, w) })
	w.access.addFlags(command.Flags())
	w.addJobFlags(command.Flags())
	w.addPodFlags(command.Flags())
	return command
}

func runManifest(command *cobra.Command, w *workstation) error {
	if err := w.config.Validate(); err != nil {
		return err
	}
	if w.config.Driver == rollout.DriverJob {
		nodes, err := w.machines(command.Context())
		if err != nil {
			return err
		}
		for _, n := range nodes {
			w.config.Nodes = append(w.config.Nodes, n.Name)
		}
	}
	return rollout.WriteManifest(command.OutOrStdout(), rollout.Objects(w.config))
}
