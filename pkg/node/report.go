package node

import (
	"errors"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/instruments"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
)

// Reasons of the events on nodes.
const (
	reasonInstanceNotFound  = "InstanceNotFound"
	reasonInstanceAmbiguous = "InstanceAmbiguous"
	reasonProviderIDInvalid = "InvalidProviderID"
	reasonDeletionDeferred  = "NodeDeletionDeferred"
)

// eventInterval is how long the same problem of a node is not reported again: the callers ask every few seconds.
const eventInterval = time.Hour

// reportUnserved says why a node is none of ours for its provider ID, where no label says that it is not to be. One of another cloud may
// wait for a controller of its own.
func (i *Instances) reportUnserved(node *corev1.Node, err error) {
	joins := nodes.Uninitialized(node)
	switch {
	case errors.Is(err, ErrProviderIDMalformed), errors.Is(err, errRefusedID):
		i.events.Warnf(node, reasonProviderIDInvalid,
			"spec.providerID %.80q is malformed, expected \"<region>.<instance id>\". It cannot be changed: "+
				"delete the Node and let its kubelet register it again", node.Spec.ProviderID)
	case errors.Is(err, ErrOtherRegion) && (joins || nodes.Ready(node)):
		i.events.Warnf(node, reasonProviderIDInvalid,
			"spec.providerID %.80q names a region other than that of the cluster, %s; the manager ignores the node. If it "+
				"is wrong, delete the Node and let its kubelet register it again", node.Spec.ProviderID, i.opts.Region)
	case errors.Is(err, ErrProviderIDForeign) && !joins && nodes.Ready(node):
		i.events.Warnf(node, reasonProviderIDInvalid,
			"spec.providerID %.80q names no ECS instance, expected \"<region>.<instance id>\": the node gets no route and "+
				"is no backend server. If that is intended, the label %s=true says so; else delete the Node and let its kubelet register it again",
			node.Spec.ProviderID, nodes.LabelOnPremises)
	}
}

// listLag is how long a new instance may be missing in the list before an event says so.
const listLag = 10 * time.Second

// reportNotShown emits an event about an instance that ECS does not show, once that is no longer the list's lag.
func (i *Instances) reportNotShown(node *corev1.Node, id string) {
	if time.Since(node.CreationTimestamp.Time) >= listLag {
		i.events.Warnf(node, reasonInstanceNotFound, "ECS does not show instance %s of region %s; %s", id, i.opts.Region, checkPermission)
	}
}

var (
	deletionsConfirmed = instruments.NewCounter("node", "deletions_confirmed_total",
		"Times that a node's instance was reported as gone, after which Kubernetes deletes the Node.")
	deletionsRefused = instruments.NewCounterVec("node", "deletions_refused_total",
		"Times that a missing instance was not reported as gone, by reason: no_control, never_seen, unconfirmed, capped, changed, paused.",
		"reason")
)

var uninitialized = instruments.NewGaugeVec("node", "uninitialized",
	"Nodes that keep the taint node.cloudprovider.kubernetes.io/uninitialized after an attempt to initialize them, by reason: that of the event on the Node, or "+
		"\"CallFailed\" if a call to ECS failed, or \"NoAddress\" if the node has no internal address.", "reason")

// latency has no metric of ours beside it that measures the same.
var latency = instruments.NewOfficialLatency("node", "reconcile is the time to determine the metadata of a Node from its instance, "+
	"remove_taint the time from the creation of a Node until this has succeeded for the first time.", "verb")

// Metrics are those of this package.
func Metrics() []metrics.Registerable {
	return []metrics.Registerable{deletionsConfirmed, deletionsRefused, uninitialized, latency}
}

var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(Metrics()...) })

// errNotShown says that ECS does not show an instance, errAmbiguous that not exactly one has the address of a node, errNoAddress that a
// node without provider ID has no address either.
var (
	errNotShown  = errors.New("ECS does not show the instance")
	errAmbiguous = errors.New("not exactly one instance has the address")
	errNoAddress = errors.New("it has no internal IPv4 address to be found by")
)

