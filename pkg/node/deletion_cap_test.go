package node

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
)

// TestCapOfSmallCluster: the cap holds for clusters of any size.
func TestCapOfSmallCluster(t *testing.T) {
	t.Parallel()
	for size, most := range map[int]int{2: 1, 3: 1, 6: 2, 12: 4, 30: 5, 100: 10} {
		t.Run(fmt.Sprintf("%d nodes", size), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, emulator.Options{})
				c := newCluster(t, Options{API: a.Client})
				nodes := c.join(a.put(size))
				monitor(c, nodes, time.Minute)
				for i := 1; i < size; i++ {
					a.ReleaseInstance(fmt.Sprintf("i-%d", i))
				}
				if gone, _ := monitor(c, nodes, 6*time.Minute); gone != min(most, size-1) {
					t.Errorf("%d nodes were called gone within an interval, want %d", gone, min(most, size-1))
				}
			})
		})
	}
}

// TestRestoredAPIServer: the API server lost its data and the nodes register again one by one, some minutes apart, while ECS answers
// in halves or the key has become that of another account. No Node is lost, whatever their kubelets do.
func TestRestoredAPIServer(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(a *account) API{
		"ECS is well":            nil,
		"half answers":           func(a *account) API { return lens{a.Client, half} },
		"key of another account": otherAccount,
		"empty answers":          func(a *account) API { return lens{a.Client, only()} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, emulator.Options{})
				api := &switchable{API: a.Client}
				c := newCluster(t, Options{API: api})
				nodes := c.join(a.put(9))
				monitor(c, nodes, time.Minute)
				indexer := c.nodes.Core().V1().Nodes().Informer().GetIndexer()
				for _, node := range nodes {
					_ = indexer.Delete(node)
				}
				if trouble != nil {
					api.API = trouble(a)
				}
				var back []*corev1.Node
				for i, node := range nodes {
					again := node.DeepCopy()
					again.UID = types.UID(fmt.Sprintf("again-%d", i))
					testkube.Ready(again).LastTransitionTime = metav1.Now()
					back = append(back, again)
					c.add(again)
					if gone, _ := monitor(c, back, 4*time.Minute); gone != 0 {
						t.Fatalf("%d of %d nodes were called gone", gone, len(back))
					}
				}
			})
		})
	}
}

// TestFailedDeletionKeepsItsSlot: a Node whose deletion was allowed and did not happen is tried again after a while, and uses up no second
// of the interval's deletions; one that was not confirmed waits for the next interval.
func TestFailedDeletionKeepsItsSlot(t *testing.T) {
	t.Parallel()
	opts := Options{}.withDefaults().Guard
	g := newDeletionGuard(opts)
	now := time.Now()
	for _, step := range []struct {
		after time.Duration
		uid   types.UID
		want  grant
	}{
		{uid: "a", want: granted},
		{after: time.Second, uid: "a", want: notDue},
		{uid: "b", want: capped},
		{after: opts.spacing(), uid: "a", want: granted},
		{after: opts.Interval, uid: "b", want: granted},
	} {
		now = now.Add(step.after)
		if got := g.grant(step.uid, 3, now); got != step.want {
			t.Errorf("%s: %v, want %v", step.uid, got, step.want)
		}
	}
	g.deny("b")
	if got := g.grant("b", 3, now.Add(opts.spacing())); got != notDue {
		t.Errorf("b, not confirmed: %v, want %v", got, notDue)
	}
}

// TestManyInstancesAreGone: more instances are gone than one call names. Every call has one that exists among those that it names, so
// that its answer proves something: else none of the Nodes would ever go.
func TestManyInstancesAreGone(t *testing.T) {
	t.Parallel()
	const all, released, batch = 60, 50, 20
	synctest.Test(t, func(t *testing.T) {
		a := newAccount(t, emulator.Options{})
		c := newCluster(t, Options{API: a.Client, BatchSize: batch})
		var nodes []*corev1.Node
		for i, instance := range a.put(all) {
			node := nodeOf(instance)
			if i >= released {
				isReady(node)
			}
			nodes = append(nodes, node)
		}
		c.add(nodes...)
		monitor(c, nodes, time.Minute)
		for _, node := range nodes {
			_, _ = c.InstanceMetadata(t.Context(), node)
		}
		for i := range released {
			a.ReleaseInstance(fmt.Sprintf("i-%d", i))
		}
		monitor(c, nodes, time.Minute)
		before, most := a.Last(), c.opts.Guard.limit(all)
		left := nodes
		for begin := time.Now(); time.Since(begin) < 14*time.Minute; time.Sleep(period) {
			left = slices.DeleteFunc(left, func(node *corev1.Node) bool {
				exists, err := c.InstanceExists(t.Context(), node)
				if err == nil && !exists {
					testkit.Check(t, c.nodes.Core().V1().Nodes().Informer().GetIndexer().Delete(node))
				}
				return err == nil && !exists
			})
		}
		if gone := all - len(left); gone < 2*most {
			t.Errorf("%d nodes were called gone in 14 minutes, want at least %d", gone, 2*most)
		}
		for _, call := range a.Calls(before) {
			if ids := call.Parameters["InstanceIds"]; call.Action == "DescribeInstances" && !namesAny(ids, released, all) {
				t.Fatalf("a call names no instance that exists: %s", ids)
			}
		}
	})
}

// namesAny reports whether a list of ids names one of i-first, …
func namesAny(ids string, first, end int) bool {
	for i := first; i < end; i++ {
		if strings.Contains(ids, fmt.Sprintf("%q", fmt.Sprintf("i-%d", i))) {
			return true
		}
	}
	return false
}
