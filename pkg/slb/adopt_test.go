package slb

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// TestAdoption: a CLB that the official CCM made is taken over without one write, and the next node still
// goes into the group that is there.
func TestAdoption(t *testing.T) {
	t.Parallel()
	for _, clusterID := range []string{testCluster, "clusterid", "another"} {
		t.Run(clusterID, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			threeNodes(w)
			svc := testService("web", 80, 81)
			svc.Finalizers = []string{Finalizer}
			svc.Labels = map[string]string{driver.LabelHash: "0", driver.LabelLoadBalancerID: "lb-old"}
			w.officialCLB(svc, clusterID)
			w.put(svc)
			w.mustPass("web")
			if writes := writesOf(w.calls()); len(writes) != 0 {
				t.Errorf("adoption writes %v", writes)
			}
			if w.get("web").Labels[driver.LabelHash] != "0" {
				t.Error("the hash label changed while the Service lives")
			}
			w.addNode("d")
			w.mustPass("web")
			if diff := cmp.Diff([]string{"AddVServerGroupBackendServers", "AddVServerGroupBackendServers"}, w.calls()); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			w.change("web", func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP })
			w.mustPass("web")
			if left := w.get("web"); len(w.state()) != 0 || len(left.Finalizers) != 0 || len(left.Labels) != 0 {
				t.Errorf("left over: %v, %v, %v", w.state(), left.Finalizers, left.Labels)
			}
		})
	}
}

// TestCLBWhoseTagsAreGoneGetsThemBack: a CLB that the manager has created, which its label, its marks and the Record show, gets its tags
// back.
func TestCLBWhoseTagsAreGoneGetsThemBack(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	if err := w.api.UntagLoadBalancer(t.Context(), w.get("web").Labels[driver.LabelLoadBalancerID],
		[]string{mark.TagOwner, mark.TagCluster}); err != nil {
		t.Fatal(err)
	}
	w.restart()
	w.calls()
	w.mustPass("web")
	if diff := cmp.Diff([]string{"TagResources"}, writesOf(w.calls())); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestTwoCLBsOfOneServiceAreNotGuessedBetween(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	svc := testService("web", 80)
	w.officialCLB(svc, testCluster)
	w.officialCLB(svc, testCluster)
	w.put(svc)
	w.mustPassConfigError("web")
	w.change("web", deleteService)
	if err := w.pass("web"); err == nil {
		t.Error("deletion guesses")
	}
	if writes := writesOf(w.calls()); len(writes) != 0 {
		t.Errorf("writes %v, want none", writes)
	}
}

// TestBackendQuota: additions that find no room wait for the removals of the same pass.
func TestBackendQuota(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	w.addNode("d")
	w.addNode("e")
	w.deleteNode("c")
	w.fault(map[string]any{"action": "AddVServerGroupBackendServers", "code": "InstanceBackendServerNumberOverLimit", "status": 400})
	w.mustPass("web")
	if diff := cmp.Diff([]string{"i-a 100", "i-b 100", "i-d 100", "i-e 100"},
		short(w.state()["a0f5e8a1cweb"].Groups["k8s/30080/web/default/c1"])); diff != "" {
		t.Errorf("backend servers (-want +got):\n%s", diff)
	}
}

// TestAdoptionOfEveryKind: whatever kind of Service the official CCM served, and with whichever cluster id, plan lists nothing, no pass
// writes to the cloud, and nothing in it changes. After a node joined and a setting changed and changed back, the official CCM would
// find everything as it wants it. A tear-down leaves nothing of the Service.
func TestAdoptionOfEveryKind(t *testing.T) {
	t.Parallel()
	marks := slices.Concat(plainKinds(), protocolKinds(), podKinds(), nodeKinds(), reuseKinds())
	settings := slices.Concat(annotatedKinds(), instanceKinds(), listenerKinds())
	t.Logf("%d kinds with either cluster ID, %d with one", len(marks), len(settings))
	for _, test := range []struct {
		clusterID string
		kinds     []kind
	}{{literalClusterID, marks}, {testCluster, slices.Concat(marks, settings)}} {
		if test.clusterID == literalClusterID && testing.Short() {
			continue // the next one has the same kinds
		}
		for i, kind := range test.kinds {
			if !testkit.Tried(i, 3) {
				continue
			}
			t.Run(kind.name+", "+test.clusterID, func(t *testing.T) {
				t.Parallel()
				adoptAndReturn(t, kind, test.clusterID)
			})
		}
	}
}

// TestFieldsThatTheOfficialCCMIgnores act at the adoption: plan lists exactly what the first pass writes. The official CCM would
// change nothing back.
func TestFieldsThatTheOfficialCCMIgnores(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(*corev1.Service)
		plan   []string
		writes []string
	}{
		{"sessionAffinity", func(svc *corev1.Service) { svc.Spec.SessionAffinity = corev1.ServiceAffinityClientIP },
			[]string{`set listener: tcp:80: PersistenceTimeout="0" -> PersistenceTimeout="3600"`}, []string{"SetLoadBalancerTCPListenerAttribute"}},
		{"loadBalancerSourceRanges", func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"} },
			[]string{"create access control list: source ranges: k8s-clb-a0f5e8a1cweb", "add entries: source ranges: 192.0.2.0/24",
				`set listener: tcp:80: AclId="" AclStatus="off" AclType="" -> AclId="(source ranges)" AclStatus="on" AclType="white"`},
			[]string{"CreateAccessControlList", "AddAccessControlListEntry", "SetLoadBalancerTCPListenerAttribute"}},
		{"loadBalancerIP", func(svc *corev1.Service) { svc.Spec.LoadBalancerIP = "10.1.9.9" }, nil, nil},
		{"healthCheckNodePort", func(svc *corev1.Service) { isLocal(svc); svc.Spec.HealthCheckNodePort = 31999 }, nil, nil},
		{"ipFamilies", func(svc *corev1.Service) {
			svc.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
		}, nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			threeNodes(w)
			svc := testService("web", 80)
			test.change(svc)
			w.endpointsOf(svc)
			w.official(svc, literalClusterID).make()
			w.put(svc)
			plan := w.preview("web")
			if plan.Err != nil {
				t.Fatal(plan.Err)
			}
			if diff := cmp.Diff(test.plan, linesOf(plan.Steps)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			w.calls()
			w.mustPass("web")
			if diff := cmp.Diff(test.writes, writesOf(w.calls())); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if writes := w.official(w.get("web"), literalClusterID).wouldWrite(); len(writes) != 0 {
				t.Errorf("the official CCM would write %q", writes)
			}
		})
	}
}

