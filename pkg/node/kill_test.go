package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// mortal stands between a process and the API server. The process dies of one of its writes of Nodes, which happens or not, and nothing
// of it gets through any more.
type mortal struct {
	client *fake.Clientset

	mu     sync.Mutex // guards the rest
	writes int
	last   int // the number of the write that it dies of; 0 is none
	// happens says whether that write is carried out.
	happens bool
	dead    chan struct{}
}

var errDead = errors.New("the process is dead")

func (m *mortal) react(action clienttesting.Action) (bool, runtime.Object, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last > 0 && m.writes >= m.last {
		return true, nil, errDead
	}
	if slices.Contains([]string{"get", "list", "watch"}, action.GetVerb()) {
		return false, nil, nil
	}
	if m.writes++; m.writes != m.last {
		return false, nil, nil
	}
	defer close(m.dead)
	if m.happens {
		if _, _, err := clienttesting.ObjectReaction(m.client.Tracker())(action); err != nil {
			return true, nil, err
		}
	}
	return true, nil, errDead
}

// revive makes a new process of it, which does not die.
func (m *mortal) revive() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = 0
}

func (m *mortal) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.writes
}

// TestKilledAtEveryWrite lets the process die of each of its writes of Nodes while three nodes join and one whose instance is gone is to be
// deleted. The next process finishes all of that, deletes nothing else, and then writes nothing.
func TestKilledAtEveryWrite(t *testing.T) {
	t.Parallel()
	// A node that joins is written twice, the object and its status, and the other one once.
	const all = 3*2 + 1
	for write := 1; write <= all; write++ {
		for _, happens := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d, happens %t", write, happens), func(t *testing.T) {
				t.Parallel()
				playKill(t, write, happens)
			})
		}
	}
}

func playKill(t *testing.T, write int, happens bool) {
	t.Helper()
	a := newAccount(t, emulator.Options{})
	client := fake.NewClientset()
	nodes := []*corev1.Node{nodeOf(emulator.Instance{ID: "i-gone"})}
	for _, instance := range a.put(3) {
		nodes = append(nodes, nodeOf(instance, tainted, noAddress))
	}
	for _, node := range nodes {
		if _, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	m := &mortal{client: client, last: write, happens: happens, dead: make(chan struct{})}
	client.PrependReactor("*", "nodes", m.react)
	stop := startStock(t, client, a)
	testkit.Eventually(t, "the process dies", func(context.Context) bool {
		select {
		case <-m.dead:
			return true
		default:
			return false
		}
	})
	stop()
	m.revive()
	startStock(t, client, a)
	testkit.Eventually(t, "all is as it should be", func(ctx context.Context) bool { return finished(ctx, client) })
	// The passes go on, over nodes that are not ready. What was under way when all was seen to be finished ends in the first of them.
	passes := func(n int) {
		before := a.Last()
		testkit.Eventually(t, "passes go on", func(context.Context) bool { return a.Count(before, "DescribeInstances") >= n })
	}
	passes(2)
	before := m.count()
	passes(3)
	if n := m.count() - before; n != 0 {
		t.Errorf("%d writes with nothing left to do", n)
	}
}

// finished reports whether the three nodes are there with all they need, and the fourth is not.
func finished(ctx context.Context, client *fake.Clientset) bool {
	_, err := client.CoreV1().Nodes().Get(ctx, "node-i-gone", metav1.GetOptions{})
	list, listErr := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	return apierrors.IsNotFound(err) && listErr == nil && len(list.Items) == 3 &&
		!slices.ContainsFunc(list.Items, func(node corev1.Node) bool {
			return nodes.Uninitialized(&node) || node.Spec.ProviderID == "" || node.Labels[corev1.LabelTopologyZone] == "" ||
				len(node.Status.Addresses) == 0
		})
}
