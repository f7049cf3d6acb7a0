package slb

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

func (w *world) synced(name string) metav1.Condition {
	w.t.Helper()
	condition := meta.FindStatusCondition(w.get(name).Status.Conditions, service.ConditionSynced)
	if condition == nil {
		w.t.Fatalf("Service %s has no condition %s", name, service.ConditionSynced)
	}
	return *condition
}

// TestOneBadPortHoldsNoOtherUp: the address shows as soon as one port answers; the bad port has one event, however often
// it is tried, stands in the condition, and its success has an event, too.
func TestOneBadPortHoldsNoOtherUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	svc := testService("web", 80)
	svc.Spec.Ports = append(svc.Spec.Ports, testPort(53, corev1.ProtocolUDP))
	w.put(svc)
	w.fault(map[string]any{"action": "CreateLoadBalancerUDPListener", "code": "OperationDenied", "status": 400, "times": 0})
	for range 3 {
		if err := w.pass("web"); err == nil {
			t.Fatal("the pass does not report the bad port")
		}
		if shown := w.get("web").Status.LoadBalancer.Ingress; len(shown) != 1 || shown[0].IP == "" {
			t.Fatalf("the Service shows %v, want the address: one port answers", shown)
		}
	}
	if condition := w.synced("web"); condition.Status != metav1.ConditionFalse || condition.Reason != problem.ReasonSyncFailed ||
		!strings.Contains(condition.Message, "udp:53") {
		t.Errorf("condition %+v, want the bad port in it", condition)
	}
	events := w.newEvents()
	if len(events) != 1 || !strings.HasPrefix(events[0], "Warning "+problem.ReasonSyncFailed) || !strings.Contains(events[0], "udp:53") {
		t.Errorf("events %q, want one that names the port", events)
	}
	w.clearFaults()
	w.mustPass("web")
	if condition := w.synced("web"); condition.Status != metav1.ConditionTrue || condition.Reason != problem.ReasonEnsured {
		t.Errorf("condition %+v after the success", condition)
	}
	if events := w.newEvents(); len(events) != 1 || !strings.HasPrefix(events[0], "Normal "+problem.ReasonEnsured) {
		t.Errorf("events %q, want that of the success", events)
	}
}

// TestDriftPassLeavesAloneWhatNoAnnotationManages: what a user sets in the console stays.
func TestDriftPassLeavesAloneWhatNoAnnotationManages(t *testing.T) {
	t.Parallel()
	svc := testService("web", 80)
	annotate(svc, annotation.AddressType, "internet")
	w := settled(t, svc)
	id := w.get("web").Labels[driver.LabelLoadBalancerID]
	ctx := t.Context()
	for _, err := range []error{
		w.api.SetLoadBalancerName(ctx, id, "renamed-by-hand"),
		w.api.SetInternetSpec(ctx, id, "", 7),
		w.api.TagLoadBalancer(ctx, id, []alicloud.Tag{{Key: "team", Value: "a"}}),
		w.api.SetListener(ctx, id, alicloud.Listener{
			ListenerKey: alicloud.ListenerKey{Port: 80, Protocol: alicloud.ProtocolTCP},
			Attributes:  alicloud.Attributes{"EstablishedTimeout": "77", "HealthyThreshold": "9"},
		}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	before := w.state()
	w.calls()
	w.drift("web")
	w.mustPass("web")
	if writes := writesOf(w.calls()); len(writes) != 0 {
		t.Errorf("writes %v, want none: no annotation manages any of it", writes)
	}
	if diff := cmp.Diff(before, w.state()); diff != "" {
		t.Errorf("state (-before +after):\n%s", diff)
	}
}

// TestListenerChangedByHandIsRestored: one is stopped, described anew, and has another setting than the annotation's; the other one is
// turned to another group. One that is both described anew and turned to another group is somebody else's, see TestStrangerOnTheNextPort of
// pkg/provider.
func TestListenerChangedByHandIsRestored(t *testing.T) {
	t.Parallel()
	svc := testService("web", 80, 81)
	annotate(svc, annotation.Scheduler, "wlc")
	w := settled(t, svc)
	before, id := w.state(), w.get("web").Labels[driver.LabelLoadBalancerID]
	listener := map[string]string{"LoadBalancerId": id, "ListenerPort": "80", "ListenerProtocol": "tcp"}
	w.raw(api.VersionSLB, "StopLoadBalancerListener", listener, nil)
	other, err := w.api.CreateVServerGroup(t.Context(), id, "by hand", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, changed := range []alicloud.Listener{
		{ListenerKey: alicloud.ListenerKey{Port: 80, Protocol: alicloud.ProtocolTCP}, Description: "mine now",
			Attributes: alicloud.Attributes{"Scheduler": "rr"}},
		{ListenerKey: alicloud.ListenerKey{Port: 81, Protocol: alicloud.ProtocolTCP}, VServerGroupID: other},
	} {
		if err := w.api.SetListener(t.Context(), id, changed); err != nil {
			t.Fatal(err)
		}
	}
	w.calls()
	w.drift("web")
	w.mustPass("web")
	after := w.state()["a0f5e8a1cweb"]
	if diff := cmp.Diff(before["a0f5e8a1cweb"].Listeners, after.Listeners); diff != "" {
		t.Errorf("listeners (-before +restored):\n%s", diff)
	}
	if after.Groups["by hand"] == nil {
		t.Error("the group that somebody made is gone")
	}
}

// TestWhatWeMakeHasTheOfficialMarks: everything by which the official CCM recognizes its work is on what we make.
func TestWhatWeMakeHasTheOfficialMarks(t *testing.T) {
	t.Parallel()
	ours := settled(t, testService("web", 80, 81))
	theirs := newWorld(t)
	threeNodes(theirs)
	theirs.officialCLB(testService("web", 80, 81), testCluster)
	got, want := ours.state()["a0f5e8a1cweb"], theirs.state()["a0f5e8a1cweb"]
	for _, key := range slices.Collect(maps.Keys(got.Listeners)) {
		if diff := cmp.Diff(want.Listeners[key]["Description"], got.Listeners[key]["Description"]); diff != "" {
			t.Errorf("description of %s (-theirs +ours):\n%s", key, diff)
		}
	}
	got.Listeners, want.Listeners = nil, nil
	if diff := cmp.Diff(want, got, cmp.Transformer("sorted", sortedBackends)); diff != "" {
		t.Errorf("CLB (-theirs +ours):\n%s", diff)
	}
	svc := ours.get("web")
	if !slices.Contains(svc.Finalizers, "service.k8s.alibaba/resources") || svc.Labels["service.k8s.alibaba/loadbalancer-id"] == "" {
		t.Errorf("finalizers %v, labels %v", svc.Finalizers, svc.Labels)
	}
}

// TestDriftIsLookedForEveryTenMinutes: without any event, each Service is looked at once in ten to twelve minutes.
func TestDriftIsLookedForEveryTenMinutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := processCloud(t)
		w := &world{t: t, emulator: e, kube: testkube.NewClientset(), api: processClient(t, e), transport: &mortal{},
			config: config.Config{ClusterID: testCluster, VPCID: "vpc-emulator", VSwitchIDs: []string{"vsw-a"}}}
		w.factory = informers.NewSharedInformerFactory(w.kube, 0)
		w.events = make(chan string, 10)
		w.Reconciler = service.NewReconciler(w.options())
		threeNodes(w)
		w.put(testService("web", 80))
		var waits []time.Duration
		for range 5 {
			wait, err := w.Reconcile(t.Context(), w.get("web"))
			if err != nil {
				t.Fatal(err)
			}
			waits = append(waits, wait)
			if wait < testResyncPeriod || wait > testResyncPeriod*6/5 {
				t.Errorf("the next pass is due in %s, want 10 to 12 minutes", wait)
			}
			w.calls()
			time.Sleep(wait - time.Second)
			w.mustPass("web")
			if calls := w.calls(); len(calls) != 0 {
				t.Errorf("calls %v before the read is due", calls)
			}
			time.Sleep(time.Second)
		}
		if slices.Max(waits) == slices.Min(waits) {
			t.Errorf("waits %v are not spread", waits)
		}
	})
}

