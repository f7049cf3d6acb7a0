package slb

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

func portsFrom(first int32, n int) []int32 {
	var ports []int32
	for i := range n {
		ports = append(ports, first+int32(i)) //nolint:gosec // a port
	}
	return ports
}

// portWorld is a world whose CLBs take few listeners and backend servers, and whose manager knows that.
func portWorld(t *testing.T, listeners, backends int) *world {
	t.Helper()
	w := newWorldWith(t, cloud.Limits{ListenersPerLB: listeners, BackendsPerLB: backends})
	w.config.Quotas = quota.NewBook(map[string]int{string(quota.ListenersPerCLB): listeners, string(quota.BackendsPerCLB): backends})
	w.restart()
	threeNodes(w)
	return w
}

// TestMorePortsThanListeners: ports for which a CLB has no room share no quota of backend servers, and cost no calls that are refused.
func TestMorePortsThanListeners(t *testing.T) {
	t.Parallel()
	for _, n := range []int{6, 21} { // more ports than listeners, and than backend servers
		w := portWorld(t, 5, 10)
		w.put(testService("web", portsFrom(80, n)...))
		for range 3 {
			w.mustPass("web")
		}
		if failed := refused(w.calls()); len(failed) > 0 {
			t.Errorf("%d ports: refused calls %v", n, failed)
		}
		backends := w.backendsOf("web")
		if len(backends) != 5 {
			t.Errorf("%d ports: vServer groups %v, want one for each of 5 listeners", n, backends)
		}
		for port, servers := range backends {
			if len(servers) != 2 {
				t.Errorf("%d ports: %d backend servers for %s, want 10 / 5", n, len(servers), port)
			}
		}
		want := fmt.Sprintf("%d of %d ports get no listener: the load balancer can have 5 (quota slb_quota_listeners_num), and others have 0 listeners; distribute the ports over several Services, or raise the quota (https://quotas.console.aliyun.com/)", n-5, n)
		if condition := w.synced("web"); condition.Status != metav1.ConditionFalse || condition.Message != want {
			t.Errorf("%d ports: condition %+v, want %q", n, condition, want)
		}
		errors := 0
		for _, port := range w.get("web").Status.LoadBalancer.Ingress[0].Ports {
			if port.Error != nil {
				errors++
			}
		}
		if errors != n-5 {
			t.Errorf("%d ports: %d of them have an error in the status, want %d", n, errors, n-5)
		}
	}
}

// TestPortsWithListenersKeepThem: further ports before those that are served take nothing from them, and listeners that leave
// take no room from others.
func TestPortsWithListenersKeepThem(t *testing.T) {
	t.Parallel()
	w := portWorld(t, 5, 10)
	w.put(testService("web", portsFrom(80, 5)...))
	w.mustPass("web")
	served := func(want ...int32) {
		t.Helper()
		var listeners []string
		for _, port := range want {
			listeners = append(listeners, fmt.Sprintf("tcp:%d web", port))
		}
		for _, found := range w.ownersOf() {
			if d := cmp.Diff(listeners, found); d != "" {
				t.Errorf("listeners (-want +got):\n%s", d)
			}
		}
	}
	w.change("web", func(svc *corev1.Service) { svc.Spec.Ports = testService("web", portsFrom(78, 7)...).Spec.Ports })
	w.mustPass("web")
	served(portsFrom(80, 5)...)
	if failed := refused(w.calls()); len(failed) > 0 {
		t.Errorf("refused calls %v", failed)
	}
	w.change("web", func(svc *corev1.Service) { svc.Spec.Ports = testService("web", portsFrom(90, 5)...).Spec.Ports })
	_ = w.pass("web") // the listeners that leave are deleted last
	w.mustPass("web")
	served(portsFrom(90, 5)...)
}

