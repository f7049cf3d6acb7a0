package slb

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

func (w *world) listenerKeys() []string {
	var keys []string
	for _, lb := range w.state() {
		for key := range lb.Listeners {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// TestProtocolChanges: a protocol change replaces one listener and touches no other.
func TestProtocolChanges(t *testing.T) {
	t.Parallel()
	svc := testService("web", 80, 443)
	svc.Spec.Ports = append(svc.Spec.Ports, testPort(80, corev1.ProtocolUDP))
	w := settled(t, svc)
	replace := func(to string) []string {
		return []string{"DeleteLoadBalancerListener", "CreateLoadBalancer" + to + "Listener", "StartLoadBalancerListener"}
	}
	for _, step := range []struct {
		value  string
		writes []string
		keys   []string
	}{
		{"http:80", replace("HTTP"), []string{"http:80", "tcp:443", "udp:80"}},
		{"http:80,https:443", replace("HTTPS"), []string{"http:80", "https:443", "udp:80"}},
		{"tcp:80,https:443", replace("TCP"), []string{"https:443", "tcp:80", "udp:80"}},
	} {
		w.change("web", func(svc *corev1.Service) {
			annotate(svc, annotation.ProtocolPort, step.value)
			annotate(svc, annotation.CertID, testCertificate)
		})
		w.mustPass("web")
		if diff := cmp.Diff(step.writes, writesOf(w.calls())); diff != "" {
			t.Errorf("%s: writes (-want +got):\n%s", step.value, diff)
		}
		if diff := cmp.Diff(step.keys, w.listenerKeys()); diff != "" {
			t.Errorf("%s: listeners (-want +got):\n%s", step.value, diff)
		}
		w.drift("web")
		w.mustPass("web")
		if writes := writesOf(w.calls()); len(writes) != 0 {
			t.Errorf("%s: the next pass writes %v", step.value, writes)
		}
	}
}

func TestForwarding(t *testing.T) {
	t.Parallel()
	svc := testService("web", 80, 443)
	annotate(svc, annotation.ProtocolPort, "http:80,https:443")
	annotate(svc, annotation.CertID, testCertificate)
	w := settled(t, svc)
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.ForwardPort, "80:443") })
	w.mustPass("web")
	w.calls()
	listener, _ := w.state()["a0f5e8a1cweb"].Listeners["http:80"]["HTTPListenerConfig"].(map[string]any)
	if listener["ListenerForward"] != "on" || listener["ForwardPort"] != 443.0 {
		t.Errorf("listener = %v, want it to forward to 443", listener)
	}
	w.drift("web")
	w.mustPass("web")
	if writes := writesOf(w.calls()); len(writes) != 0 {
		t.Errorf("the next pass writes %v", writes)
	}
	w.change("web", func(svc *corev1.Service) { delete(svc.Annotations, key(annotation.ForwardPort)) })
	w.mustPass("web")
	listener, _ = w.state()["a0f5e8a1cweb"].Listeners["http:80"]["HTTPListenerConfig"].(map[string]any)
	if listener["ListenerForward"] != "off" {
		t.Errorf("listener = %v, want it to forward no more", listener)
	}
}

// TestHandsOnTheCLB: what somebody changed by hand is repaired where it is ours, and left alone where it is not.
func TestHandsOnTheCLB(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80, 81))
	id := w.get("web").Labels[driver.LabelLoadBalancerID]
	tcp := func(port int) alicloud.ListenerKey {
		return alicloud.ListenerKey{Port: port, Protocol: alicloud.ProtocolTCP}
	}
	if err := w.api.DeleteListener(t.Context(), id, tcp(81)); err != nil {
		t.Fatal(err)
	}
	byHand := alicloud.Listener{ListenerKey: tcp(9000), Description: "by hand", Attributes: alicloud.Attributes{"BackendServerPort": "9000"}}
	if err := w.api.CreateListener(t.Context(), id, byHand); err != nil {
		t.Fatal(err)
	}
	w.calls()
	w.drift("web")
	w.mustPass("web")
	if diff := cmp.Diff([]string{"CreateLoadBalancerTCPListener", "StartLoadBalancerListener"}, writesOf(w.calls())); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"tcp:80", "tcp:81", "tcp:9000"}, w.listenerKeys()); diff != "" {
		t.Errorf("listeners (-want +got):\n%s", diff)
	}
}

// TestPortsChange: a port that goes takes its listener and its group along, and nothing else.
func TestPortsChange(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80, 81))
	w.change("web", func(svc *corev1.Service) { svc.Spec.Ports = svc.Spec.Ports[:1] })
	w.mustPass("web")
	if diff := cmp.Diff([]string{"DeleteLoadBalancerListener", "DeleteVServerGroup"}, writesOf(w.calls())); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	// A new node port means a new group: it stands before the listener turns to it, and the old one goes last.
	w.change("web", func(svc *corev1.Service) { svc.Spec.Ports[0].NodePort = 31111 })
	w.mustPass("web")
	if diff := cmp.Diff([]string{"CreateVServerGroup", "SetLoadBalancerTCPListenerAttribute", "DeleteVServerGroup"},
		writesOf(w.calls())); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// TestLocalFollowsItsEndpoints: with externalTrafficPolicy Local the backend servers are where the pods are.
