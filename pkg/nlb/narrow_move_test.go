package nlb

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// listenersTo returns how many listeners of a Service send to groups whose names pass.
func (b *border) listenersTo(name string, passes func(alicloud.NLBGroup) bool) int {
	b.t.Helper()
	wanted := map[string]bool{}
	for _, group := range b.groups(name) {
		wanted[group.ID] = passes(group)
	}
	n := 0
	for owner, l := range b.owned {
		if owner == name && wanted[model.Text(l.ServerGroupID)] {
			n++
		}
	}
	return n
}

// TestListenersMoveOnANarrowNLB: listeners are to send to other server groups on an NLB that has as many servers as it may have, whether
// the manager knows that or not. They do soon, and each port keeps servers all the time and has all of them in the end.
func TestListenersMoveOnANarrowNLB(t *testing.T) {
	t.Parallel()
	const nodes, newPorts = 3, 1000
	for _, of := range []struct{ moves, ports int }{{1, 1}, {1, 4}, {4, 4}} {
		moves, ports := of.moves, of.ports
		move := func(svc *corev1.Service) {
			for i := range moves {
				svc.Spec.Ports[i].NodePort += newPorts
			}
		}
		moved := func(group alicloud.NLBGroup) bool { return strings.HasPrefix(group.Name, "k8s.31") }
		for _, free := range []int{0, 1, 2} {
			for i, known := range []bool{false, true} {
				if !testkit.Tried(moves+free+i, 3) {
					continue
				}
				t.Run(fmt.Sprint(moves, " of ", ports, " moves, free ", free, " known ", known), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						truly := nodes*ports + free
						quotas := map[string]int{}
						if known {
							quotas[string(quota.ServersPerNLB)] = truly
						}
						b := newBorderOn(t, cloud.Limits{ServersPerNLB: truly}, quota.NewBook(quotas))
						b.joinUpTo(nodes)
						b.put(newService("web", tcpPorts(ports)))
						b.rest()
						b.fits(b.behind(), ports, nodes)
						b.change("web", move)
						b.keepsServing(1, movesSoon)
						if got := b.listenersTo("web", moved); got != moves {
							t.Errorf("%d listeners have moved, want %d", got, moves)
						}
						b.fits(b.keepsServing(1, 10*time.Minute), ports, nodes)
					})
				})
			}
		}
	}
}

// TestListenersMoveOnANarrowSharedNLB: the same where the NLB has the servers of several Services, and nobody knows that it takes no more.
func TestListenersMoveOnANarrowSharedNLB(t *testing.T) {
	t.Parallel()
	const nodes, services, newPorts = 3, 4, 31900
	moved := func(group alicloud.NLBGroup) bool { return strings.HasPrefix(group.Name, "k8s.319") }
	for _, moves := range []int{1, services} {
		for _, free := range []int{0, 1, 2} {
			if !testkit.Tried(moves+2*free+2, 3) {
				continue
			}
			t.Run(fmt.Sprint(moves, " moves, free ", free), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					b := newBorderOn(t, cloud.Limits{ServersPerNLB: nodes*services + free}, quota.NewBook(nil))
					b.joinUpTo(nodes)
					for i := range services {
						b.put(grouped(sharingName(i), "edge", int64(i), testkube.TCP(int32(1000+i))))
						b.keepsServing(0, 10*time.Second)
					}
					b.fits(b.keepsServing(nodes, 10*time.Minute), services, nodes)
					for i := range moves {
						b.change(sharingName(i), func(svc *corev1.Service) { svc.Spec.Ports[0].NodePort = int32(newPorts + i) })
					}
					b.keepsServing(1, movesSoon)
					for i := range moves {
						if got := b.listenersTo(sharingName(i), moved); got != 1 {
							t.Errorf("%d listeners of %s have moved, want 1", got, sharingName(i))
						}
					}
					b.fits(b.keepsServing(1, 10*time.Minute), services, nodes)
				})
			})
		}
	}
}

// movesSoon is how long it takes until listeners have other groups on an NLB that is full.
const movesSoon = time.Minute

// TestRefusedMoveTakesLittleAway: the cloud refuses with the same code to have a listener send to another group, although others make room.
// They get back what they gave up, and give nothing up once more for a while.
func TestRefusedMoveTakesLittleAway(t *testing.T) {
	t.Parallel()
	const nodes, ports = 3, 4
	synctest.Test(t, func(t *testing.T) {
		b := newNarrow(t, cloud.Limits{ServersPerNLB: nodes * ports}, nodes)
		b.put(newService("web", tcpPorts(ports)))
		b.rest()
		b.account.Fault(`{"times":0,"action":"UpdateListenerAttribute","code":"QuotaExceeded.QuotaInsufficient","status":400}`)
		b.change("web", func(svc *corev1.Service) { svc.Spec.Ports[0].NodePort = 31000 })
		b.fits(b.keepsServing(2, movesSoon), ports, nodes)
		b.fits(b.keepsServing(nodes, 30*time.Minute), ports, nodes)
	})
}

