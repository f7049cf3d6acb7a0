package slb

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

// gatePrefix and the name of a Service are a readiness gate of pods: a pod that has it in its spec becomes ready only once
// it is a member of the Service's groups. The words are the vendor's own controller's.
// Source: https://www.alibabacloud.com/help/en/ack/ack-managed-and-ack-dedicated/user-guide/configure-readiness-gates-for-pods-mounted-to-an-slb-instance.
const gatePrefix = "service.readiness.alibabacloud.com/"

// Reasons of the condition that opens a gate.
const (
	gateReasonMember      = "ServerRegistered"
	gateReasonNoInterface = "ServerInvalidServer"
	gateReasonNoMember    = "ServerNotRegistered"
)

// How often a pod that waits is looked at: its containers become ready without any event of an EndpointSlice. A tenth of
// the time that it has waited already adds little to it.
const (
	minGateWait = time.Second
	maxGateWait = 30 * time.Second
)

// gatedPod is a pod with a gate of the Service that is an endpoint and not known to be ready.
type gatedPod struct {
	name    string
	uid     types.UID
	address string
	// open is what the condition says now, reason why.
	open   bool
	reason string
	// waiting says that nothing but gates of ours keeps the pod from being ready.
	waiting bool
	// placed says that the address has a network interface.
	placed bool
	// since is when its containers became ready or stopped to be.
	since time.Time
}

// gateOf returns what matters about a pod, and false when it has no gate of the Service.
func gateOf(pod *corev1.Pod, service, address string) (gatedPod, bool) {
	gate := corev1.PodConditionType(gatePrefix + service)
	if !slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool { return g.ConditionType == gate }) {
		return gatedPod{}, false
	}
	gated := gatedPod{name: pod.Name, uid: pod.UID, address: address, since: pod.CreationTimestamp.Time}
	containers, _ := podCondition(pod, corev1.ContainersReady)
	if !containers.LastTransitionTime.IsZero() {
		gated.since = containers.LastTransitionTime.Time
	}
	condition, _ := podCondition(pod, gate)
	gated.open, gated.reason = condition.Status == corev1.ConditionTrue, condition.Reason
	gated.waiting = containers.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
	for _, other := range pod.Spec.ReadinessGates {
		condition, _ := podCondition(pod, other.ConditionType)
		if other.ConditionType != gate && condition.Status != corev1.ConditionTrue {
			gated.waiting = false
		}
	}
	return gated, true
}

func podCondition(pod *corev1.Pod, name corev1.PodConditionType) (corev1.PodCondition, bool) {
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == name })
	if i < 0 {
		return corev1.PodCondition{}, false
	}
	return pod.Status.Conditions[i], true
}

// gateEndpoint is an endpoint whose pod may have a closed gate.
type gateEndpoint struct {
	name    string
	uid     types.UID
	address string
}

// gateEndpoints returns the endpoints that would be members by their address and are not ready, or are called ready
// whatever their pod is. The pod of an endpoint that became ready by itself has no closed gate.
func gateEndpoints(in BackendInput, publishNotReady bool) []gateEndpoint {
	var found []gateEndpoint
	eachMemberAddress(in, func(endpoint discoveryv1.Endpoint) {
		terminating := endpoint.Conditions.Terminating != nil && *endpoint.Conditions.Terminating
		ready := stateOf(endpoint) == endpointReady && !publishNotReady
		if pod := endpoint.TargetRef; pod != nil && pod.Kind == "Pod" && !ready && !terminating {
			found = append(found, gateEndpoint{name: pod.Name, uid: pod.UID, address: endpoint.Addresses[0]})
		}
	})
	slices.SortFunc(found, func(a, b gateEndpoint) int { return cmp.Compare(a.address, b.address) })
	return slices.CompactFunc(found, func(a, b gateEndpoint) bool { return a.address == b.address })
}

// eachMemberAddress calls f for every endpoint whose address, and not its node, is to be a member.
func eachMemberAddress(in BackendInput, f func(discoveryv1.Endpoint)) {
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

// waitingAddresses are those of pods that wait for nothing but their gate: they become members, and then ready.
func waitingAddresses(gates []gatedPod) sets.Set[string] {
	waiting := sets.New[string]()
	for _, gate := range gates {
		if gate.waiting {
			waiting.Insert(gate.address)
		}
	}
	return waiting
}

// gateChange is a condition that a pod is to get.
type gateChange struct {
	gatedPod
	condition corev1.PodCondition
}

// gateChanges compares the gates with the backends that are registered. A gate that was never opened stays without a condition,
// which means closed; one without a network interface is told why.
func gateChanges(service string, gates []gatedPod, registered func(address string) bool, now time.Time) []gateChange {
	var changes []gateChange
	for _, gate := range gates {
		condition := corev1.PodCondition{
			Type: corev1.PodConditionType(gatePrefix + service), Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(now),
		}
		switch {
		case registered(gate.address):
			condition.Status, condition.Reason = corev1.ConditionTrue, gateReasonMember
			condition.Message = "The pod is a member of the load balancer's groups"
		case gate.waiting && !gate.placed:
			condition.Reason, condition.Message = gateReasonNoInterface, "No network interface of the VPC has the address "+gate.address
		case gate.open:
			condition.Reason, condition.Message = gateReasonNoMember, "The pod is no member of the load balancer's groups"
		default:
			continue
		}
		if gate.open != (condition.Status == corev1.ConditionTrue) || gate.reason != condition.Reason {
			changes = append(changes, gateChange{gate, condition})
		}
	}
	return changes
}

// gateWait returns when the pods that are not members yet are looked at again, 0 for not before the next event.
func gateWait(gates []gatedPod, registered func(address string) bool, now time.Time) time.Duration {
	var wait time.Duration
	for _, gate := range gates {
		if registered(gate.address) {
			continue
		}
		next := min(maxGateWait, max(minGateWait, now.Sub(gate.since)/10)) //nolint:mnd // a tenth, see maxGateWait
		if wait == 0 || next < wait {
			wait = next
		}
	}
	return wait
}
