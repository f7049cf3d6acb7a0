package slb

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// TestPortOfTheOldest: a port is the oldest Service's, also where a younger one had it before; the younger one has an event that says what
// to do.
func TestPortOfTheOldest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.put(born(grouped("young", "edge", 80, 81), 2))
	w.mustPass("young")
	w.put(born(grouped("old", "edge", 80), 1))
	w.newEvents()
	w.mustPass("old")
	w.mustPass("young")
	w.drift("old") // what the younger one has done
	w.mustPass("old")
	wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 old", "tcp:81 young"}})
	events := strings.Join(w.newEvents(), "\n")
	for _, text := range []string{"Warning " + problem.ReasonListenerConflict,
		"port 80 of load balancer group default/edge belongs to Service default/old", annotation.GroupOverflow.Key()} {
		if !strings.Contains(events, text) {
			t.Errorf("events %s lack %q", events, text)
		}
	}
	if ports := w.get("young").Status.LoadBalancer.Ingress[0].Ports; len(ports) != 2 || ports[0].Error == nil || ports[1].Error != nil {
		t.Errorf("ports in the status: %+v, want an error of port 80 alone", ports)
	}
	w.change("old", deleteService)
	w.mustPass("old")
	w.vanish("old")
	w.mustPass("young")
	wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 young", "tcp:81 young"}})
}

// TestOverflow: a Service whose port is taken, or for which there is no room, makes the next CLB of its group if its annotation says so.
func TestOverflow(t *testing.T) {
	t.Parallel()
	t.Run("conflict", func(t *testing.T) {
		t.Parallel()
		w := groupWorld(t, grouped("web", "edge", 80), overflowing(grouped("shop", "edge", 80)), overflowing(grouped("blog", "edge", 80)),
			overflowing(grouped("wiki", "edge", 81)))
		wantOwners(t, w,
			map[string][]string{edgeCLB: {"tcp:80 web", "tcp:81 wiki"}, edgeCLB + "+": {"tcp:80 shop"}, edgeCLB + "++": {"tcp:80 blog"}})
		w.restart()
		w.silent("after a restart", "blog", "wiki", "shop", "web")
		w.leavesNothing("blog", "wiki", "shop", "web")
	})
	t.Run("no room", func(t *testing.T) {
		t.Parallel()
		w := newWorldWith(t, cloud.Limits{BackendsPerLB: 8, LBsPerInstance: 50})
		w.config.Quotas = smallQuotas(8, 50)
		w.restart()
		threeNodes(w)
		w.putAll(grouped("web", "edge", 80, 81), overflowing(grouped("shop", "edge", 82)), grouped("blog", "edge", 83))
		wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 web", "tcp:81 web"}, edgeCLB + "+": {"tcp:82 shop"}})
		w.drift("blog")
		w.mustPass("blog")
		if condition := w.synced("blog"); condition.Status != metav1.ConditionFalse ||
			!strings.Contains(condition.Message, "has no room for the 1 port of the Service: it has room for") {
			t.Errorf("condition %+v, want one that says that there is no room", condition)
		}
		if w.address("blog") != "" {
			t.Error("a Service without listener shows an address")
		}
	})
	t.Run("moves when an older one comes", func(t *testing.T) {
		t.Parallel()
		w := groupWorld(t, overflowing(grouped("young", "edge", 80)))
		old := grouped("old", "edge", 80)
		w.put(born(old, -1))
		for range 4 {
			w.mustPass("young")
			w.drift("old")
			w.mustPass("old")
		}
		wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 old"}, edgeCLB + "+": {"tcp:80 young"}})
	})
}

// TestGroupSharesItsQuota: each port of Services that share a CLB gets a fixed share of its backend servers, whoever else is there.
func TestGroupSharesItsQuota(t *testing.T) {
	t.Parallel()
	w := smallWorld(t, 8, 50)
	for i := range 6 {
		w.addNode("n" + string(rune('0'+i)))
	}
	w.put(born(grouped("web", "edge", 80), 1))
	w.mustPass("web")
	if n := len(w.backendsOf("web")["30080"]); n != 4 {
		t.Errorf("web alone has %d backend servers, want its share of 4", n)
	}
	w.put(born(grouped("shop", "edge", 81), 2))
	w.mustPass("shop")
	if a, b := len(w.backendsOf("web")["30080"]), len(w.backendsOf("shop")["30081"]); a != 4 || b != 4 {
		t.Errorf("web has %d backend servers and shop %d, want 4 each", a, b)
	}
	w.silent("afterwards", "web", "shop")
}

// TestTooManyPortsForAnyCLB: a Service with more ports than a CLB takes gets no CLB, rather than one after the other, and one event says
// what to do.
func TestTooManyPortsForAnyCLB(t *testing.T) {
	t.Parallel()
	for _, overflow := range []bool{false, true} {
		w := newWorld(t)
		threeNodes(w)
		var ports []int32
		for i := range 51 {
			ports = append(ports, int32(1000+i)) //nolint:gosec // a port
		}
		svc := grouped("web", "edge", ports...)
		if overflow {
			overflowing(svc)
		}
		w.put(svc)
		for range 4 {
			w.mustPass("web")
			w.restart()
		}
		if clbs := w.state(); len(clbs) > 1 {
			t.Errorf("overflow %v: %d CLBs", overflow, len(clbs))
		}
		events := w.newEvents()
		if text := strings.Join(events, "\n"); strings.Count(text, problem.ReasonListenerConflict) == 0 ||
			!strings.Contains(text, "distribute the ports over several Services") {
			t.Errorf("overflow %v: events %s", overflow, text)
		}
		w.leavesNothing("web")
	}
}

// TestServiceThatStaysElsewhereTakesNoPort: a Service that asks for a group, and stays where it is because it would not get all its ports
// there, takes no port from a younger Service of the group: nobody would serve it.
func TestServiceThatStaysElsewhereTakesNoPort(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		w := groupWorld(t, born(grouped("first", "other", 80), 1), born(grouped("comes", "edge", 80, 83), 2),
			born(grouped("young", "other", 83), 3))
		from := w.address("comes")
		w.change("comes", func(svc *corev1.Service) { annotate(svc, annotation.Group, "other") })
		if restarted {
			w.restart()
		}
		for range 4 {
			_, _, _ = w.pass("comes"), w.pass("young"), w.pass("first")
		}
		wantOwners(t, w,
			map[string][]string{edgeCLB: {"tcp:80 comes", "tcp:83 comes"}, "k8s-group-default-other": {"tcp:80 first", "tcp:83 young"}})
		if w.address("comes") != from {
			t.Errorf("the Service shows %s, want %s", w.address("comes"), from)
		}
		w.silent("afterwards", "comes", "young", "first")
	}
}
