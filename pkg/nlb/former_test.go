package nlb

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// former is a change after which the listener of a Service is to use another group.
type former struct {
	name string
	// pods says that pods are the backends before the change.
	pods   bool
	change []func(*corev1.Service)
}

func formers() []former {
	return []former{
		{"another node port", false, edits(func(svc *corev1.Service) { svc.Spec.Ports[0].NodePort = 31000 })},
		{"pods in place of nodes", false, edits(eni)},
		{"nodes in place of pods", true, edits(func(svc *corev1.Service) { delete(svc.Annotations, string(annotation.BackendType)) })},
		{"another target port", true, edits(func(svc *corev1.Service) { svc.Spec.Ports[0].TargetPort = intstr.FromInt32(9090) })},
		{"a group of addresses", true, edits(with(annotation.ServerGroupType, "Ip"))},
		{"another protocol", false, edits(with(annotation.ProtocolPort, "tcpssl:80"), with(annotation.CertID, "cert-1"))},
	}
}

// pods has the EndpointSlice of the Service name the pods on nodes, which terminate where a "!" stands before the node.
func (w *world) pods(names ...string) {
	w.t.Helper()
	var items []string
	for _, name := range names {
		node, terminates := strings.CutPrefix(name, "!")
		item := w.podAddress(node) + "@" + node
		if terminates {
			item = "!" + item
		}
		items = append(items, item)
	}
	s := testkube.EndpointSlice("web", tcpPort(80), items...)
	s.Name = "web-1"
	w.putSlice(s)
}

// podAddress is that of the pod on a node: it has the one of the node's own interface.
func (w *world) podAddress(name string) string {
	w.t.Helper()
	for _, instance := range w.account.Instances() {
		if instance.ID == testkube.InstanceOf(name) {
			return instance.PrivateIP
		}
	}
	return "no address of " + name
}

// leadsTo returns the backends of the one listener, whatever they are: nodes or the pods on them.
func (w *world) leadsTo() string {
	w.t.Helper()
	var found []string
	listeners := w.listeners(w.balancer("web").ID)
	if len(listeners) != 1 {
		w.t.Errorf("listeners %v, want one", listeners)
	}
	for _, name := range []string{"n1", "n2", "n3"} {
		if slices.ContainsFunc(listeners, func(l string) bool {
			return strings.Contains(l, testkube.InstanceOf(name)+":") || strings.Contains(l, w.podAddress(name)+":")
		}) {
			found = append(found, name)
		}
	}
	return strings.Join(found, " ")
}

// begin makes the Service with the backends n1 and n2.
func (f former) begin(w *world) {
	w.addNodes("n1", "n2", "n3")
	w.deleteNode("n3")
	w.pods("n1", "n2")
	change := edits(testkube.TCP(80))
	if f.pods {
		change = edits(testkube.TCP(80), eni)
	}
	w.put(newService("web", change...))
	w.converge("web")
	w.calls()
}
