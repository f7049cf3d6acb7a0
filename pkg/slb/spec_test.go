package slb

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// TestSessionAffinityRevertsLikeAnAnnotation, also after a restart.
func TestSessionAffinityRevertsLikeAnAnnotation(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	timeout := func() any {
		return w.state()["a0f5e8a1cweb"].Listeners["tcp:80"]["TCPListenerConfig"].(map[string]any)["PersistenceTimeout"]
	}
	w.change("web", func(svc *corev1.Service) { svc.Spec.SessionAffinity = corev1.ServiceAffinityClientIP })
	w.mustPass("web")
	if got := timeout(); got != float64(annotation.MaxPersistence) {
		t.Errorf("timeout %v, want %d", got, annotation.MaxPersistence)
	}
	w.restart()
	w.change("web", func(svc *corev1.Service) { svc.Spec.SessionAffinity = corev1.ServiceAffinityNone })
	w.mustPass("web")
	if got := timeout(); got != float64(0) {
		t.Errorf("timeout %v after the affinity went, want 0", got)
	}
}

func TestLoadBalancerIP(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, ip   string
		annotation map[annotation.Suffix]string
		address    string
		reason     string
	}{
		{"taken", "10.1.9.9", map[annotation.Suffix]string{annotation.VSwitchID: "vsw-a"}, "10.1.9.9", ""},
		{"the annotation counts", "10.1.9.9", map[annotation.Suffix]string{annotation.VSwitchID: "vsw-a", annotation.IP: "10.1.9.8"}, "10.1.9.8",
			""},
		{"no address", "web", map[annotation.Suffix]string{annotation.VSwitchID: "vsw-a"}, "", problem.ReasonInvalidAnnotation},
		{"no vSwitch", "10.1.9.9", nil, "", problem.ReasonInvalidAnnotation},
		{"public", "10.1.9.9", map[annotation.Suffix]string{annotation.AddressType: "internet", annotation.VSwitchID: "vsw-a"}, "",
			problem.ReasonInvalidAnnotation},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			threeNodes(w)
			svc := testService("web", 80)
			svc.Spec.LoadBalancerIP = test.ip
			for suffix, value := range test.annotation {
				annotate(svc, suffix, value)
			}
			w.put(svc)
			w.mustPass("web")
			address := ""
			if ingress := w.get("web").Status.LoadBalancer.Ingress; len(ingress) > 0 {
				address = ingress[0].IP
			}
			if address != test.address {
				t.Errorf("address %q, want %q", address, test.address)
			}
			if events := w.newEvents(); test.reason != "" && !slices.ContainsFunc(events, func(e string) bool {
				return strings.HasPrefix(e, "Warning "+test.reason)
			}) {
				t.Errorf("events %q, want %s", events, test.reason)
			}
		})
	}
}

// TestLoadBalancerIPLater: the address that the CLB has is fine, another one cannot be had.
func TestLoadBalancerIPLater(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	have := w.get("web").Status.LoadBalancer.Ingress[0].IP
	for ip, reason := range map[string]string{have: "", "10.1.77.7": problem.ReasonImmutableAttribute} {
		w.change("web", func(svc *corev1.Service) { svc.Spec.LoadBalancerIP = ip })
		w.newEvents()
		w.mustPass("web")
		events := strings.Join(w.newEvents(), "\n")
		if reason == "" && events != "" || !strings.Contains(events, reason) {
			t.Errorf("%s: events %q, want %q", ip, events, reason)
		}
	}
	if writes := writesOf(w.calls()); len(writes) != 0 {
		t.Errorf("writes %v", writes)
	}
}

// TestWhatOnlyANewCLBCouldHave: an annotation that is removed gets an event like one that changes, and blocks nothing.
func TestWhatOnlyANewCLBCouldHave(t *testing.T) {
	t.Parallel()
	svc := testService("web", 80)
	annotate(svc, annotation.IPVersion, "ipv6")
	w := settled(t, svc)
	w.change("web", func(svc *corev1.Service) {
		delete(svc.Annotations, key(annotation.AddressType))
		delete(svc.Annotations, key(annotation.IPVersion))
		annotate(svc, annotation.Scheduler, "wlc")
	})
	w.mustPass("web")
	if diff := cmp.Diff([]string{"SetLoadBalancerTCPListenerAttribute"}, writesOf(w.calls())); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	events := w.newEvents()
	if len(events) != 1 || !strings.Contains(events[0], "address-type") || !strings.Contains(events[0], "ip-version") {
		t.Errorf("events %q, want one that names both, and none that says that all matches the Service", events)
	}
	w.mustPass("web")
	if events := w.newEvents(); len(events) != 0 {
		t.Errorf("the event is repeated: %q", events)
	}
}

func ipv6Backends(svc *corev1.Service) {
	eni(svc)
	annotate(svc, annotation.IPVersion, "ipv6")
	annotate(svc, annotation.BackendIPVersion, "ipv6")
}

// TestIPv6AddressesArePods: the backend servers of a dual-stack Service are of the one family that is asked for, and addresses of
// the other are not even looked up.
func TestIPv6AddressesArePods(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.emulator.PutInstance("i-six", emulator.InstanceSpec{IPv6s: []string{"2001:db8::6"}}); err != nil {
		t.Fatal(err)
	}
	svc := testService("web", 80)
	ipv6Backends(svc)
	six := testSlice(svc.Spec.Ports[0], "2001:db8::6@a")
	six.Name, six.AddressType = "web-6", discoveryv1.AddressTypeIPv6
	w.putSlice(six)
	w.putSlice(testSlice(svc.Spec.Ports[0], "10.1.9.9@a"))
	w.put(svc)
	w.mustPass("web")
	group, err := w.api.DescribeVServerGroups(t.Context(), w.onlyCLB())
	if err != nil || len(group) != 1 {
		t.Fatalf("groups %v, %v", group, err)
	}
	full, err := w.api.DescribeVServerGroup(t.Context(), group[0].ID)
	if err != nil || len(full.Backends) != 1 || full.Backends[0].ServerIP != "2001:db8::6" {
		t.Errorf("backend servers %v, %v; want the IPv6 address", full.Backends, err)
	}
	w.calls()
	w.mustPass("web")
	if calls := w.calls(); len(calls) != 0 {
		t.Errorf("the next pass costs %v", calls)
	}
	// Without the annotation the backend servers are IPv4 addresses again.
	w.change("web", func(svc *corev1.Service) { delete(svc.Annotations, key(annotation.BackendIPVersion)) })
	w.mustPass("web")
	if calls := w.calls(); !slices.Contains(calls, "DescribeNetworkInterfaces") {
		t.Errorf("calls %v, want the IPv4 address to be looked up", calls)
	}
}

func TestNoNodeHasTheLabels(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.BackendLabel, "pool=web") })
	w.mustPass("web")
	if writes := writesOf(w.calls()); len(writes) != 0 {
		t.Errorf("writes %v, want the backend servers to stay", writes)
	}
	if events := w.newEvents(); len(events) != 1 || !strings.Contains(events[0], "pool=web") {
		t.Errorf("events %q, want one that names the labels", events)
	}
}
