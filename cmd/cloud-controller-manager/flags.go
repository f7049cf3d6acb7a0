package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/cloud-provider/names"
	"k8s.io/cloud-provider/options"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb"
)

// ownFlags are those that the stock command lacks.
type ownFlags struct {
	network             string
	skipSourceDestCheck bool
	controlPlaneNodes   string
	prefixedProviderIDs bool
	nodeIPv6            bool
	goneConfirmations   int
	goneOver            time.Duration
	routeTableVSwitches []string
	routeTableTag       string
	credentialsFile     string
	endpoints           map[string]string
	tokenMode           bool
	dryRun              bool

	backendBatch, routeBatch, nodeBatch int
	nodeEventWait                       int // seconds

	addresses addresses
}

func (f *ownFlags) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.network, "network", "vpc",
		"Network of the cloud's default endpoints: \"vpc\" for those inside a VPC, \"public\" for those on the internet.")
	flags.BoolVar(&f.skipSourceDestCheck, "skip-disable-source-dest-check", false,
		"Leave the source/destination check of the nodes' primary network interfaces as it is. Routed pod addresses need it off.")
	flags.StringVar(&f.controlPlaneNodes, "control-plane-nodes", string(slb.ControlPlaneAuto),
		"Whether nodes labelled node-role.kubernetes.io/master are backends of load balancers: \"auto\" when there are no others, \"always\" or \"never\".")
	flags.BoolVar(&f.prefixedProviderIDs, "prefixed-provider-ids", false,
		"Write new provider IDs as \"alicloud://region.instance\" instead of \"region.instance\". Both are always read.")
	flags.BoolVar(&f.nodeIPv6, "node-ipv6-addresses", false, "Report the IPv6 addresses of the primary network interface as node addresses.")
	flags.IntVar(&f.goneConfirmations, "node-gone-confirmations", 3,
		"How many separate answers of ECS must lack a node's instance before the Node is deleted.")
	flags.DurationVar(&f.goneOver, "node-gone-over", 10*time.Second, "Least time between the first and the last of those answers.")
	flags.StringSliceVar(&f.routeTableVSwitches, "route-table-vswitches", nil,
		"Write pod routes into the route tables that these vSwitches use. Without this, --route-table-tag and routeTableIDs of the cloud config: into the VPC's system table.")
	flags.StringVar(&f.routeTableTag, "route-table-tag", "", "Write pod routes into the route tables that carry this tag, as \"key=value\".")
	flags.StringVar(&f.credentialsFile, "credentials-file", "",
		"File or directory with the access key, watched: a credentials file of the official tools, or a mounted Secret with accessKeyID and accessKeySecret. "+
			"It wins over the environment, the cloud-config and the RAM role.")
	flags.StringToStringVar(&f.endpoints, "endpoints", nil,
		"Addresses in the place of the default ones, as \"product=address\", of the products slb, vpc, ecs, sts and metadata. They win over those of the environment and of the cloud-config.")
	flags.BoolVar(&f.tokenMode, "enable-imdsv2", true, "Ask the metadata service for a token first, and read without one where it grants none. false: never ask.")
	flags.BoolVar(&f.dryRun, "dry-run", false, "Refused when true: the trial run is the command \"cloud-controller-manager plan\".")
	f.addBatches(flags)
	f.addresses.addTo(flags)
	f.acceptOfficial(flags)
}

// addBatches are flags of the official CCM that bound its calls. Larger values than the API takes count as what it takes,
// because the official CCM does not refuse them.
func (f *ownFlags) addBatches(flags *pflag.FlagSet) {
	flags.IntVar(&f.backendBatch, "sg-batch-size", 40,
		"Most members of a vServer group in one call, 40 at most. Where the cloud takes only 20, 20 are sent from then on.")
	flags.IntVar(&f.routeBatch, "route-reconcile-batch-size", 50, "Most routes of one table in one call, 50 at most.")
	flags.IntVar(&f.nodeBatch, "node-reconcile-batch-size", 100, "Most instances asked for in one call, 100 at most.")
	flags.IntVar(&f.nodeEventWait, "node-event-aggregation-wait-seconds", 1,
		"How long the Services wait for further nodes after one came up, so that they share a pass. Nodes that go are not waited for.")
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

// acceptOfficial accepts the official CCM's flags that have no meaning here, so that its manifests start. Using one prints
// one warning.
func (f *ownFlags) acceptOfficial(flags *pflag.FlagSet) {
	for name, why := range map[string]string{
		"max-concurrent-actions": "the calls for one Service go one after the other, so that a failure leaves no two things half done; " +
			"--concurrent-service-syncs says how many Services are worked on at a time",
		"max-throttling-retry-times": "the official manager has it for NLB only; here a throttled call is made again when the API's next window opens",
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

// check names the flags whose values nothing else checks.
func (f *ownFlags) check() error {
	policies := []slb.ControlPlanePolicy{slb.ControlPlaneAuto, slb.ControlPlaneAlways, slb.ControlPlaneNever}
	switch {
	case f.dryRun:
		return fmt.Errorf("--dry-run: true, accepted: false; the trial run is the command \"cloud-controller-manager plan\"")
	case !slices.Contains(policies, slb.ControlPlanePolicy(f.controlPlaneNodes)):
		return fmt.Errorf("--control-plane-nodes: %q, accepted: %q", f.controlPlaneNodes, policies)
	case f.goneConfirmations < 1:
		return fmt.Errorf("--node-gone-confirmations: %d, accepted: 1 or more", f.goneConfirmations)
	case f.goneOver < 0:
		return fmt.Errorf("--node-gone-over: %s, accepted: 0s or more", f.goneOver)
	case f.routeTableTag != "" && f.tableTag() == nil:
		return fmt.Errorf("--route-table-tag: %q, accepted: \"key=value\"", f.routeTableTag)
	}
	if err := f.addresses.check(); err != nil {
		return err
	}
	return f.checkBatches()
}

// tableTag returns the tag of --route-table-tag, nil when there is none.
func (f *ownFlags) tableTag() *alicloud.Tag {
	key, value, found := strings.Cut(f.routeTableTag, "=")
	if !found || key == "" {
		return nil
	}
	return &alicloud.Tag{Key: key, Value: value}
}

// translateOldFlags accepts values that manifests of the official CCM carry and today's libraries refuse.
func translateOldFlags(opts *options.CloudControllerManagerOptions) {
	lock := &opts.Generic.LeaderElection.ResourceLock
	switch *lock {
	case "endpoints", "configmaps", "endpointsleases", "configmapsleases":
		klog.InfoS("Leader election uses a Lease: the lock type of --leader-elect-resource-lock no longer exists", "given", *lock)
		*lock = resourcelock.LeasesResourceLock
	}
	opts.Generic.Controllers = translateControllers(opts.Generic.Controllers)
}

// translateControllers turns the official names of --controllers into those of the stock command. Controllers for other
// products are left out with a warning: their absence changes nothing that exists.
func translateControllers(given []string) []string {
	var translated []string
	for _, name := range given {
		switch name {
		case "node":
			translated = append(translated, names.CloudNodeController, names.CloudNodeLifecycleController)
		case "nlb", "ingress", "pvtz":
			klog.InfoS("This controller of the official CCM does not exist here", "flag", "--controllers", "controller", name)
		default:
			translated = append(translated, name)
		}
	}
	return translated
}
