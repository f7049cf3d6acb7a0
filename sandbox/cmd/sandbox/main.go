// Command sandbox runs a local Kubernetes cluster on an emulated Alibaba Cloud: in one process and without root, or with real machines.
//
// "sandbox kubectl" is kubectl, a program of its own beside it: scripts that need one then work on machines without it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/buildinfo"
)

func main() {
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
		DisableFlagParsing: true, // they are kubectl's
		RunE:               func(_ *cobra.Command, args []string) error { return runKubectl(args) },
	})
	root.AddCommand(platformCommands()...)
	return root
}

// runKubectl becomes kubectl. It returns only if there is none.
func runKubectl(args []string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	kubectl := filepath.Join(filepath.Dir(self), "kubectl")
	if err = syscall.Exec(kubectl, append([]string{kubectl}, args...), os.Environ()); errors.Is(err, os.ErrNotExist) {
		return errors.New("kubectl is missing beside this program: make kubectl builds it")
	}
	return fmt.Errorf("run %s: %w", kubectl, err)
}
