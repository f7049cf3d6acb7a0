package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/options"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/doctor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/provider"
)

// reporters are the read-only commands.
func reporters() []reporter {
	preserved, onlyProblems, query := false, false, provider.ExplainQuery{}
	return []reporter{
		{
			use:   "plan",
			short: "Print what the manager would write to the cloud, and write nothing",
			long: "plan takes the flags of the manager, reads the cluster and the cloud, and prints what the manager would write first for each Service and\n" +
				"route, with what exists now. Steps that wait for something say so, and so do further steps that cannot be planned yet.\n" +
				"The exit code is 0 if it would write nothing, 2 if it would write something, and 1 on an error.",
			make: fromCluster(func(cloud *provider.Cloud, ctx context.Context, _ []string) (provider.Plan, error) {
				return cloud.Plan(ctx)
			}),
		},
		{
			use:   "orphans",
			short: "List cloud resources of this cluster that no Service owns",
			long: "orphans takes the flags of the manager and lists resources of this cluster that no Service owns: load balancers, access control\n" +
				"lists, server groups and security groups, and listeners, vServer groups and backend servers on existing CLBs (annotation id),\n" +
				"and route entries that no Node wants. It also finds what has a cluster ID that this cluster had earlier. It writes nothing, and\n" +
				"prints the commands that delete what it found.\n" +
				"The exit code is 0 if there are none, 2 if there are any, and 1 on an error. If something cannot be read, for example because the\n" +
				"access key lacks a permission, orphans lists the rest, names what it could not read, and the exit code is 1.",
			flags: func(flags *pflag.FlagSet) {
				flags.BoolVar(&preserved, "preserved", false,
					"Also list load balancers that the annotation preserve-lb-on-delete has kept, and that no Service uses.")
			},
			make: fromCluster(func(cloud *provider.Cloud, ctx context.Context, _ []string) (provider.Orphans, error) {
				return cloud.Orphans(ctx, preserved)
			}),
		},
		{
			use:   "explain SERVICE",
			short: "Explain the load balancer of a Service, and why a node or pod is a backend or not",
			long: "explain takes the flags of the manager and the name of a Service, as \"namespace/name\" or, in the namespace default, \"name\". It prints which\n" +
				"load balancer the Service has and why, its listeners, for every node or pod whether it is a backend and the reason, what waits for what,\n" +
				"what the manager would write next, and the quotas that the Service uses. It reads the cluster and the cloud, works without the manager,\n" +
				"and writes nothing.\n" +
				"The exit code is 0 if the load balancer matches the Service, 2 if not, and 1 on an error.",
			args: cobra.ExactArgs(1),
			flags: func(flags *pflag.FlagSet) {
				flags.StringVar(&query.Node, "node", "", "Explain only this node.")
				flags.StringVar(&query.Pod, "pod", "", "Explain only this pod, which is in the namespace of the Service.")
			},
			make: fromCluster(func(cloud *provider.Cloud, ctx context.Context, args []string) (provider.Explanation, error) {
				of := query
				of.Namespace, of.Service = metav1.NamespaceDefault, args[0]
				if namespace, name, ok := strings.Cut(args[0], "/"); ok {
					of.Namespace, of.Service = namespace, name
				}
				return cloud.Explain(ctx, of)
			}),
		},
		{
			use:   "doctor",
			short: "Diagnose the installation: leader, Services, nodes, access key, cloud and permissions",
			long: "doctor takes the flags of the manager, checks the installation, and changes nothing: whether a manager leads, which Services and nodes\n" +
				"are not in sync, the access key, the region and the VPC, permissions in the cloud and in the cluster, and quotas. Problems come first,\n" +
				"each with a remedy. It checks permissions in the cloud with reads, dry runs, and calls for resources that do not exist. \"not checked\"\n" +
				"marks checks without result; \"optional\" marks what only one feature needs.\n" +
				"The exit code is 0 if all checks pass, 2 if a check fails, also because nothing manages the cluster, and 1 if the checks could not run.",
			flags: func(flags *pflag.FlagSet) {
				flags.BoolVar(&onlyProblems, "problems", false, "Print only the checks that did not pass.")
			},
			make: func(ctx context.Context, opts *options.CloudControllerManagerOptions, start starter, _ []string) (report, error) {
				examined, err := examine(ctx, opts, start)
				if err == nil && onlyProblems {
					return examined.Problems(), nil
				}
				return examined, err
			},
		},
	}
}

// fromCluster returns a report that reads what the manager would read at startup.
func fromCluster[R report](
	read func(*provider.Cloud, context.Context, []string) (R, error),
) func(context.Context, *options.CloudControllerManagerOptions, starter, []string) (report, error) {
	return func(ctx context.Context, opts *options.CloudControllerManagerOptions, start starter, args []string) (report, error) {
		completed, err := complete(opts)
		if err != nil {
			return nil, err
		}
		cloud, err := readCluster(ctx, completed, start)
		if err != nil {
			return nil, err
		}
		return read(cloud, ctx, args)
	}
}

// examine diagnoses why the manager does not start, so it must not depend on a successful start: only an invalid flag is an error.
func examine(ctx context.Context, opts *options.CloudControllerManagerOptions, start starter) (doctor.Report, error) {
	completed, err := complete(opts)
	if err != nil {
		return doctor.Report{}, err
	}
	examined, _, err := examineAs(ctx, completed, start)
	return examined, err
}

// examineAs also returns the provider that it examined, nil without one.
func examineAs(ctx context.Context, completed *config.CompletedConfig, start starter) (doctor.Report, *provider.Cloud, error) {
	settings, err := start.settings(completed)
	if err != nil {
		return doctor.Report{}, nil, err
	}
	given := completed.ComponentConfig.KubeCloudShared.CloudProvider
	cloud, err := load(given.Name, given.CloudConfigFile)
	if err != nil {
		return badConfig(err), nil, nil
	}
	cloud.Configure(settings)
	return cloud.Examine(ctx, completed.Client, waitForAPIServer(ctx, completed)), cloud, nil
}

// badConfig is the report if the cloud-config cannot be read: this is a finding, and nothing else can be checked.
func badConfig(err error) doctor.Report {
	return doctor.Report{Checks: []doctor.Check{{
		Area: "cloud", Subject: "cloud-config", Status: doctor.Wrong, Detail: err.Error(),
		Fix: "correct the value that this line names, and run doctor again",
	}}}
}