func TestLocalFollowsItsEndpoints(t *testing.T) {
	t.Parallel()
	svc := testService("web", 80)
	svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	w := newWorld(t)
	threeNodes(w)
	put := func(items ...string) {
		slice := testSlice(svc.Spec.Ports[0], items...)
		slice.Name = "web-1"
		w.putSlice(slice)
	}
	put("10.9.0.1@a", "10.9.0.2@a", "10.9.1.1@b")
	w.put(svc)
	w.mustPass("web")
	w.calls()
	const group = "k8s/30080/web/default/c1"
	servers := func() []string { return w.state()["a0f5e8a1cweb"].Groups[group] }
	if got := w.state()["a0f5e8a1cweb"].Listeners["tcp:80"]["Scheduler"]; got != "wrr" {
		t.Errorf("scheduler %v, want wrr: the others ignore the weights", got)
	}
	for _, step := range []struct {
		name    string
		items   []string
		calls   []string
		servers []string
	}{
		{"unchanged", []string{"10.9.0.1@a", "10.9.0.2@a", "10.9.1.1@b"}, nil, []string{"i-a 2", "i-b 1"}},
		{"moved", []string{"10.9.0.1@a", "10.9.0.2@a", "10.9.2.1@c"}, []string{"ModifyVServerGroupBackendServers"}, []string{"i-a 2", "i-c 1"}},
		{"draining", []string{"10.9.0.1@a", "!10.9.2.1@c"}, []string{"SetVServerGroupAttribute"}, []string{"i-a 1", "i-c 0"}},
		{"drained", []string{"10.9.0.1@a"}, []string{"RemoveVServerGroupBackendServers"}, []string{"i-a 1"}},
		{"scaled to zero", nil, []string{"RemoveVServerGroupBackendServers"}, nil},
	} {
		put(step.items...)
		w.mustPass("web")
		if diff := cmp.Diff(step.calls, w.calls()); diff != "" {
			t.Errorf("%s: calls (-want +got):\n%s", step.name, diff)
		}
		if diff := cmp.Diff(step.servers, short(servers())); diff != "" {
			t.Errorf("%s: backend servers (-want +got):\n%s", step.name, diff)
		}
	}
	// An empty cache looks the same as a Service without endpoints, and is no reason to cut its users off.
	put("10.9.0.1@a")
	w.mustPass("web")
	w.calls()
	if err := w.factory.Discovery().V1().EndpointSlices().Informer().GetIndexer().Replace(nil, ""); err != nil {
		t.Fatal(err)
	}
	w.mustPass("web")
	if calls := w.calls(); len(calls) != 0 {
		t.Errorf("empty cache: calls %v, want none", calls)
	}
}

// TestOnePodMoreBehindManyLocalServices: where a node runs one endpoint more, its share of the traffic hardly changes, and no weight is
// written. A node that loses most of its endpoints gets its weight.
func TestOnePodMoreBehindManyLocalServices(t *testing.T) {
	t.Parallel()
	synctest.Test(t, onePodMore)
}

func onePodMore(t *testing.T) {
	const services = 90
	e := processCloud(t)
	w := processWorld(t, e, e.Transport())
	threeNodes(w)
	names := make([]string, services)
	place := func(onA int) {
		for _, name := range names {
			var items []string
			for node, n := range map[string]int{"a": onA, "b": 10, "c": 10} {
				for i := range n {
					items = append(items, fmt.Sprintf("10.9.%d.%d@%s", node[0], i, node))
				}
			}
			slice := testSlice(testPort(80, corev1.ProtocolTCP), items...)
			slice.Name, slice.Labels = name, map[string]string{discoveryv1.LabelServiceName: name}
			w.putSlice(slice)
		}
	}
	writes := func() int {
		for _, name := range names {
			w.mustPass(name)
		}
		return len(writesOf(w.calls()))
	}
	for i := range names {
		names[i] = fmt.Sprintf("s%02d", i)
		svc := testService(names[i], 80)
		svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		w.put(svc)
	}
	place(10)
	writes()
	place(11)
	if n := writes(); n != 0 {
		t.Errorf("one endpoint more: %d writes, want none", n)
	}
	place(1)
	if n := writes(); n != services {
		t.Errorf("most endpoints of a node gone: %d writes, want one per Service", n)
	}
}

// short reduces backend servers to server and weight, sorted.
func short(servers []string) []string {
	var out []string
	for _, server := range servers {
		fields := strings.Fields(server)
		server, _, _ := strings.Cut(fields[1], ":")
		out = append(out, server+" "+fields[3])
	}
	slices.Sort(out)
	return out
}
