//go:build unix && fleet

package e2e

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// mishap is a way to lose all nodes by mistake.
type mishap struct {
	name string
	// account is where calls of ECS go for its time.
	account func(*world) string
	// faults are injected into the cluster's own account.
	faults []map[string]any
	// least is how long it is watched at least.
	least time.Duration
}

// tooLate is longer than the manager waits for one answer of ECS, a repetition included.
const tooLate = 35 * time.Second

// mishaps are the ways that a running manager meets.
func mishaps(t *testing.T) []mishap {
	t.Helper()
	own := func(w *world) string { return w.url }
	other := func(url string) func(*world) string { return func(*world) string { return url } }
	altered := func(change func([]any) []any) func(*world) string {
		return func(w *world) string { return alteredCloud(w.T, w.url, change) }
	}
	fault := func(key string, value any) []map[string]any {
		return []map[string]any{{"action": "DescribeInstances", "times": 0, key: value}}
	}
	return []mishap{
		{name: "permission taken away", account: other(deniedCloud(t))},
		{name: "key of another account", account: other(otherCloud(t, nil, "i-stranger1", "i-stranger2"))},
		{name: "wrong secret", account: other(otherCloud(t, keyed(cluster.AccessKeyID, "another-secret")))},
		{name: "temporary key expired", account: own, faults: fault("code", "InvalidSecurityToken.Expired")},
		{name: "server errors", account: own, faults: fault("code", "ServiceUnavailable")},
		{name: "answers dropped", account: own, faults: fault("drop", "after")},
		{name: "list that lags behind everything", account: own, faults: fault("stale", "1h")},
		{name: "empty answers", account: altered(func([]any) []any { return []any{} })},
		{name: "half of every answer", account: altered(func(all []any) []any { return all[:len(all)/2] })},
		{name: "cloud of another region", account: other(otherCloud(t, regional("cn-beijing"), "i-stranger1"))},
		// The last one, as a call that is under way delays those after it.
		{name: "answers too late", account: own, faults: fault("latency", "25s"), least: tooLate},
	}
}

// deniedCloud is the account with a key that may not list instances: it is answered with an empty list and HTTP 200.
func deniedCloud(t *testing.T) string {
	t.Helper()
	config := keyed(cluster.AccessKeyID, cluster.AccessKeySecret)
	config.AccessKeys[0].Permissions = []string{"vpc:*", "slb:*", "ecs:DescribeRegions"}
	return otherCloud(t, config, "i-stranger1")
}

// regional is the built-in configuration in another region.
func regional(region string) *emulator.Config {
	config := cloud.DefaultConfig()
	for i := range config.VSwitches {
		config.VSwitches[i].Zone = strings.Replace(config.VSwitches[i].Zone, config.Region, region, 1)
	}
	config.Region = region
	return config
}

func keyed(id, secret string) *emulator.Config {
	config := cloud.DefaultConfig()
	config.AccessKeys = []cloud.AccessKeyConfig{{ID: id, Secret: secret}}
	return config
}

// TestNodesAreNotLost lets all nodes be not ready while ECS gives no honest answer, in every way that is known to have cost other clusters
// their nodes, and expects them all to stay. The one instance that was really released meanwhile costs its Node when ECS is itself again.
func TestNodesAreNotLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{nodes: fleet})
	// Nodes whose deletion an answer did not confirm count as deleted for the interval, and the released one would wait for them.
	flags := append(slices.Clone(quick), "--node-deletion-interval=10s")
	w.startManager(flags...)
	w.nodesAreInitialised(names(1, fleet))

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
	denied := deniedCloud(t)
	w.ecs.lead(t, denied)
	w.clearFaults()
	w.startManager(flags...)
	w.keptWhile("no permission from the start", took, kept, func() {})
	w.untilSeen()

	for i, m := range mishaps(t) {
		w.keptWhile(m.name, max(took, m.least/2), kept, func() {
			// On the way from one mishap to the next ECS must not be honest for a moment.
			w.ecs.lead(t, denied)
			if i == 0 {
				w.admin(http.MethodDelete, "instances/"+instanceID(fleet-1), nil, nil)
			}
			w.clearFaults()
			for _, rule := range m.faults {
				w.fault(rule)
			}
			w.ecs.lead(t, m.account(w))
		})
	}
	w.clearFaults()
	w.ecs.lead(t, w.url)
	w.until("the released node goes", goneWithin+tooLate, func(ctx context.Context) string {
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
	before := w.ecs.passed.Load()
	w.holds(what, 2*took, func(ctx context.Context) string { return w.missing(ctx, nodes) })
	asked := w.ecs.passed.Load() - before
	w.Logf("%s: %d nodes kept, ECS was asked %d times", what, len(nodes), asked)
	if asked == 0 {
		w.Errorf("%s: ECS was not asked", what)
	}
}

// untilSeen makes ECS honest and waits until the manager has learned of all instances.
func (w *world) untilSeen() {
	w.Helper()
	mark := w.lastCall()
	w.ecs.lead(w.T, w.url)
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
	w.until("the new nodes are initialised", eventDeadline, func(ctx context.Context) string {
		have, machines := w.nodes(ctx), w.machines()
		for _, name := range late {
			if missing := uninitialised(have[name], machines[name]); missing != "" {
				return missing
			}
		}
		return ""
	})
}
