package vpcroute

import (
	"maps"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

// TestNodesJoinDuringAPass has nodes join while a pass sets the conditions of those that it knows. With one map for both, the process dies.
func TestNodesJoinDuringAPass(t *testing.T) {
	t.Parallel()
	const count = 2000
	client := fake.NewClientset()
	informer := informers.NewSharedInformerFactory(client, 0).Core().V1().Nodes()
	c := newConditions(client, informer.Lister())
	t.Cleanup(c.queue.ShutDown)
	known, joining := map[string]conditionFor{}, []*corev1.Node{}
	for i := range 2 * count {
		node := nodeOf(i)
		if err := informer.Informer().GetIndexer().Add(node); err != nil {
			t.Fatal(err)
		}
		if i < count {
			known[node.Name] = conditionFor{uid: node.UID, reason: conditionMissing}
		} else {
			joining = append(joining, node)
		}
	}
	want := maps.Clone(known)
	var both sync.WaitGroup
	both.Go(func() {
		for range 10 {
			c.set(known)
		}
	})
	both.Go(func() { c.require(joining...) })
	both.Wait()
	if !maps.Equal(known, want) {
		t.Errorf("nodes that join were added to what the pass wants: %d nodes, want %d", len(known), len(want))
	}
}
