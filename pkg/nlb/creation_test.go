package nlb

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// lags are how long the index of tags may be behind.
var lags = []time.Duration{0, time.Second, 5 * time.Second, 6 * time.Second, 30 * time.Second, time.Minute}

// TestKilledAfterCreation: the process ends after the cloud has begun to create the NLB and before it has noted that, and then the Service
// is edited or deleted. Whatever the lag of the index of tags, there is one NLB, which is as the Service asks for, and nothing once the
// Service is gone.
func TestKilledAfterCreation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*corev1.Service)
		left   int
		is     func(alicloud.NLB) bool
	}{
		"nothing": {func(*corev1.Service) {}, 1, func(lb alicloud.NLB) bool { return lb.AddressType == alicloud.NLBInternet }},
		"a setting": {with(annotation.AddressType, "intranet"), 1, func(lb alicloud.NLB) bool {
			return lb.AddressType == alicloud.NLBIntranet
		}},
		"protection": {with(annotation.DeleteProtection, "off"), 1, func(lb alicloud.NLB) bool { return !lb.DeletionProtection }},
		"what cannot": {with(annotation.IPVersion, annotation.DualStackNLB), 1, func(lb alicloud.NLB) bool {
			return lb.AddressIPVersion == alicloud.NLBDualStack
		}},
		"tags": {with(annotation.AdditionalTags, "a=1"), 1, func(lb alicloud.NLB) bool { return len(lb.Tags) == 3 }},
		"source ranges": {func(svc *corev1.Service) {
			svc.Spec.LoadBalancerSourceRanges = []string{"10.0.0.0/8"}
		}, 1, func(lb alicloud.NLB) bool { return len(lb.SecurityGroups) == 1 }},
		"into a group":    {with(annotation.Group, "edge"), 1, func(lb alicloud.NLB) bool { return lb.Name == "k8s-group-default-edge" }},
		"deleted":         {func(svc *corev1.Service) { svc.DeletionTimestamp = new(metav1.Now()) }, 0, nil},
		"of another type": {func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP }, 0, nil},
		"deleted and named": {func(svc *corev1.Service) {
			with(annotation.Name, "shop")(svc)
			svc.DeletionTimestamp = new(metav1.Now())
		}, 0, nil},
	} {
		for _, i := range testkit.Sample(len(name), len(lags)) {
			lag := lags[i]
			t.Run(fmt.Sprintf("%s, %s", name, lag), func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, w *world) {
					w.killedAfterCreation(lag, testkit.TCP(80))
					w.change("web", c.change)
					w.converge("web")
					w.later(2 * time.Minute)
					w.converge("web")
					all := testkit.Must(w.account.Client.ListNLBs(t.Context(), alicloud.NLBQuery{}))(t)
					if len(all) != c.left || c.left > 0 && !c.is(all[0]) {
						t.Fatalf("NLBs %+v, want %d", all, c.left)
					}
					svc := w.get("web")
					switch record, _ := driver.RecordOn(svc); {
					case c.left == 0:
						if groups := w.groups("web"); len(groups) > 0 || driver.HasFinalizer(svc, Finalizer) {
							t.Errorf("groups %v, finalizers %v", groups, svc.Finalizers)
						}
					case svc.Labels[driver.LabelLoadBalancerID] != all[0].ID || len(svc.Status.LoadBalancer.Ingress) != 1:
						t.Errorf("labels %v, status %v, want %s", svc.Labels, svc.Status.LoadBalancer, all[0].ID)
					case record.Creation != nil || record.Made != all[0].ID:
						t.Errorf("Record %+v", record)
					}
				})
			})
		}
	}
}

// TestTagLostAfterCreation: the process ends after the cloud has created the NLB, and somebody removes the owner tag, before there is a
// listener with a mark. The Record says which NLB it is, so that no second one is made.
func TestTagLostAfterCreation(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.killedAfterCreation(0, testkit.TCP(80))
		id := testkit.Must(w.account.Client.ListNLBs(t.Context(), alicloud.NLBQuery{}))(t)[0].ID
		testkit.Check(t, w.account.Client.UntagNLB(t.Context(), "loadbalancer", []string{id}, []string{mark.TagOwner}))
		w.converge("web")
		if all := testkit.Must(w.account.Client.ListNLBs(t.Context(), alicloud.NLBQuery{}))(t); len(all) != 1 || all[0].ID != id {
			t.Errorf("NLBs %+v, want %s alone", all, id)
		}
	})
}

