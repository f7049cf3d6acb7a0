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

	"k8s.io/component-base/logs"

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
	var (
		conflict *initor.ConflictError
		identity *initor.IdentityError
	)
	switch {
	case err == nil:
		return initor.ExitOK
	case errors.As(err, &conflict):
		return initor.ExitConflict
	case errors.As(err, &identity):
		return initor.ExitUnidentified
	case errors.Is(err, errNodes):
		return initor.ExitNodes
	default:
		return initor.ExitFailed
	}
}
