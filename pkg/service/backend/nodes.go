package backend

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	cloudproviderapi "k8s.io/cloud-provider/api"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
)

// ControlPlanePolicy says whether control-plane nodes are backends.
type ControlPlanePolicy string

// The values of [ControlPlanePolicy].
const (
	// ControlPlaneAuto leaves them out unless the cluster has no other node that could be a backend.
	ControlPlaneAuto   ControlPlanePolicy = "auto"
	ControlPlaneAlways ControlPlanePolicy = "always"
	ControlPlaneNever  ControlPlanePolicy = "never"
)

// Node is what decides about a Node as a backend.
type Node struct {
	Name string
	// InstanceID is the id of the ECS instance. Empty means that the node has none, or that it is not known yet.
	InstanceID string
	// Address is the InternalIP, empty where the node reports none.
	Address string
	// Unresolved says that the node may be one of our instances, but which is not known yet. InDoubt says that it became so a short
	// while ago, so that it may be any backend that looks as if no node stood for it.
	Unresolved, InDoubt bool
	// TwinOf is the name of an older Node with the same instance, which alone stands for it.
	TwinOf string
	// Candidate says that nothing but readiness decides whether the node is a backend. Why says why it is none, or else why it is about to go.
	Candidate bool
	Why       string
	Ready     bool
	// ReadyUntil is until when a node counts as ready whose kubelet has fallen silent; zero for one that reports.
	ReadyUntil time.Time
	// Silent says that the node is not ready only because its kubelet is silent: it may work all the same.
	Silent bool
	// Leaving says that the node is about to go: it gets no new connections.
	Leaving      bool
	Cordoned     bool
	ControlPlane bool
	// Virtual says that the node is no machine: the pods on it are backends themselves.
	Virtual bool
	// Zone is the value of the label topology.kubernetes.io/zone.
	Zone   string
	Labels labels.Set
}

// Nodes reduces the nodes to what matters at a time. instanceID returns the id of a node's ECS instance, or an error
// when it has none of ours. Of several nodes of one instance the oldest stands for it.
func Nodes(objects []*corev1.Node, instanceID func(*corev1.Node) (string, error), now time.Time) *NodeSet {
	reduced := make([]Node, 0, len(objects))
	owners := make(map[string]*corev1.Node, len(objects))
	for _, object := range objects {
		node := NodeOf(object, instanceID, now)
		if other := owners[node.InstanceID]; node.InstanceID != "" && (other == nil || nodes.ByAge(object, other) < 0) {
			owners[node.InstanceID] = object
		}
		reduced = append(reduced, node)
	}
	for i := range reduced {
		if owner := owners[reduced[i].InstanceID]; owner != nil && owner.Name != reduced[i].Name {
			reduced[i].TwinOf, reduced[i].Candidate, reduced[i].Why = owner.Name, false, "the older Node "+owner.Name+" has the same instance"
		}
	}
	return NewNodeSet(reduced)
}

// NodeOf reduces one node, see [Nodes].
func NodeOf(object *corev1.Node, instanceID func(*corev1.Node) (string, error), now time.Time) Node {
	node := Node{
		Name: object.Name, Labels: labels.Set(object.Labels), Zone: object.Labels[corev1.LabelTopologyZone], Address: nodes.InternalIP(object),
		Cordoned: object.Spec.Unschedulable, ControlPlane: nodes.IsMaster(object), Virtual: nodes.IsVirtualKubelet(object),
		Leaving: nodes.Leaving(object),
	}
	node.setReadiness(object, now)
	node.Why = exclusionOf(object)
	node.Candidate = node.Why == ""
	id, err := instanceID(object)
	if err != nil {
		// A foreign provider ID is an answer; only a missing one leaves it open which instance the node is.
		node.Unresolved = object.Spec.ProviderID == "" && node.Candidate
		created := object.CreationTimestamp.Time
		node.InDoubt = node.Unresolved && (created.IsZero() || now.Sub(created) < waits.NodeUnresolved)
		if node.Candidate {
			node.Why = strings.TrimPrefix(err.Error(), "node "+object.Name+": ")
		}
		node.Candidate = false
		return node
	}
	if node.InstanceID = id; node.Candidate {
		node.Why = nodes.LeavingBecause(object)
	}
	return node
}

// exclusionOf returns what keeps a node from being a backend, whether it is ready or not, "" for nothing.
func exclusionOf(object *corev1.Node) string {
	switch label := nodes.BalancerExclusionLabel(object); {
	case label != "":
		return "the label " + label + " excludes it"
	case nodes.Uninitialized(object):
		return "it is not initialized: it has the taint " + cloudproviderapi.TaintExternalCloudProvider
	case nodes.IsVirtualKubelet(object):
		return "it is a virtual node, whose pods are backends themselves"
	case nodes.IsOnPremises(object):
		return "the label " + nodes.LabelOnPremises + " says that it is outside of the cloud"
	}
	return ""
}

// setReadiness sets Ready, ReadyUntil and Silent. Of a node with the taint of an instance that is shut down it is known why its kubelet
// is silent.
func (n *Node) setReadiness(object *corev1.Node, now time.Time) {
	if n.Ready = nodes.Ready(object); n.Ready {
		return
	}
	since, silent := nodes.Silent(object)
	n.Silent = silent && !nodes.ShutDown(object)
	if n.Silent && now.Sub(since).Abs() < waits.NodeSilent {
		n.Ready, n.Silent, n.ReadyUntil = true, false, since.Add(waits.NodeSilent)
	}
}

// eligibleNodes returns the nodes that may be backends: the candidates without the control plane, where the policy says so.
func eligibleNodes(all []Node, policy ControlPlanePolicy) []*Node {
	candidates := make([]*Node, 0, len(all))
	workers := 0
	for i := range all {
		if node := &all[i]; node.Candidate {
			candidates = append(candidates, node)
			if !node.ControlPlane {
				workers++
			}
		}
	}
	if policy == ControlPlaneAlways || policy != ControlPlaneNever && workers == 0 {
		return candidates
	}
	return slices.DeleteFunc(candidates, func(node *Node) bool { return node.ControlPlane })
}

// backendKeys are by what a node is known as a backend: its instance, or its address.
func (n *Node) backendKeys() []string {
	if n == nil {
		return nil
	}
	return slices.DeleteFunc([]string{n.InstanceID, n.Address}, func(key string) bool { return key == "" })
}

// isLeaving reports whether the node gets no new connections.
func (n *Node) isLeaving(cordonedLeave bool) bool { return n.Leaving || cordonedLeave && n.Cordoned }

// SameNode reports whether two states of a node are the same for all backends.
func SameNode(a, b Node) bool {
	labelsEqual := labels.Equals(a.Labels, b.Labels)
	a.Labels, b.Labels = nil, nil
	return labelsEqual && a.equal(b)
}

func (n Node) equal(o Node) bool { //nolint:gocyclo // a condition per field
	return n.Name == o.Name && n.InstanceID == o.InstanceID && n.Address == o.Address && n.Unresolved == o.Unresolved &&
		n.Candidate == o.Candidate && n.Zone == o.Zone &&
		n.Ready == o.Ready && n.ReadyUntil.Equal(o.ReadyUntil) && n.Silent == o.Silent &&
		n.Leaving == o.Leaving && n.Cordoned == o.Cordoned && n.Virtual == o.Virtual && n.ControlPlane == o.ControlPlane
}
