//go:build unix && fleet

package e2e

import (
	"context"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/e2e/clouds"
)

// startGrace is how long a manager leaves routes alone whose node it has never seen.
const startGrace = time.Minute

// TestRoutesAreNotLost lets an API server lose all Nodes at once, as one that is restored without data, and get them back one after the
// other: under a manager that has seen them, and under one that has not. Wrong answers of the whole cloud fall into that time. No route is
// removed. When half of the instances are really gone, their routes go all the same.
func TestRoutesAreNotLost(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	w := newRoutedWorld(t)
	alone := append(slices.Clone(hasty), noElection)
	w.startManager(alone...)
	w.nodesAreInitialized(names(1, fleet))
	w.untilRouted("routed in both tables")
	before := w.entries()

	w.emptied(names(1, fleet), func(saved []*corev1.Node) {
		w.refill(saved)
	})
	w.sameRoutes("after a refill", before)

	w.emptied(names(1, fleet), func(saved []*corev1.Node) {
		w.killManager()
		w.startManager(alone...)
		w.refill(saved[:fleet/2])
		w.holds("half of the nodes are back", startGrace+10*time.Second, func(context.Context) string { return w.changed(before) })
		w.refill(saved[fleet/2:])
	})
	w.sameRoutes("after a refill under a new manager", before)

	// Nodes without which there are no routes to lose stay away while the cloud answers wrongly.
	w.emptied(names(1, fleet), func(saved []*corev1.Node) {
		w.refill(saved[:fleet/2])
		for _, answer := range clouds.Answers(t, w.url, "*") {
			for _, rule := range answer.Faults {
				w.fault(rule)
			}
			w.cloud.Lead(t, answer.URL)
			w.ecs.Lead(t, answer.URL)
			w.holds(answer.Name, max(3*time.Second, answer.Least), func(context.Context) string { return w.changed(before) })
			w.cloud.Lead(t, w.url)
			w.ecs.Lead(t, w.url)
			w.clearFaults()
		}
	})
	for i := fleet/2 + 1; i <= fleet; i++ {
		w.admin("DELETE", "instances/"+instanceID(i), nil, nil)
	}
	w.untilRouted("the routes of released instances go")
}

// emptied deletes Nodes while the manager stands still, which then sees them go at once, and does something.
func (w *world) emptied(nodes []string, then func(saved []*corev1.Node)) {
	w.Helper()
	before, have := w.entries(), w.nodes(w.Context())
	var saved []*corev1.Node
	w.signalManager(syscall.SIGSTOP)
	for _, name := range nodes {
		saved = append(saved, have[name].DeepCopy())
		w.deleteNode(name)
	}
	w.signalManager(syscall.SIGCONT)
	w.holds("there is no node", 3*time.Second, func(context.Context) string { return w.changed(before) })
	then(saved)
}

func (w *world) signalManager(signal syscall.Signal) {
	w.Helper()
	if err := w.manager.cmd.Process.Signal(signal); err != nil {
		w.Fatal(err)
	}
}

// refill makes Nodes again, one after the other, and watches the routes meanwhile.
func (w *world) refill(saved []*corev1.Node) {
	w.Helper()
	before := w.entries()
	for _, node := range saved {
		node.ResourceVersion, node.UID = "", ""
		if _, err := w.client.CoreV1().Nodes().Create(w.Context(), node, metav1.CreateOptions{}); err != nil {
			w.Fatal(err)
		}
		w.holds("while "+node.Name+" comes back", look, func(context.Context) string { return w.changed(before) })
	}
}

// changed says how the routes differ from those before.
func (w *world) changed(before []entry) string {
	w.Helper()
	if now := w.entries(); !slices.Equal(before, now) {
		return "routes (-before +now):\n" + cmp.Diff(before, now, cmp.AllowUnexported(entry{}))
	}
	return ""
}

func (w *world) sameRoutes(when string, before []entry) {
	w.Helper()
	w.holds(when, 5*time.Second, func(context.Context) string { return w.changed(before) })
}
