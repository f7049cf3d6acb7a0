package nlb

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// TestSomeNodesBesideAllNodes: a server can be in 10 server groups. 12 Services with 5 of 20 nodes, 3 with two ports each that would have
// all nodes, and one with Local on each node just fit on average, but not on each node. Whichever come first, nothing is refused, each is
// served, and in the end nothing is written.
func TestSomeNodesBesideAllNodes(t *testing.T) {
	t.Parallel()
	const nodes, times, numbered, number, whole = 20, 10, 12, 5, 3
	some := func(b *border) {
		for i := range numbered {
			b.put(newService(fmt.Sprint("some", i), testkube.TCP(80), with(annotation.BackendSubset, fmt.Sprint(number))))
		}
	}
	all := func(b *border) {
		for i := range whole {
			b.put(newService(fmt.Sprint("all", i), testkube.TCP(80, 81)))
		}
	}
	local := func(b *border) { b.putLocal("local", nodes) }
	for name, order := range map[string][]func(*border){"some first": {some, local, all}, "all first": {all, some, local}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBorder(t, 50, 400, times)
				b.joinUpTo(nodes)
				for _, create := range order {
					create(b)
					b.rest()
				}
				b.unrefused()
				for rounds := 0; len(b.writes()) > 0; rounds++ {
					if rounds == 3 {
						t.Fatal("the manager does not stop to write")
					}
				}
				members := b.members()
				for i := range numbered {
					b.wantMembers(members, fmt.Sprint("some", i), number)
				}
				for i := range whole {
					b.wantMembers(members, fmt.Sprint("all", i), nodes*6/10)
				}
				b.wantMembers(members, "local", nodes)
				b.stop()
				b.start()
				if writes := b.writes(); len(writes) > 0 {
					t.Errorf("a restart writes %v", writes)
				}
			})
		})
	}
}

// TestSeveralPortsBesideOne: a server can be in 5 server groups, and all are full. Services with three ports come last: each of them needs
// three times the room of a Service with one port on the same servers. The others give up the same servers until there is room, and take
// none of them back. All are served, and in the end nothing is written.
func TestSeveralPortsBesideOne(t *testing.T) {
	t.Parallel()
	const nodes, times, numbered, whole, local, ports = 16, 5, 8, 6, 3, 2
	synctest.Test(t, func(t *testing.T) {
		b := newBorder(t, 50, 400, times)
		b.joinUpTo(nodes)
		for i := range whole {
			b.put(newService(fmt.Sprint("all", i), testkube.TCP(80)))
		}
		time.Sleep(20 * time.Second)
		for i := range numbered {
			b.put(newService(fmt.Sprint("some", i), testkube.TCP(80), with(annotation.BackendSubset, "5")))
		}
		time.Sleep(7 * time.Second)
		b.stop()
		b.start()
		for i := range local {
			b.putLocal(fmt.Sprint("local", i), nodes/2)
		}
		for i := range ports {
			b.put(newService(fmt.Sprint("ports", i), testkube.TCP(80, 81, 82)))
		}
		time.Sleep(time.Hour)
		for rounds := 0; len(b.writes()) > 0; rounds++ {
			if rounds == 3 {
				t.Fatal("the manager does not stop to write")
			}
		}
		members := b.members()
		for i := range ports {
			b.wantMembers(members, fmt.Sprint("ports", i), 1)
		}
		for i := range whole {
			b.wantMembers(members, fmt.Sprint("all", i), 1)
		}
		b.unrefusedLater()
	})
}

// unrefusedLater checks that nothing is refused in the steady state.
func (b *border) unrefusedLater() {
	b.t.Helper()
	b.account.NewCalls()
	time.Sleep(2 * time.Hour)
	b.unrefused()
}

func (b *border) wantMembers(members map[string]int, name string, least int) {
	b.t.Helper()
	if members[name] < least {
		b.t.Errorf("%s has %d members, want %d", name, members[name], least)
	}
}

// putLocal creates a Service with externalTrafficPolicy Local that has a pod on each of the first nodes.
func (b *border) putLocal(name string, nodes int) {
	b.t.Helper()
	slice := sliceOn(name, 0, nodes)
	testkit.Must(b.kube.DiscoveryV1().EndpointSlices(slice.Namespace).Create(b.t.Context(), slice, metav1.CreateOptions{}))(b.t)
	b.put(newService(name, testkube.TCP(80), func(svc *corev1.Service) {
		svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	}))
	time.Sleep(time.Second)
}

