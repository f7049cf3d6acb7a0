package main

import (
	"context"

	"k8s.io/cloud-provider/options"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/doctor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/provider"
)

// reporters are the commands that only read.
func reporters() []reporter {
	return []reporter{
		{
			use:   "plan",
			short: "Print what would be written to the cloud, and write nothing",
			long: "plan reads the cluster and the cloud with the flags of the manager and prints what it would write for each Service and route.\n" +
				"The exit code is 0 when that is nothing, 2 when it is something, 1 on an error.",
			make: fromCluster((*provider.Cloud).Plan),
		},
		{
			use:   "orphans",
			short: "List the load balancers of this cluster, and what belongs to them, that no Service owns",
			long: "orphans reads the cluster and the cloud with the flags of the manager and lists load balancers and access control lists with the\n" +
				"tags of this cluster, and listeners, vServer groups and members of it on load balancers that their users made, that no Service\n" +
				"owns. It writes nothing; what is listed can be deleted by hand.\n" +
				"The exit code is 0 when there is nothing, 2 when there is something, 1 on an error.",
			make: fromCluster((*provider.Cloud).Orphans),
		},
		{
			use:   "doctor",
			short: "Check credentials, cloud, permissions, cluster and nodes, and say how to mend what is wrong",
			long: "doctor checks, with the flags of the manager, what can be wrong with an installation, and changes nothing. Permissions of the cloud\n" +
				"are found out with reads, dry runs, and calls for things that do not exist. What cannot be known is \"not checked\";\n" +
				"a right that is missing and that only one feature needs is \"optional\".\n" +
				"The exit code is 0 when nothing is wrong, 2 when something is, 1 when it could not run.",
			make: examine,
		},
	}
}

// fromCluster makes a report out of what the manager would read when it starts.
func fromCluster[R report](read func(*provider.Cloud, context.Context) (R, error)) func(context.Context, *options.CloudControllerManagerOptions, starter) (report, error) {
	return func(ctx context.Context, opts *options.CloudControllerManagerOptions, start starter) (report, error) {
		cloud, err := readCluster(ctx, opts, start)
		if err != nil {
			return nil, err
		}
		return read(cloud, ctx)
	}
}

// examine finds out what keeps the manager from starting, so it must not need what the start needs: only a flag that cannot
// be understood is an error.
func examine(ctx context.Context, opts *options.CloudControllerManagerOptions, start starter) (report, error) {
	completed, err := complete(opts)
	if err != nil {
		return nil, err
	}
	settings, err := start.settings(completed)
	if err != nil {
		return nil, err
	}
	given := completed.ComponentConfig.KubeCloudShared.CloudProvider
	cloud, err := load(given.Name, given.CloudConfigFile)
	if err != nil {
		return badConfig(err), nil
	}
	cloud.Configure(settings)
	return cloud.Examine(ctx, completed.Client, waitForAPIServer(ctx, completed)), nil
}

// badConfig is the whole report where the cloud-config cannot be read: that is a finding, and nothing else can be checked.
func badConfig(err error) doctor.Report {
	return doctor.Report{Checks: []doctor.Check{{
		Area: "cloud", Subject: "cloud-config", Status: doctor.Wrong, Detail: err.Error(), Fix: "correct what the line names, and run doctor again",
	}}}
}
