package node

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/rights"
)

// API is what this package calls of the cloud. *alicloud.Client satisfies it.
type API interface {
	DescribeInstances(ctx context.Context, query alicloud.InstanceQuery) ([]alicloud.Instance, error)
}

// Options configure [NewInstances].
type Options struct {
	// API reaches ECS. Required.
	API API
	// Region is the region id of the cluster. Nodes of other regions are left alone. Required.
	Region string
	// VPCID limits the search by address: private addresses are unique only inside a VPC. Required.
	VPCID string
	// Nodes lets one call answer for all nodes. Required.
	Nodes coreinformers.NodeInformer
	// Recorder writes events on nodes; without it there are none.
	Recorder record.EventRecorder
	// PrefixedProviderIDs writes new provider IDs with the scheme "alicloud://". Both spellings are always read.
	PrefixedProviderIDs bool
	// IPv6 reports the IPv6 addresses of the primary network interface too.
	IPv6 bool
	// MonitorPeriod is the pace at which the stock node-lifecycle controller asks for every node that is not ready. Each of
	// its passes costs at most one call per 100 of them. Default 5 s, which is also that controller's.
	MonitorPeriod time.Duration
	// MetadataTTL is how old addresses may be. Each instance's own age is spread over half to one and a half times it, so
	// that a large cluster asks a little at a time. Default 9 min: the stock pass of 5 min then reads about half of the
	// instances each time.
	MetadataTTL time.Duration
	// Window is how long the first request waits for others, so that nodes that join together are read together.
	// Default 100 ms.
	Window time.Duration
	// BatchSize is how many instances or addresses one call reads, 2 to [alicloud.MaxInstancesPerCall], which is also the
	// default. Less is raised to 2, because a call about an instance that may be gone names another one too.
	BatchSize int
	// OnPremises are the addresses of machines outside of Alibaba Cloud. A node without provider ID whose addresses are all among
	// them is treated as if it had the label [nodes.LabelOnPremises].
	OnPremises []netip.Prefix
	// Permits receives every Node that may be deleted, for the client of the stock node-lifecycle controller. Without it that
	// controller deletes by name only.
	Permits *DeletionPermits
	// Guard bounds the deletion of Nodes.
	Guard GuardOptions
	// Paused keeps every Node while it says true. nil never pauses.
	Paused func() bool
}

// GuardOptions bound the deletion of Nodes: the stock node-lifecycle controller deletes a Node as soon as its instance is
// reported not to exist.
type GuardOptions struct {
	// Confirmations is how many separate answers must show the instance as missing. Default 3.
	Confirmations int
	// Over is the least time between the first and the last of them. Default 2 min; negative means none.
	Over time.Duration
	// UnseenAge is that time for an instance that this process never saw: the instance list lags behind new instances.
	// Default 5 min.
	UnseenAge time.Duration
	// MaxDeletions and MaxPercent cap the Nodes that are deleted per Interval; the larger of the two counts, but MaxDeletions
	// never for more than a third of the nodes, so that it is a cap for small clusters too. One Node may always be deleted.
	// Defaults 5 nodes, 10 %, 5 min.
	MaxDeletions int
	MaxPercent   int
	Interval     time.Duration

	// maxPause is how long no answer may come without the answers ceasing to be consecutive.
	maxPause time.Duration
}

// spacing is how far apart two answers must be to count as two.
func (o GuardOptions) spacing() time.Duration {
	return max(0, o.Over) / time.Duration(2*o.Confirmations)
}

// limit returns how many Nodes may be deleted per interval in a cluster of so many.
func (o GuardOptions) limit(nodes int) int {
	return max(1, min(o.MaxDeletions, nodes/3), nodes*o.MaxPercent/100)
}

// maxExistsTTL is longer than a pass over thousands of nodes takes.
const maxExistsTTL = 4 * time.Second

// existsTTL is how old an answer may be that says whether an instance exists or runs: a little less than the time between
// two passes, and not more than one pass needs.
func (o Options) existsTTL() time.Duration { return min(maxExistsTTL, o.MonitorPeriod*4/5) }

func (o Options) withDefaults() Options {
	o.MonitorPeriod = cmp.Or(o.MonitorPeriod, 5*time.Second)
	o.MetadataTTL = cmp.Or(o.MetadataTTL, 9*time.Minute)
	o.Window = cmp.Or(o.Window, 100*time.Millisecond)
	o.BatchSize = max(2, min(cmp.Or(o.BatchSize, alicloud.MaxInstancesPerCall), alicloud.MaxInstancesPerCall))
	o.Permits = cmp.Or(o.Permits, NewDeletionPermits())
	o.Guard.Confirmations = cmp.Or(o.Guard.Confirmations, 3)
	o.Guard.Over = cmp.Or(o.Guard.Over, waits.InstanceMissing)
	o.Guard.UnseenAge = cmp.Or(o.Guard.UnseenAge, waits.InstanceNeverSeen)
	o.Guard.MaxDeletions = cmp.Or(o.Guard.MaxDeletions, 5)
	o.Guard.MaxPercent = cmp.Or(o.Guard.MaxPercent, 10)
	o.Guard.Interval = cmp.Or(o.Guard.Interval, waits.NodesInTurn)
	// Answers count a spacing apart, and come a pass later.
	o.Guard.maxPause = max(3*time.Minute, 3*o.MonitorPeriod, 2*o.Guard.spacing()+o.MonitorPeriod)
	return o
}

// onPremises reports whether the node's machine is outside of Alibaba Cloud, by its label or by its address.
func (o Options) onPremises(node *corev1.Node) bool {
	if nodes.IsOnPremises(node) {
		return true
	}
	if len(o.OnPremises) == 0 || node.Spec.ProviderID != "" {
		return false
	}
	own := nodes.OwnAddresses(node)
	return len(own) > 0 && !slices.ContainsFunc(own, func(address netip.Addr) bool {
		return !slices.ContainsFunc(o.OnPremises, func(block netip.Prefix) bool { return block.Contains(address) })
	})
}

// Rights are what the stock node controllers, which ask this package, and [Controller] need at the API server.
func Rights() []rights.Right {
	return []rights.Right{
		rights.ToWatch("", "nodes", "nodes to initialize and to monitor"),
		{Resource: "nodes", Verbs: []string{"update"}, Why: "provider ID, labels, removing the uninitialized taint"},
		{Resource: "nodes", Verbs: []string{"delete"}, Why: "deleting nodes whose instance was released"},
		{Resource: "nodes", Verbs: []string{"get", "patch"},
			Why: "shutdown taint of stopped instances; keeping provider ID and labels up to date; initializing nodes on premises"},
		{Resource: "nodes/status", Verbs: []string{"patch"}, Why: "addresses"},
	}
}
