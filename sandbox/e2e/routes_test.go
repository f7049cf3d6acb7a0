//go:build unix && fleet

package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

const (
	systemTable = "vtb-emulator"
	secondTable = "vtb-second"
	// routablePods has room for 64 nodes, so that a test can use it up.
	routablePods = "10.244.0.0/18"
	// foreigner is an instance that is no node.
	foreigner = "i-foreigner"
	// routedWithin is how long the tables may differ from the nodes: a proof that an instance is gone takes more than a minute, and in its
	// first minute, a manager removes no route whose node it has
	// never seen.
	routedWithin = eventDeadline + 3*time.Minute
)

// routed are the manager's flags. A short period shows soon that a manager with nothing to do writes nothing.
var routed = []string{"--route-reconciliation-period=1s", "--node-monitor-period=1s"}

func newRoutedWorld(t *testing.T) *world {
	t.Helper()
	config := cloud.DefaultConfig()
	config.RouteTables = append(config.RouteTables, cloud.RouteTableConfig{ID: secondTable, VPCID: emulatedVPC})
	w := newWorld(t, worldOptions{
		nodes: fleet, cloud: config, up: []string{"--pod-cidr", routablePods},
		settings: map[string]string{"routeTableIDs": systemTable + "," + secondTable},
	})
	// Switched off, so that it does not join.
	w.admin(http.MethodPut, "instances/"+foreigner, map[string]string{"InstanceName": foreigner, "Status": "Stopped"}, nil)
	return w
}

// TestRoutes is one story on one control plane: the steps rely on what the ones before have shown.
func TestRoutes(t *testing.T) {
	t.Parallel()
	w := newRoutedWorld(t)
	from, to := w.pod(nodeName(2)), w.pod(nodeName(3))
	w.reach(from, to, false)
	conflict := w.foreignEntry(nodeName(1))

	for i := 1; i <= fleet; i++ {
		w.setProviderID(nodeName(i), cluster.Region+"."+instanceID(i)) // so that all are in the first batch
	}
	// The first batch passes, it is that of one table; those of the other find the VPC busy.
	w.fault(map[string]any{"action": "CreateRouteEntries", "code": "TaskConflict", "after": 1, "times": 0})
	w.startManager(routed...)
	w.halfRoutedIsUnavailable()
	w.clearFaults()
	w.untilRouted("routed in both tables", nodeName(1))
	w.reach(from, to, true)
	w.conflictIsReported(nodeName(1), conflict)

	w.withoutPodCIDR()
	w.removedWhileAway(4)
	w.killedAtEveryWrite(from, to)
	w.routesSwitchedOff(5)
}

// halfRoutedIsUnavailable waits until one table has its entries and watches that no node counts as routed by that.
func (w *world) halfRoutedIsUnavailable() {
	w.Helper()
	inTables := func() map[string]int {
		tables := map[string]int{}
		for _, e := range w.entries() {
			tables[e.table]++
		}
		return tables
	}
	w.until("one table has its entries", eventDeadline, func(context.Context) string {
		tables := inTables()
		// The foreign entry stands in the second table.
		if tables[systemTable] < fleet && tables[secondTable] < fleet {
			return fmt.Sprintf("entries by table: %v", tables)
		}
		return ""
	})
	w.holds("half a route is none", 3*time.Second, func(ctx context.Context) string {
		for name, node := range w.nodes(ctx) {
			if statusOf(node, corev1.NodeNetworkUnavailable) == corev1.ConditionFalse {
				return fmt.Sprintf("%s is available with entries by table %v", name, inTables())
			}
		}
		return ""
	})
}

// wantedEntries are what the nodes want in both tables, sorted. Nodes without pod CIDR or provider ID want nothing.
func (w *world) wantedEntries(ctx context.Context) []entry {
	machines := w.machines()
	var all []entry
	for name, node := range w.nodes(ctx) {
		if node.Spec.PodCIDR == "" || node.Spec.ProviderID == "" {
			continue
		}
		for _, table := range []string{systemTable, secondTable} {
			all = append(all, entry{table, node.Spec.PodCIDR, machines[name].InstanceID, "Available"})
		}
	}
	sortEntries(all)
	return all
}

