package slb

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
)

// Work of each of the managers of an account: a node leaves every neighborPause, and takes a removal in each Service with it, which is more
// than half of the quota of removals has room for.
const (
	neighborServices = 60
	neighborPause    = 40 * time.Second
	// neighborSettle is the time until the managers know their shares, neighborWork the one after it that counts.
	neighborSettle, neighborWork = 2 * time.Minute, 8 * time.Minute
	// urgentPause is how long after it left, or came back, an endpoint of a Service in another namespace comes back, or leaves again.
	urgentPause = 11 * time.Second
)

// neighbor is one of the managers of an account.
type neighbor struct {
	*fleet
	name   string
	urgent *discoveryv1.EndpointSlice
	// left are when an endpoint left the Service urgent.
	left []time.Time
}

func newNeighbor(t *testing.T, e *emulatortest.Cloud, name string) *neighbor {
	t.Helper()
	n := &neighbor{fleet: newFleetOn(t, e, config.Config{ClusterID: name, Quotas: roomy()}), name: name}
	for i := range int((neighborSettle+neighborWork)/neighborPause) + 3 {
		n.createFleetNode(n.node(i))
	}
	for i := range neighborServices {
		n.put(testService(fmt.Sprintf("%s-%02d", name, i), 80))
		synctest.Wait() // the fake API server's watches hold no more than a hundred events
	}
	local := testService(name+"-urgent", 80)
	local.Namespace, local.Spec.ExternalTrafficPolicy = "urgent", corev1.ServiceExternalTrafficPolicyLocal
	n.createFleetNode(name + "-x")
	n.createFleetNode(name + "-y")
	n.urgent = testkube.EndpointSlice(local.Name, local.Spec.Ports[0], "10.9.0.1@"+name+"-x", "10.9.0.2@"+name+"-y")
	n.urgent.Namespace = local.Namespace
	testkit.Must(n.kube.DiscoveryV1().EndpointSlices(local.Namespace).Create(t.Context(), n.urgent, metav1.CreateOptions{}))(t)
	n.put(local)
	return n
}

func (n *neighbor) node(i int) string { return fmt.Sprintf("%s-%02d", n.name, i) }

// work has a node leave, and an endpoint of the Service urgent leave or come back, when it is time for that.
func (n *neighbor) work(passed time.Duration) {
	n.t.Helper()
	if passed%neighborPause == 0 {
		testkit.Check(n.t, n.kube.CoreV1().Nodes().Delete(n.t.Context(), n.node(int(passed/neighborPause)), metav1.DeleteOptions{}))
	}
	if passed%urgentPause == 0 {
		n.moveEndpoint(int(passed / urgentPause))
	}
}

// moveEndpoint has the second endpoint of the Service urgent leave, and come back the next time.
func (n *neighbor) moveEndpoint(times int) {
	changed := n.urgent.DeepCopy()
	if times%2 == 0 {
		changed.Endpoints = changed.Endpoints[:1]
		n.left = append(n.left, time.Now())
	}
	testkit.Must(n.kube.DiscoveryV1().EndpointSlices(n.urgent.Namespace).Update(n.t.Context(), changed, metav1.UpdateOptions{}))(n.t)
}

// removals returns when each removal of a node, and each one of the urgent endpoint, was made.
func (n *neighbor) removals(calls []emulator.Call) (nodes, urgent []time.Time) {
	for _, call := range calls {
		servers := call.Parameters["BackendServers"]
		switch {
		case call.Action != removeServers || call.Code != "":
		case strings.Contains(servers, `"i-`+n.name+`-y"`):
			urgent = append(urgent, call.Time)
		case strings.Contains(servers, `"i-`+n.name+`-`):
			nodes = append(nodes, call.Time)
		}
	}
	return nodes, urgent
}

// TestTwoManagersOfOneAccount: the managers of two clusters on one account, each with more removals than half of their quota has room for,
// share that about evenly and use nearly all of it. What is urgent in another namespace of either does not wait for the others.
func TestTwoManagersOfOneAccount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := publishedCloud(t, cloud.Limits{LoadBalancers: 10_000, LBsPerInstance: 10_000})
		managers := [2]*neighbor{newNeighbor(t, e, "a"), newNeighbor(t, e, "b")}
		for _, m := range managers {
			defer m.stop()
			m.rest()
		}
		e.NewCalls()
		began := time.Now().Add(neighborSettle)
		for passed := time.Duration(0); passed < neighborSettle+neighborWork; passed += time.Second {
			for _, m := range managers {
				m.work(passed)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(urgentPause)
		calls, counts, total := e.NewCalls(), [2]int{}, 0
		for i, m := range managers {
			nodes, urgent := m.removals(calls)
			for _, at := range nodes {
				if at.After(began) && at.Before(began.Add(neighborWork)) {
					counts[i]++
					total++
				}
			}
			m.inTime(urgent, began)
		}
		t.Logf("%d and %d removals in %s", counts[0], counts[1], neighborWork)
		for i, count := range counts {
			if count*100 < total*35 {
				t.Errorf("manager %s has %d of %d removals", managers[i].name, count, total)
			}
		}
		if all := groupQuota * int(neighborWork/time.Minute); total*100 < all*70 {
			t.Errorf("%d removals, the quota is %d", total, all)
		}
	})
}

// inTime checks that each endpoint that left after a time was removed within ten seconds.
func (n *neighbor) inTime(removed []time.Time, settled time.Time) {
	n.t.Helper()
	longest := time.Duration(0)
	for _, left := range n.left {
		if left.Before(settled) {
			continue
		}
		at := slices.IndexFunc(removed, func(at time.Time) bool { return !at.Before(left) })
		if at < 0 {
			n.t.Errorf("manager %s: the endpoint that left at %s was not removed", n.name, left)
			return
		}
		longest = max(longest, removed[at].Sub(left))
	}
	n.t.Logf("manager %s: an urgent removal took %s at most", n.name, longest)
	if longest > 10*time.Second {
		n.t.Errorf("manager %s: an urgent removal took %s", n.name, longest)
	}
}
