package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/validation"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	cloudprovider "k8s.io/cloud-provider"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/events"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

var _ cloudprovider.InstancesV2 = (*Instances)(nil)

// Instances implements cloudprovider.InstancesV2. It is safe for concurrent use.
type Instances struct {
	opts     Options
	idOf     func(*corev1.Node) (string, error)
	lister   corelisters.NodeLister
	indexer  cache.Indexer // the same by instance
	snapshot *snapshot
	guard    *deletionGuard
	writes   *utilcache.Expiring // [addressWrite] by UID
	events   *events.Recorder
	waiting  waitingNodes
}

// NewInstances returns the provider's view of ECS. It makes no call.
func NewInstances(opts Options) *Instances {
	registerMetrics()
	opts = opts.withDefaults()
	i := &Instances{
		opts: opts, guard: newDeletionGuard(opts.Guard), writes: utilcache.NewExpiring(),
		events: events.New(opts.Recorder, eventInterval),
	}
	ofRegion := InstanceIDOf(opts.Region)
	i.idOf = func(node *corev1.Node) (string, error) {
		if opts.onPremises(node) && !nodes.IsOnPremises(node) {
			return "", fmt.Errorf("node %s: %w: its address is one of machines on premises", node.Name, ErrNodeExcluded)
		}
		return ofRegion(node)
	}
	i.indexNodes(opts.Nodes.Informer())
	i.lister, i.indexer = opts.Nodes.Lister(), opts.Nodes.Informer().GetIndexer()
	i.snapshot = newSnapshot(opts, i.nodes, i.idOf)
	i.snapshot.silentAge = i.silentAge
	return i
}

// nodes returns all nodes of the cache.
func (i *Instances) nodes() []*corev1.Node {
	nodes, err := i.lister.List(labels.Everything())
	if err != nil {
		return nil
	}
	return nodes
}

// InstanceMetadata returns what the stock node controller writes on a node. For a node that is none of ours it is nil
// while the node waits for its own cloud provider, and empty afterwards: the stock controller skips nil only there and
// crashes on it elsewhere.
func (i *Instances) InstanceMetadata(ctx context.Context, node *corev1.Node) (*cloudprovider.InstanceMetadata, error) {
	began := time.Now()
	instance, err := i.find(ctx, node)
	i.waiting.observe(node, err, i.nodes)
	switch {
	case untouchable(err) && nodes.Uninitialized(node):
		return nil, nil
	case untouchable(err):
		return &cloudprovider.InstanceMetadata{ProviderID: node.Spec.ProviderID}, nil
	case err != nil:
		return nil, err
	}
	latency.WithLabelValues("reconcile").Observe(float64(time.Since(began).Milliseconds()))
	if nodes.Uninitialized(node) && !node.CreationTimestamp.IsZero() {
		latency.WithLabelValues("remove_taint").Observe(float64(time.Since(node.CreationTimestamp.Time).Milliseconds()))
	}
	return &cloudprovider.InstanceMetadata{
		ProviderID:       cmp.Or(node.Spec.ProviderID, i.newProviderID(instance)),
		InstanceType:     instance.Type,
		Zone:             instance.ZoneID,
		Region:           instance.RegionID,
		NodeAddresses:    i.addressesFor(node, instance),
		AdditionalLabels: labelsOf(instance),
	}, nil
}

// find returns the node's instance.
func (i *Instances) find(ctx context.Context, node *corev1.Node) (alicloud.Instance, error) {
	id, err := i.idOf(node)
	if errors.Is(err, ErrProviderIDEmpty) {
		return i.byAddress(ctx, node)
	}
	var instance alicloud.Instance
	if err == nil {
		i.reportTwin(node, id)
		instance, err = i.snapshot.metadata(ctx, id)
	}
	if err != nil {
		i.reportUnserved(node, err)
		return alicloud.Instance{}, err
	}
	if instance.ID == "" {
		i.reportNotShown(node, id)
		return alicloud.Instance{}, fmt.Errorf("node %s: %w %s; %s", node.Name, errNotShown, id, checkPermission)
	}
	return instance, nil
}

