package backend

import (
	"cmp"
	"iter"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// GatePrefix and the name of a Service are a readiness gate of pods: a pod that has it in its spec becomes ready only once
// it is a backend server in all groups of the Service. The words are the official CCM's.
// Source: https://www.alibabacloud.com/help/en/ack/ack-managed-and-ack-dedicated/user-guide/configure-readiness-gates-for-pods-mounted-to-an-slb-instance.
const GatePrefix = "service.readiness.alibabacloud.com/"

// Reasons of the condition that opens a gate.
const (
	gateReasonBackend     = "ServerRegistered"
	gateReasonNoInterface = "ServerInvalidServer"
	gateReasonNoBackend   = "ServerNotRegistered"
)

// How often a pod that is not ready is read: its containers become ready without any event of an EndpointSlice. A tenth of
// the time that it has waited already adds little to it.
const (
	MinGateWait = time.Second
	MaxGateWait = 30 * time.Second
)

// GatedPod is a pod with a gate of the Service that is an endpoint and not known to be ready, as it was when it was read.
type GatedPod struct {
	GateEndpoint
	// open is what the condition says now, reason why.
	open   bool
	reason string
	// waiting says that nothing but gates of ours keeps the pod from being ready.
	waiting bool
	// Unplaced says that the pod was to be a backend, and that its address has no network interface.
	Unplaced bool
	// Since is when its containers became ready or stopped to be.
	Since time.Time
}

// GateOf returns what matters about the pod of an endpoint, and false when it has no gate of the Service.
func GateOf(pod *corev1.Pod, service string, endpoint GateEndpoint) (GatedPod, bool) {
	gate := corev1.PodConditionType(GatePrefix + service)
	if !slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool { return g.ConditionType == gate }) {
		return GatedPod{}, false
	}
	endpoint.UID = pod.UID
	gated := GatedPod{GateEndpoint: endpoint, Since: pod.CreationTimestamp.Time}
	containers, _ := PodCondition(pod, corev1.ContainersReady)
	if !containers.LastTransitionTime.IsZero() {
		gated.Since = containers.LastTransitionTime.Time
	}
	condition, _ := PodCondition(pod, gate)
	gated.open, gated.reason = condition.Status == corev1.ConditionTrue, condition.Reason
	gated.waiting = containers.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
	for _, other := range pod.Spec.ReadinessGates {
		condition, _ := PodCondition(pod, other.ConditionType)
		if other.ConditionType != gate && condition.Status != corev1.ConditionTrue {
			gated.waiting = false
		}
	}
	return gated, true
}

// PodCondition returns a condition of a pod, and false if the pod does not have it.
func PodCondition(pod *corev1.Pod, name corev1.PodConditionType) (corev1.PodCondition, bool) {
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == name })
	if i < 0 {
		return corev1.PodCondition{}, false
	}
	return pod.Status.Conditions[i], true
}

// GateEndpoint is an endpoint whose pod may have a closed gate. Its UID and Node are empty where the endpoint does not name them.
type GateEndpoint struct {
	Name    string
	UID     types.UID
	Address string
	Node    string
}

// GateEndpoints returns the endpoints that would be backends by their address and are not ready, or are called ready
// whatever their pod is. The pod of an endpoint that became ready by itself has no closed gate.
func GateEndpoints(in Input, publishNotReady bool) []GateEndpoint {
	var found []GateEndpoint
	for endpoint := range PodEndpoints(in) {
		terminating := endpoint.Conditions.Terminating != nil && *endpoint.Conditions.Terminating
		ready := stateOf(endpoint) == endpointReady && !publishNotReady
		if pod := endpoint.TargetRef; pod != nil && pod.Kind == "Pod" && !ready && !terminating {
			found = append(found, GateEndpoint{Name: pod.Name, UID: pod.UID, Address: endpoint.Addresses[0], Node: ptr.Deref(endpoint.NodeName, "")})
		}
	}
	slices.SortFunc(found, func(a, b GateEndpoint) int { return cmp.Compare(a.Address, b.Address) })
	found = slices.CompactFunc(found, func(a, b GateEndpoint) bool { return a.Address == b.Address })
	return found[:min(len(found), MaxPods)]
}

// IsPodEndpoint reports whether the endpoint's address, and not its node, is to be a backend.
func IsPodEndpoint(in Input, endpoint discoveryv1.Endpoint) bool {
	if len(endpoint.Addresses) == 0 {
		return false
	}
	return in.Pods || in.Nodes != nil && endpoint.NodeName != nil && in.Nodes.virtual.Has(*endpoint.NodeName)
}

// UsesEndpoints reports whether the backends depend on the endpoints.
func (in Input) UsesEndpoints() bool {
	return in.Pods || in.Local || in.Nodes != nil && in.Nodes.virtual.Len() > 0
}

// PodEndpoints are the endpoints whose address, and not their node, is to be a backend.
func PodEndpoints(in Input) iter.Seq[discoveryv1.Endpoint] {
	return func(yield func(discoveryv1.Endpoint) bool) {
		if !in.Pods && (in.Nodes == nil || in.Nodes.virtual.Len() == 0) {
			return
		}
		for _, slice := range in.Slices {
			if !in.Counts(slice) {
				continue
			}
			for i := range slice.Endpoints {
				if IsPodEndpoint(in, slice.Endpoints[i]) && !yield(slice.Endpoints[i]) {
					return
				}
			}
		}
	}
}

// Waits reports whether the pod waits for nothing but its gate: it becomes a backend, and then ready. Of a pod on a node that is not
// ready nobody knows that; its containers are still said to be ready.
func (g GatedPod) Waits(nodes *NodeSet) bool {
	if !g.waiting {
		return false
	}
	node := nodes.nodeNamed(g.Node)
	return node == nil || node.Ready
}

// Matters reports whether a pod that has just been read may have to become a backend, or its condition may have to change.
func (g GatedPod) Matters() bool { return g.waiting || g.open }

// Same reports whether a pod is as it was before.
func (g GatedPod) Same(before GatedPod) bool {
	return g.waiting == before.waiting && g.open == before.open && g.reason == before.reason
}

// Condition returns the condition that a pod is to get, given whether it is registered, and false when it has that already. A gate that
// was never opened stays without a condition, which means closed; one without a network interface gets the reason.
func (g GatedPod) Condition(service string, registered bool, now time.Time) (corev1.PodCondition, bool) {
	condition := corev1.PodCondition{
		Type: corev1.PodConditionType(GatePrefix + service), Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(now),
	}
	switch {
	case registered:
		condition.Status, condition.Reason = corev1.ConditionTrue, gateReasonBackend
		condition.Message = "The pod is a backend server in all groups of the load balancer"
	case g.Unplaced:
		condition.Reason, condition.Message = gateReasonNoInterface, "No network interface of the VPC has the address "+g.Address
	case g.open:
		condition.Reason, condition.Message = gateReasonNoBackend, "The pod is not a backend server in all groups of the load balancer"
	default:
		return condition, false
	}
	return condition, g.open != registered || g.reason != condition.Reason
}

// With returns the pod once it has the condition.
func (g GatedPod) With(condition corev1.PodCondition) GatedPod {
	g.open, g.reason = condition.Status == corev1.ConditionTrue, condition.Reason
	return g
}

// GateWait returns how long after one read the pod is read again.
func (g GatedPod) GateWait(now time.Time) time.Duration {
	return min(MaxGateWait, max(MinGateWait, now.Sub(g.Since)/10)) //nolint:mnd // a tenth, see MaxGateWait
}
