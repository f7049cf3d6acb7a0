package vpcroute

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/events"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/rights"
)

// API is what this package calls of the cloud. *alicloud.Client satisfies it.
type API interface {
	DescribeRouteTables(ctx context.Context, vpcID string) ([]alicloud.RouteTable, error)
	DescribeRouteEntries(ctx context.Context, tableID string, ipv6 bool) ([]alicloud.RouteEntry, error)
	CreateRouteEntries(ctx context.Context, routes []alicloud.NewRoute) ([]error, error)
	DeleteRouteEntries(ctx context.Context, entries []alicloud.RouteEntry) ([]error, error)
	DescribeVSwitches(ctx context.Context, vpcID string) ([]alicloud.VSwitch, error)
	DescribeInstances(ctx context.Context, query alicloud.InstanceQuery) ([]alicloud.Instance, error)
	DescribeNetworkInterfaces(ctx context.Context, query alicloud.NetworkInterfaceQuery) ([]alicloud.NetworkInterface, error)
	DisableSourceDestCheck(ctx context.Context, interfaceID string) error
}

// Config says which routes to manage, and where.
type Config struct {
	// ClusterCIDRs are the ranges that pod CIDRs come from, IPv4 or IPv6. Entries outside them are never touched. Without them,
	// as in a program that starts the stock route controller, every pod CIDR gets a route: that controller keeps to its own
	// --cluster-cidr.
	ClusterCIDRs []netip.Prefix
	// TableIDs are the route tables to write. Empty means the tables of VSwitchIDs and TableTag together; without these too,
	// the tables of the vSwitches in which nodes are, or the system table of the VPC where no vSwitch may be listed.
	TableIDs []string
	// VSwitchIDs selects the tables that these vSwitches use.
	VSwitchIDs []string
	// TableTag selects the tables that carry this tag; nil selects none.
	TableTag *alicloud.Tag
	// VPCID is the VPC of the nodes. Required.
	VPCID string
	// ClusterID tells this cluster's entries from those of other clusters in the VPC; it becomes part of the entries'
	// description. With the official CCM's literal "clusterid", the default, a description proves nothing, and entries of
	// nodes that went away while this program was down stay.
	ClusterID string
	// Period is how often the tables are read when nothing happened, to repair what others changed, and how often it is found
	// out anew which tables to manage. Default 5 min.
	Period time.Duration
}

// Options configure [NewWriter] and [NewController].
type Options struct {
	// API reaches the cloud. Required.
	API API
	// Config says what to manage. Required.
	Config Config
	// Client writes the nodes' conditions. Required for a controller.
	Client kubernetes.Interface
	// Recorder writes events on nodes; nil writes none.
	Recorder record.EventRecorder
	// Nodes is the informer of nodes. Required.
	Nodes coreinformers.NodeInformer
	// InstanceID gives the ECS instance of a node, an error for nodes without one. Required.
	InstanceID func(*corev1.Node) (string, error)
	// Paused keeps the controller from writing to the cloud while it says true; it goes on to read and to report. nil never pauses.
	Paused func() bool
	// SkipSourceDestCheck leaves the source/destination check of the nodes' network interfaces as it is.
	SkipSourceDestCheck bool
	// VSwitches are those of the VPC, where they are known already, and VSwitchesRead is when they were read. Without them
	// they are read before the first route is made.
	VSwitches     []alicloud.VSwitch
	VSwitchesRead time.Time
	// Quota is how many custom entries a route table may hold, for the metric and the event at 80 %. Default 200, the
	// quota of a new account. It stops no write: only the cloud knows the quota in force.
	Quota func() Quota
	// BatchSize is how many entries of one table are created or deleted in one call, 1 to [alicloud.MaxRouteEntriesPerCall],
	// which is also the default.
	BatchSize int

	// clearAfter is how long a condition must have been left behind before it is cleared.
	clearAfter time.Duration
}

// Defaults of [Config] and [Options].
const (
	defaultPeriod = 5 * time.Minute
	defaultQuota  = 200
)

// paused reports whether nothing may be written now.
func (o Options) paused() bool { return o.Paused != nil && o.Paused() }

