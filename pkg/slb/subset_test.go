package slb

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// smallWorld is a world with small quotas, which the manager knows.
func smallWorld(t *testing.T, backends, attachments int) *world {
	t.Helper()
	w := newWorldWith(t, cloud.Limits{BackendsPerLB: backends, LBsPerInstance: attachments})
	w.config.Quotas = smallQuotas(backends, attachments)
	w.restart()
	return w
}

// roomy is what a manager knows of a cloud whose quotas were raised.
func roomy() *quota.Book { return smallQuotas(10_000, 10_000) }

func smallQuotas(backends, attachments int) *quota.Book {
	return quota.NewBook(map[string]int{string(quota.BackendsPerCLB): backends, string(quota.CLBsPerInstance): attachments})
}

// backendsOf returns the instances behind each node port of a Service, sorted.
func (w *world) backendsOf(name string) map[string][]string {
	found := map[string][]string{}
	for _, lb := range w.state() {
		for mark, servers := range lb.Groups {
			if !strings.Contains(mark, "/"+name+"/") {
				continue
			}
			ids := []string{}
			for _, server := range servers {
				id, _, _ := strings.Cut(strings.Fields(server)[1], ":")
				ids = append(ids, id)
			}
			slices.Sort(ids)
			found[strings.Split(mark, "/")[1]] = ids
		}
	}
	return found
}

func refused(calls []string) []string {
	return slices.DeleteFunc(slices.Clone(calls), func(call string) bool { return !strings.Contains(call, "=") })
}

// TestNodesBeyondTheQuotaOfACLB: of more nodes than a CLB takes, as many become backends as fit; nothing is refused. One that leaves is
// replaced in the same call, and one that joins changes nothing.
func TestNodesBeyondTheQuotaOfACLB(t *testing.T) {
	t.Parallel()
	w := smallWorld(t, 4, 50)
	for i := range 6 {
		w.addNode(fmt.Sprint("n", i))
	}
	w.put(testService("web", 80))
	w.mustPass("web")
	before := w.backendsOf("web")["30080"]
	if len(before) != 4 {
		t.Fatalf("backends %v, want 4", before)
	}
	if found := refused(w.calls()); len(found) > 0 {
		t.Errorf("refused: %v", found)
	}
	w.mustPass("web")
	w.restart()
	w.mustPass("web")
	w.addNode("n7")
	w.mustPass("web")
	if writes := writesOf(w.calls()); len(writes) > 0 {
		t.Errorf("a second pass, a restart and a node that joins write %v", writes)
	}
	w.deleteNode(strings.TrimPrefix(before[0], "i-"))
	w.mustPass("web")
	if writes := writesOf(w.calls()); !slices.Equal(writes, []string{"ModifyVServerGroupBackendServers"}) {
		t.Errorf("a node that leaves: %v, want one call that replaces it", writes)
	}
	after := w.backendsOf("web")["30080"]
	if len(after) != 4 || slices.Contains(after, before[0]) {
		t.Errorf("backends %v after %s left", after, before[0])
	}
}

// TestAllNodesOnceTheyFit: with two ports each gets half of the quota, and once there are few enough nodes, all of them.
func TestAllNodesOnceTheyFit(t *testing.T) {
	t.Parallel()
	w := smallWorld(t, 8, 50)
	for i := range 6 {
		w.addNode(fmt.Sprint("n", i))
	}
	w.put(testService("web", 80, 443))
	w.mustPass("web")
	some := w.backendsOf("web")
	if len(some["30080"]) != 4 || !slices.Equal(some["30080"], some["30443"]) {
		t.Fatalf("backends %v, want the same 4 behind both ports", some)
	}
	for i := range 6 {
		if id := fmt.Sprint("i-n", i); !slices.Contains(some["30080"], id) {
			w.deleteNode(fmt.Sprint("n", i))
		}
	}
	w.calls()
	w.mustPass("web")
	if writes := writesOf(w.calls()); len(writes) > 0 {
		t.Errorf("4 nodes are left, which are the backends: %v", writes)
	}
	w.change("web", func(svc *corev1.Service) { svc.Spec.Ports = svc.Spec.Ports[:1] })
	for i := range 6 {
		w.putNode(testNode(fmt.Sprint("n", i)))
	}
	w.mustPass("web")
	if all := w.backendsOf("web")["30080"]; len(all) != 6 {
		t.Errorf("backends %v of one port, want all 6", all)
	}
}