// TestFailedPassMakesNothingNews: an event from before a failed or throttled read is not repeated after it.
func TestFailedPassMakesNothingNews(t *testing.T) {
	t.Parallel()
	for _, fault := range []map[string]any{
		{"action": "DescribeLoadBalancerAttribute", "code": "InternalError", "status": 500},
		{"action": "DescribeLoadBalancerAttribute", "code": "SystemBusy", "status": 400},
	} {
		w := settled(t, testService("web", 80))
		w.change("web", func(svc *corev1.Service) {
			annotate(svc, annotation.VSwitchID, "vsw-b")
			annotate(svc, annotation.Bandwidth, "9")
		})
		w.mustPass("web")
		if events := w.newEvents(); len(events) != 2 {
			t.Errorf("events %q, want those of both annotations", events)
		}
		w.fault(fault)
		w.drift("web")
		_ = w.pass("web") // fails, or is quiet
		w.mustPass("web")
		for _, event := range w.newEvents() {
			if strings.Contains(event, "vsw-b") || strings.Contains(event, "bandwidth") {
				t.Errorf("%v: %q is repeated", fault["code"], event)
			}
		}
	}
}

// TestOneRefusedAttributeHoldsNoOtherUp: the name and the tags are set although the cloud refuses the specification.
func TestOneRefusedAttributeHoldsNoOtherUp(t *testing.T) {
	t.Parallel()
	svc := testService("web", 80)
	annotate(svc, annotation.InstanceChargeType, "PayBySpec")
	annotate(svc, annotation.Spec, "slb.s1.small")
	w := settled(t, svc)
	w.fault(map[string]any{"action": "SetLoadBalancerName", "code": "OperationDenied", "status": 400, "times": 0})
	w.fault(map[string]any{"action": "ModifyLoadBalancerInstanceSpec", "code": "OperationDenied", "status": 400, "times": 0})
	w.change("web", func(svc *corev1.Service) {
		annotate(svc, annotation.Name, "shop")
		annotate(svc, annotation.Spec, "slb.s2.small")
		annotate(svc, annotation.DeleteProtection, "off")
		annotate(svc, annotation.AdditionalTags, "team=a")
	})
	if err := w.pass("web"); err == nil {
		t.Fatal("the pass does not report the refused attributes")
	}
	if lb := w.state()["a0f5e8a1cweb"]; lb.DeleteProtection != "off" || lb.Tags["team"] != "a" {
		t.Errorf("delete protection %s, tags %v; want both as asked for", lb.DeleteProtection, lb.Tags)
	}
}
