package slb

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
)

// TestLocalBesideCluster: an instance can be behind 10 CLBs. 4 Services with externalTrafficPolicy Local have pods on all nodes, 8 with
// Cluster come before or afterwards. Each is served, those with Local on all their nodes. Nothing is refused, and nothing is written in the
// end, also by a new process.
func TestLocalBesideCluster(t *testing.T) {
	t.Parallel()
	const nodes, attachments, locals, clusters = 20, 10, 4, 8
	for name, localFirst := range map[string]bool{"Local first": true, "Cluster first": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFleetIn(t, cloud.Limits{LBsPerInstance: attachments}, config.Config{
					BackendSubset: backend.SubsetAuto, Quotas: smallQuotas(200, attachments),
				})
				defer func() { f.stop() }()
				for i := range nodes {
					f.createFleetNode(nodeName(i))
				}
				create := map[bool]func(){
					true: func() {
						for i := range locals {
							f.putLocal(fmt.Sprint("local", i), nodes)
						}
					},
					false: func() {
						for i := range clusters {
							f.put(testService(fmt.Sprint("web", i), 80))
						}
					},
				}
				create[localFirst]()
				f.rest()
				create[!localFirst]()
				time.Sleep(time.Hour)
				if n, _ := f.refused(); n > 0 {
					t.Errorf("%d calls were refused", n)
				}
				f.replaceProcess()
				time.Sleep(time.Hour)
				f.rest()
				for i := range locals {
					if n := len(f.backendsOf(fmt.Sprint("local", i))["30080"]); n < nodes {
						t.Errorf("local%d has %d of %d nodes", i, n, nodes)
					}
				}
				for i := range clusters {
					if n := len(f.backendsOf(fmt.Sprint("web", i))["30080"]); n < nodes*(attachments-locals)/clusters/2 {
						t.Errorf("web%d has %d nodes", i, n)
					}
				}
				f.checkWrites(0, "")
			})
		})
	}
}

// TestPlacesOfALaterZone: the pods of one zone fill a CLB, then most pods run in another zone. Nothing else happens: within minutes that
// zone gets its share, by one call for each place, of which each leaves the CLB full. A restart in the middle changes nothing, and in the
// end nothing is written.
func TestPlacesOfALaterZone(t *testing.T) {
	t.Parallel()
	const places, nodes = 12, 24
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprint("restarts ", restarts), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFleetIn(t, cloud.Limits{BackendsPerLB: places}, config.Config{Quotas: smallQuotas(places, 50)})
				defer func() { f.stop() }()
				pods := map[int]int{}
				for i := range nodes {
					f.createFleetNode(nodeName(i), labeled(corev1.LabelTopologyZone, fmt.Sprint("zone-", i*2/nodes)))
					if i < nodes/2 {
						pods[i] = 1
					}
				}
				svc := testService("web", 80)
				svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
				f.setPods(svc, pods)
				f.put(svc)
				f.rest()
				f.emulator.NewCalls()
				for i := nodes / 2; i < nodes; i++ {
					pods[i] = 3
				}
				f.setPods(svc, pods)
				if restarts {
					time.Sleep(12 * time.Second)
					f.replaceProcess()
				}
				time.Sleep(3 * time.Minute)
				zones := map[bool]int{}
				for _, id := range f.backendsOf("web")["30080"] {
					zones[id >= "i-"+nodeName(nodes/2)]++
				}
				if want := map[bool]int{false: places / 2, true: places / 2}; !maps.Equal(zones, want) {
					t.Errorf("backend servers in the later zone and not: %v, want %v", zones, want)
				}
				f.checkWrites(places/2, "ModifyVServerGroupBackendServers")
				f.replaceProcess()
				time.Sleep(time.Hour)
				f.checkWrites(0, "")
			})
		})
	}
}

// checkWrites checks that there were so many writes, all of one action.
func (f *fleet) checkWrites(want int, action string) {
	f.t.Helper()
	n := 0
	for _, call := range f.emulator.NewCalls() {
		if strings.HasPrefix(call.Action, "Describe") && call.Code == "" {
			continue
		}
		if n++; call.Action != action || call.Code != "" {
			f.t.Errorf("%s %s", call.Action, call.Code)
		}
	}
	if n != want {
		f.t.Errorf("%d writes, want %d", n, want)
	}
}

// TestPlaceOfAPodThatIsNotReady: of a CLB that is full of servers, one whose pod is no longer ready gives its place to another one in the
// same pass, whatever zones and numbers of pods say.
func TestPlaceOfAPodThatIsNotReady(t *testing.T) {
	t.Parallel()
	w := smallWorld(t, 3, 50)
	svc := testService("web", 80)
	svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	var endpoints []string
	for i := range 5 {
		name := fmt.Sprint("n", i)
		w.addNode(name, labeled(corev1.LabelTopologyZone, "zone-0"))
		for n := range 5 - i { // the first nodes have the most pods
			endpoints = append(endpoints, fmt.Sprintf("10.244.%d.%d@%s", i, n, name))
		}
	}
	w.putSlice(testSlice(svc.Spec.Ports[0], endpoints...))
	w.put(svc)
	w.mustPass("web")
	w.calls()
	for i, endpoint := range endpoints {
		if strings.HasSuffix(endpoint, "@n0") {
			endpoints[i] = "?" + endpoint
		}
	}
	slice := testSlice(svc.Spec.Ports[0], endpoints...)
	slice.Name = "web-" + strings.ReplaceAll(strings.Join(endpoints, "-"), "?", "") // the same slice
	w.putSlice(slice)
	w.mustPass("web")
	if have, want := w.backendsOf("web")["30080"], []string{"i-n1", "i-n2", "i-n3"}; !slices.Equal(have, want) {
		t.Errorf("backend servers %v, want %v", have, want)
	}
	if writes := writesOf(w.calls()); !slices.Equal(writes, []string{"ModifyVServerGroupBackendServers"}) {
		t.Errorf("writes %v, want one", writes)
	}
}