// waitingNodes are the nodes that could not be initialized, and why.
type waitingNodes struct {
	mu  sync.Mutex // guards why
	why map[types.UID]string
}

// observe takes note of an attempt to initialize the node, and forgets nodes that are not present.
func (w *waitingNodes) observe(node *corev1.Node, err error, present func() []*corev1.Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	reason := ""
	if err != nil && nodes.Uninitialized(node) {
		reason = waitingReason(err)
	}
	if w.why[node.UID] == reason {
		return
	}
	why, counts := map[types.UID]string{node.UID: reason}, map[string]int{reason: 1}
	for _, other := range present() {
		if reason := w.why[other.UID]; reason != "" && other.UID != node.UID {
			why[other.UID] = reason
			counts[reason]++
		}
	}
	w.why = why
	for _, each := range waitingReasons {
		uninitialized.WithLabelValues(each.reason).Set(float64(counts[each.reason]))
	}
}

// waitingReasons are all values of the label, with the errors that they stand for.
var waitingReasons = []struct {
	reason string
	of     []error
}{
	{reasonProviderIDInvalid, []error{ErrProviderIDMalformed, errRefusedID, ErrOtherRegion}},
	{reasonInstanceNotFound, []error{errNotShown}},
	{reasonInstanceAmbiguous, []error{errAmbiguous}},
	{"NoAddress", []error{errNoAddress}},
	{"CallFailed", nil}, // anything else
}

// waitingReason returns why a node waits, "" for one that waits for somebody else.
func waitingReason(err error) string {
	for _, each := range waitingReasons {
		if slices.ContainsFunc(each.of, func(known error) bool { return errors.Is(err, known) }) || each.of == nil && !untouchable(err) {
			return each.reason
		}
	}
	return ""
}

// nodesOfInstance is the index of Nodes by the instance that their provider ID names.
const nodesOfInstance = "alicloud-instance"

// indexNodes adds the index to the informer, unless somebody else has done so.
func (i *Instances) indexNodes(informer cache.SharedIndexInformer) {
	if _, ok := informer.GetIndexer().GetIndexers()[nodesOfInstance]; ok {
		return
	}
	err := informer.AddIndexers(cache.Indexers{nodesOfInstance: func(object any) ([]string, error) {
		if node, ok := object.(*corev1.Node); ok {
			if id, err := i.idOf(node); err == nil {
				return []string{id}, nil
			}
		}
		return nil, nil
	}})
	if err != nil { // the informer was stopped
		klog.Background().Error(err, "Cannot index the Nodes by their instance")
	}
}

// ownerOf returns the oldest other Node with the instance's provider ID, nil when there is none.
func (i *Instances) ownerOf(instanceID, except string) *corev1.Node {
	objects, err := i.indexer.ByIndex(nodesOfInstance, instanceID)
	if err != nil {
		return nil // there is no index, which the log says
	}
	var owner *corev1.Node
	for _, object := range objects {
		if node, ok := object.(*corev1.Node); ok && node.Name != except && (owner == nil || nodes.ByAge(node, owner) < 0) {
			owner = node
		}
	}
	return owner
}

// reportTwin emits an event on a Node whose instance an older Node stands for: a kubelet writes the provider ID of its Node itself.
func (i *Instances) reportTwin(node *corev1.Node, instanceID string) {
	owner := i.ownerOf(instanceID, node.Name)
	if owner == nil || nodes.ByAge(owner, node) >= 0 {
		return
	}
	i.events.Warnf(node, reasonInstanceAmbiguous,
		"Instance %s belongs to node %s, which is older, so this Node is not a backend server of load balancers. If the "+
			"machine was renamed, delete node %s", instanceID, owner.Name, owner.Name)
}