func adoptAndReturn(t *testing.T, kind kind, clusterID string) {
	t.Helper()
	w := newWorld(t)
	threeNodes(w)
	svc := kind.service(w)
	w.endpointsOf(svc)
	before := w.state()
	id := w.official(svc, clusterID).make()
	w.put(svc)
	if kind.byHand != nil {
		kind.byHand(w, id)
	}
	back := func(when string) {
		t.Helper()
		if writes := w.official(w.get("web"), clusterID).wouldWrite(); len(writes) != 0 && !kind.fights {
			t.Errorf("%s, the official CCM would write:\n%s", when, strings.Join(writes, "\n"))
		}
	}
	back("Before the adoption")
	stood := w.state()
	for _, start := range []string{"first start", "restart"} {
		w.mustAdopt(start)
		if diff := cmp.Diff(stood, w.state()); diff != "" {
			t.Errorf("%s: state (-before +after):\n%s", start, diff)
		}
	}
	shown := w.get("web")
	want := map[string]string{"service.beta.kubernetes.io/hash": "0", "service.k8s.alibaba/loadbalancer-id": id}
	if diff := cmp.Diff(want, shown.Labels); diff != "" || !slices.Equal(shown.Finalizers, []string{"service.k8s.alibaba/resources"}) {
		t.Errorf("finalizers %v, labels (-want +got):\n%s", shown.Finalizers, diff)
	}
	back("After the adoption")
	w.editAndUndo()
	back("After an edit")

	w.deleteNode("d")
	w.change("web", deleteService)
	w.converge("web")
	if kind.stays {
		return
	}
	after := w.state()
	if lb, ok := after["mine"]; ok {
		delete(lb.Tags, mark.TagReused)
		// Tags that were there before this program may be the owner's as well as of the official CCM: they stay.
		maps.DeleteFunc(lb.Tags, func(key, value string) bool {
			return before["mine"].Tags[key] != value && stood["mine"].Tags[key] == value
		})
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("after the tear-down (-before +after):\n%s", diff)
	}
}

