// Command provider-initor gives the node it runs on its spec.providerID and, from a workstation, runs itself on all nodes of a
// cluster and verifies their IDs. It parses flags, builds the clients, prints, and turns the outcome into an exit code; the work
// is in pkg/initor.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/buildinfo"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is main without the process: args[0] is the program's name, "init" in the image of the published BroadcastJob.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	name := filepath.Base(args[0])
	command := newRootCommand(name)
	command.SetArgs(args[1:])
	command.SetOut(stdout)
	command.SetErr(stderr)
	err := command.ExecuteContext(ctx)
	logs.FlushLogs()
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
	}
	return exitCode(err)
}

func exitCode(err error) int {
	switch {
	case err == nil:
		return initor.ExitOK
	case errors.Is(err, initor.ErrConflict):
		return initor.ExitConflict
	case errors.Is(err, initor.ErrUnidentified):
		return initor.ExitUnidentified
	case errors.Is(err, errNodes):
		return initor.ExitNodes
	default:
		return initor.ExitFailed
	}
}

const long = `Sets spec.providerID of the node that it runs on: <region>.<instance ID>.

It identifies the ECS instance through the metadata service of the machine or, with a cloud-config, by the address of the node. It never
changes an existing provider ID. The process needs permission to get and patch nodes, and nothing else.

Exit codes:
  0  the provider ID was set, or was already set, or the node is not an ECS instance
  1  a flag or a variable is invalid, or the API server rejects a request or does not respond
  2  the node has a different provider ID
  3  the instance of the node could not be identified

The other commands run on a workstation and find the cluster as kubectl does.`

// initName is the subcommand that is the default, and the name of the program in the image of the published BroadcastJob.
const initName = "init"

// newRootCommand returns the command for a program called name. Without a subcommand it does what init does; a program
// that is itself called init has no subcommands.
func newRootCommand(name string) *cobra.Command {
	root := newInitCommand(name)
	root.Version = buildinfo.Version()
	root.SetVersionTemplate(buildinfo.Line("provider-initor", root.Version) + "\n")
	if name != initName {
		root.AddCommand(newInitCommand(initName), newRunCommand(), newStatusCommand(), newManifestCommand(), newCheckCommand())
	}
	return root
}

func newInitCommand(name string) *cobra.Command {
	opts := &options{}
	command := &cobra.Command{
		Use:               name,
		Short:             "Set spec.providerID of the node that it runs on",
		Long:              long,
		Args:              cobra.NoArgs,
		SilenceUsage:      true, // a wrong value does not deserve a page of help: the error is one line
		SilenceErrors:     true, // main prints it, once
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(command *cobra.Command, _ []string) error {
			if err := logsapi.ValidateAndApply(opts.logs, nil); err != nil {
				return fmt.Errorf("logging flags (--logging-format accepts text and json): %w", err)
			}
			return runInit(command, opts)
		},
	}
	opts.addFlags(command.Flags(), os.Getenv)
	return command
}

func runInit(command *cobra.Command, opts *options) error {
	ctx := klog.NewContext(command.Context(), klog.Background().WithValues("node", opts.NodeName))
	logger := klog.FromContext(ctx)
	result, err := opts.run(ctx)
	if err != nil {
		return err
	}
	if opts.reportFile != "" {
		if err := initor.WriteReport(opts.reportFile, result); err != nil { // the node is initialized all the same
			logger.Error(err, "Cannot write the result for the status of the pod")
		}
	}
	logger = logger.WithValues("outcome", result.Outcome, "providerID", result.ProviderID)
	switch result.Outcome {
	case initor.OutcomeSet:
		logger.Info("Set the provider ID", "source", result.Source)
	case initor.OutcomeUnchanged:
		logger.Info("The node already has its provider ID", "source", result.Source)
	case initor.OutcomeSkipped:
		logger.Info("Skipped the node", "reason", result.Reason)
	}
	return nil
}
