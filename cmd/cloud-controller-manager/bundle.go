package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cloud-provider/options"
)

const bundleName = "support-bundle"

// bundleFlags are those of the command.
type bundleFlags struct{ file, namespace, selector string }

func (b *bundleFlags) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&b.file, "file", "",
		"File to create, or - for standard output. (default ccm-support-TIME.tar.gz in the current directory)")
	flags.StringVar(&b.namespace, "pod-namespace", metav1.NamespaceSystem, "Namespace of the pods of the manager.")
	flags.StringVar(&b.selector, "pod-selector", "k8s-app=cloud-controller-manager", "Labels of the pods of the manager.")
}

// newBundleCommand returns the command that makes a support bundle. What cannot be read is missing in the bundle, and no error.
func newBundleCommand(root *cobra.Command, opts *options.CloudControllerManagerOptions, start starter) *cobra.Command {
	given := &bundleFlags{}
	command := &cobra.Command{
		Use: bundleName, Short: "Write what a bug report needs to one archive, without secrets", Args: cobra.NoArgs,
		Long: bundleName +
			" takes the flags of the manager and writes a .tar.gz with versions, flags, the cloud-config without keys, the output of doctor,\n" +
			"plan and orphans, Services, Nodes, events, Leases, and logs and metrics of all replicas. It changes nothing in the cluster or the cloud.\n" +
			"Access keys, tokens and passwords are replaced; names, addresses and IDs of resources are not. README.txt in the archive lists its\n" +
			"contents, and what could not be read.\n" +
			"The exit code is 0 if the archive was written, and 1 if not.",
		RunE: func(command *cobra.Command, _ []string) error {
			silenceLogs(command.Flags(), command.ErrOrStderr())
			ctx, cancel := context.WithTimeout(command.Context(), reportTimeout)
			defer cancel()
			return given.run(ctx, command, opts, start)
		},
	}
	own := pflag.NewFlagSet(bundleName, pflag.ContinueOnError)
	given.addTo(own)
	addFlags(command, root, own)
	return command
}

func (b *bundleFlags) run(ctx context.Context, command *cobra.Command, opts *options.CloudControllerManagerOptions, start starter) error {
	made := bundle{bundleFlags: *b, start: start, port: opts.SecureServing.BindPort, made: time.Now().UTC()}
	completed, err := complete(opts)
	if err != nil {
		return err
	}
	made.completed, made.set = completed, setFlags(command)
	to, err := b.open(command.OutOrStdout(), made.name())
	if err != nil {
		return fmt.Errorf("--file: %w", err)
	}
	missing, err := made.write(ctx, to)
	if err = errors.Join(err, to.close()); err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	for _, text := range missing {
		fmt.Fprintln(command.ErrOrStderr(), "missing: "+text)
	}
	fmt.Fprintf(command.ErrOrStderr(),
		"The archive is %s. Access keys, tokens and passwords are not in it; names and addresses of your resources are.\n", to.name)
	return nil
}

// setFlags lists the flags that were set, one per line.
func setFlags(command *cobra.Command) string {
	var set strings.Builder
	command.Flags().Visit(func(flag *pflag.Flag) { fmt.Fprintf(&set, "--%s=%s\n", flag.Name, flag.Value) })
	return set.String()
}

// bundleOutput is a file, or standard output.
type bundleOutput struct {
	io.Writer
	close func() error
	name  string
}

// open creates the file, which only this user can read. It overwrites nothing.
func (b *bundleFlags) open(stdout io.Writer, name string) (bundleOutput, error) {
	switch b.file {
	case "-":
		return bundleOutput{stdout, func() error { return nil }, "on standard output"}, nil
	case "":
		name += ".tar.gz"
	default:
		name = b.file
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return bundleOutput{}, err
	}
	return bundleOutput{file, file.Close, name}, nil
}

// name is that of the archive and of the directory in it.
func (b *bundle) name() string { return "ccm-support-" + b.made.Format("20060102T150405Z") }
