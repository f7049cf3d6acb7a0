package nlb

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// newNarrow makes a border over a cloud with quotas that the manager does not know, and nodes.
func newNarrow(t *testing.T, quotas cloud.Limits, nodes int) *border {
	t.Helper()
	b := newBorderOn(t, quotas, quota.NewBook(nil))
	b.joinUpTo(nodes)
	return b
}

// behind returns how many servers are behind each listener that serves, by Service and port.
func (b *border) behind() map[string]int {
	b.t.Helper()
	found := map[string]int{}
	for name, l := range b.owned {
		if l.Status == alicloud.NLBListenerRunning || l.Status == alicloud.NLBConfiguring {
			serving := slices.DeleteFunc(b.servers(*l.ServerGroupID), func(server string) bool { return strings.HasSuffix(server, "=0") })
			found[fmt.Sprintf("%s:%d", name, l.Port)] = len(serving)
		}
	}
	return found
}

// keepsServing lets time pass, in which each port that has servers goes on to have at least so many. It returns what they have in the end.
func (b *border) keepsServing(least int, during time.Duration) map[string]int {
	b.t.Helper()
	served := map[string]bool{}
	for port, n := range b.behind() {
		served[port] = n > 0
	}
	for range during / (5 * time.Second) {
		time.Sleep(5 * time.Second)
		synctest.Wait()
		now := b.behind()
		for port := range served {
			if now[port] < least {
				b.t.Fatalf("%s has %d servers: %v", port, now[port], now)
			}
		}
	}
	return b.behind()
}

// tcpPorts are so many ports.
func tcpPorts(n int) func(*corev1.Service) {
	var all []corev1.ServicePort
	for i := range n {
		all = append(all, tcpPort(int32(80+i))) //nolint:gosec // a port
	}
	return ports(all...)
}

// TestFewerServersPerNLBThanKnown: an NLB takes fewer servers than the manager believes, and the cloud refuses the listener of a further
// port, whose group has more servers than fit. The port is served soon, by what the others give up, and each of these keeps servers.
func TestFewerServersPerNLBThanKnown(t *testing.T) {
	t.Parallel()
	const nodes, truly = 3, 12
	for _, test := range []struct{ before, after, least int }{{4, 5, 2}, {4, 6, 2}, {3, 5, 2}, {4, 9, 1}, {1, 5, 2}} {
		t.Run(fmt.Sprintf("from %d to %d ports", test.before, test.after), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newNarrow(t, cloud.Limits{ServersPerNLB: truly}, nodes)
				b.put(newService("web", tcpPorts(test.before)))
				b.rest()
				b.change("web", tcpPorts(test.after))
				b.fits(b.keepsServing(1, 5*time.Minute), test.after, test.least)
				b.change("web", tcpPorts(1)) // what was learned keeps nothing out that fits
				b.fits(b.keepsServing(0, 5*time.Minute), 1, nodes)
			})
		})
	}
}

// fits checks that so many ports have so many servers at least.
func (b *border) fits(now map[string]int, ports, least int) {
	b.t.Helper()
	for port, n := range now {
		if n < least {
			b.t.Errorf("%s has %d servers, want %d: %v", port, n, least, now)
		}
	}
	if len(now) != ports {
		b.t.Errorf("%d ports are served, want %d: %v", len(now), ports, now)
	}
}

// TestFewerServersPerSharedNLBThanKnown: the same for Services of a group, and for ports on an existing NLB. Those that are there keep what
// they have.
func TestFewerServersPerSharedNLBThanKnown(t *testing.T) {
	t.Parallel()
	const nodes, truly, services = 3, 12, 5
	for name, least := range map[string]int{"group": 0, "existing": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newNarrow(t, cloud.Limits{ServersPerNLB: truly}, nodes)
				id := ""
				if name == "existing" {
					id = b.existing("by-hand")
				}
				for i := range services {
					svc := grouped(sharingName(i), "edge", int64(i), testkube.TCP(int32(1000+i))) //nolint:gosec // a port
					if id != "" {
						svc = newService(sharingName(i), testkube.TCP(int32(1000+i)), without(annotation.ZoneMaps), //nolint:gosec // a port
							with(annotation.LoadBalancerID, id), with(annotation.ForceOverrideListeners, "true"))
					}
					b.put(svc)
					b.keepsServing(min(least, i), 5*time.Minute)
				}
				b.fits(b.behind(), services, least)
			})
		})
	}
}

