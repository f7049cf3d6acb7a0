package backend

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// GatePrefix and the name of a Service are a readiness gate of pods: a pod that has it in its spec becomes ready only once
// it is a member of the Service's groups. The words are the official CCM's.
// Source: https://www.alibabacloud.com/help/en/ack/ack-managed-and-ack-dedicated/user-guide/configure-readiness-gates-for-pods-mounted-to-an-slb-instance.
const GatePrefix = "service.readiness.alibabacloud.com/"

// Reasons of the condition that opens a gate.
const (
	gateReasonMember      = "ServerRegistered"
	gateReasonNoInterface = "ServerInvalidServer"
	gateReasonNoMember    = "ServerNotRegistered"
)

// How often a pod that waits is looked at: its containers become ready without any event of an EndpointSlice. A tenth of
// the time that it has waited already adds little to it.
const (
	MinGateWait = time.Second
	MaxGateWait = 30 * time.Second
)

// GatedPod is a pod with a gate of the Service that is an endpoint and not known to be ready.
type GatedPod struct {
	Name    string
	UID     types.UID
	Address string
	// open is what the condition says now, reason why.
	open   bool
	reason string
	// waiting says that nothing but gates of ours keeps the pod from being ready.
	waiting bool
	// Placed says that the address has a network interface.
	Placed bool
	// Since is when its containers became ready or stopped to be.
	Since time.Time
}

// GateOf returns what matters about a pod, and false when it has no gate of the Service.
func GateOf(pod *corev1.Pod, service, address string) (GatedPod, bool) {
	gate := corev1.PodConditionType(GatePrefix + service)
	if !slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool { return g.ConditionType == gate }) {
		return GatedPod{}, false
	}
	gated := GatedPod{Name: pod.Name, UID: pod.UID, Address: address, Since: pod.CreationTimestamp.Time}
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

// GateEndpoint is an endpoint whose pod may have a closed gate.
type GateEndpoint struct {
	Name    string
	UID     types.UID
	Address string
}

// GateEndpoints returns the endpoints that would be members by their address and are not ready, or are called ready
// whatever their pod is. The pod of an endpoint that became ready by itself has no closed gate.
func GateEndpoints(in Input, publishNotReady bool) []GateEndpoint {
	var found []GateEndpoint
	eachPodAddress(in, func(endpoint discoveryv1.Endpoint) {
		terminating := endpoint.Conditions.Terminating != nil && *endpoint.Conditions.Terminating
		ready := StateOf(endpoint) == EndpointReady && !publishNotReady
		if pod := endpoint.TargetRef; pod != nil && pod.Kind == "Pod" && !ready && !terminating {
			found = append(found, GateEndpoint{Name: pod.Name, UID: pod.UID, Address: endpoint.Addresses[0]})
		}
	})
	slices.SortFunc(found, func(a, b GateEndpoint) int { return cmp.Compare(a.Address, b.Address) })
	return slices.CompactFunc(found, func(a, b GateEndpoint) bool { return a.Address == b.Address })
}

// eachPodAddress calls f for every endpoint whose address, and not its node, is to be a member.
func eachPodAddress(in Input, f func(discoveryv1.Endpoint)) {
	virtual := virtualNodes(in.Nodes)
	if !in.Pods && virtual.Len() == 0 {
		return
	}
	for _, slice := range in.Slices {
		if slice.AddressType != in.Family {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			if len(endpoint.Addresses) > 0 && (in.Pods || endpoint.NodeName != nil && virtual.Has(*endpoint.NodeName)) {
				f(endpoint)
			}
		}
	}
}

// WaitingAddresses are those of pods that wait for nothing but their gate: they become members, and then ready.
func WaitingAddresses(gates []GatedPod) sets.Set[string] {
	waiting := sets.New[string]()
	for _, gate := range gates {
		if gate.waiting {
			waiting.Insert(gate.Address)
		}
	}
	return waiting
}

// GateChange is a condition that a pod is to get.
type GateChange struct {
	GatedPod
	Condition corev1.PodCondition
}

// GateChanges compares the gates with the backends that are registered. A gate that was never opened stays without a condition,
// which means closed; one without a network interface gets the reason.
func GateChanges(service string, gates []GatedPod, registered func(address string) bool, now time.Time) []GateChange {
	var changes []GateChange
	for _, gate := range gates {
		condition := corev1.PodCondition{
			Type: corev1.PodConditionType(GatePrefix + service), Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(now),
		}
		switch {
		case registered(gate.Address):
			condition.Status, condition.Reason = corev1.ConditionTrue, gateReasonMember
			condition.Message = "The pod is a member of the load balancer's groups"
		case gate.waiting && !gate.Placed:
			condition.Reason, condition.Message = gateReasonNoInterface, "No network interface of the VPC has the address "+gate.Address
		case gate.open:
			condition.Reason, condition.Message = gateReasonNoMember, "The pod is no member of the load balancer's groups"
		default:
			continue
		}
		if gate.open != (condition.Status == corev1.ConditionTrue) || gate.reason != condition.Reason {
			changes = append(changes, GateChange{gate, condition})
		}
	}
	return changes
}

// GateWait returns when the pods that are not members yet are looked at again, 0 for not before the next event.
func GateWait(gates []GatedPod, registered func(address string) bool, now time.Time) time.Duration {
	var wait time.Duration
	for _, gate := range gates {
		if registered(gate.Address) {
			continue
		}
		next := min(MaxGateWait, max(MinGateWait, now.Sub(gate.Since)/10)) //nolint:mnd // a tenth, see maxGateWait
		if wait == 0 || next < wait {
			wait = next
		}
	}
	return wait
}
