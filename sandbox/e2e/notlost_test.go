//go:build unix && fleet

package e2e

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/e2e/clouds"
)

// TestNodesAreNotLost lets all nodes be not ready while ECS gives no honest answer, in every way that is known to have cost other clusters
// their nodes, and expects them all to stay. The one instance that was really released meanwhile costs its Node when ECS is itself again.
func TestNodesAreNotLost(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	w := newWorld(t, worldOptions{nodes: fleet})
	// Nodes whose deletion an answer did not confirm count as deleted for the interval, and the released one would wait for them.
	flags := append(slices.Clone(quick), "--node-deletion-interval=10s")
	w.startManager(flags...)
	w.nodesAreInitialized(names(1, fleet))

	all := make([]int, fleet)
	for i := range all {
		all[i] = i + 1
	}
	w.power("Stopped", all...)
	w.until("all nodes are not ready", eventDeadline, func(ctx context.Context) string { return w.unready(ctx, names(1, fleet)) })
	took := w.release(fleet)
	t.Logf("a released node goes after %s", took)
	kept := names(1, fleet-1)
	w.keptWhile("throttling", took, kept, func() {
		w.fault(map[string]any{"action": "DescribeInstances", "code": "Throttling.User", "times": 0})
	})

	// A throttled action stays closed for up to a minute, so the other mishaps are those of a new manager, which meets the first of them
	// before it has seen any instance.
	w.stopManager()
	denied := clouds.Denied(t)
	w.ecs.Lead(t, denied)
	w.clearFaults()
	w.startManager(flags...)
	w.keptWhile("no permission from the start", took, kept, func() {})
	w.untilSeen()

	for i, m := range clouds.Answers(t, w.url, "DescribeInstances") {
		w.keptWhile(m.Name, max(took, m.Least/2), kept, func() {
			// On the way from one mishap to the next ECS must not be honest for a moment.
			w.ecs.Lead(t, denied)
			if i == 0 {
				w.admin(http.MethodDelete, "instances/"+instanceID(fleet-1), nil, nil)
			}
			w.clearFaults()
			for _, rule := range m.Faults {
				w.fault(rule)
			}
			w.ecs.Lead(t, m.URL)
		})
	}
	w.clearFaults()
	w.ecs.Lead(t, w.url)
	w.until("the released node goes", 2*goneWithin, func(ctx context.Context) string {
		if w.nodes(ctx)[nodeName(fleet-1)] != nil {
			return "it is there"
		}
		return ""
	})
	kept = names(1, fleet-2)
	w.holds("no other node goes", 2*took, func(ctx context.Context) string { return w.missing(ctx, kept) })
	w.latecomersAreKept(took)
}

// release releases the instance of a node that is not ready and returns how long its Node stays. No other Node goes.
func (w *world) release(i int) time.Duration {
	w.Helper()
	begin := time.Now()
	w.admin(http.MethodDelete, "instances/"+instanceID(i), nil, nil)
	w.until(nodeName(i)+" goes", goneWithin, func(ctx context.Context) string {
		have := w.nodes(ctx)
		if have[nodeName(i)] != nil {
			return "it is there"
		}
		return ""
	})
	took := time.Since(begin)
	if have := len(w.nodes(w.Context())); have != fleet-1 {
		w.Fatalf("%d nodes are left of %d, one was to go", have, fleet)
	}
	return took
}

// keptWhile lets something happen and watches the nodes for twice the time that a released one stays. The manager must have asked ECS
// meanwhile, else nothing was shown.
func (w *world) keptWhile(what string, took time.Duration, nodes []string, happen func()) {
	w.Helper()
	happen()
	before := w.ecs.Passed()
	w.holds(what, 2*took, func(ctx context.Context) string { return w.missing(ctx, nodes) })
	asked := w.ecs.Passed() - before
	w.Logf("%s: %d nodes kept, ECS was asked %d times", what, len(nodes), asked)
	if asked == 0 {
		w.Errorf("%s: ECS was not asked", what)
	}
}

// untilSeen makes ECS honest and waits until the manager has learned of all instances.
func (w *world) untilSeen() {
	w.Helper()
	mark := w.lastCall()
	w.ecs.Lead(w.T, w.url)
	w.until("the manager has seen the instances", eventDeadline, func(context.Context) string {
		for _, c := range w.calls(mark) {
			if c.Action == "DescribeInstances" && c.Status == http.StatusOK {
				return ""
			}
		}
		return "it has not asked"
	})
}

// latecomersAreKept lets nodes join whose instances are too new for the list that ECS answers with, while it shows all others.
func (w *world) latecomersAreKept(took time.Duration) {
	w.Helper()
	late := []string{"late-1", "late-2"}
	w.fault(map[string]any{"action": "DescribeInstances", "times": 0, "stale": "1m"})
	for _, name := range late {
		w.admin(http.MethodPut, "instances/i-"+name, map[string]string{"InstanceName": name}, nil)
	}
	w.until("the new nodes join", eventDeadline, func(ctx context.Context) string { return w.missing(ctx, late) })
	for _, name := range late {
		w.setProviderID(name, cluster.Region+".i-"+name)
		w.admin(http.MethodPut, "instances/i-"+name, map[string]string{"Status": "Stopped"}, nil)
	}
	w.until("the new nodes are not ready", eventDeadline, func(ctx context.Context) string { return w.unready(ctx, late) })
	w.keptWhile("list without what is new", took, late, func() {})
	w.clearFaults()
	w.until("the new nodes are initialized", eventDeadline, func(ctx context.Context) string {
		have, machines := w.nodes(ctx), w.machines()
		for _, name := range late {
			if missing := uninitialized(have[name], machines[name]); missing != "" {
				return missing
			}
		}
		return ""
	})
}