// TestRefusedListenerTakesNothingAway: the cloud refuses a listener with the same code where another quota is used up, that of listeners.
// No other port gives up a server, and nothing is learned about servers.
func TestRefusedListenerTakesNothingAway(t *testing.T) {
	t.Parallel()
	const nodes, listeners = 3, 4
	synctest.Test(t, func(t *testing.T) {
		b := newNarrow(t, cloud.Limits{ListenersPerNLB: listeners}, nodes)
		b.put(newService("web", tcpPorts(listeners)))
		b.rest()
		b.account.NewCalls()
		b.change("web", tcpPorts(listeners+1))
		b.fits(b.keepsServing(nodes, 30*time.Minute), listeners, nodes)
		if limit := b.config.Quotas.Of(quota.ServersPerNLB, b.get("web").Labels[driver.LabelLoadBalancerID]); limit.Source == quota.Refusal {
			t.Errorf("learned %+v", limit)
		}
		removals := 0
		for _, call := range b.account.NewCalls() {
			if call.Action == "RemoveServersFromServerGroup" {
				removals++
			}
		}
		if removals > 1 {
			t.Errorf("servers are removed %d times from the group of the listener", removals)
		}
		b.account.Change(func(s *emulator.Settings) { s.Quotas.ListenersPerNLB = listeners + 1 })
		time.Sleep(waits.LoadBalancerFull)
		b.fits(b.keepsServing(nodes, time.Minute), listeners+1, nodes)
	})
}

// TestCrowdedGroupOfOthersKeepsItsServers: somebody uses the group of a listener that the cloud refuses, since the manager read it last. No
// server leaves, also where the groups cannot be read.
func TestCrowdedGroupOfOthersKeepsItsServers(t *testing.T) {
	t.Parallel()
	const nodes, ports = 3, 4
	listen := func(b *border, id, group string) error {
		_, _, err := b.account.Client.CreateNLBListener(b.t.Context(), alicloud.NLBListener{
			LoadBalancerID: id, Port: 80, Protocol: alicloud.NLBTCP, NLBListenerSettings: alicloud.NLBListenerSettings{ServerGroupID: &group},
		}, "by-hand")
		return err
	}
	for name, use := range map[string]func(b *border, id, group string) error{
		"a listener of another NLB": listen,
		"a listener of another NLB, unread": func(b *border, id, group string) error {
			b.account.Fault(`{"times":0,"action":"ListServerGroups","code":"ServiceUnavailable","status":503}`)
			return listen(b, id, group)
		},
		"a server": func(b *border, _, group string) error {
			_, err := b.account.Client.AddNLBServers(b.t.Context(), group, []alicloud.NLBServer{
				{NLBServerKey: alicloud.NLBServerKey{ID: "i-n0", Type: alicloud.NLBServerECS, Port: 8080}, Weight: 100},
			})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newNarrow(t, cloud.Limits{ServersPerNLB: nodes * ports}, nodes)
				id := b.existing("by-hand")
				b.put(newService("web", tcpPorts(ports)))
				b.rest()
				b.change("web", tcpPorts(ports+1))
				group, err := "", error(nil)
				for try := 0; group == "" || err != nil; try++ {
					if try == 100 {
						t.Fatal(err)
					}
					time.Sleep(50 * time.Millisecond)
					synctest.Wait()
					if group = b.idleGroup("web"); group != "" {
						err = use(b, id, group)
					}
				}
				b.keepsServing(nodes, 20*time.Minute)
				for _, call := range b.account.NewCalls() {
					if call.Action == "RemoveServersFromServerGroup" {
						t.Errorf("servers are removed: %v", call.Parameters)
					}
				}
			})
		})
	}
}

