package slb

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// portErrorForm is the form that Kubernetes documents for PortStatus.Error.
var portErrorForm = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`)

// TestPortErrorsInTheStatus: while a port is not served, and more than time is needed, every ingress of the status says which and why;
// once all are served, it says nothing of ports.
func TestPortErrorsInTheStatus(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		// trouble keeps port 81 from being served, and end ends that.
		trouble, end func(w *world, id string)
		reason       string
	}{
		{"conflict", func(w *world, id string) { w.makeListener(id, 81, "k8s/81/other/default/c1") },
			func(w *world, id string) { w.deleteListener(id, 81) }, "ListenerConflict"},
		{"refused listener", func(w *world, _ string) {
			w.fault(map[string]any{"action": "CreateLoadBalancerTCPListener", "code": "ListenerNumberOverLimit", "status": 400, "after": 1,
				"times": 0})
		}, func(w *world, _ string) { w.clearFaults() }, "SyncLoadBalancerFailed"},
		{"refused group", func(w *world, _ string) {
			w.fault(map[string]any{"action": "CreateVServerGroup", "code": "Forbidden.RAM", "status": 403, "after": 1, "times": 0})
		}, func(w *world, _ string) { w.clearFaults() }, "SyncLoadBalancerFailed"},
		{"no certificate", func(w *world, _ string) {
			w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.ProtocolPort, "https:81") })
		}, func(w *world, _ string) {
			w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.CertID, testCertificate) })
		}, "InvalidAnnotation"},
		{"protocol", func(w *world, _ string) {
			w.change("web", func(svc *corev1.Service) { svc.Spec.Ports[1].Protocol = corev1.ProtocolSCTP })
		}, func(w *world, _ string) {
			w.change("web", func(svc *corev1.Service) { svc.Spec.Ports[1].Protocol = corev1.ProtocolTCP })
		}, "FeatureNotSupported"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			threeNodes(w)
			id := w.makeCLB().ID
			w.put(reusing("web", id, "true", 80, 81))
			test.trouble(w, id)
			ports := func() []corev1.PortStatus {
				t.Helper()
				ingress := w.get("web").Status.LoadBalancer.Ingress
				if len(ingress) != 1 {
					t.Fatalf("ingress %v, want one: port 80 is served", ingress)
				}
				return ingress[0].Ports
			}
			protocol := w.get("web").Spec.Ports[1].Protocol
			want := []corev1.PortStatus{
				{Port: 80, Protocol: corev1.ProtocolTCP}, {Port: 81, Protocol: protocol, Error: new("service.alibabacloud.com/" + test.reason)},
			}
			for range 2 {
				_ = w.pass("web") //nolint:errcheck // whether it fails does not matter
				if diff := cmp.Diff(want, ports()); diff != "" {
					t.Errorf("ports (-want +got):\n%s", diff)
				}
			}
			if !portErrorForm.MatchString(*want[1].Error) {
				t.Errorf("error %q has another form than Kubernetes documents", *want[1].Error)
			}
			test.end(w, id)
			w.drift("web")
			w.converge("web")
			if got := ports(); got != nil {
				t.Errorf("ports %v once all are served, want none", got)
			}
		})
	}
}

// TestServiceThatLostItsOnlyPort: a Service whose only port belongs to somebody else shows no address, and one that has lost it later
// says so at the address that it had.
func TestServiceThatLostItsOnlyPort(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	id := w.makeCLB().ID
	w.makeListener(id, 80, "k8s/80/other/default/c1")
	w.put(reusing("web", id, "true", 80))
	w.mustPass("web")
	if ingress := w.get("web").Status.LoadBalancer.Ingress; len(ingress) != 0 {
		t.Errorf("ingress %v, want none", ingress)
	}
	w.deleteListener(id, 80)
	w.drift("web")
	w.mustPass("web")
	w.deleteListener(id, 80)
	w.makeListener(id, 80, "k8s/80/other/default/c1")
	w.drift("web")
	w.mustPass("web")
	ingress := w.get("web").Status.LoadBalancer.Ingress
	want := []corev1.PortStatus{{Port: 80, Protocol: corev1.ProtocolTCP, Error: new("service.alibabacloud.com/ListenerConflict")}}
	if len(ingress) != 1 || cmp.Diff(want, ingress[0].Ports) != "" {
		t.Errorf("ingress %v, want one whose port 80 has a conflict", ingress)
	}
	w.deleteListener(id, 80)
	w.drift("web")
	w.mustPass("web")
	if ingress := w.get("web").Status.LoadBalancer.Ingress; len(ingress) != 1 || ingress[0].Ports != nil {
		t.Errorf("ingress %v, want one without ports", ingress)
	}
}

// TestPendingPortIsNoError: a port that only has to wait for the rate limit has no error, and needs no further write of the status.
func TestPendingPortIsNoError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.put(testService("web", 80, 81))
	w.fault(map[string]any{"action": "CreateLoadBalancerTCPListener", "code": "Throttling.User", "status": 400, "after": 1, "times": 1})
	w.mustPass("web")
	if ingress := w.get("web").Status.LoadBalancer.Ingress; len(ingress) != 1 || ingress[0].Ports != nil {
		t.Errorf("ingress %v, want one without ports", ingress)
	}
}

// TestModeOfTheAddressStays: the API server adds the mode of an address, which is no difference.
func TestModeOfTheAddressStays(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	w.change("web", func(svc *corev1.Service) {
		svc.Status.LoadBalancer.Ingress[0].IPMode = ptr.To(corev1.LoadBalancerIPModeVIP)
	})
	w.kube.ClearActions()
	w.mustPass("web")
	for _, action := range w.kube.Actions() {
		if action.GetVerb() == "patch" {
			t.Errorf("%s of %s", action.GetVerb(), action.GetResource().Resource)
		}
	}
}