// checkPermission is part of every text about something that ECS does not show, because it answers a key without permission
// with an empty list and no error:
// https://www.alibabacloud.com/help/en/ecs/developer-reference/api-ecs-2014-05-26-describeinstances.
const checkPermission = "check the instance, the region and the permission ecs:DescribeInstances"

// byAddress finds the instance of a node without provider ID: the only one of the VPC that has the node's address. It
// never guesses, because a provider ID cannot be changed once it is written.
func (i *Instances) byAddress(ctx context.Context, node *corev1.Node) (alicloud.Instance, error) {
	address := nodeAddress(node)
	if address == "" {
		if time.Since(node.CreationTimestamp.Time) >= listLag {
			i.events.Warnf(node, reasonInstanceNotFound,
				"The node has no provider ID and no IPv4 InternalIP, by which ECS finds instances. Set the provider ID with "+
					"provider-initor or with the kubelet's --provider-id, or give the node an IPv4 address with its --node-ip")
		}
		return alicloud.Instance{}, fmt.Errorf("node %s: %w and %w", node.Name, ErrProviderIDEmpty, errNoAddress)
	}
	found, err := i.snapshot.atAddress(ctx, address)
	if err != nil {
		return alicloud.Instance{}, err
	}
	if len(found) != 1 {
		return alicloud.Instance{}, i.ambiguous(node, fmt.Sprintf("%d ECS instances of %s have its address %s; exactly one is needed. Set the "+
			"provider ID with provider-initor, or with the kubelet's --provider-id; if there are none, %s", len(found), i.opts.VPCID, address,
			checkPermission))
	}
	// An address is what a kubelet says of itself: it must not make a second Node of somebody else's instance.
	if owner := i.ownerOf(found[0].ID, node.Name); owner != nil {
		return alicloud.Instance{}, i.ambiguous(node, fmt.Sprintf("instance %s with its address %s belongs to node %s. If the machine was "+
			"renamed, delete node %s", found[0].ID, address, owner.Name, owner.Name))
	}
	return found[0], nil
}

// ambiguous says, in an event and an error, why a node without provider ID does not get that of an instance with its address.
func (i *Instances) ambiguous(node *corev1.Node, why string) error {
	i.events.Warnf(node, reasonInstanceAmbiguous, "The node has no provider ID, and %s", why)
	return fmt.Errorf("node %s: %w and %w: %s", node.Name, ErrProviderIDEmpty, errAmbiguous, why)
}

// Labels that are written on initialized nodes, as the official CCM writes them; schedulers and dashboards read them.
const (
	LabelChargeType   = "node.alibabacloud.com/instance-charge-type"
	LabelSpotStrategy = "node.alibabacloud.com/spot-strategy"
	LabelNodePoolID   = "node.alibabacloud.com/nodepool-id"

	// tagNodePoolID is the ECS tag that names the node pool.
	tagNodePoolID = "ack.alibabacloud.com/nodepool-id"
)

func (i *Instances) newProviderID(instance alicloud.Instance) string {
	id := ProviderID{Region: i.opts.Region, InstanceID: instance.ID}
	if i.opts.PrefixedProviderIDs {
		return id.Prefixed()
	}
	return id.String()
}

// labelsOf are the labels that only this program writes on an initialized node.
func labelsOf(instance alicloud.Instance) map[string]string {
	return validLabels(map[string]string{
		LabelChargeType: instance.ChargeType, LabelSpotStrategy: instance.SpotStrategy, LabelNodePoolID: instance.Tags[tagNodePoolID],
	})
}

// validLabels leaves out what would be no label value: the API server would refuse the whole node for it.
func validLabels(labels map[string]string) map[string]string {
	for key, value := range labels {
		if labels[key] = strings.TrimSpace(value); labels[key] == "" || len(validation.IsValidLabelValue(labels[key])) > 0 {
			delete(labels, key)
		}
	}
	return labels
}
