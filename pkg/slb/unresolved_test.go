package slb

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/waits"
)

// TestUnresolvedNodeForever: a node that never gets a provider ID is no reason to make a pass over every Service each half a minute for
// ever, has one event, and does not keep the backends of deleted Nodes. Another one counts anew.
func TestUnresolvedNodeForever(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		threeNodes(w)
		w.put(testService("web", 80))
		w.mustPass("web")
		w.newEvents()
		noID := func(n *corev1.Node) { n.Spec.ProviderID, n.CreationTimestamp = "", metav1.Now() }
		w.putNode(testNode("d", noID))
		w.deleteNode("c")
		pass := func() time.Duration {
			wait, err := w.Reconcile(t.Context(), w.get("web"))
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(wait)
			return wait
		}
		const half, minute = 30 * time.Second, time.Minute
		var delays []time.Duration
		for range 5 {
			delays = append(delays, pass())
		}
		if want := []time.Duration{half, half, minute, 2 * minute, 4 * minute}; !slices.Equal(delays, want) {
			t.Errorf("passes after %v, want %v", delays, want)
		}
		if events := w.newEvents(); len(events) != 1 {
			t.Errorf("events %q, want one", events)
		}
		for begun := time.Now(); time.Since(begun) < waits.NodeUnresolved+testResyncPeriod; {
			pass()
		}
		if backends := w.servers(webGroup); len(backends) != 2 {
			t.Errorf("backends %v, want that of the deleted Node gone", backends)
		}
		w.putNode(testNode("e", noID))
		if wait := pass(); wait != half {
			t.Errorf("a pass after %s, want %s: another node", wait, half)
		}
	})
}
