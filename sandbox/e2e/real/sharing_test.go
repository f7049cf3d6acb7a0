//go:build linux && real

package real

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// moveGrace is how long a Service that moves to another load balancer serves at its former address, once its status shows the new one:
// docs/how-to/share-load-balancers.md promises that.
const moveGrace = 30 * time.Second

// TestGroupMoves moves Services into, between and out of groups that share a load balancer, while requests arrive at all addresses. No
// request fails to an address that the status shows, or has shown within the promised time, and none to the Services that stay. The
// products take the same steps side by side, in groups of the same names, and each kills the manager of both.
func TestGroupMoves(t *testing.T) {
	m := startManager(t)
	apply(t, pods)
	kubectl(t, "", "rollout", "status", "deployment/net", "--timeout=90s")
	outside := at(t, internetClient)
	outside.rests = len(products) - 1 // altogether, the products get as many requests as one would
	var one sync.Mutex
	kill := func(t *testing.T) {
		one.Lock()
		defer one.Unlock()
		m.restart(t)
	}
	for _, p := range products {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			newMoves(t, p, outside, kill).between(t)
		})
	}
}

// moves are the Services of a product that move. kill kills the manager and starts another one.
type moves struct {
	product
	from place
	kill func(t *testing.T)
}

// newMoves applies the Services until the test ends.
func newMoves(t *testing.T, p product, from place, kill func(t *testing.T)) moves {
	t.Helper()
	m := moves{p, from, kill}
	for name, group := range map[string]string{"stays": "edge", "comes": "", "renamed": "alone"} {
		annotation := ""
		if group != "" {
			annotation = annotations + "group: " + group
		}
		apply(t, p.service(m.fullName(name), fmt.Sprintf("{port: %d, targetPort: 8080}", groupPorts[name]), annotation))
	}
	for name := range groupPorts {
		for _, url := range m.urls(t, name, vipOf(t, m.fullName(name))) {
			answersAlways(t, from, url)
		}
	}
	return m
}

// between moves them between groups.
func (m moves) between(t *testing.T) {
	edge := vipOf(t, m.fullName("stays"))
	stays := m.from.stream(t, m.urls(t, "stays", edge)...)

	t.Run("two Services come into the group, the last one out of another group", func(t *testing.T) {
		moving := []*move{m.begin(t, "comes", "edge"), m.begin(t, "renamed", "edge")}
		for _, service := range moving {
			if shown := service.shown(t); shown != edge {
				t.Errorf("%s shows %s, want %s, which the group shows", service.name, shown, edge)
			}
		}
		for _, service := range moving {
			service.done(t)
		}
	})
	t.Run("one leaves the group, and the manager is killed meanwhile", func(t *testing.T) {
		leaves := m.begin(t, "comes", "")
		if shown := leaves.shown(t); shown == edge {
			t.Errorf("it shows %s of the group still", shown)
		}
		m.kill(t)
		leaves.done(t)
	})
	stays.wantNone()
	t.Run("the others go to another group, and the manager is killed before any has arrived", func(t *testing.T) {
		moving := []*move{m.begin(t, "stays", "inner"), m.begin(t, "renamed", "inner")}
		m.kill(t)
		shown := []string{moving[0].shown(t), moving[1].shown(t)}
		if shown[0] != shown[1] || shown[0] == edge {
			t.Errorf("the Services of the new group show %v, and those of the former one showed %s", shown, edge)
		}
		for _, service := range moving {
			service.done(t)
		}
	})
}

// groupPorts are the ports of the Services of [TestGroupMoves].
var groupPorts = map[string]int{"stays": 81, "comes": 82, "renamed": 83}

func (m moves) fullName(service string) string { return service + "-" + m.name }

// urls are those of a Service at all addresses of the load balancer that its status shows.
func (m moves) urls(t *testing.T, service, shown string) []string {
	t.Helper()
	var urls []string
	for _, address := range m.addresses(t, shown) {
		urls = append(urls, fmt.Sprintf("http://%s:%d", address, groupPorts[service]))
	}
	return urls
}

// move is a Service on its way to another load balancer, with streams of requests to both.
type move struct {
	moves
	name          string
	former        string // what its status showed
	formerURLs    []string
	before, after *stream
	lastShown     time.Time // when the status was known to show that for the last time
}

// begin puts a Service into a group, or into none, while requests arrive at its address.
func (m moves) begin(t *testing.T, service, group string) *move {
	t.Helper()
	former := vipOf(t, m.fullName(service))
	urls := m.urls(t, service, former)
	begun := &move{moves: m, name: service, former: former, formerURLs: urls, before: m.from.stream(t, urls...), lastShown: time.Now()}
	value := "null"
	if group != "" {
		value = fmt.Sprintf("%q", group)
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, annotations+"group", value)
	// Without the time that kubectl needs to start, which would pass between the change of the status and the first look at it.
	_, err := sandbox.client.CoreV1().Services(metav1.NamespaceDefault).Patch(t.Context(), m.fullName(service), types.MergePatchType,
		[]byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return begun
}

// shown waits until the status shows another load balancer, which serves from then on, and returns its address or name.
func (m *move) shown(t *testing.T) string {
	t.Helper()
	found := ""
	until(t, "Service "+m.name+" shows another load balancer", func(ctx context.Context) string {
		asked := time.Now()
		s, err := sandbox.client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, m.fullName(m.name), metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if len(s.Status.LoadBalancer.Ingress) == 0 {
			t.Errorf("Service %s shows no address", m.name)
			return "none"
		}
		if found = cmp.Or(s.Status.LoadBalancer.Ingress[0].IP, s.Status.LoadBalancer.Ingress[0].Hostname); found == m.former {
			m.lastShown = asked
			return "it is the former one"
		}
		return ""
	})
	m.after = m.from.stream(t, m.urls(t, m.name, found)...)
	return found
}

// done waits until the Service has left its former load balancer. No request to it failed within the promised time, and none at all to the
// new one.
func (m *move) done(t *testing.T) {
	t.Helper()
	gone(t, m.from, m.formerURLs[0]) // the addresses of an NLB have the same listeners
	t.Logf("%s has left %s %s after its status showed it for the last time", m.name, m.former, time.Since(m.lastShown).Round(look))
	m.before.wantNoneBefore(fmt.Sprintf("the promised %s at the former address", moveGrace), m.lastShown.Add(moveGrace))
	m.after.wantNone()
}

// gone waits until nobody answers any more.
func gone(t *testing.T, from place, url string) {
	t.Helper()
	until(t, url+" answers no more", func(ctx context.Context) string {
		if r, err := from.get(ctx, url); err == nil {
			return r.Name + " answers"
		}
		return ""
	})
}
