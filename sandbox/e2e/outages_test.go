//go:build unix && fleet

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

const (
	// outageLength is twice as long as a leader holds on to a lease that it cannot renew (10 s), and five times as long as the sandbox's
	// control plane waits for the heartbeat of a node.
	outageLength = 20 * time.Second
	// afterwards is how long nothing may happen when an outage is over: some passes of every controller.
	afterwards = 10 * time.Second
)

// hasty are flags with which a manager checks often, deletes Nodes soon and loses its Lease within an outage, so that a mistake shows
// early.
var hasty = []string{
	"--node-monitor-period=1s", "--node-gone-confirmations=2", "--node-gone-over=1s", "--route-reconciliation-period=1s",
	"--leader-elect-lease-duration=15s", "--leader-elect-renew-deadline=10s",
}

// outage is something that goes away for a while.
type outage struct {
	name       string
	begin, end func()
	// ofCloud is an outage during which the API server works, so that work arrives which has to wait. The manager lives through it.
	ofCloud bool
}

func (w *world) outages() []outage {
	trouble := func(what string) func() {
		return func() {
			w.Helper()
			if _, err := w.request(w.Context(), http.MethodPut, "/_sandbox/trouble", what); err != nil {
				w.Fatal(err)
			}
		}
	}
	fault := func(rule map[string]any) func() { return func() { w.fault(rule) } }
	healthy := trouble(`{}`)
	return []outage{
		{name: "no API server", begin: trouble(`{"apiServerGone":true}`), end: healthy},
		{name: "etcd fails", begin: trouble(`{"etcdFails":true}`), end: healthy},
		{name: "etcd is slow", begin: trouble(`{"etcdDelay":"3s"}`), end: healthy},
		{name: "control plane and cloud stand still", begin: func() { w.signalSandbox(syscall.SIGSTOP) }, end: func() {
			w.signalSandbox(syscall.SIGCONT)
		}},
		{name: "cloud refuses everything", ofCloud: true,
			begin: fault(map[string]any{"action": "*", "code": "ServiceUnavailable", "status": 503, "times": 0}), end: w.clearFaults},
		// Longer than the client waits for an answer.
		{name: "cloud does not answer", ofCloud: true, begin: fault(map[string]any{"action": "*", "latency": "25s", "times": 0}),
			end: w.clearFaults},
	}
}

func (w *world) signalSandbox(signal syscall.Signal) {
	w.Helper()
	if err := w.sandbox.cmd.Process.Signal(signal); err != nil {
		w.Fatal(err)
	}
}

// TestOutages takes the API server, its etcd and the cloud away from two managers and 50 nodes, one after the other, and expects nobody to
// act on what was not seen meanwhile: every Node, route and backend server stays, the cloud is written nothing, and afterwards a manager
// leads and does what is to be done.
func TestOutages(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	w := newRoutedWorld(t)
	t.Cleanup(func() { _ = w.sandbox.cmd.Process.Signal(syscall.SIGCONT) }) // one that stands still cannot end
	d := w.deploy(2, hasty...)
	w.untilRouted("routed in both tables")
	w.createWeb("web")
	w.untilBackends(fleet)
	for i, o := range w.outages() {
		d.survives(o, fleet+i)
	}
}

// untilBackends waits until the only CLB has so many backend servers.
func (w *world) untilBackends(n int) {
	w.Helper()
	w.until(fmt.Sprintf("%d backend servers", n), eventDeadline, func(context.Context) string {
		all := w.balancers()
		if len(all) != 1 || len(all[0].VServerGroups) != 1 {
			return fmt.Sprintf("CLBs: %+v", all)
		}
		if have := len(all[0].VServerGroups[0].BackendServers); have != n {
			return fmt.Sprintf("%d backend servers", have)
		}
		return ""
	})
}

// picture is what an outage must not change.
type picture struct {
	Nodes     map[string]types.UID // a Node that was deleted and came back has another one
	Entries   []entry
	Balancers []balancer
}

func (w *world) picture(ctx context.Context) picture {
	w.Helper()
	p := picture{Nodes: map[string]types.UID{}, Entries: w.entries(), Balancers: w.balancers()}
	for name, node := range w.nodes(ctx) {
		p.Nodes[name] = node.UID
	}
	return p
}

// survives plays an outage of a cluster of so many nodes, and lets one more join.
func (d *deployment) survives(o outage, nodes int) {
	d.Helper()
	d.until("the source/destination checks are off", eventDeadline, func(context.Context) string { return d.checked() })
	before, leader, mark, restarts := d.picture(d.Context()), d.untilLed(time.Time{}), d.lastCall(), d.restarts
	o.begin()
	d.holds(o.name, outageLength, func(context.Context) string { d.keep(); return "" })
	newcomer := fmt.Sprintf("late-%d", nodes)
	if o.ofCloud {
		d.unchanged(o.name, before, mark)
		d.admin(http.MethodPut, "instances/i-"+newcomer, map[string]string{"InstanceName": newcomer}, nil)
	}
	o.end()
	over := time.Now()
	now := d.untilLed(over)
	d.Logf("%s: led %s after its end by %s (before: %s), %d restarts", o.name, time.Since(over).Round(100*time.Millisecond), now, leader,
		d.restarts-restarts)
	d.until("all nodes are ready", eventDeadline, func(ctx context.Context) string {
		d.keep()
		for name, node := range d.nodes(ctx) {
			if statusOf(node, corev1.NodeReady) != corev1.ConditionTrue {
				return name + " is not"
			}
		}
		return ""
	})
	if o.ofCloud {
		if now != leader || d.restarts != restarts {
			d.Errorf("%s: a manager ended, or lost its lease: %s leads instead of %s", o.name, now, leader)
		}
	} else {
		d.holds("nothing changes after: "+o.name, afterwards, func(context.Context) string { d.keep(); return "" })
		d.unchanged(o.name, before, mark)
		d.admin(http.MethodPut, "instances/i-"+newcomer, map[string]string{"InstanceName": newcomer}, nil)
	}
	d.until("the new node joins", eventDeadline, func(ctx context.Context) string { d.keep(); return d.missing(ctx, []string{newcomer}) })
	d.untilRouted("routed after: " + o.name)
	d.untilBackends(nodes + 1)
}

// unchanged expects everything to be as it was, and no write to the cloud.
func (d *deployment) unchanged(what string, before picture, mark int64) {
	d.Helper()
	if diff := cmp.Diff(before, d.picture(d.Context()), cmp.AllowUnexported(entry{})); diff != "" {
		d.Errorf("%s (-before +after):\n%s", what, diff)
	}
	for _, c := range d.calls(mark) {
		if c.Kind == "write" {
			d.Errorf("%s: the cloud was written: %s %s %v", what, c.Time.Format(time.TimeOnly), c.Action, c.Parameters)
		}
	}
}
