package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/names"
	"k8s.io/cloud-provider/options"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/provider"
)

// exitFindings is the exit code of a report that is not empty.
const exitFindings = 2

// reportTimeout bounds the reading of cluster and cloud; a thousand load balancers take well below a minute.
const reportTimeout = 5 * time.Minute

// errFindings says that a report is not empty.
var errFindings = errors.New("the report is not empty")

// report is what a command that only reads has to say. Its JSON form is its other output.
type report interface {
	fmt.Stringer
	Empty() bool
}

// incomplete is a report that says what could not be read. It is printed all the same, and the command fails with that.
type incomplete interface{ Incomplete() error }

// reporter describes a command that reads cluster and cloud with the flags of the manager, and writes nothing.
type reporter struct {
	use, short, long string
	// args checks the arguments; nil for none.
	args cobra.PositionalArgs
	// flags adds the flags of the command; nil for none.
	flags func(*pflag.FlagSet)
	make  func(context.Context, *options.CloudControllerManagerOptions, starter, []string) (report, error)
}

// newReportCommand returns the command of a reporter. Its exit code is 0 for an empty report, 2 for another, 1 on an error and for
// an incomplete one.
func newReportCommand(root *cobra.Command, opts *options.CloudControllerManagerOptions, start starter, r reporter) *cobra.Command {
	output := ""
	if r.args == nil {
		r.args = cobra.NoArgs
	}
	command := &cobra.Command{
		Use: r.use, Short: r.short, Long: r.long, Args: r.args,
		RunE: func(command *cobra.Command, args []string) error {
			if output != "text" && output != "json" {
				return fmt.Errorf("--output: %q, accepted: \"text\" or \"json\"", output)
			}
			silenceLogs(command.Flags(), command.ErrOrStderr())
			ctx, cancel := context.WithTimeout(command.Context(), reportTimeout)
			defer cancel()
			made, err := r.make(ctx, opts, start, args)
			if err != nil {
				return err
			}
			return printReport(command.OutOrStdout(), made, output)
		},
	}
	own := pflag.NewFlagSet(r.use, pflag.ContinueOnError)
	own.StringVar(&output, "output", "text", "Form of the output: \"text\" or \"json\".")
	if r.flags != nil {
		r.flags(own)
	}
	addFlags(command, root, own)
	return command
}

// addFlags gives a command its own flags and those of the manager.
func addFlags(command, root *cobra.Command, own *pflag.FlagSet) {
	command.Flags().AddFlagSet(root.Flags())
	command.Flags().AddFlagSet(own)
	// The stock command's help would be inherited, and shows its own flags only.
	command.SetHelpFunc(func(command *cobra.Command, _ []string) {
		fmt.Fprintf(command.OutOrStdout(), "%s\n\nUsage:\n  %s\n\nFlags, in addition to those of the manager:\n%s", command.Long,
			command.UseLine(), own.FlagUsages())
	})
}

// readCluster returns a provider that is wired as in the manager and whose caches are filled.
func readCluster(ctx context.Context, completed *config.CompletedConfig, start starter) (*provider.Cloud, error) {
	cloud, err := start.connect(ctx, completed)
	if err != nil {
		return nil, err
	}
	cloud.Initialize(completed.ClientBuilder, ctx.Done())
	cloud.SetInformers(completed.SharedInformers)
	completed.SharedInformers.Start(ctx.Done())
	if err = completed.SharedInformers.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
		return nil, fmt.Errorf("read the cluster: %w", err)
	}
	return cloud, nil
}

// complete returns the manager's configuration, but serves nothing: a manager may be running on this host and hold the port.
func complete(opts *options.CloudControllerManagerOptions) (*config.CompletedConfig, error) {
	translateOldFlags(opts)
	if err := findCluster(opts); err != nil {
		return nil, err
	}
	opts.SecureServing.BindPort, opts.WebhookServing.BindPort = 0, 0
	made, err := opts.Config(app.ControllerNames(constructors()), app.ControllersDisabledByDefault.List(),
		names.CCMControllerAliases(), app.AllWebhooks, app.DisabledByDefaultWebhooks)
	if err != nil {
		return nil, err
	}
	return made.Complete(), nil
}

// findCluster uses KUBECONFIG unless a flag names the cluster, as users expect of a command on their machine.
func findCluster(opts *options.CloudControllerManagerOptions) error {
	files := slices.DeleteFunc(filepath.SplitList(os.Getenv(clientcmd.RecommendedConfigPathEnvVar)), func(file string) bool {
		return file == ""
	})
	if len(files) == 0 || opts.Master != "" || opts.Generic.ClientConnection.Kubeconfig != "" {
		return nil
	}
	if len(files) > 1 {
		return fmt.Errorf("KUBECONFIG names %d files, accepted: one file, or --kubeconfig", len(files))
	}
	opts.Generic.ClientConnection.Kubeconfig = files[0]
	return nil
}

func printReport(stdout io.Writer, made report, output string) error {
	if err := writeReport(stdout, made, output); err != nil {
		return fmt.Errorf("print the report: %w", err)
	}
	if part, ok := made.(incomplete); ok {
		if err := part.Incomplete(); err != nil {
			return err
		}
	}
	if made.Empty() {
		return nil
	}
	return errFindings
}

func writeReport(stdout io.Writer, made report, output string) error {
	if output == "text" {
		_, err := fmt.Fprint(stdout, made)
		return err
	}
	encoder := json.NewEncoder(stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(made)
}
