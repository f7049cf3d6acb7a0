//go:build linux && real

package real

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// moveGrace is how long a Service that moves to another load balancer serves at its former address, once its status shows the new one:
// docs/how-to/share-load-balancers.md promises that.
const moveGrace = 30 * time.Second

// TestGroupMoves moves Services into, between and out of groups that share a load balancer, while requests arrive at all addresses. No request
// fails to an address that the status shows, or has shown within the promised time, and none to the Services that stay.
func TestGroupMoves(t *testing.T) {
	m := startManager(t)
	apply(t, pods)
	kubectl(t, "", "rollout", "status", "deployment/net", "--timeout=90s")
	outside := at(t, internetClient)
	serve := func(name, annotation string) string {
		apply(t, serviceOf(name, fmt.Sprintf("{port: %d, targetPort: 8080}", groupPorts[name]), annotation, ""))
		address := vipOf(t, name)
		answersAlways(t, outside, urlOf(address, name))
		return address
	}
	edge := serve("stays", annotations+"group: edge")
	serve("comes", "")
	serve("renamed", annotations+"group: alone")
	stays := outside.stream(t, urlOf(edge, "stays"))

	t.Run("two Services come into the group, the last one out of another group", func(t *testing.T) {
		moves := []*move{newMove(t, outside, "comes", "edge"), newMove(t, outside, "renamed", "edge")}
		for _, service := range moves {
			if address := service.shown(t); address != edge {
				t.Errorf("%s shows %s, want the address %s of the group", service.name, address, edge)
			}
		}
		for _, service := range moves {
			service.done(t)
		}
	})
	t.Run("one leaves the group, and the manager is killed meanwhile", func(t *testing.T) {
		leaves := newMove(t, outside, "comes", "")
		if address := leaves.shown(t); address == edge {
			t.Errorf("it shows the address %s of the group still", address)
		}
		m.restart(t)
		leaves.done(t)
	})
	stays.wantNone()
	t.Run("the others go to another group", func(t *testing.T) {
		moves := []*move{newMove(t, outside, "stays", "inner"), newMove(t, outside, "renamed", "inner")}
		addresses := []string{moves[0].shown(t), moves[1].shown(t)}
		if addresses[0] != addresses[1] || addresses[0] == edge {
			t.Errorf("the Services of the new group show %v, and that of the former one was %s", addresses, edge)
		}
		for _, service := range moves {
			service.done(t)
		}
	})
}

// groupPorts are the ports of the Services of [TestGroupMoves].
var groupPorts = map[string]int{"stays": 81, "comes": 82, "renamed": 83}

func urlOf(address, service string) string {
	return fmt.Sprintf("http://%s:%d", address, groupPorts[service])
}

// move is a Service on its way to another load balancer, with streams of requests to both addresses.
type move struct {
	name          string
	from          place
	former        string // address
	before, after *stream
	lastShown     time.Time // when the status was known to show the former address for the last time
}

// newMove puts a Service into a group, or into none, while requests arrive at its address.
func newMove(t *testing.T, from place, service, group string) *move {
	t.Helper()
	address := vipOf(t, service)
	m := &move{name: service, from: from, former: address, before: from.stream(t, urlOf(address, service)), lastShown: time.Now()}
	value := "null"
	if group != "" {
		value = fmt.Sprintf("%q", group)
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, annotations+"group", value)
	// Without the time that kubectl needs to start, which would pass between the change of the status and the first look at it.
	_, err := sandbox.client.CoreV1().Services(metav1.NamespaceDefault).Patch(t.Context(), service, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// shown waits until the status shows another address, which serves from then on, and returns it.
func (m *move) shown(t *testing.T) string {
	t.Helper()
	address := ""
	until(t, "Service "+m.name+" shows another address", func(ctx context.Context) string {
		asked := time.Now()
		s, err := sandbox.client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, m.name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if len(s.Status.LoadBalancer.Ingress) == 0 {
			t.Errorf("Service %s shows no address", m.name)
			return "none"
		}
		if address = s.Status.LoadBalancer.Ingress[0].IP; address == m.former {
			m.lastShown = asked
			return "it is the former one"
		}
		return ""
	})
	m.after = m.from.stream(t, urlOf(address, m.name))
	return address
}

// done waits until the Service has left its former address. No request to it failed within the promised time, and none at all to the new one.
func (m *move) done(t *testing.T) {
	t.Helper()
	gone(t, m.from, urlOf(m.former, m.name))
	t.Logf("%s has left %s %s after its status showed it for the last time", m.name, m.former, time.Since(m.lastShown).Round(look))
	m.before.wantNoneBefore(fmt.Sprintf("the promised %s at the former address", moveGrace), m.lastShown.Add(moveGrace))
	m.after.wantNone()
}
