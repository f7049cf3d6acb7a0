package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/cloud-provider/names"
	"k8s.io/cloud-provider/options"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/provider"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
)

// ownFlags are the flags that the stock command does not have.
type ownFlags struct {
	network             string
	skipSourceDestCheck bool
	controlPlaneNodes   string
	policy              string
	prefixedProviderIDs bool
	nodeIPv6            bool
	nodes               nodeFlags
	routeTableVSwitches []string
	routeTableTag       string
	credentialsFile     string
	endpoints           map[string]string
	tokenMode           bool
	takeover            bool
	dryRun              bool

	backendBatch, routeBatch, nodeBatch int
	nodeEventWait                       int // seconds

	addresses addresses
}

func (f *ownFlags) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.network, "network", "vpc",
		"Network of the default endpoints of the cloud: \"vpc\" for endpoints inside a VPC, \"public\" for endpoints on the internet.")
	flags.BoolVar(&f.skipSourceDestCheck, "skip-disable-source-dest-check", false,
		"Do not disable the source/destination check of the primary network interfaces of nodes. Routed pod traffic requires it to be disabled.")
	flags.StringVar(&f.controlPlaneNodes, "control-plane-nodes", string(backend.ControlPlaneAuto),
		"Whether nodes with the label node-role.kubernetes.io/master are backends of load balancers: \"auto\" (only if there are no others), \"always\" or \"never\".")
	flags.StringVar(&f.policy, "policy", "",
		"What the authors of Services may use of the account, as JSON, for example '{\"loadBalancerReuse\": \"tagged\"}'. Its fields take precedence over those in the cloud-config. By default, nothing is restricted, as with the official CCM.")
	flags.BoolVar(&f.prefixedProviderIDs, "prefixed-provider-ids", false,
		"Write new provider IDs as \"alicloud://region.instance\" instead of \"region.instance\". Both forms are always accepted.")
	flags.BoolVar(&f.nodeIPv6, "node-ipv6-addresses", false, "Report the IPv6 addresses of the primary network interface as node addresses.")
	f.nodes.addTo(flags)
	flags.StringSliceVar(&f.routeTableVSwitches, "route-table-vswitches", nil,
		"Write pod routes into the route tables of these vSwitches. Without this flag, --route-table-tag and routeTableIDs in the cloud-config, the manager uses the route tables of the vSwitches in which nodes are.")
	flags.StringVar(&f.routeTableTag, "route-table-tag", "", "Write pod routes into the route tables with this tag, as \"key=value\".")
	flags.StringVar(&f.credentialsFile, "credentials-file", "",
		"File or directory with the access key: a credentials file of the official tools, or a mounted Secret with accessKeyID and accessKeySecret. "+
			"The manager watches it for changes. It takes precedence over the environment, the cloud-config and the RAM role.")
	flags.StringToStringVar(&f.endpoints, "endpoints", nil,
		"Endpoints to use instead of the defaults, as \"product=address\", for the products slb, nlb, vpc, ecs, sts, quotas and metadata. They take precedence over the environment and the cloud-config.")
	flags.BoolVar(&f.tokenMode, "enable-imdsv2", true,
		"Request a token from the metadata service first, and read without one if it grants none. If false, never request a token.")
	flags.BoolVar(&f.takeover, "takeover", false,
		"Start even though the official CCM holds its Lease kube-system/ccm. By default, the manager waits until the official CCM has stopped, because two managers undo each other's work.")
	flags.BoolVar(&f.dryRun, "dry-run", false, "Must be false. For a dry run, use the command \"cloud-controller-manager plan\".")
	f.addBatches(flags)
	f.addresses.addTo(flags)
	f.acceptOfficial(flags)
}

// addBatches adds the flags of the official CCM that limit the size of calls. Values above the limit of the API count as the limit,
// because the official CCM does not reject them.
func (f *ownFlags) addBatches(flags *pflag.FlagSet) {
	flags.IntVar(&f.backendBatch, "sg-batch-size", 40,
		"Maximum number of backend servers in one call, up to 40. If the cloud accepts only 20, the manager uses 20 from then on.")
	flags.IntVar(&f.routeBatch, "route-reconcile-batch-size", 50, "Maximum number of routes of one table in one call, up to 50.")
	flags.IntVar(&f.nodeBatch, "node-reconcile-batch-size", 100, "Maximum number of instances to read in one call, up to 100.")
	flags.IntVar(&f.nodeEventWait, "node-event-aggregation-wait-seconds", 1,
		"Time in seconds to wait for further nodes after a node becomes available, so that Services are reconciled once. Removals of nodes take effect immediately.")
}

