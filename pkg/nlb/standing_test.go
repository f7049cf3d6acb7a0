package nlb

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// TestRangeStaysWhileItsAnnotationIsWrong: a range that is no range, or that overlaps another port, leaves the listener on the last one as
// it is, with its backend servers, also after a restart. The other ports follow the Service.
func TestRangeStaysWhileItsAnnotationIsWrong(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]string{
		"no range": "400-80:80", "one port": "80-80:80", "no port": "80-99999:80", "no form": "80..400:80", "overlap with a port": "80-500:80",
	} {
		for _, restarts := range []bool{false, true} {
			if restarts {
				name += ", after a restart"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, w *world) {
					w.addNodes("n1", "n2")
					web, secure := tcpPort(80), tcpPort(443)
					backends := func(names ...string) {
						var items []string
						for _, name := range names {
							items = append(items, w.podAddress(name)+"@"+name)
						}
						s := testkube.EndpointSlice("web", web, items...)
						s.Name = "web-1"
						s.Ports = append(s.Ports, testkube.EndpointSlice("web", secure).Ports...)
						w.putSlice(s)
					}
					backends("n1")
					w.put(newService("web", eni, ports(web, secure), with(annotation.ListenerPortRange, "80-400:80")))
					w.converge("web")
					before := w.listeners(w.balancer("web").ID)
					w.newEvents()
					w.change("web", with(annotation.ListenerPortRange, wrong))
					if restarts {
						w.restart()
					}
					w.passes("web", 15*time.Minute)
					mustReport(t, w.newEvents(), "loadbalancer-listener-port-range")
					if got := w.listeners(w.balancer("web").ID); !slices.Equal(got, before) {
						t.Errorf("listeners %v, want %v", got, before)
					}
					backends("n2")
					w.passes("web", 15*time.Minute)
					for _, listener := range w.listeners(w.balancer("web").ID) {
						if !strings.Contains(listener, w.podAddress("n2")) || strings.Contains(listener, w.podAddress("n1")) {
							t.Errorf("listener %s, want the pod on n2", listener)
						}
					}
					w.change("web", with(annotation.ListenerPortRange, "80-400:80"))
					w.converge("web")
					if got := w.groups("web"); len(got) != 2 {
						t.Errorf("%d groups, want 2", len(got))
					}
				})
			})
		}
	}
}

// TestWrongIDMovesNoService: what a Service on an existing load balancer names cannot be an id. It stays where it is, although it says
// which zones one of its own would be in.
func TestWrongIDMovesNoService(t *testing.T) {
	t.Parallel()
	for _, restarts := range []bool{false, true} {
		t.Run(map[bool]string{false: "in one process", true: "after a restart"}[restarts], func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				id := w.existing("shared")
				w.serve(1, testkube.TCP(80), with(annotation.LoadBalancerID, id), with(annotation.ForceOverrideListeners, "true"))
				w.change("web", with(annotation.LoadBalancerID, `"`+id+`"`))
				if restarts {
					w.restart()
				}
				w.passes("web", 15*time.Minute)
				w.addNodes("n2")
				w.passes("web", 15*time.Minute)
				if got, want := w.listeners(id), []string{"TCP:80 i-n1:30080=100 i-n2:30080=100"}; !slices.Equal(got, want) ||
					len(w.balancers("web")) > 0 {
					t.Errorf("listeners %v, want %v; %d load balancers of its own", got, want, len(w.balancers("web")))
				}
			})
		})
	}
}

// TestCreationsThatFail: the cloud gives up each creation. New ones follow less and less often, and the Service says why it has none.
func TestCreationsThatFail(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.account.Fault(`{"action":"CreateLoadBalancer","times":0,"job":"failed"}`)
		w.addNodes("n1")
		w.put(newService("web", testkube.TCP(80)))
		w.passes("web", 2*time.Hour)
		created := 0
		for _, call := range w.calls() {
			if call == "CreateLoadBalancer" {
				created++
			}
		}
		if created < 5 || created > 20 {
			t.Errorf("%d creations in two hours", created)
		}
		mustReport(t, w.newEvents(), "the cloud could not create")
		w.account.ClearFaults()
		w.passes("web", 30*time.Minute)
		if got := w.listeners(w.balancer("web").ID); !slices.Equal(got, []string{webOn80}) {
			t.Errorf("listeners %v", got)
		}
		w.quiet("web")
	})
}
