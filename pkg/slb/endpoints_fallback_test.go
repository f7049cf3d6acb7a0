//nolint:staticcheck // Endpoints objects are what old roles may read
package slb

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
)

// testEndpoints makes an Endpoints object with one subset of the port; a "?" in front of "address@node" makes it not
// ready.
func testEndpoints(port corev1.ServicePort, items ...string) *corev1.Endpoints {
	subset := corev1.EndpointSubset{Ports: []corev1.EndpointPort{{Name: port.Name, Protocol: port.Protocol, Port: port.TargetPort.IntVal}}}
	for _, item := range items {
		text, notReady := strings.CutPrefix(item, "?")
		ip, node, _ := strings.Cut(text, "@")
		address := corev1.EndpointAddress{IP: ip, NodeName: &node}
		if notReady {
			subset.NotReadyAddresses = append(subset.NotReadyAddresses, address)
		} else {
			subset.Addresses = append(subset.Addresses, address)
		}
	}
	endpoints := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: testNamespace, ResourceVersion: "1"}}
	if len(items) > 0 {
		endpoints.Subsets = []corev1.EndpointSubset{subset}
	}
	return endpoints
}

func TestEndpointsAreProjectedToSlices(t *testing.T) {
	t.Parallel()
	port := testPort(80, corev1.ProtocolTCP)
	for _, test := range []struct {
		name  string
		items []string
		want  []string
	}{
		{"none", nil, []string{"IPv4"}},
		{"ready and not", []string{"10.9.0.1@a", "?10.9.0.2@b"}, []string{"IPv4", "IPv4 tcp-80:8080 10.9.0.1@a ready 10.9.0.2@b gone"}},
		{"both families", []string{"10.9.0.1@a", "fd00::1@a"}, []string{"IPv4", "IPv4 tcp-80:8080 10.9.0.1@a ready", "IPv6 tcp-80:8080 fd00::1@a ready"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, slice := range backend.FromEndpoints(testEndpoints(port, test.items...)) {
				if slice.Labels[discoveryv1.LabelServiceName] != "web" || slice.Namespace != testNamespace {
					t.Errorf("slice of %s/%s", slice.Namespace, slice.Labels[discoveryv1.LabelServiceName])
				}
				got = append(got, sliceLine(slice, port))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("slices (-want +got):\n%s", diff)
			}
		})
	}
}

func sliceLine(slice *discoveryv1.EndpointSlice, port corev1.ServicePort) string {
	line := string(slice.AddressType)
	if number, ok := backend.PortOf(slice, port); ok {
		line += fmt.Sprintf(" %s:%d", port.Name, number)
	}
	for _, endpoint := range slice.Endpoints {
		state := map[backend.EndpointState]string{backend.EndpointGone: "gone", backend.EndpointReady: "ready", backend.EndpointTerminating: "terminating"}[backend.StateOf(endpoint)]
		line += fmt.Sprintf(" %s@%s %s", endpoint.Addresses[0], *endpoint.NodeName, state)
	}
	return line
}

// TestMembersFromEndpoints: with a role that may not list EndpointSlices the members are the same.
func TestMembersFromEndpoints(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withoutSlices = true
	w.restart()
	threeNodes(w)
	svc := testService("web", 80)
	svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	indexer := w.factory.Core().V1().Endpoints().Informer().GetIndexer()
	w.put(svc)
	for _, step := range []struct {
		name    string
		items   []string
		members []string
	}{
		{"three", []string{"10.9.0.1@a", "10.9.0.2@a", "10.9.1.1@b", "?10.9.2.1@c"}, []string{"i-a 2", "i-b 1"}},
		{"moved", []string{"10.9.0.1@a", "10.9.2.1@c"}, []string{"i-a 1", "i-c 1"}},
		{"scaled to zero", nil, nil},
		{"back", []string{"10.9.0.1@a"}, []string{"i-a 1"}},
	} {
		if err := indexer.Add(testEndpoints(svc.Spec.Ports[0], step.items...)); err != nil {
			t.Fatal(err)
		}
		w.mustPass("web")
		if diff := cmp.Diff(step.members, short(w.state()["a0f5e8a1cweb"].Groups["k8s/30080/web/default/c1"])); diff != "" {
			t.Errorf("%s: members (-want +got):\n%s", step.name, diff)
		}
	}
	w.calls()
	if err := indexer.Replace(nil, ""); err != nil {
		t.Fatal(err)
	}
	w.mustPass("web")
	if calls := w.calls(); len(calls) != 0 {
		t.Errorf("empty cache: calls %v, want none", calls)
	}
}

func TestControllerFollowsEndpoints(t *testing.T) {
	t.Parallel()
	svc := testService("web", 80)
	svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	r := run(t, func(w *world) {
		w.createNode("a")
		w.put(svc)
	}, withoutSlices)
	eventually(t, "the CLB stands", func() bool { return len(r.state()) == 1 })
	endpoints := testEndpoints(svc.Spec.Ports[0], "10.9.0.1@a")
	if _, err := r.kube.CoreV1().Endpoints(testNamespace).Create(t.Context(), endpoints, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node is a member", func() bool { return r.members("k8s/30080/web/default/c1") == 1 })
}

func withoutSlices(w *world) { w.withoutSlices = true }
