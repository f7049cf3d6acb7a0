package main

import (
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/cloud-provider/options"
	"k8s.io/klog/v2"
)

// ownFlags are those that the stock command lacks, by the official CCM's names.
type ownFlags struct {
	network             string
	skipSourceDestCheck bool
}

func (f *ownFlags) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.network, "network", "vpc",
		"Network of the cloud's default endpoints: \"vpc\" for those inside a VPC, \"public\" for those on the internet.")
	flags.BoolVar(&f.skipSourceDestCheck, "skip-disable-source-dest-check", false,
		"Leave the source/destination check of the nodes' primary network interfaces as it is. Routed pod addresses need it off.")
}

// translateOldFlags accepts values that manifests of the official CCM carry and today's client-go refuses.
func translateOldFlags(opts *options.CloudControllerManagerOptions) {
	lock := &opts.Generic.LeaderElection.ResourceLock
	switch *lock {
	case "endpoints", "configmaps", "endpointsleases", "configmapsleases":
		klog.InfoS("Leader election uses a Lease: the lock type of --leader-elect-resource-lock no longer exists", "given", *lock)
		*lock = resourcelock.LeasesResourceLock
	}
}