// TestQuotaIsLearned: where nobody has said how many backend servers a CLB takes, one refusal shows it. Later passes keep to it, until it
// may have been raised.
func TestQuotaIsLearned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := cloud.DefaultConfig()
		cfg.Quotas.BackendsPerLB = 5
		w := unstartedWorld(t, cfg)
		w.config.Quotas = quota.NewBook(nil)
		w.restart()
		for i := range 7 {
			w.addNode(fmt.Sprint("n", i))
		}
		w.put(testService("web", 80))
		if err := w.pass("web"); err == nil {
			t.Fatal("nothing was refused")
		}
		if have := w.backendsOf("web")["30080"]; len(have) != 5 {
			t.Fatalf("backends %v, want as many as the CLB takes", have)
		}
		w.calls()
		w.mustPass("web")
		if calls := w.calls(); len(refused(calls)) > 0 || len(writesOf(calls)) > 0 {
			t.Errorf("the next pass: %v", calls)
		}
		w.emulator.Change(func(s *emulator.Settings) { s.Quotas.BackendsPerLB = 200 })
		time.Sleep(time.Hour + time.Minute)
		w.mustPass("web")
		if have := w.backendsOf("web")["30080"]; len(have) != 7 {
			t.Errorf("backends %v once the quota was raised, want all 7", have)
		}
	})
}

// TestNumberOfNodes: the annotation and the cloud-config say how many nodes are backends, and the annotation counts.
func TestNumberOfNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.BackendSubset = 3
	w.restart()
	for i := range 6 {
		w.addNode(fmt.Sprint("n", i))
	}
	w.put(testService("web", 80))
	for _, test := range []struct {
		value string
		want  int
	}{{"", 3}, {"2", 2}, {"off", 6}, {"auto", 6}, {"9", 6}, {"some", 6}, {"1", 1}} {
		w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.BackendSubset, test.value) })
		w.mustPass("web")
		if got := w.backendsOf("web")["30080"]; len(got) != test.want {
			t.Errorf("%q: backends %v, want %d", test.value, got, test.want)
		}
	}
}

// TestMoreServicesThanAnInstanceTakes: with more Services than an instance can be behind, each Service has some of the nodes, and all have
// them again once there are few enough.
func TestMoreServicesThanAnInstanceTakes(t *testing.T) {
	t.Parallel()
	const services, nodes, attachments = 9, 8, 4
	synctest.Test(t, func(t *testing.T) {
		f := newFleetIn(t, cloud.Limits{LBsPerInstance: attachments}, config.Config{
			BackendSubset: backend.SubsetAuto, Quotas: smallQuotas(200, attachments),
		})
		defer func() { f.stop() }()
		for i := range nodes {
			f.createFleetNode(nodeName(i))
		}
		sizes := func(want, least int) {
			t.Helper()
			f.rest()
			for i := range want {
				if have := f.backendsOf(fmt.Sprint("web", i))["30080"]; len(have) < least {
					t.Errorf("web%d has %v, want %d at least", i, have, least)
				}
			}
		}
		for i := range attachments {
			f.put(testService(fmt.Sprint("web", i), 80))
		}
		sizes(attachments, nodes)
		for i := attachments; i < services; i++ {
			f.put(testService(fmt.Sprint("web", i), 80))
		}
		sizes(services, 2)
		for i := attachments; i < services; i++ {
			f.change(fmt.Sprint("web", i), func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP })
		}
		sizes(attachments, nodes)
	})
}