// untilRouted waits until the tables hold exactly what the nodes want and every node's network is available, but for nodes whose CIDR a
// foreign entry holds in the second table.
func (w *world) untilRouted(what string, conflicting ...string) {
	w.Helper()
	w.until(what, routedWithin, func(ctx context.Context) string {
		want, nodes := w.wantedEntries(ctx), w.nodes(ctx)
		for i := range want {
			for _, name := range conflicting {
				if nodes[name] != nil && want[i].table == secondTable && want[i].cidr == nodes[name].Spec.PodCIDR {
					want[i].hop = foreigner
				}
			}
		}
		if diff := cmp.Diff(want, w.entries(), cmp.AllowUnexported(entry{})); diff != "" {
			return "entries differ (-want +got):\n" + diff
		}
		for name, node := range nodes {
			available := statusOf(node, corev1.NodeNetworkUnavailable) == corev1.ConditionFalse
			if node.Spec.PodCIDR != "" && node.Spec.ProviderID != "" && available == slices.Contains(conflicting, name) {
				return fmt.Sprintf("%s is available: %t", name, available)
			}
		}
		return ""
	})
}

// foreignEntry writes an entry for the node's pod CIDR to an instance that is no node, into the second table only.
func (w *world) foreignEntry(node string) entry {
	w.Helper()
	foreign := entry{secondTable, w.nodes(w.Context())[node].Spec.PodCIDR, foreigner, "Available"}
	w.byHand("CreateRouteEntry", foreign)
	return foreign
}

// byHand changes a route table as somebody does who works on it by hand.
func (w *world) byHand(action string, e entry) {
	w.Helper()
	w.asPerson(api.VersionVPC, action, map[string]string{
		"RouteTableId": e.table, "DestinationCidrBlock": e.cidr, "NextHopId": e.hop, "NextHopType": "Instance", "Description": "by hand",
	})
}

// asPerson makes a call of the cloud as a person does, and not the manager.
func (w *world) asPerson(version, action string, more map[string]string) {
	w.Helper()
	if _, err := cluster.Call(w.Context(), w.url, version, action, more); err != nil {
		w.Fatal(err)
	}
}

// conflictIsReported expects an event on the node, the foreign entry as it was, and the node routed once the entry is gone.
func (w *world) conflictIsReported(node string, foreign entry) {
	w.Helper()
	w.until("the conflict has its event", eventDeadline, func(ctx context.Context) string {
		if !w.hasEvent(ctx, node, "RouteConflict") {
			return "there is no event RouteConflict"
		}
		return ""
	})
	if !slices.Contains(w.entries(), foreign) {
		w.Fatalf("the foreign entry %v is gone", foreign)
	}
	w.byHand("DeleteRouteEntry", foreign)
	w.untilRouted("routed when the foreign entry is gone")
}

// withoutPodCIDR uses the cluster CIDR up, lets one more node join and expects an event on it. It leaves no such node behind.
func (w *world) withoutPodCIDR() {
	w.Helper()
	const room = 64 // of routablePods
	const more = "i-more"
	nodes := w.client.CoreV1().Nodes()
	for i := fleet; i < room; i++ {
		// The label keeps them out of the manager's hands.
		filler := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("filler-%d", i), Labels: map[string]string{"service.alibabacloud.com/exclude-node": ""},
		}}
		if _, err := nodes.Create(w.Context(), filler, metav1.CreateOptions{}); err != nil {
			w.Fatal(err)
		}
	}
	w.until("the cluster CIDR is used up", eventDeadline, func(ctx context.Context) string {
		for name, node := range w.nodes(ctx) {
			if node.Spec.PodCIDR == "" {
				return name + " has no pod CIDR"
			}
		}
		return ""
	})
	w.admin(http.MethodPut, "instances/"+more, map[string]string{}, nil)
	w.until("the lack of a pod CIDR has its event", eventDeadline, func(ctx context.Context) string {
		if !w.hasEvent(ctx, more, "NoPodCIDR") {
			return "there is no event NoPodCIDR"
		}
		return ""
	})
	w.admin(http.MethodDelete, "instances/"+more, nil, nil)
	w.deleteNode(more)
	for name, node := range w.nodes(w.Context()) {
		if _, filler := node.Labels["service.alibabacloud.com/exclude-node"]; filler {
			w.deleteNode(name)
		}
	}
	w.untilRouted("as before")
}

