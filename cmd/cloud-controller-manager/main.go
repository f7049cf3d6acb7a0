// Command cloud-controller-manager runs the stock node controllers and this project's service and route controllers for
// self-managed Kubernetes clusters on Alibaba Cloud.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/names"
	"k8s.io/cloud-provider/options"
	"k8s.io/component-base/cli"
	cliflag "k8s.io/component-base/cli/flag"
	_ "k8s.io/component-base/logs/json/register"          // the JSON log format
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of the API server client
	_ "k8s.io/component-base/metrics/prometheus/version"  // the build version as a metric

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/buildinfo"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/provider"
)

// gcPercent trades a little CPU for memory: the manager allocates most while it starts, and what it keeps afterwards is
// small beside its limit on a control-plane node. GOGC in the environment wins.
const gcPercent = 50

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	limitMemory()
	opts, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		exit(err)
	}
	os.Exit(run(newCommand(opts, apiserver.SetupSignalHandler()), opts))
}

// newCommand returns the stock command with our flags and subcommands.
func newCommand(opts *options.CloudControllerManagerOptions, stop <-chan struct{}) *cobra.Command {
	setDefaults(opts)
	flags := &ownFlags{}
	flagSets := cliflag.NamedFlagSets{}
	flags.addTo(flagSets.FlagSet(provider.Name))
	start := starter{flags: flags, stop: stop, election: &election{flags: flags, stop: stop}, secure: &securePort{opts: opts}}
	command := app.NewCloudControllerManagerCommand(opts, start.cloud, constructors(), names.CCMControllerAliases(), flagSets, stop)
	command.Long = "cloud-controller-manager connects a self-managed Kubernetes cluster to Alibaba Cloud: load balancers (CLB), VPC routes and nodes.\n" +
		"The commands only read: plan prints what the manager would write, orphans lists resources that no Service owns, explain says why a Service\n" +
		"has its load balancer and backends, doctor diagnoses the installation, and support-bundle collects what a bug report needs. They also find\n" +
		"the cluster by KUBECONFIG.\n\nCommands:"
	command.Args, command.SuggestionsMinimumDistance = noArguments, suggestedDistance
	command.PreRun = func(*cobra.Command, []string) { start.secure.take() }
	command.PostRun = func(*cobra.Command, []string) { start.election.resign() }
	for _, r := range reporters() {
		command.AddCommand(newReportCommand(command, opts, start, r))
	}
	command.AddCommand(newBundleCommand(command, opts, start))
	for _, sub := range command.Commands() {
		command.Long += fmt.Sprintf("\n  %-15s %s", sub.Use, sub.Short)
	}
	return command
}

// suggestedDistance is how many characters of a command may be wrong for it to be recognized.
const suggestedDistance = 2

// noArguments refuses what is no command. Empty arguments pass, as the stock command has them pass.
func noArguments(command *cobra.Command, args []string) error {
	for _, arg := range args {
		if arg == "" {
			continue
		}
		if meant := command.SuggestionsFor(arg); len(meant) > 0 {
			return fmt.Errorf("unknown command %q; did you mean %s?", arg, meant[0])
		}
		return fmt.Errorf("unknown command %q; see --help", arg)
	}
	return nil
}

// run executes the command so that a mistake costs one line and exit code 1: neither the usage text nor a second copy
// of what the stock app has printed already.
func run(command *cobra.Command, opts *options.CloudControllerManagerOptions) int {
	command.SilenceUsage = true
	reported := false
	stock := command.RunE
	command.RunE = func(cmd *cobra.Command, args []string) error {
		reported = true                                   // from here on the stock app prints its errors itself
		if cmd.Flag("version").Value.String() == "true" { // the stock text is that of Kubernetes
			_, err := fmt.Fprintln(cmd.OutOrStdout(), buildinfo.Line("cloud-controller-manager", buildinfo.Version()))
			return err
		}
		applyLogging(cmd.Flags())
		translateOldFlags(opts)
		skipForbiddenLookup(opts)
		return stock(cmd, args)
	}
	err := cli.RunNoErrOutput(command)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errFindings):
		return exitFindings
	case !reported:
		printError(err)
	}
	return 1
}

// setDefaults replaces stock defaults that do not suit this provider; flags still win.
func setDefaults(opts *options.CloudControllerManagerOptions) {
	opts.KubeCloudShared.CloudProvider.Name = provider.Name
	// One worker would make a cluster of hundreds of Services wait at every start.
	opts.ServiceController.ConcurrentServiceSyncs = 10
	opts.NodeController.ConcurrentNodeSyncs = 10
	// One slow answer must not hold up the check of all other nodes.
	opts.NodeLifecycleController.ConcurrentNodeLifecycleSyncs = 10
	// Every table is read in each period. At the stock 10 s that is hundreds of calls a minute in a large cluster.
	opts.KubeCloudShared.RouteReconciliationPeriod = metav1.Duration{Duration: 5 * time.Minute}
	// Longer than an API server takes to restart, so that its roll-out does not restart the manager, too. A clean stop gives the
	// Lease back, so that only a crash waits for the duration.
	opts.Generic.LeaderElection.LeaseDuration = metav1.Duration{Duration: 30 * time.Second}
	opts.Generic.LeaderElection.RenewDeadline = metav1.Duration{Duration: 20 * time.Second}
	// Each node that joins costs an update, a condition and some events; at the stock 20 requests a second a thousand
	// nodes would wait for minutes. The API server's own fairness protects it.
	opts.Generic.ClientConnection.QPS, opts.Generic.ClientConnection.Burst = 100, 200
	// The vendor's published role may not read the ConfigMap extension-apiserver-authentication. Health needs none of
	// it; without it metrics cannot be read with a front-proxy certificate, that is all.
	opts.Authentication.TolerateInClusterLookupFailure = true
}

func printError(err error) {
	fmt.Fprintf(os.Stderr, "cloud-controller-manager: %v\n", err)
}

func exit(err error) {
	printError(err)
	os.Exit(1)
}
