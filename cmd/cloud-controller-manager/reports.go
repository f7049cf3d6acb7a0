package main

import (
	"context"

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
			make: func(ctx context.Context, cloud *provider.Cloud) (report, error) { return cloud.Plan(ctx) },
		},
		{
			use:   "orphans",
			short: "List the load balancers of this cluster, and what belongs to them, that no Service owns",
			long: "orphans reads the cluster and the cloud with the flags of the manager and lists load balancers and access control lists with the\n" +
				"tags of this cluster, and listeners, vServer groups and members of it on load balancers that their users made, that no Service\n" +
				"owns. It writes nothing; what is listed can be deleted by hand.\n" +
				"The exit code is 0 when there is nothing, 2 when there is something, 1 on an error.",
			make: func(ctx context.Context, cloud *provider.Cloud) (report, error) { return cloud.Orphans(ctx) },
		},
	}
}
