package node

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
)

// TestRenamedNode: a machine whose kubelet registers under another name leaves its earlier Node behind. Its instance exists, so that Node
// is never deleted by us; an event on the new one says to delete it.
func TestRenamedNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		c := newCluster(t, Options{API: a.Client})
		instances := a.put(3)
		nodes := c.join(instances)
		time.Sleep(time.Minute)
		renamed := nodeOf(instances[0], isReady, func(node *corev1.Node) {
			node.Name, node.UID, node.CreationTimestamp = "renamed", "uid-renamed", metav1.Now()
		})
		c.add(renamed)
		if gone, _ := monitor(c, nodes, 2*time.Hour); gone != 0 {
			t.Errorf("%d nodes were called gone", gone)
		}
		if _, err := c.InstanceMetadata(t.Context(), renamed); err != nil {
			t.Error(err)
		}
		if got := c.eventReasons(); !slices.Contains(got, reasonInstanceAmbiguous) {
			t.Errorf("events %v, want one about the earlier Node", got)
		}
	})
}

// TestAllInstancesGone: where every instance that this process ever saw is missing, no answer proves anything, whatever else the VPC holds:
// a key of another account would show the same. The Nodes are kept, and an event on each names what to check.
func TestAllInstancesGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		c := newCluster(t, Options{API: a.Client})
		nodes := c.join(a.put(3))
		if _, err := a.PutInstance("i-of-another-cluster", emulator.InstanceSpec{}); err != nil {
			t.Fatal(err)
		}
		monitor(c, nodes, time.Minute)
		for _, id := range []string{"i-0", "i-1", "i-2"} {
			a.ReleaseInstance(id)
		}
		if gone, _ := monitor(c, nodes, 6*time.Hour); gone != 0 {
			t.Errorf("%d nodes were called gone although nothing proves it", gone)
		}
		if got := c.eventReasons(); !slices.Contains(got, reasonInstanceNotFound) {
			t.Errorf("events %v, want one that says what to check", got)
		}
		// One machine that joins is proof enough.
		joined, err := a.PutInstance("i-new", emulator.InstanceSpec{})
		if err != nil {
			t.Fatal(err)
		}
		ready := nodeOf(joined, isReady)
		c.add(ready)
		if _, err := c.InstanceMetadata(t.Context(), ready); err != nil {
			t.Fatal(err)
		}
		if gone, _ := monitor(c, nodes, time.Hour); gone == 0 {
			t.Error("no node was called gone although an instance is shown")
		}
	})
}
