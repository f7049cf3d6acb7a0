package backend

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cloud-provider/api"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
)

// Marks on nodes that keep them from being members.
const (
	LabelExclude       = corev1.LabelNodeExcludeBalancers
	LabelExcludeAlpha  = "alpha.service-controller.kubernetes.io/exclude-balancer"
	LabelExcludeNode   = "service.alibabacloud.com/exclude-node"
	labelExcludeNodeV1 = "service.beta.kubernetes.io/exclude-node"
	LabelMaster        = "node-role.kubernetes.io/master"
	LabelType          = "type"
	TypeVirtualKubelet = "virtual-kubelet"
	TaintAutoscaler    = "ToBeDeletedByClusterAutoscaler"
)

var ExcludeLabels = []string{LabelExclude, LabelExcludeAlpha, LabelExcludeNode, labelExcludeNodeV1}

// ControlPlanePolicy says whether control-plane nodes are members.
type ControlPlanePolicy string

// The values of [ControlPlanePolicy].
const (
	// ControlPlaneAuto leaves them out unless the cluster has no other node that could be a member.
	ControlPlaneAuto   ControlPlanePolicy = "auto"
	ControlPlaneAlways ControlPlanePolicy = "always"
	ControlPlaneNever  ControlPlanePolicy = "never"
)

// Node is what matters about a Node for membership.
type Node struct {
	Name string
	// InstanceID is the id of the ECS instance. Empty means that the node is none of ours, or not known to be one yet.
	InstanceID string
	// Unresolved says that the node may be one of our instances, but which is not known yet.
	Unresolved bool
	// Candidate says that nothing but readiness decides whether the node is a member.
	Candidate bool
	Ready     bool
	// ReadyUntil is until when a node counts as ready whose kubelet has fallen silent; zero for one that reports.
	ReadyUntil time.Time
	// Leaving says that the node is about to go: it gets no new connections.
	Leaving      bool
	Cordoned     bool
	ControlPlane bool
	// Virtual says that the node is no machine: the pods on it are members themselves.
	Virtual bool
	// Zone is the value of the label topology.kubernetes.io/zone.
	Zone   string
	Labels labels.Set
}

// SilentGrace is how long a node stays a member whose kubelet is silent, which a cluster says of one after 40 s. Most often
// silent kubelets are those that could not reach the API server: after an outage of it nodes are marked so, one after the
// other, in the seconds until each has reported again (within 10 s), and their members would go out and come back. The
// health checks of the CLB have found a machine that is really dead long before.
const SilentGrace = 30 * time.Second

// NodesOf reduces the nodes to what matters at a time, sorted by name. instanceID is [slb.Options].InstanceID.
func Nodes(objects []*corev1.Node, instanceID func(*corev1.Node) (string, error), now time.Time) []Node {
	nodes := make([]Node, 0, len(objects))
	for _, object := range objects {
		nodes = append(nodes, NodeOf(object, instanceID, now))
	}
	slices.SortFunc(nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	return nodes
}

func NodeOf(object *corev1.Node, instanceID func(*corev1.Node) (string, error), now time.Time) Node {
	_, controlPlane := object.Labels[LabelMaster]
	node := Node{
		Name: object.Name, Labels: labels.Set(object.Labels), Zone: object.Labels[corev1.LabelTopologyZone],
		Cordoned: object.Spec.Unschedulable, ControlPlane: controlPlane,
		Virtual: object.Labels[LabelType] == TypeVirtualKubelet,
		Leaving: object.DeletionTimestamp != nil || tainted(object, TaintAutoscaler),
	}
	node.Ready, node.ReadyUntil = ready(object, now)
	node.Candidate = !excluded(object) && !node.Virtual && !nodes.IsOnPremises(object)
	id, err := instanceID(object)
	if err != nil {
		// A foreign provider ID is an answer; only a missing one leaves it open which instance the node is.
		node.Unresolved = object.Spec.ProviderID == "" && node.Candidate
		node.Candidate = false
		return node
	}
	node.InstanceID = id
	return node
}

func excluded(node *corev1.Node) bool {
	for _, label := range ExcludeLabels {
		if _, ok := node.Labels[label]; ok {
			return true
		}
	}
	return tainted(node, api.TaintExternalCloudProvider)
}

func tainted(node *corev1.Node, key string) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == key })
}

// ready tells whether a node counts as ready and, when that is so only because its kubelet is not silent for long, until
// when. Of a node with the taint of an instance that is shut down it is known why its kubelet is silent.
func ready(node *corev1.Node, now time.Time) (bool, time.Time) {
	grace := SilentGrace
	if tainted(node, api.TaintNodeShutdown) {
		grace = 0
	}
	for _, condition := range node.Status.Conditions {
		switch {
		case condition.Type != corev1.NodeReady:
		case condition.Status == corev1.ConditionTrue:
			return true, time.Time{}
		case condition.Status == corev1.ConditionUnknown && now.Sub(condition.LastTransitionTime.Time).Abs() < grace:
			return true, condition.LastTransitionTime.Add(grace)
		}
	}
	return false, time.Time{}
}

// UntilSilence returns how long it takes until the first node no longer counts as ready because its kubelet is silent, 0
// when all report.
func UntilSilence(nodes []Node, now time.Time) time.Duration {
	first := time.Duration(0)
	for i := range nodes {
		if nodes[i].ReadyUntil.IsZero() {
			continue
		}
		if left := max(nodes[i].ReadyUntil.Sub(now), time.Second); first == 0 || left < first {
			first = left
		}
	}
	return first
}

// eligible returns the nodes that may be members: the candidates without the control plane, where the policy says so.
func eligible(nodes []Node, policy ControlPlanePolicy) []Node {
	var workers, candidates []Node
	for _, node := range nodes {
		if !node.Candidate {
			continue
		}
		candidates = append(candidates, node)
		if !node.ControlPlane {
			workers = append(workers, node)
		}
	}
	if policy == ControlPlaneAlways || policy != ControlPlaneNever && len(workers) == 0 {
		return candidates
	}
	return workers
}

// SameNode reports whether two states of a node are the same for membership.
func SameNode(a, b Node) bool {
	labelsEqual := labels.Equals(a.Labels, b.Labels)
	a.Labels, b.Labels = nil, nil
	return labelsEqual && a.equal(b)
}

func (n Node) equal(o Node) bool {
	return n.Name == o.Name && n.InstanceID == o.InstanceID && n.Unresolved == o.Unresolved && n.Candidate == o.Candidate &&
		n.Ready == o.Ready && n.ReadyUntil.Equal(o.ReadyUntil) && n.Leaving == o.Leaving && n.Cordoned == o.Cordoned && n.Virtual == o.Virtual && n.ControlPlane == o.ControlPlane
}
