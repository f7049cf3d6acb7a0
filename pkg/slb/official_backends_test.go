package slb

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
)

// nodes are those that may be backends.
func (o officialCCM) nodes() []*corev1.Node {
	all, err := o.factory.Core().V1().Nodes().Lister().List(labels.Everything())
	if err != nil {
		o.t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return slices.DeleteFunc(all, func(node *corev1.Node) bool { return !o.mayServe(node) })
}

func (o officialCCM) mayServe(node *corev1.Node) bool {
	for _, label := range []string{
		"node-role.kubernetes.io/master", "node.kubernetes.io/exclude-from-external-load-balancers",
		"alpha.service-controller.kubernetes.io/exclude-balancer", "service.alibabacloud.com/exclude-node",
		"service.beta.kubernetes.io/exclude-node",
	} {
		if _, excluded := node.Labels[label]; excluded {
			return false
		}
	}
	for item := range strings.SplitSeq(o.get("loadbalancer-backend-label"), ",") {
		if name, value, ok := strings.Cut(item, "="); ok && node.Labels[name] != value {
			return false
		}
	}
	leaving := slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == "ToBeDeletedByClusterAutoscaler" })
	cordoned := node.Spec.Unschedulable && o.get("loadbalancer-remove-unscheduled-backend") == "on"
	virtual := node.Labels["type"] == "virtual-kubelet"
	return !leaving && !cordoned && (virtual || testkube.Ready(node).Status == corev1.ConditionTrue)
}

// pods are the ready endpoints of a port: address, node, port.
type officialPod struct {
	address, node string
	port          int
}

func (o officialCCM) pods(port corev1.ServicePort) []officialPod {
	slices, err := o.factory.Discovery().V1().EndpointSlices().Lister().List(labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: o.svc.Name}))
	if err != nil {
		o.t.Fatal(err)
	}
	seen, pods := map[string]bool{}, []officialPod{}
	for _, slice := range slices {
		number := port.TargetPort.IntValue()
		for _, p := range slice.Ports {
			if number == 0 && *p.Name == port.Name {
				number = int(*p.Port)
			}
		}
		for _, endpoint := range slice.Endpoints {
			ready := endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready
			if address := endpoint.Addresses[0]; number != 0 && ready && !seen[address] {
				seen[address] = true
				pods = append(pods, officialPod{address, *endpoint.NodeName, number})
			}
		}
	}
	return pods
}

// backends returns the backends of a port with their weights.
func (o officialCCM) backends(port corev1.ServicePort) []alicloud.Backend {
	var servers []alicloud.Backend
	share := map[string]int{} // pods per server, which is its weight with the policy Local
	add := func(key alicloud.BackendKey) {
		if share[key.ServerID+key.ServerIP]++; share[key.ServerID+key.ServerIP] == 1 {
			servers = append(servers, alicloud.Backend{BackendKey: key, Description: o.ownGroup(port)})
		}
	}
	local := o.svc.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal && !o.eni()
	byName := map[string]*corev1.Node{}
	for _, node := range o.nodes() {
		byName[node.Name] = node
		if !local && !o.eni() && node.Labels["type"] != "virtual-kubelet" {
			add(o.ecs(node, port))
		}
	}
	for _, pod := range o.pods(port) {
		node := byName[pod.node]
		switch {
		case o.eni(), node != nil && node.Labels["type"] == "virtual-kubelet":
			add(alicloud.BackendKey{Type: alicloud.BackendENI, ServerID: o.interfaceOf(pod.address), ServerIP: pod.address, Port: pod.port})
		case local && node != nil:
			add(o.ecs(node, port))
		}
	}
	o.weigh(servers, share, local)
	return servers
}

func (o officialCCM) ecs(node *corev1.Node, port corev1.ServicePort) alicloud.BackendKey {
	_, id, _ := strings.Cut(node.Spec.ProviderID, ".")
	return alicloud.BackendKey{Type: alicloud.BackendECS, ServerID: id, Port: int(port.NodePort)}
}

func (o officialCCM) interfaceOf(address string) string {
	found, err := o.api.DescribeNetworkInterfaces(o.t.Context(), alicloud.NetworkInterfaceQuery{PrivateIPs: []string{address}})
	if err != nil || len(found) != 1 {
		o.t.Fatalf("%d network interfaces of %s, %v", len(found), address, err)
	}
	return found[0].ID
}

// weigh sets the weights: a share of the annotation weight, which counts for all ports once one joins a group of others, else the
// number of pods with the policy Local, else default-weight.
func (o officialCCM) weigh(servers []alicloud.Backend, share map[string]int, local bool) {
	total := 0
	for _, pods := range share {
		total += pods
	}
	shared := o.reuses() && o.get("loadbalancer-vgroup-port") != "" && o.get("loadbalancer-weight") != ""
	for i := range servers {
		pods := share[servers[i].ServerID+servers[i].ServerIP]
		switch weight, _ := strconv.Atoi(o.get("loadbalancer-weight")); {
		case shared && weight == 0:
			servers[i].Weight = 0
		case shared && local:
			servers[i].Weight = max(1, weight*pods/total)
		case shared:
			servers[i].Weight = max(1, weight/len(servers))
		case local:
			servers[i].Weight = pods
		default:
			servers[i].Weight, _ = strconv.Atoi(o.or("loadbalancer-default-weight", "100"))
		}
	}
}
