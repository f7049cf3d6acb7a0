package slb

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cloud-provider/api"
)

// Marks on nodes that keep them from being members.
const (
	labelExclude       = corev1.LabelNodeExcludeBalancers
	labelExcludeAlpha  = "alpha.service-controller.kubernetes.io/exclude-balancer"
	labelExcludeNode   = "service.alibabacloud.com/exclude-node"
	labelExcludeNodeV1 = "service.beta.kubernetes.io/exclude-node"
	labelMaster        = "node-role.kubernetes.io/master"
	labelType          = "type"
	typeVirtualKubelet = "virtual-kubelet"
	taintAutoscaler    = "ToBeDeletedByClusterAutoscaler"
)

var excludeLabels = []string{labelExclude, labelExcludeAlpha, labelExcludeNode, labelExcludeNodeV1}

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
	// Leaving says that the node is about to go: it gets no new connections.
	Leaving      bool
	Cordoned     bool
	ControlPlane bool
	// Virtual says that the node is no machine: the pods on it are members themselves.
	Virtual bool
	Labels  labels.Set
}

// NodesOf reduces the nodes to what matters, sorted by name. instanceID is [Options].InstanceID.
func NodesOf(objects []*corev1.Node, instanceID func(*corev1.Node) (string, error)) []Node {
	nodes := make([]Node, 0, len(objects))
	for _, object := range objects {
		nodes = append(nodes, nodeOf(object, instanceID))
	}
	slices.SortFunc(nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	return nodes
}

func nodeOf(object *corev1.Node, instanceID func(*corev1.Node) (string, error)) Node {
	_, controlPlane := object.Labels[labelMaster]
	node := Node{
		Name: object.Name, Labels: labels.Set(object.Labels),
		Ready: ready(object), Cordoned: object.Spec.Unschedulable, ControlPlane: controlPlane,
		Virtual: object.Labels[labelType] == typeVirtualKubelet,
		Leaving: object.DeletionTimestamp != nil || tainted(object, taintAutoscaler),
	}
	node.Candidate = !excluded(object) && !node.Virtual
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
	for _, label := range excludeLabels {
		if _, ok := node.Labels[label]; ok {
			return true
		}
	}
	return tainted(node, api.TaintExternalCloudProvider)
}

func tainted(node *corev1.Node, key string) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == key })
}

func ready(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
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

// sameNode reports whether two states of a node are the same for membership.
func sameNode(a, b Node) bool {
	labelsEqual := labels.Equals(a.Labels, b.Labels)
	a.Labels, b.Labels = nil, nil
	return labelsEqual && a.equal(b)
}

func (n Node) equal(o Node) bool {
	return n.Name == o.Name && n.InstanceID == o.InstanceID && n.Unresolved == o.Unresolved && n.Candidate == o.Candidate &&
		n.Ready == o.Ready && n.Leaving == o.Leaving && n.Cordoned == o.Cordoned && n.Virtual == o.Virtual && n.ControlPlane == o.ControlPlane
}
