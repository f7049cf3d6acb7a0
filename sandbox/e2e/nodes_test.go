//go:build unix && fleet

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	cloudproviderapi "k8s.io/cloud-provider/api"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// fleet is how many nodes the tests of nodes and routes have.
const fleet = 50

// quick makes a manager delete Nodes with less patience than by default: with fewer confirmations and less time between them a wrong
// deletion is likelier to show, and sooner.
var quick = []string{"--node-monitor-period=1s", "--node-gone-confirmations=2", "--node-gone-over=1s", "--configure-cloud-routes=false"}

// goneWithin bounds what quick makes of a release: four missed heartbeats until the node is not ready, two answers a second apart
// and a pass of the lifecycle controller, on a busy machine.
const goneWithin = 30 * time.Second

func instanceID(i int) string { return fmt.Sprintf("i-sandbox%04d", i) }

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

func names(from, to int) []string {
	var all []string
	for i := from; i <= to; i++ {
		all = append(all, nodeName(i))
	}
	return all
}

// TestNodes is one story on one control plane: the steps rely on what the ones before have shown.
func TestNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{nodes: fleet})
	const malformed, unknown = fleet - 1, fleet
	for i := 1; i <= malformed-1; i++ {
		switch bare := cluster.Region + "." + instanceID(i); i % 3 {
		case 0:
			w.setProviderID(nodeName(i), bare)
		case 1:
			w.setProviderID(nodeName(i), "alicloud://"+bare)
		}
	}
	w.setProviderID(nodeName(malformed), instanceID(malformed))
	w.setProviderID(nodeName(unknown), cluster.Region+".i-unknown")

	w.startManager(quick...)
	w.nodesAreInitialized(names(1, malformed-1))
	w.wrongIDsAreReported(malformed, unknown)
	w.stoppedInstanceIsTainted(1)
	w.deletionsAreCapped(20)
}

// nodesAreInitialized waits until the nodes show what ECS knows of their instances, and counts the calls for it.
func (w *world) nodesAreInitialized(nodes []string) {
	w.Helper()
	machines := w.machines()
	w.until("the nodes are initialized", eventDeadline, func(ctx context.Context) string {
		have := w.nodes(ctx)
		for _, name := range nodes {
			if missing := uninitialized(have[name], machines[name]); missing != "" {
				return missing
			}
		}
		return ""
	})
	// One by ID, one by address, and one for what joined one of them too late; the rest is the node with the unknown instance, which is
	// looked for again after 1, 2, 4 ... times the stock queue's five milliseconds.
	const most = 12
	calls := w.calls(0)
	if n := count(calls, "DescribeInstances"); n > most {
		w.Errorf("%d nodes took %d calls of DescribeInstances, want at most %d", len(nodes), n, most)
	} else {
		w.Logf("%d nodes took %d calls of DescribeInstances", len(nodes), n)
	}
}

// uninitialized says what a Node still lacks.
func uninitialized(node *corev1.Node, m machine) string {
	if node == nil {
		return m.InstanceName + " is not there"
	}
	bare := cluster.Region + "." + m.InstanceID
	if node.Spec.ProviderID != bare && node.Spec.ProviderID != "alicloud://"+bare {
		return fmt.Sprintf("%s has the provider ID %q", node.Name, node.Spec.ProviderID)
	}
	for _, address := range m.VpcAttributes.PrivateIPAddress.IPAddress {
		if !slices.Contains(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address}) {
			return fmt.Sprintf("%s has the addresses %v, without %s", node.Name, node.Status.Addresses, address)
		}
	}
	for label, want := range map[string]string{
		corev1.LabelTopologyRegion: cluster.Region, corev1.LabelTopologyZone: m.ZoneID, corev1.LabelInstanceTypeStable: m.InstanceType,
	} {
		if got := node.Labels[label]; got != want || want == "" {
			return fmt.Sprintf("%s has the label %s=%q, want %q", node.Name, label, got, want)
		}
	}
	if tainted(node, cloudproviderapi.TaintExternalCloudProvider) {
		return node.Name + " is tainted"
	}
	return ""
}