// sliceOn is the EndpointSlice of a Service with pods on some nodes.
func sliceOn(name string, from, to int) *discoveryv1.EndpointSlice {
	var endpoints []string
	for i := from; i < to; i++ {
		endpoints = append(endpoints, fmt.Sprintf("10.244.%d.2@n%d", i, i))
	}
	slice := slice1(endpoints...)
	slice.Name, slice.Labels = name+"-1", map[string]string{discoveryv1.LabelServiceName: name}
	return slice
}

// TestFewerGroupsPerServerThanKnown: a server can be in fewer server groups than the manager believes, and the cloud says only that a quota
// is used up. Services learn from that which servers are full: those with a choice make room, all are served, Local Services on all nodes
// with pods, and then hardly anything is refused, and nothing is written.
func TestFewerGroupsPerServerThanKnown(t *testing.T) {
	t.Parallel()
	const nodes, truly, believed = 16, 8, 10
	synctest.Test(t, func(t *testing.T) {
		b := newBorder(t, 50, 400, believed)
		b.account.Change(func(s *emulator.Settings) { s.Quotas.NLBGroupsPerServer = truly })
		b.joinUpTo(nodes)
		for i := range 5 {
			b.put(newService(fmt.Sprint("all", i), testkube.TCP(80)))
		}
		time.Sleep(20 * time.Second)
		for i := range 8 {
			b.put(newService(fmt.Sprint("some", i), testkube.TCP(80), with(annotation.BackendSubset, "5")))
		}
		time.Sleep(7 * time.Second)
		b.stop()
		b.start()
		for i := range 2 {
			b.putLocal(fmt.Sprint("local", i), nodes/2)
		}
		time.Sleep(2 * time.Hour) // after an hour, instances that were refused are tried again, and some have room by then
		b.account.NewCalls()
		time.Sleep(2 * time.Hour)
		refused, written := 0, 0
		for _, call := range b.account.NewCalls() {
			switch {
			case call.Code != "":
				refused++
			case !isRead(call.Action):
				written++
			}
		}
		if refused > 30 || written > 0 { // a Service tries now and then whether there is room
			t.Errorf("in two hours at rest, %d calls are refused and %d write", refused, written)
		}
		members := b.members()
		for i := range 2 {
			b.wantMembers(members, fmt.Sprint("local", i), nodes/2)
		}
		for _, name := range []string{"all0", "all1", "all2", "all3", "all4", "some0", "some7"} {
			if members[name] == 0 {
				t.Errorf("%s is not served", name)
			}
		}
	})
}

// TestFullNLBOfSeveralServices: an NLB on which several Services have servers is full, and each of them knows only its own ones. The
// refusals say nothing about how many server groups the instances may be in: no other Service gives up a server for them.
func TestFullNLBOfSeveralServices(t *testing.T) {
	t.Parallel()
	const nodes, times, numbered, number, known = 10, 10, 8, 5, 40
	for name, share := range map[string]struct {
		truly  int
		create func(b *border)
	}{
		"existing": {22, func(b *border) {
			id := b.existing("by-hand")
			for i := range 4 {
				b.put(newService(fmt.Sprint("shared", i), testkube.TCP(int32(1000+i)), without(annotation.ZoneMaps), //nolint:gosec // a port
					with(annotation.LoadBalancerID, id), with(annotation.ForceOverrideListeners, "true"), with(annotation.BackendSubset, "9")))
				time.Sleep(2 * time.Minute)
			}
		}},
		"group": {14, func(b *border) { // each port has a share of 4
			for i := range 4 {
				b.put(grouped(fmt.Sprint("shared", i), "edge", int64(i), testkube.TCP(int32(1000+i)))) //nolint:gosec // a port
				time.Sleep(2 * time.Minute)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBorder(t, 50, known, times)
				b.account.Change(func(s *emulator.Settings) { s.Quotas.ServersPerNLB = share.truly })
				b.joinUpTo(nodes / 2)
				for i := range numbered {
					b.put(newService(fmt.Sprint("some", i), testkube.TCP(80), with(annotation.BackendSubset, fmt.Sprint(number))))
				}
				b.rest()
				share.create(b)
				b.account.NewCalls()
				b.joinUpTo(nodes) // the NLB takes some of these for each port, and is full
				time.Sleep(time.Hour / 2)
				refused := 0
				for _, call := range b.account.NewCalls() {
					if call.Action == addServers && call.Code != "" {
						refused++
					}
				}
				if refused == 0 {
					t.Fatal("the NLB is not full")
				}
				members := b.members()
				for i := range numbered {
					b.wantMembers(members, fmt.Sprint("some", i), number)
				}
			})
		})
	}
}
