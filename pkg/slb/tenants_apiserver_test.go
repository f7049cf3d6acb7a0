package slb

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// TestAPIServersCLB: the CLB of the API server is recognized by its address, by its backend servers and by its port.
func TestAPIServersCLB(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*world, *alicloud.LoadBalancer) policy.APIServer{
		"address": func(_ *world, lb *alicloud.LoadBalancer) policy.APIServer {
			return policy.APIServer{Addresses: []string{lb.Address}}
		},
		"instance": func(w *world, lb *alicloud.LoadBalancer) policy.APIServer {
			w.frontAPIServer(lb.ID,
				alicloud.Backend{BackendKey: alicloud.BackendKey{Type: alicloud.BackendECS, ServerID: "i-a", Port: 6443}, Weight: 100})
			return policy.APIServer{Port: 6443, Instances: []string{"i-a"}}
		},
		"default servers": func(w *world, lb *alicloud.LoadBalancer) policy.APIServer {
			w.makeListener(lb.ID, 6443, "by hand")
			return policy.APIServer{Port: 6443}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			threeNodes(w)
			lb := w.makeCLB()
			known := prepare(w, &lb)
			w.config.FindAPIServer = func() policy.APIServer { return known }
			w.restart()
			before := w.state()
			w.put(reusing("web", lb.ID, "true", 6443))
			_ = w.pass("web")
			if diff := cmp.Diff(before, w.state()); diff != "" {
				t.Errorf("the CLB of the API server (-before +after):\n%s", diff)
			}
			if events := w.newEvents(); len(events) != 1 || !strings.Contains(events[0], problem.ReasonLoadBalancerNotReusable) {
				t.Errorf("events = %q, want one %s", events, problem.ReasonLoadBalancerNotReusable)
			}
		})
	}
}

// frontAPIServer makes a listener on port 6443 of the CLB that leads to the backend server.
func (w *world) frontAPIServer(id string, server alicloud.Backend) {
	w.t.Helper()
	group, err := w.api.CreateVServerGroup(w.t.Context(), id, "masters", []alicloud.Backend{server})
	if err != nil {
		w.t.Fatal(err)
	}
	listener := alicloud.Listener{ListenerKey: alicloud.ListenerKey{Port: 6443, Protocol: alicloud.ProtocolTCP}, Description: "by hand",
		VServerGroupID: group, Attributes: alicloud.Attributes{}}
	if err := w.api.CreateListener(w.t.Context(), id, listener); err != nil {
		w.t.Fatal(err)
	}
	w.calls()
}

// TestAPIServersCLBStaysAdopted: a Service that was on the CLB of the API server before, on other ports, keeps being served.
func TestAPIServersCLBStaysAdopted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	lb := w.makeCLB()
	w.frontAPIServer(lb.ID,
		alicloud.Backend{BackendKey: alicloud.BackendKey{Type: alicloud.BackendECS, ServerID: "i-a", Port: 6443}, Weight: 100})
	w.put(reusing("web", lb.ID, "true", 443))
	w.mustPass("web")
	w.config.FindAPIServer = func() policy.APIServer {
		return policy.APIServer{Addresses: []string{lb.Address}, Port: 6443, Instances: []string{"i-a"}}
	}
	w.restart()
	w.mustPass("web")
	if events := strings.Join(w.newEvents(), "\n"); strings.Contains(events, problem.ReasonLoadBalancerNotReusable) {
		t.Errorf("events = %s", events)
	}
	w.change("web", func(svc *corev1.Service) { svc.Spec.Ports[0].Port = 6443 })
	_ = w.pass("web")
	if listener := w.state()["mine"].Listeners["tcp:6443"]["Description"]; listener != "by hand" {
		t.Errorf("the listener of the API server is now %v", listener)
	}
}

// TestLabelGivesNoAPIServersCLB: a Service whose label says that it was on the CLB of the API server, and whose status shows that it was on
// another one, gets nothing of it, not even on other ports. One whose status shows a name of its own is known by its mark.
func TestLabelGivesNoAPIServersCLB(t *testing.T) {
	t.Parallel()
	for name, served := range map[string]bool{"never on it": false, "with a name": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			threeNodes(w)
			lb := w.makeCLB()
			svc := reusing("web", lb.ID, "true", 443)
			annotate(svc, annotation.Bandwidth, "1")
			if served {
				annotate(svc, annotation.Hostname, "www.example.com")
				w.put(svc)
				w.mustPass("web")
			} else {
				svc.Labels = map[string]string{driver.LabelLoadBalancerID: lb.ID}
				svc.Finalizers = []string{Finalizer}
				svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
				w.put(svc)
			}
			w.config.FindAPIServer = func() policy.APIServer { return policy.APIServer{Addresses: []string{lb.Address}} }
			w.restart()
			w.newEvents()
			before := w.state()
			_ = w.pass("web")
			if diff := cmp.Diff(before, w.state()); diff != "" {
				t.Errorf("the CLB of the API server (-before +after):\n%s", diff)
			}
			if refused := strings.Contains(strings.Join(w.newEvents(), "\n"), problem.ReasonLoadBalancerNotReusable); refused == served {
				t.Errorf("refused: %v, want %v", refused, !served)
			}
		})
	}
}