// TestLastServersStayWhileListenersMove: the ports of a Service have servers on different nodes, because an NLB has no room for all of
// them. All listeners move at once, which has the ports agree on one node. Each keeps a server that works until another one is there.
func TestLastServersStayWhileListenersMove(t *testing.T) {
	t.Parallel()
	for i := range 4 { // which node it is depends on the Service
		name := sharingName(i)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const nodes, ports = 2, 2
				b := newNarrow(t, cloud.Limits{ServersPerNLB: nodes*ports - 1}, nodes)
				b.put(grouped(name, "edge", 1, tcpPorts(ports)))
				b.keepsServing(0, 10*time.Minute)
				b.change(name, func(svc *corev1.Service) {
					for i := range ports {
						svc.Spec.Ports[i].NodePort = int32(31900 + i)
					}
				})
				b.fits(b.keepsServing(1, movesSoon), ports, 1)
				if got := b.listenersTo(name, func(group alicloud.NLBGroup) bool { return strings.HasPrefix(group.Name, "k8s.319") }); got != ports {
					t.Errorf("%d listeners have moved, want %d", got, ports)
				}
			})
		})
	}
}

// TestOnlyServerMovesOnANarrowSharedNLB: the Service whose listener moves has one server, which makes room for the next one: others keep
// what they have. A node has joined that is hardly ever a backend.
func TestOnlyServerMovesOnANarrowSharedNLB(t *testing.T) {
	t.Parallel()
	for _, joined := range []int{2, 3} {
		t.Run(fmt.Sprint(joined, " nodes"), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const nodes, ports = 2, 4
				b := newNarrow(t, cloud.Limits{ServersPerNLB: nodes*ports + 1}, nodes)
				b.put(grouped("large", "edge", 1, tcpPorts(ports)))
				b.keepsServing(0, time.Minute)
				b.put(grouped("small", "edge", 2, testkube.TCP(1000)))
				b.keepsServing(1, 10*time.Minute)
				b.joinUpTo(joined)
				b.keepsServing(1, 10*time.Minute)
				b.change("small", func(svc *corev1.Service) { svc.Spec.Ports[0].NodePort = 31900 })
				b.fits(b.keepsServing(1, movesSoon), ports+1, 1)
				if got := b.listenersTo("small", func(group alicloud.NLBGroup) bool { return strings.HasPrefix(group.Name, "k8s.319") }); got != 1 {
					t.Errorf("%d listeners have moved, want 1", got)
				}
			})
		})
	}
}

// TestRefusedMoveOnASharedNLB: the same where Services share the NLB, which may have many more servers. The others keep what they have.
func TestRefusedMoveOnASharedNLB(t *testing.T) {
	t.Parallel()
	const nodes, services = 3, 3
	synctest.Test(t, func(t *testing.T) {
		b := newNarrow(t, cloud.Limits{}, nodes)
		for i := range services {
			b.put(grouped(sharingName(i), "edge", int64(i), testkube.TCP(int32(1000+i))))
			b.keepsServing(0, 10*time.Second)
		}
		b.fits(b.keepsServing(nodes, 10*time.Minute), services, nodes)
		b.account.Fault(`{"times":0,"action":"UpdateListenerAttribute","code":"QuotaExceeded.QuotaInsufficient","status":400}`)
		b.change(sharingName(0), func(svc *corev1.Service) { svc.Spec.Ports[0].NodePort = 31900 })
		for range 40 {
			now := b.keepsServing(1, time.Minute)
			for i := 1; i < services; i++ {
				if n := now[fmt.Sprintf("%s:%d", sharingName(i), 1000+i)]; n < nodes {
					t.Fatalf("%s has %d servers", sharingName(i), n)
				}
			}
		}
	})
}

// TestListenerMovesWhereNoneCanBeAdded: an NLB has as many listeners as it may have, too, and the cloud has refused a further one, whatever
// servers it has. That says nothing about a listener that is to have another group.
func TestListenerMovesWhereNoneCanBeAdded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const nodes, ports = 3, 4
		b := newNarrow(t, cloud.Limits{ServersPerNLB: nodes * ports, ListenersPerNLB: ports}, nodes)
		b.put(newService("web", tcpPorts(ports)))
		b.rest()
		b.change("web", tcpPorts(ports+1))
		b.fits(b.keepsServing(nodes, 5*time.Minute), ports, nodes)
		b.change("web", func(svc *corev1.Service) { svc.Spec.Ports[0].NodePort = 31900 })
		b.fits(b.keepsServing(1, movesSoon), ports, 1)
		if got := b.listenersTo("web", func(group alicloud.NLBGroup) bool { return strings.HasPrefix(group.Name, "k8s.319") }); got != 1 {
			t.Errorf("%d listeners have moved, want 1", got)
		}
	})
}
