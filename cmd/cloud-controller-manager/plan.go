package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/names"
	"k8s.io/cloud-provider/options"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/provider"
)

// exitChanges is the exit code of a plan that is not empty.
const exitChanges = 2

// planTimeout bounds the reading of cluster and cloud; a thousand load balancers take well below a minute.
const planTimeout = 5 * time.Minute

// errChanges says that a plan is not empty.
var errChanges = errors.New("the plan is not empty")

// newPlanCommand returns the command that shows what the manager would write if it started now.
func newPlanCommand(root *cobra.Command, opts *options.CloudControllerManagerOptions, start starter) *cobra.Command {
	output := ""
	command := &cobra.Command{
		Use:   "plan",
		Short: "Print what would be written to the cloud, and write nothing",
		Long: "plan reads the cluster and the cloud with the flags of the manager and prints what it would write for each Service and route.\n" +
			"The exit code is 0 when that is nothing, 2 when it is something, 1 on an error.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return runPlan(command.Context(), command.OutOrStdout(), opts, start, output)
		},
	}
	own := pflag.NewFlagSet("plan", pflag.ContinueOnError)
	own.StringVar(&output, "output", "text", "Form of the plan: \"text\" or \"json\".")
	command.Flags().AddFlagSet(root.Flags())
	command.Flags().AddFlagSet(own)
	// The stock command's help would be inherited, and shows its own flags only.
	command.SetHelpFunc(func(command *cobra.Command, _ []string) {
		fmt.Fprintf(command.OutOrStdout(), "%s\n\nUsage:\n  %s\n\nFlags, besides those of the manager:\n%s", command.Long, command.UseLine(), own.FlagUsages())
	})
	return command
}

func runPlan(ctx context.Context, stdout io.Writer, opts *options.CloudControllerManagerOptions, start starter, output string) error {
	if output != "text" && output != "json" {
		return fmt.Errorf("--output: %q, accepted: \"text\" or \"json\"", output)
	}
	ctx, cancel := context.WithTimeout(ctx, planTimeout)
	defer cancel()
	translateOldFlags(opts)
	opts.SecureServing.BindPort = 0 // a manager may be running on this host and hold the port
	config, err := opts.Config(app.ControllerNames(constructors()), app.ControllersDisabledByDefault.List(),
		names.CCMControllerAliases(), app.AllWebhooks, app.DisabledByDefaultWebhooks)
	if err != nil {
		return err
	}
	completed := config.Complete()
	cloud, err := start.connect(ctx, completed)
	if err != nil {
		return err
	}
	cloud.Initialize(completed.ClientBuilder, ctx.Done())
	cloud.SetInformers(completed.SharedInformers)
	completed.SharedInformers.Start(ctx.Done())
	if err = completed.SharedInformers.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
		return fmt.Errorf("read the cluster: %w", err)
	}
	plan, err := cloud.Plan(ctx)
	if err != nil {
		return err
	}
	return printPlan(stdout, plan, output)
}

func printPlan(stdout io.Writer, plan provider.Plan, output string) error {
	if err := writePlan(stdout, plan, output); err != nil {
		return fmt.Errorf("print the plan: %w", err)
	}
	if plan.Empty() {
		return nil
	}
	return errChanges
}

func writePlan(stdout io.Writer, plan provider.Plan, output string) error {
	if output == "text" {
		_, err := fmt.Fprint(stdout, plan)
		return err
	}
	encoder := json.NewEncoder(stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(plan)
}
