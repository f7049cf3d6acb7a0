package slb

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// rests makes passes over a Service, as they become due, until nothing is to be done any more.
func (w *world) rests(name string) {
	w.t.Helper()
	for range 100 {
		wait, err := w.Reconcile(w.t.Context(), w.get(name))
		if err == nil && (wait == 0 || wait > time.Minute) {
			return
		}
		time.Sleep(max(wait, time.Second))
	}
	w.t.Fatal("no end after 100 passes")
}

// lags are how long the index of tags may be behind.
var lags = []time.Duration{0, time.Second, 5 * time.Second, 6 * time.Second, 30 * time.Second, time.Minute}

// TestKilledAfterCreation: the process ends after the cloud has created the CLB and before it has noted that, and then the Service is
// edited or deleted. Whatever the lag of the index of tags, there is one CLB, which is as the Service asks for, and none once the Service
// is gone.
func TestKilledAfterCreation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*corev1.Service)
		left   int
		is     func(alicloud.LoadBalancer) bool
	}{
		"nothing":           {func(*corev1.Service) {}, 1, func(lb alicloud.LoadBalancer) bool { return lb.AddressType == alicloud.AddressIntranet }},
		"a setting":         {func(svc *corev1.Service) { annotate(svc, annotation.DeleteProtection, "off") }, 1, func(lb alicloud.LoadBalancer) bool { return lb.DeleteProtection == "off" }},
		"what cannot":       {func(svc *corev1.Service) { annotate(svc, annotation.AddressType, "internet") }, 1, func(lb alicloud.LoadBalancer) bool { return lb.AddressType == alicloud.AddressInternet }},
		"tags":              {func(svc *corev1.Service) { annotate(svc, annotation.AdditionalTags, "a=1") }, 1, func(lb alicloud.LoadBalancer) bool { return len(lb.Tags) == 3 }},
		"name":              {func(svc *corev1.Service) { annotate(svc, annotation.Name, "shop") }, 1, func(lb alicloud.LoadBalancer) bool { return lb.Name == "shop" }},
		"into a group":      {func(svc *corev1.Service) { annotate(svc, annotation.Group, "edge") }, 1, func(lb alicloud.LoadBalancer) bool { return lb.Name == edgeCLB }},
		"deleted":           {deleteService, 0, nil},
		"of another type":   {func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP }, 0, nil},
		"deleted and named": {func(svc *corev1.Service) { annotate(svc, annotation.Name, "shop"); deleteService(svc) }, 0, nil},
	} {
		for _, i := range testkit.Sample(len(name), len(lags)) {
			lag := lags[i]
			t.Run(fmt.Sprintf("%s, %s", name, lag), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := killedAfterCreation(t, lag, testService("web", 80))
					w.change("web", c.change)
					w.rests("web")
					time.Sleep(2 * time.Minute)
					w.rests("web")
					all := w.lbs()
					if len(all) != c.left || c.left > 0 && !c.is(all[0]) {
						t.Fatalf("CLBs %+v, want %d", all, c.left)
					}
					svc := w.get("web")
					switch record, _ := service.RecordOn(svc); {
					case c.left == 0:
						if service.HasFinalizer(svc, Finalizer) {
							t.Errorf("finalizers %v", svc.Finalizers)
						}
					case svc.Labels[service.LabelLoadBalancerID] != all[0].ID || len(svc.Status.LoadBalancer.Ingress) != 1:
						t.Errorf("labels %v, status %v, want %s", svc.Labels, svc.Status.LoadBalancer, all[0].ID)
					case record.Creation != nil || record.Made != all[0].ID:
						t.Errorf("Record %+v", record)
					}
				})
			})
		}
	}
}

// killedAfterCreation returns a world in which a process has ended right after it has created the CLB of the Service web.
func killedAfterCreation(t *testing.T, lag time.Duration, svc *corev1.Service) *world {
	t.Helper()
	w := newWorld(t)
	threeNodes(w)
	w.emulator.Change(func(s *emulator.Settings) { s.TagSearchLag = cloud.Duration(lag) })
	w.put(svc)
	w.transport.limit = 1
	_ = w.pass("web") //nolint:errcheck // the process ends in it
	if !w.transport.isDead() {
		t.Fatal("the process lives")
	}
	w.restart()
	if all := w.lbs(); len(all) != 1 {
		t.Fatalf("%d CLBs", len(all))
	}
	return w
}