func (w *world) deleteNode(name string) {
	w.Helper()
	err := w.client.CoreV1().Nodes().Delete(w.Context(), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		w.Fatal(err)
	}
}

// removedWhileAway releases an instance and deletes its Node while no manager runs.
func (w *world) removedWhileAway(i int) {
	w.Helper()
	w.stopManager()
	before := len(w.entries())
	w.admin(http.MethodDelete, "instances/"+instanceID(i), nil, nil)
	w.deleteNode(nodeName(i))
	if after := len(w.entries()); after != before {
		w.Fatalf("%d of %d entries are left without a manager", after, before)
	}
	w.startManager(routed...)
	w.untilRouted("routes of the removed node are cleaned up")
}

// routesSwitchedOff lets a node have the condition that a route controller leaves behind.
func (w *world) routesSwitchedOff(i int) {
	w.Helper()
	w.stopManager()
	before := w.entries()
	node, err := w.client.CoreV1().Nodes().Get(w.Context(), nodeName(i), metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	for at := range node.Status.Conditions {
		if c := &node.Status.Conditions[at]; c.Type == corev1.NodeNetworkUnavailable {
			c.Status, c.Reason = corev1.ConditionTrue, "NoRouteCreated"
		}
	}
	if _, err := w.client.CoreV1().Nodes().UpdateStatus(w.Context(), node, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
	w.startManager("--configure-cloud-routes=false")
	w.until("the condition is cleared", eventDeadline, func(ctx context.Context) string {
		if node := w.nodes(ctx)[nodeName(i)]; node == nil || statusOf(node, corev1.NodeNetworkUnavailable) != corev1.ConditionFalse {
			return "it is there"
		}
		return ""
	})
	if diff := cmp.Diff(before, w.entries(), cmp.AllowUnexported(entry{})); diff != "" {
		w.Errorf("entries changed with routes off (-before +after):\n%s", diff)
	}
}

// pod runs a pod on the node and returns it when it answers on its own machine.
func (w *world) pod(node string) *corev1.Pod {
	w.Helper()
	pods := w.client.CoreV1().Pods(metav1.NamespaceDefault)
	pod, err := pods.Create(w.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "on-" + node},
		Spec: corev1.PodSpec{
			NodeName: node, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{Name: "web", Image: "nginx", Ports: []corev1.ContainerPort{{ContainerPort: 80}}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	w.until("pod "+pod.Name+" has an address", eventDeadline, func(ctx context.Context) string {
		if pod, err = pods.Get(ctx, pod.Name, metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		if pod.Status.PodIP == "" {
			return "it has none"
		}
		return ""
	})
	return pod
}

// reach tries a pod from the machine of another one, until the answer is as wanted.
func (w *world) reach(from, to *corev1.Pod, want bool) {
	w.Helper()
	w.reachAt(from, to, to.Status.PodIP, want)
}

// reachAt is reach with one of the pod's addresses.
func (w *world) reachAt(from, to *corev1.Pod, ip string, want bool) {
	w.Helper()
	machine := w.machines()[from.Spec.NodeName].InstanceID
	query := url.Values{"from": {machine}, "to": {net.JoinHostPort(ip, "80")}}.Encode()
	w.until(fmt.Sprintf("%s reaches %s: %t", from.Spec.NodeName, to.Name, want), eventDeadline, func(ctx context.Context) string {
		answer, err := w.get(ctx, "/_sandbox/get?"+query)
		switch {
		case (err == nil) != want:
			return fmt.Sprintf("answer %q, %v", answer, err)
		case want && strings.TrimSpace(answer) != to.Name:
			return fmt.Sprintf("%q answers", answer)
		}
		return ""
	})
}