// idleGroup is a group of a Service that no listener uses, empty for none.
func (b *border) idleGroup(name string) string {
	b.t.Helper()
	for _, group := range b.groups(name) {
		if len(group.LoadBalancers) == 0 {
			return group.ID
		}
	}
	return ""
}

// TestFullNLBStaysAtRest: what was learned of an NLB is forgotten after an hour. Until then, and after it, each port keeps servers, and
// what is refused is tried again at intervals only.
func TestFullNLBStaysAtRest(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	const nodes, truly, ports = 3, 12, 5
	synctest.Test(t, func(t *testing.T) {
		b := newNarrow(t, cloud.Limits{ServersPerNLB: truly}, nodes)
		b.put(newService("web", tcpPorts(truly/nodes)))
		b.rest()
		b.change("web", tcpPorts(ports))
		b.keepsServing(1, 5*time.Minute)
		b.account.NewCalls()
		b.fits(b.keepsServing(2, 40*time.Minute), ports, 2)
		if writes := writes(b.calls()); len(writes) > 0 {
			t.Errorf("writes %v", writes)
		}
		b.fits(b.keepsServing(1, 40*time.Minute), ports, 2)
		if writes := writes(b.calls()); len(writes) > 20 {
			t.Errorf("%d writes", len(writes))
		}
	})
}

// TestLastServersAreNotDrainedOnAFullNLB: the only node of a Service is about to be deleted, and the NLB has no room for another one beside
// it. It serves until it is gone.
func TestLastServersAreNotDrainedOnAFullNLB(t *testing.T) {
	t.Parallel()
	const ports = 2
	synctest.Test(t, func(t *testing.T) {
		b := newNarrow(t, cloud.Limits{ServersPerNLB: ports}, 2)
		b.put(newService("web", tcpPorts(ports)))
		b.fits(b.keepsServing(1, 10*time.Minute), ports, 1)
		var leaves string
		for _, group := range b.groups("web") {
			leaves, _, _ = strings.Cut(strings.TrimPrefix(b.servers(group.ID)[0], "i-"), ":")
		}
		testkube.ChangeNode(t, b.kube, leaves, testkube.Taint(nodes.TaintToBeDeleted))
		b.keepsServing(1, 10*time.Minute)
		b.deleteNode(leaves)
		time.Sleep(2 * time.Minute)
		b.fits(b.keepsServing(1, 10*time.Minute), ports, 1)
	})
}

// TestLocalServersAreNotDrainedOnAFullNLB: all nodes with pods of a Service are about to be deleted, and the NLB has no room for those of
// the new pods beside them. They serve until they are gone.
func TestLocalServersAreNotDrainedOnAFullNLB(t *testing.T) {
	t.Parallel()
	const room = 2
	synctest.Test(t, func(t *testing.T) {
		b := newBorder(t, 50, room, 200)
		b.joinUpTo(2 * room)
		b.putLocal("web", room)
		b.fits(b.keepsServing(0, 5*time.Minute), 1, room)
		b.account.NewCalls()
		for i := range room {
			testkube.ChangeNode(t, b.kube, fmt.Sprintf("n%d", i), testkube.Taint(nodes.TaintToBeDeleted))
		}
		b.putPods("web", 0, 2*room)
		b.keepsServing(room, 5*time.Minute)
		if calls := writes(b.calls()); len(calls) > 1 {
			t.Errorf("writes %v, want one that is refused", calls)
		}
		for i := range room {
			b.deleteNode(fmt.Sprintf("n%d", i))
		}
		b.putPods("web", room, 2*room)
		time.Sleep(2 * time.Minute)
		b.fits(b.behind(), 1, room)
	})
}

// putPods has the pods of a Service run on some nodes.
func (b *border) putPods(name string, from, to int) {
	b.t.Helper()
	slice := sliceOn(name, from, to)
	testkit.Must(b.kube.DiscoveryV1().EndpointSlices(slice.Namespace).Update(b.t.Context(), slice, metav1.UpdateOptions{}))(b.t)
}
