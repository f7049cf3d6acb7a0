package teststorm

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
)

// Zones is the number of zones among which nodes are distributed in turn.
const Zones = 3

// Nodes are those of a cluster, numbered in the order in which they join.
type Nodes struct {
	tb    testing.TB
	cloud *emulatortest.Cloud
	kube  kubernetes.Interface
	// next is the number of the next one that joins. gone are the numbers of those that have left, and oldest is the first one that
	// [Nodes.Leave] has not had leave.
	next, oldest int
	gone         sets.Set[int]
}

// NewNodes returns an empty cluster.
func NewNodes(tb testing.TB, cloud *emulatortest.Cloud, kube kubernetes.Interface) *Nodes {
	tb.Helper()
	return &Nodes{tb: tb, cloud: cloud, kube: kube, gone: sets.New[int]()}
}

// NodeName is the name of a node.
func NodeName(i int) string { return fmt.Sprintf("n%04d", i) }

// Count is the number of nodes.
func (n *Nodes) Count() int { return n.next - len(n.gone) }

// Join has nodes join at once.
func (n *Nodes) Join(count int) {
	n.tb.Helper()
	for i := range count {
		n.joinIn(n.next % Zones)
		drain(i)
	}
}

// joinIn has a node join in a zone.
func (n *Nodes) joinIn(zone int) {
	n.tb.Helper()
	name := NodeName(n.next)
	testkit.Must(n.cloud.PutInstance(testkube.InstanceOf(name), emulator.InstanceSpec{}))(n.tb)
	node := testkube.Node(name, testkube.NodeLabel(corev1.LabelTopologyZone, fmt.Sprintf("zone-%d", zone)))
	testkit.Must(n.kube.CoreV1().Nodes().Create(n.tb.Context(), node, metav1.CreateOptions{}))(n.tb)
	n.next++
}

// JoinZone has nodes of one zone join one after the other, as [Nodes.JoinApart].
func (n *Nodes) JoinZone(zone, count int) {
	n.tb.Helper()
	for range count {
		n.joinIn(zone)
		synctest.Wait()
	}
}

// JoinApart has nodes join one after the other, each when the manager has seen the one before it.
func (n *Nodes) JoinApart(count int) {
	n.tb.Helper()
	for range count {
		n.Join(1)
		synctest.Wait()
	}
}

// Leave has those nodes leave at once that have been there longest.
func (n *Nodes) Leave(count int) {
	n.tb.Helper()
	for i := range count {
		n.Delete(n.oldest)
		n.oldest++
		drain(i)
	}
}

// Roll replaces nodes in steps, ten seconds each: some join, and then as many of those leave that have been there longest.
func (n *Nodes) Roll(steps, surge int) {
	n.tb.Helper()
	for range steps {
		n.Join(surge)
		time.Sleep(5 * time.Second) //nolint:forbidigo // in a bubble of testing/synctest, a sleep sets the clock
		n.Leave(surge)
		time.Sleep(5 * time.Second) //nolint:forbidigo // as above
	}
}

// drain waits now and then until everybody has seen the events: the fake API server's watches hold no more than a hundred. A moment passes,
// as it would without the bubble: what is written then is written before what comes is known.
func drain(i int) {
	if i%100 == 99 {
		synctest.Wait()
		time.Sleep(time.Millisecond) //nolint:forbidigo // in a bubble of testing/synctest, a sleep sets the clock
	}
}

// Delete has one node leave.
func (n *Nodes) Delete(i int) {
	n.tb.Helper()
	testkit.Check(n.tb, n.kube.CoreV1().Nodes().Delete(n.tb.Context(), NodeName(i), metav1.DeleteOptions{}))
	n.gone.Insert(i)
}

// Gone are the instances of the nodes that have left.
func (n *Nodes) Gone() sets.Set[string] {
	ids := sets.New[string]()
	for i := range n.gone {
		ids.Insert(testkube.InstanceOf(NodeName(i)))
	}
	return ids
}

// ZoneFails has all nodes of a zone stop to work, and returns their instances. They say that they are not ready, or are silent, for which
// Kubernetes notes Unknown.
func (n *Nodes) ZoneFails(ready corev1.ConditionStatus) sets.Set[string] {
	n.tb.Helper()
	dead := sets.New[string]()
	for i := 0; i < n.next; i += Zones {
		if n.gone.Has(i) {
			continue
		}
		name := NodeName(i)
		dead.Insert(testkube.InstanceOf(name))
		testkube.ChangeNode(n.tb, n.kube, name, func(node *corev1.Node) { testkube.Ready(node).Status = ready })
		drain(i / Zones)
	}
	return dead
}

// Balanced checks the members of groups: none has more than so many, each node is in as many as [Nodes.Even] says, and none of the nodes
// that have left is in any.
func (n *Nodes) Balanced(members map[string][]string, most, quota int) {
	n.tb.Helper()
	for group, ids := range members {
		if len(ids) > most {
			n.tb.Errorf("%s has %d backend servers, want %d at most", group, len(ids), most)
		}
	}
	n.NoneGone(members)
	n.Even(members, quota)
}

// NoneGone checks that none of the nodes that have left is in a group.
func (n *Nodes) NoneGone(members map[string][]string) {
	n.tb.Helper()
	gone := n.Gone()
	for group, ids := range members {
		for _, id := range ids {
			if gone.Has(id) {
				n.tb.Errorf("%s has the backend server %s, whose node is gone", group, id)
			}
		}
	}
}

// Even checks that no node is in many more groups than the nodes are on average, nor in more than so many.
func (n *Nodes) Even(members map[string][]string, quota int) {
	n.tb.Helper()
	loads, total := map[string]int{}, 0
	for _, ids := range members {
		total += len(ids)
		for _, id := range ids {
			loads[id]++
		}
	}
	mean := float64(total) / float64(n.Count())
	for id, times := range loads {
		if times > quota || float64(times) > max(1.3*mean, mean+1) {
			n.tb.Errorf("%s is in %d groups, the mean is %.1f and the quota %d", id, times, mean, quota)
		}
	}
}
