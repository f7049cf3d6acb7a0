package node

import (
	"context"
	"time"

	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
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
	// VPCID limits the search by address. Without it a node without provider ID is not looked for: private addresses are
	// unique only inside a VPC.
	VPCID string
	// Nodes lets one call answer for all nodes. Without it each node costs a call of its own.
	Nodes coreinformers.NodeInformer
	// Recorder writes events on nodes; without it there are none.
	Recorder record.EventRecorder
	// PrefixedProviderIDs writes new provider IDs with the scheme "alicloud://". Both spellings are always read.
	PrefixedProviderIDs bool
	// IPv6 reports the IPv6 addresses of the primary network interface too.
	IPv6 bool
	// MonitorPeriod is the pace at which the stock node-lifecycle controller asks for every node that is not ready. Each of
	// its passes sees the truth and costs one call per 100 of them. Default 5 s, which is also that controller's.
	MonitorPeriod time.Duration
	// MetadataTTL is how old addresses may be. Each instance's own age is spread over half to one and a half times it, so
	// that a large cluster asks a little at a time. Default 9 min: the stock pass of 5 min then reads about half of the
	// instances each time.
	MetadataTTL time.Duration
	// Window is how long the first question waits for company, so that nodes that join together are read together.
	// Default 100 ms.
	Window time.Duration
	// BatchSize is for how many instances or addresses one call asks, 1 to [alicloud.MaxInstancesPerCall], which is also the
	// default.
	BatchSize int
	// Guard bounds what may be reported as gone.
	Guard GuardOptions
}

// GuardOptions bound the deletion of nodes: the stock node-lifecycle controller deletes a Node as soon as it is told that
// its instance does not exist.
type GuardOptions struct {
	// Confirmations is how many separate answers must show the instance as missing. Default 3.
	Confirmations int
	// Over is the least time between the first and the last of them. Default 10 s.
	Over time.Duration
	// UnseenAge is how old a Node must be whose instance this process never saw: the instance list lags behind new
	// instances. Default 5 min.
	UnseenAge time.Duration
	// MaxDeletions and MaxPercent cap the nodes that are reported as gone per Interval; the larger of the two counts.
	// Defaults 5 nodes, 10 % of all nodes, 5 min.
	MaxDeletions int
	MaxPercent   int
	Interval     time.Duration
}

// maxExistsTTL is longer than a pass over thousands of nodes takes.
const maxExistsTTL = 4 * time.Second

// existsTTL is how old an answer may be that says whether an instance exists or runs: a little less than the time between
// two passes, and not more than one pass needs.
func (o Options) existsTTL() time.Duration { return min(maxExistsTTL, o.MonitorPeriod*4/5) }

func (o Options) withDefaults() Options {
	setDefault(&o.MonitorPeriod, 5*time.Second)
	setDefault(&o.MetadataTTL, 9*time.Minute)
	setDefault(&o.Window, 100*time.Millisecond)
	setDefault(&o.BatchSize, alicloud.MaxInstancesPerCall)
	o.BatchSize = min(o.BatchSize, alicloud.MaxInstancesPerCall)
	setDefault(&o.Guard.Confirmations, 3)
	setDefault(&o.Guard.Over, 10*time.Second)
	setDefault(&o.Guard.UnseenAge, 5*time.Minute)
	setDefault(&o.Guard.MaxDeletions, 5)
	setDefault(&o.Guard.MaxPercent, 10)
	setDefault(&o.Guard.Interval, 5*time.Minute)
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