// TestLocalOnFewNodesBesideCluster: everything fits, because the pods of 4 Services with Local are on 2 nodes each. A new process, which
// does not know that at first, takes no node from those with Cluster.
func TestLocalOnFewNodesBesideCluster(t *testing.T) {
	t.Parallel()
	const nodes, attachments, locals, clusters = 20, 10, 4, 8
	synctest.Test(t, func(t *testing.T) {
		f := newFleetIn(t, cloud.Limits{LBsPerInstance: attachments}, config.Config{
			BackendSubset: backend.SubsetAuto, Quotas: smallQuotas(200, attachments),
		})
		defer func() { f.stop() }()
		for i := range nodes {
			f.createFleetNode(nodeName(i))
		}
		for i := range locals {
			f.putLocalOn(fmt.Sprint("local", i), 2*i, 2*i+1)
		}
		for i := range clusters {
			f.put(testService(fmt.Sprint("web", i), 80))
		}
		time.Sleep(time.Hour)
		f.rest()
		for i := range clusters {
			if n := len(f.backendsOf(fmt.Sprint("web", i))["30080"]); n != nodes {
				t.Errorf("web%d has %d of %d nodes", i, n, nodes)
			}
		}
		f.emulator.NewCalls()
		f.replaceProcess()
		time.Sleep(time.Hour)
		f.rest()
		for _, call := range f.emulator.NewCalls() {
			if !strings.HasPrefix(call.Action, "Describe") {
				t.Errorf("%s %s", call.Action, call.Code)
			}
		}
	})
}

// putLocal creates a Service with externalTrafficPolicy Local that has a pod on each of the first so many nodes.
func (f *fleet) putLocal(name string, nodes int) {
	f.t.Helper()
	var on []int
	for i := range nodes {
		on = append(on, i)
	}
	f.putLocalOn(name, on...)
}

// putLocalOn creates a Service with externalTrafficPolicy Local that has a pod on each of the nodes.
func (f *fleet) putLocalOn(name string, on ...int) {
	f.t.Helper()
	svc := testService(name, 80)
	svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	f.setPods(svc, podsOn(on...))
	f.put(svc)
}

// podsOn is one pod on each of the nodes.
func podsOn(on ...int) map[int]int {
	pods := map[int]int{}
	for _, i := range on {
		pods[i] = 1
	}
	return pods
}

// setPods has so many pods of a Service run on each node.
func (f *fleet) setPods(svc *corev1.Service, pods map[int]int) {
	f.t.Helper()
	var endpoints []string
	for _, i := range slices.Sorted(maps.Keys(pods)) {
		for n := range pods[i] {
			endpoints = append(endpoints, fmt.Sprintf("10.244.%d.%d@%s", i, n+2, nodeName(i)))
		}
	}
	slice := testSlice(svc.Spec.Ports[0], endpoints...)
	slice.Name, slice.Labels = svc.Name, map[string]string{"kubernetes.io/service-name": svc.Name}
	slicesOf := f.kube.DiscoveryV1().EndpointSlices(testNamespace)
	if _, err := slicesOf.Update(f.t.Context(), slice, metav1.UpdateOptions{}); apierrors.IsNotFound(err) {
		_, err = slicesOf.Create(f.t.Context(), slice, metav1.CreateOptions{})
		testkit.Check(f.t, err)
	} else {
		testkit.Check(f.t, err)
	}
}

// TestPortsWithPodsOnOtherNodes: the two ports of a Service are served by pods on different nodes, and the CLB is full. Then many pods of
// the first port run on the nodes of the second one. What the vServer group of one port has says nothing about the other one: its backend
// servers change one by one.
func TestPortsWithPodsOnOtherNodes(t *testing.T) {
	t.Parallel()
	w := smallWorld(t, 4, 50)
	for i := range 4 {
		w.addNode(fmt.Sprint("n", i))
	}
	svc := testService("web", 80, 443)
	svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	put := func(i int, items ...string) {
		slice := testkube.EndpointSlice("web", svc.Spec.Ports[i], items...)
		slice.Name = fmt.Sprint("web-", i)
		w.putSlice(slice)
	}
	put(0, "10.0.0.1@n0", "10.0.0.2@n1")
	put(1, "10.0.0.3@n2", "10.0.0.4@n3")
	w.put(svc)
	w.mustPass("web")
	put(0, "10.0.0.1@n0", "10.0.0.2@n1", "10.0.1.1@n2", "10.0.1.2@n2", "10.0.1.3@n2", "10.0.2.1@n3", "10.0.2.2@n3", "10.0.2.3@n3")
	before := w.backendsOf("web")
	for range 2 {
		if _, err := w.Reconcile(t.Context(), w.get("web")); err != nil {
			t.Fatal(err)
		}
		after := w.backendsOf("web")
		if kept := sets.New(before["30080"]...).Intersection(sets.New(after["30080"]...)); len(kept) != 1 || len(after["30080"]) != 2 {
			t.Errorf("in one pass, the backend servers of a port change from %v to %v", before["30080"], after["30080"])
		}
		before = after
	}
	if want := []string{"i-n2", "i-n3"}; !slices.Equal(before["30080"], want) || !slices.Equal(before["30443"], want) {
		t.Errorf("backend servers %v, want %v for both ports", before, want)
	}
	w.wantRest("web")
}