// TestKilledAfterCreationForAGroup: the other Service of the group creates none beside the CLB that a process before has created, whichever
// of them has its pass first, and also while the Service that began is deleted.
func TestKilledAfterCreationForAGroup(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*corev1.Service){
		"nothing": func(*corev1.Service) {}, "deleted": deleteService, "moved": func(svc *corev1.Service) { delete(svc.Annotations, key(annotation.Group)) },
	} {
		for _, i := range testkit.Sample(len(name), len(lags)) {
			lag := lags[i]
			t.Run(fmt.Sprintf("%s, %s", name, lag), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := killedAfterCreation(t, lag, grouped("web", "edge", 80))
					w.put(grouped("shop", "edge", 81))
					w.change("web", change)
					for range 100 {
						w.fillGroups()
						for _, name := range []string{"shop", "web"} {
							_, _ = w.Reconcile(t.Context(), w.get(name)) //nolint:errcheck // it waits, and the other one goes on
						}
						time.Sleep(2 * time.Second)
					}
					want := map[string]int{"nothing": 1, "deleted": 1, "moved": 2}[name]
					if all := w.lbs(); len(all) != want {
						t.Errorf("%d CLBs, want %d: %+v", len(all), want, all)
					}
					if shop := w.get("shop"); len(shop.Status.LoadBalancer.Ingress) != 1 {
						t.Errorf("status %v", shop.Status.LoadBalancer)
					}
				})
			})
		}
	}
}

// TestCreationIsForgottenAfterATime: a creation that nobody has made again for long is not made again: the cloud may have forgotten the
// token, and would create another CLB.
func TestCreationIsForgottenAfterATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := killedAfterCreation(t, 0, testService("web", 80))
		id := w.lbs()[0].ID
		time.Sleep(time.Hour)
		w.calls()
		w.rests("web")
		if all := w.lbs(); len(all) != 1 || all[0].ID != id {
			t.Errorf("CLBs %+v, want %s", all, id)
		}
		for _, call := range w.calls() {
			if call == "CreateLoadBalancer" {
				t.Error("the creation was made again")
			}
		}
		if record, _ := service.RecordOn(w.get("web")); record.Creation != nil {
			t.Errorf("Record %+v", record)
		}
	})
}

// TestCreationInVain: a process began to create a CLB while reads did not show the one that the Service has, and was killed. The next one deletes
// what that makes, and the Service keeps its CLB.
func TestCreationInVain(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*corev1.Service){"goes on": func(*corev1.Service) {}, "deleted": deleteService} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				threeNodes(w)
				w.put(testService("web", 80))
				w.rests("web")
				had := w.lbs()[0]
				w.change("web", func(svc *corev1.Service) {
					creating(t, svc, alicloud.LoadBalancer{Name: had.Name, Tags: had.Tags, AddressType: had.AddressType, Spec: had.Spec, DeleteProtection: "on"})
				})
				w.restart()
				w.change("web", change)
				w.rests("web")
				all := w.lbs()
				if name == "goes on" && (len(all) != 1 || all[0].ID != had.ID) || name == "deleted" && len(all) > 0 {
					t.Errorf("CLBs %+v, the Service had %s", all, had.ID)
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
	record, _ := service.RecordOn(svc)
	encoded := testkit.Must(json.Marshal(parameters))(t)
	record.UID, record.Creation = svc.UID, &service.Creation{Token: rand.Text(), Parameters: encoded, Begun: time.Now()}
	meta.SetStatusCondition(&svc.Status.Conditions, metav1.Condition{
		Type: service.ConditionWritten, Status: metav1.ConditionTrue, Reason: service.ReasonWritten, Message: string(testkit.Must(json.Marshal(record))(t)),
	})
}