// killedAfterCreation makes the Service web, and has the process end right after it has created the NLB, as the cloud shows.
func (w *world) killedAfterCreation(lag time.Duration, change ...func(*corev1.Service)) {
	w.t.Helper()
	w.addNodes("n1")
	w.account.Change(func(s *emulator.Settings) { s.TagSearchLag = cloud.Duration(lag) })
	w.put(newService("web", change...))
	for writes := 1; ; writes++ {
		w.transport.diesAfter(1)
		_ = w.try("web") //nolint:errcheck // the process ends in it
		w.restart()
		if all := testkit.Must(w.account.Client.ListNLBs(w.t.Context(), alicloud.NLBQuery{}))(w.t); len(all) == 1 {
			return
		}
		if writes > 5 {
			w.t.Fatal("there is no NLB")
		}
	}
}

// TestKilledWhileMovingIntoAGroup: the process ends after it has begun to create the NLB of the group that a Service moves to from one of
// its own. The other Service of the group is on that by the time that the creation is made again, and it stays.
func TestKilledWhileMovingIntoAGroup(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n1")
		w.put(newService("web", testkit.TCP(80)))
		w.converge("web")
		w.change("web", with(annotation.Group, "edge"))
		all := func() []alicloud.NLB {
			return testkit.Must(w.account.Client.ListNLBs(t.Context(), alicloud.NLBQuery{}))(t)
		}
		for writes := 0; len(all()) < 2; writes++ {
			w.fillServices()
			w.transport.diesAfter(1)
			_ = w.try("web") //nolint:errcheck // the process ends in it
			w.restart()
			if writes > 5 {
				t.Fatal("there is no NLB of the group")
			}
		}
		w.put(grouped("shop", "edge", 1, testkit.TCP(81)))
		w.fillServices()
		w.converge("shop")
		shared := w.current("shop")
		for range 20 {
			w.fillServices()
			for _, name := range []string{"web", "shop"} {
				_, _ = w.Reconcile(t.Context(), w.get(name)) //nolint:errcheck // it waits
			}
			w.later(5 * time.Second)
		}
		for _, name := range []string{"web", "shop"} {
			if id := w.current(name); id != shared {
				t.Errorf("%s is on %s, the Service of the group was on %s", name, id, shared)
			}
		}
		if left := all(); len(left) != 1 || left[0].ID != shared {
			t.Errorf("NLBs %+v, want %s", left, shared)
		}
	})
}

// TestCreationInVain: a process began to create an NLB while reads did not show the one that the Service has, and was killed. The next one
// deletes what that makes, and the Service keeps its NLB.
func TestCreationInVain(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*corev1.Service){
		"goes on": func(*corev1.Service) {}, "deleted": func(svc *corev1.Service) { svc.DeletionTimestamp = new(metav1.Now()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.addNodes("n1")
				w.put(newService("web", testkit.TCP(80)))
				w.converge("web")
				all := func() []alicloud.NLB {
					return testkit.Must(w.account.Client.ListNLBs(t.Context(), alicloud.NLBQuery{}))(t)
				}
				had := testkit.Must(w.account.Client.GetNLB(t.Context(), all()[0].ID))(t)
				w.change("web", func(svc *corev1.Service) {
					creating(t, svc, alicloud.NLB{
						Name: had.Name, Tags: had.Tags, AddressType: had.AddressType, AddressIPVersion: had.AddressIPVersion, VPCID: had.VPCID,
						Zones: had.Zones, DeletionProtection: true,
					})
				})
				w.restart()
				w.change("web", change)
				w.converge("web")
				w.later(time.Minute)
				w.converge("web")
				if got := all(); name == "goes on" && (len(got) != 1 || got[0].ID != had.ID) || name == "deleted" && len(got) > 0 {
					t.Errorf("NLBs %+v, the Service had %s", got, had.ID)
				}
				if calls := w.calls(); !slices.Contains(calls, "CreateLoadBalancer") {
					t.Errorf("the creation was not made again: %v", calls)
				}
			})
		})
	}
}

// creating has the Record of a Service say that a process began to create a load balancer, and noted no answer.
func creating(t *testing.T, svc *corev1.Service, parameters any) {
	t.Helper()
	record, _ := driver.RecordOn(svc)
	encoded := testkit.Must(json.Marshal(parameters))(t)
	record.UID, record.Creation = svc.UID, &driver.Creation{Token: rand.Text(), Parameters: encoded, Begun: time.Now()}
	testkit.SetCondition(svc, driver.ConditionWritten, driver.ReasonWritten, string(testkit.Must(json.Marshal(record))(t)))
}
