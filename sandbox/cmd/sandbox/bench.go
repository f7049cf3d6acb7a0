package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/bench"
)

func newBenchCommand() *cobra.Command {
	var opts bench.Options
	var output, scenario string
	command := &cobra.Command{
		Use:   "bench",
		Short: "Measure the programs of this project and compare the results with their goals",
		Long: `Measures calls, times, memory and processor time of the programs of this project in separate sandboxes, and prints them with their
goals. Progress goes to standard error, and the figures to standard output. The exit code is 1 only if a figure could not be measured,
not if a goal is missed. Linux only. The command leaves no process and no file behind.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if output != "table" && output != "json" {
				return fmt.Errorf("--output is %q: table and json are accepted", output)
			}
			var err error
			if opts.Self, err = os.Executable(); err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			opts.Progress = command.ErrOrStderr()
			report, err := measure(command.Context(), opts, scenario)
			if output == "json" {
				return errors.Join(err, report.WriteJSON(command.OutOrStdout()))
			}
			return errors.Join(err, report.WriteTable(command.OutOrStdout()))
		},
	}
	flags := command.Flags()
	flags.StringVar(&opts.Only, "only", "", "measure one group only: "+strings.Join(bench.Groups(), ", "))
	flags.StringVar(&opts.BinDir, "bin-dir", "bin", "directory of the built programs")
	flags.DurationVar(&opts.Steady, "steady", 5*time.Minute, "how long to observe the steady state of a cluster, at least 5m")
	flags.StringVar(&output, "output", "table", "output format: table or json")
	flags.StringVar(&scenario, "scenario", "", "measure one scenario in this process")
	if err := flags.MarkHidden("scenario"); err != nil {
		panic(err) // the flag was defined a line before
	}
	return command
}

func measure(ctx context.Context, opts bench.Options, scenario string) (bench.Report, error) {
	if scenario != "" {
		return bench.RunScenario(ctx, opts, scenario)
	}
	return bench.Run(ctx, opts)
}