// checkBatches names the first of these flags that is too small.
func (f *ownFlags) checkBatches() error {
	for name, value := range map[string]int{
		"sg-batch-size": f.backendBatch, "route-reconcile-batch-size": f.routeBatch, "node-reconcile-batch-size": f.nodeBatch,
		"node-event-aggregation-wait-seconds": f.nodeEventWait,
	} {
		if value < 1 {
			return fmt.Errorf("--%s: %d, accepted: 1 or more", name, value)
		}
	}
	return nil
}

// acceptOfficial accepts flags of the official CCM that have no effect here, so that its manifests work. Each prints one warning.
func (f *ownFlags) acceptOfficial(flags *pflag.FlagSet) {
	for name, why := range map[string]string{
		"max-concurrent-actions": "calls for one Service run one after the other, so that a failure interrupts only one change; " +
			"--concurrent-service-syncs sets the number of Services that are reconciled at the same time",
		"max-throttling-retry-times": "the official CCM uses it for NLB only; this manager repeats a throttled call in the next rate window",
	} {
		flags.Int(name, 0, "Accepted for manifests of the official CCM.")
		deprecate(flags, name, why)
	}
}

func deprecate(flags *pflag.FlagSet, name, why string) {
	if err := flags.MarkDeprecated(name, "it has no effect: "+why); err != nil {
		panic(err) // the flag was defined a line before
	}
}

// check validates the flags that nothing else validates.
func (f *ownFlags) check() error {
	policies := []backend.ControlPlanePolicy{backend.ControlPlaneAuto, backend.ControlPlaneAlways, backend.ControlPlaneNever}
	switch {
	case f.dryRun:
		return fmt.Errorf("--dry-run: true, accepted: false; for a dry run, use the command \"cloud-controller-manager plan\"")
	case !slices.Contains(policies, backend.ControlPlanePolicy(f.controlPlaneNodes)):
		return fmt.Errorf("--control-plane-nodes: %q, accepted: %q", f.controlPlaneNodes, policies)
	case f.routeTableTag != "" && f.tableTag() == nil:
		return fmt.Errorf("--route-table-tag: %q, accepted: \"key=value\"", f.routeTableTag)
	}
	if err := f.addresses.check(); err != nil {
		return err
	}
	if err := f.nodes.check(); err != nil {
		return err
	}
	return f.checkBatches()
}

// tenantPolicy reads --policy.
func (f *ownFlags) tenantPolicy() (policy.Policy, error) {
	if f.policy == "" {
		return policy.Policy{}, nil
	}
	given, err := provider.ParsePolicy(f.policy)
	if err != nil {
		return given, fmt.Errorf("--policy: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return given, nil
}

// tableTag returns the tag of --route-table-tag, nil when there is none.
func (f *ownFlags) tableTag() *alicloud.Tag {
	key, value, found := strings.Cut(f.routeTableTag, "=")
	if !found || key == "" {
		return nil
	}
	return &alicloud.Tag{Key: key, Value: value}
}

// translateOldFlags accepts values in manifests of the official CCM that current libraries reject.
func translateOldFlags(opts *options.CloudControllerManagerOptions) {
	lock := &opts.Generic.LeaderElection.ResourceLock
	switch *lock {
	case "endpoints", "configmaps", "endpointsleases", "configmapsleases":
		klog.InfoS("Leader election uses a Lease: the lock type of --leader-elect-resource-lock no longer exists", "given", *lock)
		*lock = resourcelock.LeasesResourceLock
	}
	opts.Generic.Controllers = translateControllers(opts.Generic.Controllers)
}

// translateControllers translates the official names in --controllers to those of the stock command. It skips controllers of other
// products with a warning; existing resources stay unchanged.
func translateControllers(given []string) []string {
	var translated []string
	for _, name := range given {
		switch name {
		case "node":
			translated = append(translated, names.CloudNodeController, names.CloudNodeLifecycleController)
		case "ingress", "pvtz":
			klog.InfoS("Ignoring a controller of the official CCM that this manager does not have", "flag", "--controllers", "controller", name)
		default:
			translated = append(translated, name)
		}
	}
	return translated
}