// endpointsOf gives every port of the Service two endpoints on node a and one on b; pods have the addresses of their nodes' interfaces.
func (w *world) endpointsOf(svc *corev1.Service) {
	w.t.Helper()
	for _, port := range svc.Spec.Ports {
		endpoints := []string{w.addressOf("i-a") + "@a", w.addressOf("i-b") + "@b"}
		if svc.Annotations[annotation.BackendType] != "eni" {
			endpoints = append(endpoints, "10.244.1.9@a")
		}
		slice := testSlice(port, endpoints...)
		slice.Name = "web-" + port.Name
		if port.TargetPort.StrVal != "" {
			slice.Ports[0].Port = new(int32(8443))
		}
		w.putSlice(slice)
	}
}

// mustAdopt begins with a process that remembers nothing: its plan lists nothing, and neither its first pass nor one for drift writes.
func (w *world) mustAdopt(start string) {
	w.t.Helper()
	w.restart()
	w.calls()
	plan := w.preview("web")
	if plan.Err != nil {
		w.t.Fatalf("%s: preview: %v", start, plan.Err)
	}
	if lines := linesOf(plan.Steps); len(lines) != 0 {
		w.t.Errorf("%s: plan lists\n%s", start, strings.Join(lines, "\n"))
	}
	w.mustPass("web")
	w.drift("web")
	w.mustPass("web")
	if writes := writesOf(w.calls()); len(writes) != 0 {
		w.t.Errorf("%s writes %v", start, writes)
	}
}

// editAndUndo has a node join, and a setting change and change back.
func (w *world) editAndUndo() {
	w.t.Helper()
	w.addNode("d")
	w.converge("web")
	old, had := w.get("web").Annotations[key(annotation.UnhealthyThreshold)]
	w.change("web", func(svc *corev1.Service) {
		if svc.Annotations == nil {
			svc.Annotations = map[string]string{}
		}
		annotate(svc, annotation.UnhealthyThreshold, "7")
	})
	w.converge("web")
	w.change("web", func(svc *corev1.Service) {
		annotate(svc, annotation.UnhealthyThreshold, old)
		if !had {
			delete(svc.Annotations, key(annotation.UnhealthyThreshold))
		}
	})
	w.converge("web")
}

func (w *world) lbs() []alicloud.LoadBalancer {
	w.t.Helper()
	all, err := w.api.DescribeLoadBalancers(w.t.Context(), queryAll())
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// TestServerOfAnotherClusterOnAnotherPort: two clusters on the same instances have backend servers in one group; each leaves the other's
// alone, and none is written again and again.
func TestServerOfAnotherClusterOnAnotherPort(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	id := w.makeCLB().ID
	theirs := alicloud.Backend{BackendKey: alicloud.BackendKey{Type: alicloud.BackendECS, ServerID: "i-a", Port: 31000}, Weight: 7,
		Description: "k8s/31000/web/default/c9"}
	group, err := w.api.CreateVServerGroup(t.Context(), id, "shared", []alicloud.Backend{theirs})
	if err != nil {
		t.Fatal(err)
	}
	w.put(joining("web", id, group+":80", 80))
	w.converge("web")
	want := []string{"i-a 100", "i-a 7", "i-b 100", "i-c 100"}
	if diff := cmp.Diff(want, short(w.state()["mine"].Groups["shared"])); diff != "" {
		t.Errorf("backend servers (-want +got):\n%s", diff)
	}
	w.restart()
	w.calls()
	w.mustPass("web")
	if writes := writesOf(w.calls()); len(writes) != 0 {
		t.Errorf("the next pass writes %v", writes)
	}
	w.change("web", deleteService)
	w.converge("web")
	if diff := cmp.Diff([]string{"i-a 7"}, short(w.state()["mine"].Groups["shared"])); diff != "" {
		t.Errorf("backend servers after the tear-down (-want +got):\n%s", diff)
	}
}
