package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/alicloud-ccm/cloud-provider-alicloud/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/demo"
)

func newDemoCommand() *cobra.Command {
	var binDir, output, kubernetes string
	var kind cluster.NodeKind
	command := &cobra.Command{
		Use:   "demo",
		Short: "Run the end-to-end demo, from no cluster to a deleted load balancer",
		Long: `Starts a cluster on an emulated Alibaba Cloud, runs the programs of this project in it, and reports what they do, step by step.
Progress goes to standard error, and the result to standard output. The exit code is 1 if a step fails. The demo leaves no process
and no file behind.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if output != "table" && output != "json" {
				return fmt.Errorf("--output is %q: table and json are accepted", output)
			}
			if err := errors.Join(checkNodeKind(kind), checkKubernetes(kubernetes)); err != nil {
				return err
			}
			return runDemo(command, output, demo.Options{BinDir: binDir, NodeKind: kind, Kubernetes: kubernetes})
		},
	}
	command.Flags().StringVar(&binDir, "bin-dir", "bin", "directory of the built programs")
	addNodeKind(command.Flags(), &kind)
	addKubernetes(command.Flags(), &kubernetes)
	command.Flags().StringVar(&output, "output", "table", "output format: table or json")
	return command
}

func runDemo(command *cobra.Command, output string, opts demo.Options) error {
	opts.Deploy, opts.Progress = deploy.Files, command.ErrOrStderr()
	report, err := demo.Run(command.Context(), opts)
	if output == "json" {
		return errors.Join(err, report.WriteJSON(command.OutOrStdout()))
	}
	return errors.Join(err, report.WriteTable(command.OutOrStdout()))
}