// TestLocalServiceBeyondTheQuota: where pods decide which nodes are backends, those that fit serve, from all zones, and one event says how
// many do not.
func TestLocalServiceBeyondTheQuota(t *testing.T) {
	t.Parallel()
	w := smallWorld(t, 4, 50)
	svc := testService("web", 80)
	svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	var endpoints []string
	for i := range 6 {
		name := fmt.Sprint("n", i)
		w.addNode(name, labeled(corev1.LabelTopologyZone, fmt.Sprint("zone-", i/5))) // five in one zone, one in the other
		endpoints = append(endpoints, fmt.Sprintf("10.244.%d.2@%s", i, name))
	}
	w.putSlice(testSlice(svc.Spec.Ports[0], endpoints...))
	w.put(svc)
	w.mustPass("web")
	have := w.backendsOf("web")["30080"]
	if len(have) != 4 || !slices.Contains(have, "i-n5") {
		t.Errorf("backends %v, want 4, with the only one of its zone", have)
	}
	if found := refused(w.calls()); len(found) > 0 {
		t.Errorf("refused: %v", found)
	}
	w.mustPass("web")
	if writes := writesOf(w.calls()); len(writes) > 0 {
		t.Errorf("a second pass writes %v", writes)
	}
	events := slices.DeleteFunc(w.newEvents(), func(e string) bool { return !strings.Contains(e, problem.ReasonQuotaReached) })
	if len(events) != 1 || !strings.Contains(events[0], "2 of 6 backends") || !strings.Contains(events[0], "raise the quota") {
		t.Errorf("events %q, want one with the numbers and what to do", events)
	}
}

// TestPodsBeyondTheQuota: the same for addresses of pods.
func TestPodsBeyondTheQuota(t *testing.T) {
	t.Parallel()
	w := smallWorld(t, 4, 50)
	threeNodes(w)
	svc := testService("web", 80)
	svc.Annotations[annotation.BackendType] = "eni"
	var endpoints []string
	for i := range 6 {
		name := fmt.Sprint("p", i)
		w.addNode(name)
		endpoints = append(endpoints, w.addressOf("i-"+name)+"@"+name)
	}
	w.putSlice(testSlice(svc.Spec.Ports[0], endpoints...))
	w.put(svc)
	w.mustPass("web")
	w.mustPass("web")
	if found := refused(w.calls()); len(found) > 0 {
		t.Errorf("refused: %v", found)
	}
	for _, servers := range w.backendsOf("web") {
		if len(servers) != 4 {
			t.Errorf("backends %v, want 4", servers)
		}
	}
	if events := w.newEvents(); !slices.ContainsFunc(events, func(e string) bool { return strings.Contains(e, "2 of 6 backends") }) {
		t.Errorf("events %q", events)
	}
}

// TestInstanceThatOthersUseUp: an instance that is behind as many CLBs of others as it may be is refused once. The Service takes another
// node, and further Services do not try it, until somebody may have raised the quota.
func TestInstanceThatOthersUseUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const attachments, services = 4, 6
		cfg := cloud.DefaultConfig()
		cfg.Quotas.LBsPerInstance = attachments
		w := unstartedWorld(t, cfg)
		w.config.Quotas, w.config.BackendSubset = quota.NewBook(nil), 2
		w.restart()
		for i := range 5 {
			w.addNode(fmt.Sprint("n", i))
		}
		for range attachments {
			w.strangersCLB("i-n0")
		}
		w.calls()
		refusals := 0
		for i := range services {
			name := fmt.Sprint("web", i)
			w.put(testService(name, 80))
			first := w.pass(name) // one of them meets the quota
			if err := w.pass(name); err != nil {
				t.Errorf("%s: %v, after %v", name, err, first)
			}
			refusals += len(refused(w.calls()))
			if have := w.backendsOf(name)["30080"]; len(have) != 2 || slices.Contains(have, "i-n0") {
				t.Errorf("%s has %v, want two that are not used up", name, have)
			}
		}
		if refusals == 0 || refusals > 3 {
			t.Errorf("%d calls were refused, want those of one Service", refusals)
		}
	})
}

// strangersCLB has somebody else create a CLB with an instance as its backend server.
func (w *world) strangersCLB(instance string) {
	w.t.Helper()
	var created struct {
		LoadBalancerID string `json:"LoadBalancerId"`
		VServerGroupID string `json:"VServerGroupId"`
	}
	w.raw(api.VersionSLB, "CreateLoadBalancer", map[string]string{"AddressType": "intranet", "VSwitchId": "vsw-a"}, &created)
	w.raw(api.VersionSLB, "CreateVServerGroup", map[string]string{"LoadBalancerId": created.LoadBalancerID}, &created)
	w.raw(api.VersionSLB, "AddVServerGroupBackendServers", map[string]string{
		"VServerGroupId": created.VServerGroupID, "BackendServers": fmt.Sprintf(`[{"ServerId":%q,"Port":80}]`, instance),
	}, nil)
}