// wrongIDsAreReported switches the machines of two nodes with wrong provider IDs off, so that the manager must judge them, and expects an
// event on each and no deletion.
func (w *world) wrongIDsAreReported(malformed, unknown int) {
	w.Helper()
	w.power("Stopped", malformed, unknown)
	w.until("the wrong IDs have their events", 3*eventDeadline, func(ctx context.Context) string {
		switch {
		case !w.hasEvent(ctx, nodeName(malformed), "InvalidProviderID"):
			return nodeName(malformed) + " has no event InvalidProviderID"
		case !w.hasEvent(ctx, nodeName(unknown), "InstanceNotFound"):
			return nodeName(unknown) + " has no event InstanceNotFound"
		}
		return w.unready(ctx, []string{nodeName(malformed), nodeName(unknown)})
	})
	w.holds("nodes with wrong IDs are kept", goneWithin/2, func(ctx context.Context) string {
		return w.missing(ctx, names(1, fleet))
	})
}

// stoppedInstanceIsTainted stops an instance and starts it again.
func (w *world) stoppedInstanceIsTainted(i int) {
	w.Helper()
	w.power("Stopped", i)
	w.untilTainted(i, true)
	w.power("Running", i)
	w.untilTainted(i, false)
}

func (w *world) untilTainted(i int, want bool) {
	w.Helper()
	w.until(fmt.Sprintf("%s has the shutdown taint: %t", nodeName(i), want), eventDeadline, func(ctx context.Context) string {
		node := w.nodes(ctx)[nodeName(i)]
		if node == nil {
			return "the node is not there"
		}
		if tainted(node, cloudproviderapi.TaintNodeShutdown) != want {
			return fmt.Sprintf("its taints are %v", node.Spec.Taints)
		}
		return ""
	})
}

// deletionsAreCapped releases many instances at once and expects a tenth of the cluster to go in the interval, not more.
func (w *world) deletionsAreCapped(n int) {
	w.Helper()
	const most = fleet / 10
	for i := 2; i < 2+n; i++ {
		w.admin(http.MethodDelete, "instances/"+instanceID(i), nil, nil)
	}
	w.until("the first ones go and the others have the event that they wait", eventDeadline, func(ctx context.Context) string {
		if gone := fleet - len(w.nodes(ctx)); gone < most {
			return fmt.Sprintf("%d nodes are gone", gone)
		}
		if got := w.countEvents(ctx, "NodeDeletionDeferred"); got != n-most {
			return fmt.Sprintf("%d nodes have the event NodeDeletionDeferred, want %d", got, n-most)
		}
		return ""
	})
	w.holds("the others stay", goneWithin/2, func(ctx context.Context) string {
		if gone := fleet - len(w.nodes(ctx)); gone != most {
			return fmt.Sprintf("%d nodes are gone, want %d", gone, most)
		}
		return w.missing(ctx, append(names(1, 1), names(2+n, fleet)...))
	})
}

// power sets the status of instances. A machine that is not Running has no kubelet.
func (w *world) power(status string, instances ...int) {
	w.Helper()
	for _, i := range instances {
		w.admin(http.MethodPut, "instances/"+instanceID(i), map[string]string{"Status": status}, nil)
	}
}

// missing names a node that is not there.
func (w *world) missing(ctx context.Context, nodes []string) string {
	have := w.nodes(ctx)
	if have == nil {
		return "" // the read failed
	}
	for _, name := range nodes {
		if have[name] == nil {
			return name + " was deleted"
		}
	}
	return ""
}

// unready names a node that is still ready, or gone.
func (w *world) unready(ctx context.Context, nodes []string) string {
	have := w.nodes(ctx)
	for _, name := range nodes {
		if have[name] == nil {
			return name + " is not there"
		}
		if statusOf(have[name], corev1.NodeReady) == corev1.ConditionTrue {
			return name + " is ready"
		}
	}
	return ""
}
