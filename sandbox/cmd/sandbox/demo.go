package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/alicloud-ccm/cloud-provider-alicloud/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/demo"
)

func newDemoCommand() *cobra.Command {
	var opts demo.Options
	var output string
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
			if err := errors.Join(checkNodeKind(opts.NodeKind), checkKubernetes(opts.Kubernetes)); err != nil {
				return err
			}
			opts.Deploy, opts.Progress = deploy.Files, command.ErrOrStderr()
			report, err := demo.Run(command.Context(), opts)
			if output == "json" {
				return errors.Join(err, report.WriteJSON(command.OutOrStdout()))
			}
			return errors.Join(err, report.WriteTable(command.OutOrStdout()))
		},
	}
	command.Flags().StringVar(&opts.BinDir, "bin-dir", "bin", "directory of the built programs")
	command.Flags().StringVar(&output, "output", "table", "output format: table or json")
	addNodeKind(command.Flags(), &opts.NodeKind)
	addKubernetes(command.Flags(), &opts.Kubernetes)
	return command
}
