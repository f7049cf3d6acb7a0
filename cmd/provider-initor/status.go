package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor/rollout"
)

const statusLong = `Shows what the job in the cluster did so far: one that runs, one that run --keep left, or with --name the chart's BroadcastJob.

Exit codes:
  0  no node failed
  1  a flag is wrong, there is no such job, or the API server refuses or does not answer
  4  a node failed`

func newStatusCommand() *cobra.Command {
	w := newWorkstation(os.Getenv)
	command := newWorkstationCommand("status", "Show what a run did so far", statusLong,
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
		return fmt.Errorf("there is no %s %s/%s", w.config.Driver, w.config.Namespace, w.config.Name)
	}
	if err := writeStates(command.OutOrStdout(), w.output, states); err != nil {
		return err
	}
	return judge(states, false)
}

const manifestLong = `Prints what run would apply, as YAML, and changes nothing.

With --driver job it reads the names of the nodes from the cluster; else it needs none.`

func newManifestCommand() *cobra.Command {
	w := newWorkstation(os.Getenv)
	command := newWorkstationCommand("manifest", "Print what run would apply", manifestLong,
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
		kube, _, err := w.clients()
		if err != nil {
			return err
		}
		nodes, err := rollout.Machines(command.Context(), kube.CoreV1().Nodes())
		if err != nil {
			return err
		}
		for _, n := range nodes {
			w.config.Nodes = append(w.config.Nodes, n.Name)
		}
	}
	return rollout.WriteManifest(command.OutOrStdout(), rollout.Objects(w.config))
}
