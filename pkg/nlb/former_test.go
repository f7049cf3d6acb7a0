package nlb

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
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
	s := testkit.EndpointSlice("web", tcpPort(80), items...)
	s.Name = "web-1"
	w.putSlice(s)
}

// podAddress is that of the pod on a node: it has the one of the node's own interface.
func (w *world) podAddress(name string) string {
	w.t.Helper()
	for _, instance := range w.account.Instances() {
		if instance.ID == testkit.InstanceOf(name) {
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
			return strings.Contains(l, testkit.InstanceOf(name)+":") || strings.Contains(l, w.podAddress(name)+":")
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
	change := edits(testkit.TCP(80))
	if f.pods {
		change = edits(testkit.TCP(80), eni)
	}
	w.put(newService("web", change...))
	w.converge("web")
	w.calls()
}

// TestListenerStaysWhileItsNewGroupIsEmpty: the group that a listener is to move to cannot be made, or the cloud takes no server into it,
// or nobody knows which. The listener and its servers stay.
func TestListenerStaysWhileItsNewGroupIsEmpty(t *testing.T) {
	t.Parallel()
	refusals := map[string]string{
		"no group":      `{"action":"CreateServerGroup","code":"Forbidden.RAM","status":403,"times":0}`,
		"bad servers":   `{"action":"AddServersToServerGroup","code":"ResourceNotFound.Ecs","status":404,"times":0}`,
		"no permission": `{"action":"AddServersToServerGroup","code":"Forbidden.RAM","status":403,"times":0}`,
		"no quota":      `{"action":"AddServersToServerGroup","code":"QuotaExceeded.QuotaInsufficient","status":400,"times":0}`,
		"jobs fail":     `{"action":"AddServersToServerGroup","job":"failed","times":0}`,
	}
	for _, test := range formers() {
		for what, fault := range refusals {
			t.Run(test.name+", "+what, func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, w *world) {
					test.begin(w)
					w.account.Fault(fault)
					w.change("web", test.change...)
					for range 10 {
						wait, _ := w.Reconcile(t.Context(), w.get("web")) //nolint:errcheck // it says that the listener stays
						w.later(max(min(wait, soon), settle))
						if got := w.leadsTo(); got != "n1 n2" {
							t.Fatalf("the listener leads to %q, want n1 and n2", got)
						}
					}
					w.account.ClearFaults()
					w.restart()
					w.converge("web")
					if got := w.leadsTo(); got != "n1 n2" || len(w.groups("web")) != 1 {
						t.Errorf("in the end, the listener leads to %q, and there are %d groups", got, len(w.groups("web")))
					}
					w.quiet("web")
				})
			})
		}
	}
}

// TestListenerStaysWhileNobodyKnowsItsBackends: a port gets pods in place of nodes before the cache has their EndpointSlices.
func TestListenerStaysWhileNobodyKnowsItsBackends(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(2, testkit.TCP(80))
		w.change("web", eni)
		for range 5 {
			wait, _ := w.Reconcile(t.Context(), w.get("web")) //nolint:errcheck // it says that the listener stays
			w.later(max(min(wait, soon), settle))
			if got, want := w.listeners(w.balancer("web").ID), []string{"TCP:80 i-n1:30080=100 i-n2:30080=100"}; !slices.Equal(got, want) {
				t.Fatalf("listeners %v, want %v", got, want)
			}
		}
	})
}

// TestFormerGroupFollowsTheEndpoints: while a listener stays in its group because the new one cannot be made, dead servers leave the old
// one and ready ones join it, as far as they are known.
func TestFormerGroupFollowsTheEndpoints(t *testing.T) {
	t.Parallel()
	for _, test := range formers() {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				test.begin(w)
				want := func(what, names string) {
					t.Helper()
					for range 6 {
						wait, _ := w.Reconcile(t.Context(), w.get("web")) //nolint:errcheck // it says that the listener stays
						w.later(max(min(wait, 5*settle), settle))
					}
					if got := w.leadsTo(); got != names {
						t.Errorf("%s: the listener leads to %q, want %q", what, got, names)
					}
				}
				w.account.Fault(`{"action":"CreateServerGroup","code":"Forbidden.RAM","status":403,"times":0}`)
				w.change("web", test.change...)
				want("after the change", "n1 n2")
				w.addNodes("n3")
				w.pods("n1", "n2", "n3")
				want("n3 comes", "n1 n2 n3")
				w.deleteNode("n1")
				w.pods("n2", "n3")
				want("n1 goes", "n2 n3")
				w.account.ClearFaults()
				w.restart()
				w.converge("web")
				want("in the end", "n2 n3")
				w.later(time.Minute) // for reads after an error
				w.converge("web")
				w.quiet("web")
			})
		})
	}
}
