// Command k8s-e2e runs Kubernetes' own end-to-end specs of load balancers on a sandbox of real machines with this project's cloud
// controller manager, and compares what they say with what is known of them (specs.go). Linux and root.
//
// It prints a line for each spec. The exit code is 1 when a spec that should pass does not, when the specs are not those that are known, or
// when something of theirs is left in the cloud.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	binDir, buildDir string
	logs             string
	product          string
	focus            *regexp.Regexp
	nodes, parallel  int
}

// The kernel ends the sandbox when the thread that started it ends: this makes it the first thread, which lives as long as the process.
func init() { runtime.LockOSThread() }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	opts, err := parse(os.Args[1:])
	if err == nil {
		err = run(ctx, opts)
	}
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "k8s-e2e:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var opts options
	focus := ""
	flags := flag.NewFlagSet("k8s-e2e", flag.ContinueOnError)
	flags.StringVar(&opts.binDir, "bin-dir", "bin", "directory of this project's programs (make build kubectl machine)")
	flags.StringVar(&opts.buildDir, "build-dir", "bin/k8s-e2e", "directory that hack/k8s-e2e/build.sh made")
	flags.StringVar(&opts.logs, "logs", "", "directory for the output of each spec (default: a temporary one)")
	flags.StringVar(&opts.product, "product", productCLB, "load balancer of the Services: clb, or nlb")
	flags.StringVar(&focus, "focus", "", "regular expression: run only the specs whose name it matches")
	flags.IntVar(&opts.nodes, "nodes", 3, "number of machines, 2 at least")
	flags.IntVar(&opts.parallel, "parallel", 5, "number of specs that run at the same time")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	switch {
	case flags.NArg() > 0:
		return options{}, fmt.Errorf("unknown argument %q: there are only flags", flags.Arg(0))
	case opts.product != productCLB && opts.product != productNLB:
		return options{}, fmt.Errorf("--product is %q: it must be %s or %s", opts.product, productCLB, productNLB)
	case opts.nodes < 2:
		return options{}, fmt.Errorf("--nodes is %d: it must be 2 or more", opts.nodes)
	case opts.parallel < 1:
		return options{}, fmt.Errorf("--parallel is %d: it must be 1 or more", opts.parallel)
	}
	var err error
	if opts.focus, err = regexp.Compile(focus); err != nil {
		return options{}, fmt.Errorf("--focus: %w", err)
	}
	for _, dir := range []*string{&opts.binDir, &opts.buildDir} {
		if *dir, err = filepath.Abs(*dir); err != nil {
			return options{}, err
		}
	}
	return opts, nil
}

func run(ctx context.Context, opts options) (err error) {
	if os.Geteuid() != 0 {
		return errors.New("real machines need root: run it as root")
	}
	if opts.logs == "" {
		opts.logs, err = os.MkdirTemp("", "k8s-e2e-logs-")
	} else {
		err = os.MkdirAll(opts.logs, 0o755)
	}
	if err != nil {
		return err
	}
	suite := suite{binary: filepath.Join(opts.buildDir, "suite"), logs: opts.logs}
	names, err := suite.list(ctx)
	if err != nil {
		return err
	}
	specs := specsWith(opts.product)
	if err = compare(specs, names); err != nil {
		return err
	}
	begin := time.Now()
	e := env{options: opts}
	defer func() { err = errors.Join(err, e.stop()) }()
	if err := e.start(ctx); err != nil {
		return err
	}
	say("%d machines, cluster DNS and the cloud controller manager are ready after %s", opts.nodes, time.Since(begin).Round(time.Second))
	suite.cluster, suite.resolvConf = e.cluster, e.names.resolvConf
	results := suite.runAll(ctx, chosen(specs, opts.focus), names, opts.parallel)
	if ctx.Err() != nil {
		return errors.New("stopped before the specs had ended")
	}
	say("after %s; the output of each spec is in %s", time.Since(begin).Round(time.Second), opts.logs)
	return errors.Join(printResults(os.Stdout, results), e.awaitNothingLeft(ctx))
}

// say prints progress.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "k8s-e2e: "+format+"\n", args...) }
