package nlb

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// The quotas of an NLB in [TestQuotasOfNLBs]. Four servers for each listener are what a group of Services counts with.
const (
	fewListeners       = 3
	fewServers         = 4 * fewListeners
	fewGroupsPerServer = 8

	// driftPeriod is how often the manager reads again what a Service has. Only then does a Service find that a node has become light.
	driftPeriod = 10 * time.Minute
)

// border crosses the quotas of NLBs, up and down.
type border struct {
	*storm
	// live are the Services by their names, with the number of their ports, and joined the nodes.
	live   map[string]int
	joined map[string]bool
}

// newBorder makes one over a cloud with these quotas of listeners and servers of an NLB, and of groups of a server, which the manager
// knows.
func newBorder(t *testing.T, listeners, servers, groups int) *border {
	t.Helper()
	return newBorderOn(t, cloud.Limits{ListenersPerNLB: listeners, ServersPerNLB: servers, NLBGroupsPerServer: groups},
		quota.NewBook(map[string]int{
			string(quota.ListenersPerNLB): listeners, string(quota.ServersPerNLB): servers, string(quota.GroupsPerServer): groups,
		}))
}

// newBorderOn makes one over a cloud with quotas that the manager knows as the book has them.
func newBorderOn(t *testing.T, quotas cloud.Limits, known *quota.Book) *border {
	t.Helper()
	cfg := cloud.DefaultConfig()
	cfg.Quotas = quotas
	return &border{live: map[string]int{}, joined: map[string]bool{},
		storm: newStormOn(t, emulator.Options{Config: cfg, Settle: settle}, known, driftPeriod)}
}

// TestQuotasOfNLBs: Services and nodes come and go, so that the quotas of listeners and of servers of an NLB, and of groups of a server,
// are crossed up and down. Every Service is served all the time, and in the steady state no member is missing, they are balanced, and
// nothing is written or refused.
func TestQuotasOfNLBs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBorder(t, fewListeners, fewServers, fewGroupsPerServer)
		b.joinUpTo(3)
		b.shareUpTo(2)
		b.crossed("all nodes fit")
		for _, step := range []struct {
			name string
			act  func()
		}{
			{"more nodes than servers of an NLB", func() { b.joinUpTo(8) }},
			{"more Services than listeners of an NLB", func() { b.shareUpTo(7) }},
			{"a Service of its own with as many ports as fit", func() { b.own("ports", fewListeners) }},
			{"more Services than groups of a server", func() { b.leaveDownTo(4) }},
			{"nodes replace each other", func() { b.leaveDownTo(3); b.joinUpTo(8) }},
			{"fewer ports", func() { b.own("ports", 1) }},
			{"Services go", func() { b.shareDownTo(1) }},
			{"Services come again", func() { b.shareUpTo(9) }},
			{"fewest nodes", func() { b.leaveDownTo(2) }},
			{"fewest Services", func() { b.shareDownTo(1) }},
			{"nodes come again", func() { b.joinUpTo(6) }},
		} {
			step.act()
			b.crossed(step.name)
		}
	})
}

func sharingName(i int) string { return fmt.Sprintf("s%d", i) }

// shareUpTo makes Services of one group until there are so many.
func (b *border) shareUpTo(n int) {
	b.t.Helper()
	for i := range n {
		if name := sharingName(i); b.live[name] == 0 {
			b.live[name] = 1
			b.put(grouped(name, "edge", int64(i), testkube.TCP(int32(1000+i)), with(annotation.GroupOverflow, "true"))) //nolint:gosec // a port
		}
	}
}

// shareDownTo deletes Services of the group until so many are left, the oldest first.
func (b *border) shareDownTo(n int) {
	b.t.Helper()
	for i := 0; len(b.sharing()) > n; i++ {
		if name := sharingName(i); b.live[name] > 0 {
			delete(b.live, name)
			b.remove(name)
		}
	}
}

func (b *border) sharing() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(b.live)), func(name string) bool { return name == "ports" })
}

// own gives a Service with an NLB of its own so many ports.
func (b *border) own(name string, ports int) {
	b.t.Helper()
	var all []int32
	for i := range ports {
		all = append(all, int32(80+i)) //nolint:gosec // a port
	}
	if b.live[name] == 0 {
		b.put(newService(name, testkube.TCP(all...)))
	} else {
		b.change(name, func(svc *corev1.Service) { svc.Spec.Ports = svc.Spec.Ports[:ports] })
	}
	b.live[name] = ports
}

func (b *border) joinUpTo(n int) {
	b.t.Helper()
	for i := 0; len(b.joined) < n; i++ {
		name := fmt.Sprintf("n%d", i)
		if b.joined[name] {
			continue
		}
		b.joined[name] = true
		b.account.Put(testkube.InstanceOf(name), "{}")
		testkit.Must(b.kube.CoreV1().Nodes().Create(b.t.Context(), testkube.Node(name), metav1.CreateOptions{}))(b.t)
	}
}

func (b *border) leaveDownTo(n int) {
	b.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(b.joined)) {
		if len(b.joined) > n {
			delete(b.joined, name)
			testkit.Check(b.t, b.kube.CoreV1().Nodes().Delete(b.t.Context(), name, metav1.DeleteOptions{}))
		}
	}
}