// TestAssumedQuotaOfListeners: a CLB with more listeners than the published quota shows that the quota is larger.
func TestAssumedQuotaOfListeners(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, cloud.Limits{ListenersPerLB: 60})
	w.config.Quotas = quota.NewBook(map[string]int{string(quota.ListenersPerCLB): 60})
	w.restart()
	threeNodes(w)
	w.put(testService("web", portsFrom(80, 52)...))
	w.mustPass("web")
	w.config.Quotas = quota.NewBook(nil)
	w.restart()
	w.change("web", func(svc *corev1.Service) { svc.Spec.Ports = testService("web", portsFrom(80, 53)...).Spec.Ports })
	w.mustPass("web")
	if n := len(w.backendsOf("web")); n != 53 {
		t.Errorf("%d ports are served, want 53", n)
	}
}

// TestUnknownQuotaOfListeners: where only the published quota of listeners is known, the account may have a higher one. The manager tries,
// once for each pass.
func TestUnknownQuotaOfListeners(t *testing.T) {
	t.Parallel()
	for _, takes := range []int{50, 60} {
		w := newWorldWith(t, cloud.Limits{ListenersPerLB: takes})
		w.config.Quotas = quota.NewBook(nil)
		w.restart()
		threeNodes(w)
		w.put(testService("web", portsFrom(80, 55)...))
		for range 3 {
			_ = w.pass("web")
		}
		served := 0
		for _, listeners := range w.ownersOf() {
			served += len(listeners)
		}
		if want := min(takes, 55); served != want {
			t.Errorf("%d listeners for 55 ports on a CLB that takes %d", served, takes)
		}
		if failed := refused(w.calls()); len(failed) > 3*max(min(55-takes, 1), 0) {
			t.Errorf("a CLB that takes %d listeners: refused calls %v, want one for each pass", takes, failed)
		}
	}
}

// TestReplacedPortsOnAFullCLB: the cloud refuses listeners before those of the former ports are gone. That says nothing about how many the
// CLB takes.
func TestReplacedPortsOnAFullCLB(t *testing.T) {
	t.Parallel()
	for changed := 1; changed <= 5; changed += 2 {
		w := newWorldWith(t, cloud.Limits{ListenersPerLB: 5})
		w.config.Quotas = quota.NewBook(nil)
		w.restart()
		threeNodes(w)
		w.put(testService("web", portsFrom(80, 5)...))
		w.mustPass("web")
		w.change("web", func(svc *corev1.Service) {
			svc.Spec.Ports = testService("web", append(portsFrom(80, 5-changed), portsFrom(200, changed)...)...).Spec.Ports
		})
		_ = w.pass("web")
		w.mustPass("web")
		if n := len(w.backendsOf("web")); n != 5 {
			t.Errorf("%d of 5 ports are served after %d were changed", n, changed)
		}
	}
}

// TestGrownServiceOfAGroup: a Service that has the CLB of its group for itself and gets more ports than any CLB takes keeps its listeners,
// and makes no calls that are refused. Another CLB would not help it, so that the event is the same whether it may overflow.
func TestGrownServiceOfAGroup(t *testing.T) {
	t.Parallel()
	for _, overflow := range []bool{false, true} {
		w := portWorld(t, 5, 40)
		svc := grouped("web", "edge", portsFrom(80, 5)...)
		if overflow {
			overflowing(svc)
		}
		w.put(svc)
		w.mustPass("web")
		w.calls()
		w.change("web", func(svc *corev1.Service) { svc.Spec.Ports = testService("web", portsFrom(80, 7)...).Spec.Ports })
		for range 3 {
			w.mustPass("web")
		}
		if calls := writesOf(w.calls()); len(calls) > 0 {
			t.Errorf("overflow %v: calls %v", overflow, calls)
		}
		const want = "2 of 7 ports get no listener: the load balancer can have 5 (quota slb_quota_listeners_num), and others have 0 listeners; distribute the ports over several Services, or raise the quota (https://quotas.console.aliyun.com/)"
		if condition := w.synced("web"); condition.Message != want {
			t.Errorf("overflow %v: condition %+v, want %q", overflow, condition, want)
		}
	}
}
