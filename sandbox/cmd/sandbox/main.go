// Command sandbox runs a local Kubernetes cluster on an emulated Alibaba Cloud: in one process and without root, or with real machines.
//
// Called by the name kubectl, or as "sandbox kubectl", it is kubectl: scripts that need one then work on machines without it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/buildinfo"
)

func main() {
	if strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") == "kubectl" {
		os.Exit(cli.Run(kubectl.NewDefaultKubectlCommand()))
	}
	if len(os.Args) > 1 && os.Args[1] == "kubectl" {
		os.Args = os.Args[1:] // kubectl's plugin handling reads them itself
		os.Exit(cli.Run(kubectl.NewDefaultKubectlCommand()))
	}
	if len(os.Args) > 1 && nodePrograms[os.Args[1]] != nil {
		command := nodePrograms[os.Args[1]]()
		os.Args = os.Args[1:]
		os.Exit(cli.Run(command))
	}
	os.Exit(run())
}

// run returns the exit code. It is a function of its own so that the signal handler is released before the process ends.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal asks for an orderly end, the second one has the default effect.
	context.AfterFunc(ctx, stop)
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		return 1
	}
	return 0
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "sandbox",
		Short:         "Run a local Kubernetes cluster on an emulated Alibaba Cloud",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		// A command that runs checks its arguments: without it an unknown subcommand would print help and succeed.
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	// The linker sets the version of Kubernetes, which the control plane reports.
	root.Version = "with Kubernetes " + buildinfo.Version()
	root.SetVersionTemplate(buildinfo.Line("sandbox", root.Version) + "\n")
	// Libraries of Kubernetes define a flag of this name for every program, of another type than cobra reads.
	root.Flags().Bool("version", false, "version for sandbox")
	root.AddCommand(newUpCommand(), newDemoCommand(), newBenchCommand(), &cobra.Command{
		Use:                "kubectl",
		Short:              "Run kubectl, with --kubeconfig or KUBECONFIG as usual",
		DisableFlagParsing: true, // main hands over before cobra sees the arguments
	})
	root.AddCommand(platformCommands()...)
	return root
}