func (o Options) withDefaults() Options {
	o.Config.ClusterID = cmp.Or(o.Config.ClusterID, sharedClusterID)
	if o.Config.Period <= 0 {
		o.Config.Period = defaultPeriod
	}
	if o.Quota == nil {
		o.Quota = func() Quota { return Quota{Value: defaultQuota, Origin: "published", Assumed: true} }
	}
	if o.BatchSize <= 0 || o.BatchSize > alicloud.MaxRouteEntriesPerCall {
		o.BatchSize = alicloud.MaxRouteEntriesPerCall
	}
	if o.Recorder == nil {
		o.Recorder = &record.FakeRecorder{}
	}
	return o
}

// ParseClusterCIDRs reads the value of --cluster-cidr: one CIDR, or several separated by commas.
func ParseClusterCIDRs(value string) ([]netip.Prefix, error) {
	var prefixes []netip.Prefix
	for part := range strings.SplitSeq(value, ",") {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(part))
		if err != nil || prefix != prefix.Masked() || prefix.Bits() == 0 {
			return nil, fmt.Errorf("cluster CIDR %q is not accepted: expected one or more comma-separated CIDRs such as \"10.244.0.0/16\", "+
				"each the first address of its range and narrower than /0", value)
		}
		prefixes = append(prefixes, prefix)
	}
	return prefixes, nil
}

// covers reports whether the prefix lies inside one of the cluster's ranges.
func (c Config) covers(prefix netip.Prefix) bool {
	if len(c.ClusterCIDRs) == 0 {
		return prefix.Bits() > 0
	}
	return slices.ContainsFunc(c.ClusterCIDRs, func(cluster netip.Prefix) bool {
		return cluster.Bits() <= prefix.Bits() && cluster.Contains(prefix.Addr())
	})
}

// Outside returns the entries that this cluster has made outside of its ranges, as they are today. They are never touched, and use up the
// table's quota.
func (c Config) Outside(entries []alicloud.RouteEntry) (outside []alicloud.RouteEntry) {
	for i := range entries {
		if e, ok := entryOf(entries[i]); ok && c.made(e) && !c.covers(e.cidr) {
			outside = append(outside, entries[i])
		}
	}
	return outside
}

// ipv6 reports whether pods may have IPv6 addresses.
func (c Config) ipv6() bool {
	return slices.ContainsFunc(c.ClusterCIDRs, func(cluster netip.Prefix) bool { return cluster.Addr().Is6() })
}

// routesIPv6 reports whether IPv6 pod CIDRs get routes.
func (c Config) routesIPv6() bool { return len(c.ClusterCIDRs) == 0 || c.ipv6() }

// isClusterCIDR reports whether the prefix is a whole range of the cluster, which no pod CIDR is.
func (c Config) isClusterCIDR(prefix netip.Prefix) bool {
	return slices.Contains(c.ClusterCIDRs, prefix)
}

// Reasons of the events on nodes. CreatedRoute, CreateRouteFailed and DescriberRouteFailed, misspelled there, are the official
// CCM's.
const (
	reasonCreated       = "CreatedRoute"
	reasonCreateFailed  = "CreateRouteFailed"
	reasonReadFailed    = "DescriberRouteFailed"
	reasonTablesUnknown = "RouteTablesUnknown"
	reasonConflict      = "RouteConflict"
	reasonQuota         = "RouteQuota"
	reasonWithheld      = "RouteRemovalWithheld"
	reasonNoCIDR        = "NoPodCIDR"
	reasonInvalidCIDR   = "InvalidPodCIDR"
	reasonIPv6          = "IPv6RoutesNotSupported"
	reasonSourceDestErr = "SourceDestCheckFailed"
	reasonPaused        = "Paused"
)

// eventInterval is how long the same reason is not repeated for a node: most problems are met on every pass.
const eventInterval = time.Hour

// ofCluster is the subject of what concerns the cluster as a whole.
var ofCluster = events.Subject{Name: "cluster"}

// ofTable is the subject of what concerns a route table.
func ofTable(id string) events.Subject { return events.Subject{Name: "table/" + id} }

// ofFullTable is the subject of a table that the cloud called full. Until then [ofTable] may say that it is nearly so.
func ofFullTable(id string) events.Subject { return events.Subject{Name: "full/" + id} }

// Rights are what the route controller needs at the API server.
func Rights() []rights.Right {
	return []rights.Right{
		rights.ToWatch("", "nodes", "pod CIDRs and provider IDs"),
		{Resource: "nodes/status", Verbs: []string{"patch"}, Why: "the condition NetworkUnavailable"},
	}
}