// crossed waits until nothing is written any more, while every Service that serves goes on to serve, and checks what there is then.
func (b *border) crossed(step string) {
	b.t.Helper()
	served := map[string]bool{}
	for range 60 {
		time.Sleep(5 * time.Second)
		synctest.Wait()
		b.collect()
		for name, members := range b.members() {
			if _, live := b.live[name]; !live {
				continue
			}
			if served[name] && members == 0 {
				b.t.Errorf("%s: %s is not served any more", step, name)
			}
			served[name] = members > 0
		}
	}
	for rounds := 0; len(b.writes()) > 0; rounds++ {
		if rounds == 10 {
			b.t.Fatalf("%s: the manager does not stop to write: %v", step, b.writes())
		}
	}
	b.settled(step)
	b.stop()
	b.start()
	// A new process does not know what the cloud refused the one before. Each group may learn that once, and then nobody writes.
	writes, tried := b.writes(), map[string]bool{}
	for _, write := range writes {
		if tried[write] || !strings.HasPrefix(write, addServers+"=Quota") {
			b.t.Errorf("%s: a restart writes in the steady state: %v", step, writes)
		}
		tried[write] = true
	}
	if len(writes) == 0 {
		return
	}
	if again := b.writes(); len(again) > 0 {
		b.t.Errorf("%s: after a restart, the manager wrote %v and then %v", step, writes, again)
	}
}

// writes returns what is written while each Service is compared with the cloud at least once.
func (b *border) writes() []string {
	b.t.Helper()
	b.account.NewCalls()
	time.Sleep(2 * driftPeriod)
	synctest.Wait()
	var found []string
	for _, call := range b.account.NewCalls() {
		if !isRead(call.Action) {
			found = append(found, fmt.Sprintf("%s=%s %v", call.Action, call.Code, call.Parameters))
		}
	}
	return found
}

// collect takes away the Services that nothing holds any more.
func (b *border) collect() {
	b.t.Helper()
	services := b.kube.CoreV1().Services(testkube.Namespace)
	for _, svc := range testkit.Must(services.List(b.t.Context(), metav1.ListOptions{}))(b.t).Items {
		if svc.DeletionTimestamp != nil && len(svc.Finalizers) == 0 {
			testkit.Check(b.t, services.Delete(b.t.Context(), svc.Name, metav1.DeleteOptions{}))
		}
	}
}

// owned goes over the listeners of Services on all NLBs, with the names of these.
func (b *border) owned(yield func(string, alicloud.NLBListener) bool) {
	b.t.Helper()
	for _, lb := range testkit.Must(b.account.Client.ListNLBs(b.t.Context(), alicloud.NLBQuery{}))(b.t) {
		for _, l := range testkit.Must(b.account.Client.ListNLBListeners(b.t.Context(), []string{lb.ID}))(b.t) {
			if owner, _, _ := mark.ParseNLB(model.Text(l.Description)); owner.Name != "" && !yield(owner.Name, l) {
				return
			}
		}
	}
}

// members counts the servers that take traffic behind the running listeners of each Service: the fewest of one of them.
func (b *border) members() map[string]int {
	b.t.Helper()
	found := map[string]int{}
	for name, l := range b.owned {
		if l.Status != alicloud.NLBListenerRunning {
			continue
		}
		n := len(b.servers(*l.ServerGroupID))
		if least, ok := found[name]; !ok || n < least {
			found[name] = n
		}
	}
	return found
}

// settled checks what has to hold once nothing is written any more.
func (b *border) settled(step string) {
	b.t.Helper()
	members, loads, groups := b.members(), map[string]int{}, 0
	for name, ports := range b.live {
		groups += ports
		if b.hostname(name) == "" || members[name] == 0 {
			b.t.Errorf("%s: %s is not served: it shows %q and has %d members", step, name, b.hostname(name), members[name])
		}
		for _, group := range b.groups(name) {
			for _, server := range b.servers(group.ID) {
				id, _, _ := strings.Cut(server, ":")
				loads[id]++
			}
		}
	}
	b.t.Logf("%s: %d nodes, members %v, groups of each node %v", step, len(b.joined), members, loads)
	total := 0
	for _, n := range loads {
		total += n
	}
	mean := float64(total) / float64(len(b.joined))
	for id, n := range loads {
		if n > fewGroupsPerServer || float64(n) > math.Ceil(1.6*mean) {
			b.t.Errorf("%s: %s is in %d groups, the mean is %.1f and the quota %d", step, id, n, mean, fewGroupsPerServer)
		}
	}
	if len(loads) > len(b.joined) {
		b.t.Errorf("%s: members %v, %d nodes", step, loads, len(b.joined))
	}
}

// TestSecondServiceOfAGroupIsServedSoon: a Service with several ports has the NLB of a group to itself, and all servers of it. Another one
// comes, and is served without waiting for the pass for drift over the first one.
func TestSecondServiceOfAGroupIsServedSoon(t *testing.T) {
	t.Parallel()
	for _, ports := range [][]int32{{80, 81}, {80, 81, 82}, {80, 81, 82, 83, 84}} {
		synctest.Test(t, func(t *testing.T) {
			b := newBorder(t, 10, 40, 100)
			b.joinUpTo(30)
			b.put(grouped("big", "edge", 1, testkube.TCP(ports...)))
			b.rest()
			b.put(grouped("small", "edge", 2, testkube.TCP(1000)))
			began := time.Now()
			for b.members()["small"] < 1 && time.Since(began) < time.Hour {
				time.Sleep(5 * time.Second)
				synctest.Wait()
			}
			if took := time.Since(began); took > 3*time.Minute {
				t.Errorf("%d ports: the second Service is not served after %s: members %v", len(ports), took, b.members())
			}
		})
	}
}
