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
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
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
		"nothing": {func(*corev1.Service) {}, 1, func(lb alicloud.LoadBalancer) bool {
			return lb.AddressType == alicloud.AddressIntranet
		}},
		"a setting": {func(svc *corev1.Service) {
			annotate(svc, annotation.DeleteProtection, "off")
		}, 1, func(lb alicloud.LoadBalancer) bool { return lb.DeleteProtection == "off" }},
		"what cannot": {func(svc *corev1.Service) {
			annotate(svc, annotation.AddressType, "internet")
		}, 1, func(lb alicloud.LoadBalancer) bool { return lb.AddressType == alicloud.AddressInternet }},
		"tags": {func(svc *corev1.Service) {
			annotate(svc, annotation.AdditionalTags, "a=1")
		}, 1, func(lb alicloud.LoadBalancer) bool { return len(lb.Tags) == 3 }},
		"name": {func(svc *corev1.Service) { annotate(svc, annotation.Name, "shop") }, 1, func(lb alicloud.LoadBalancer) bool {
			return lb.Name == "shop"
		}},
		"into a group": {func(svc *corev1.Service) { annotate(svc, annotation.Group, "edge") }, 1, func(lb alicloud.LoadBalancer) bool {
			return lb.Name == edgeCLB
		}},
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
					switch record, _ := driver.RecordOn(svc); {
					case c.left == 0:
						if driver.HasFinalizer(svc, Finalizer) {
							t.Errorf("finalizers %v", svc.Finalizers)
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
		"nothing": func(*corev1.Service) {}, "deleted": deleteService, "moved": func(svc *corev1.Service) {
			delete(svc.Annotations, key(annotation.Group))
		},
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

// TestKilledWhileMovingIntoAGroup: the process ends after it has created the CLB of the group that a Service moves to from one of its own.
// The other Service of the group is on that by the time that the creation is made again, and it stays.
func TestKilledWhileMovingIntoAGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		threeNodes(w)
		w.put(testService("web", 80))
		w.rests("web")
		w.restart()
		w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Group, "edge") })
		w.fillGroups()
		w.transport.limit = 1
		_ = w.pass("web") //nolint:errcheck // the process ends in it
		w.restart()
		if all := w.lbs(); len(all) != 2 {
			t.Fatalf("CLBs %+v", all)
		}
		w.put(grouped("shop", "edge", 81))
		w.fillGroups()
		w.rests("shop")
		shared := w.get("shop").Labels[driver.LabelLoadBalancerID]
		w.calls()
		for range 20 {
			w.fillGroups()
			for _, name := range []string{"web", "shop"} {
				_, _ = w.Reconcile(t.Context(), w.get(name)) //nolint:errcheck // it waits
			}
			time.Sleep(5 * time.Second)
		}
		for _, name := range []string{"web", "shop"} {
			if id := w.get(name).Labels[driver.LabelLoadBalancerID]; id != shared {
				t.Errorf("%s is on %s, the Service of the group was on %s", name, id, shared)
			}
		}
		if all := w.lbs(); len(all) != 1 || all[0].ID != shared {
			t.Errorf("CLBs %+v, want %s", all, shared)
		}
	})
}

// TestForgedCreation: somebody has written a creation to the status of a Service that is not the Service's: of a CLB with the tag of
// another Service or group, or that which the cloud has made for another Service. It is not made, and nothing is deleted.
func TestForgedCreation(t *testing.T) {
	t.Parallel()
	shop := testService("shop", 80)
	for name, tags := range map[string][]alicloud.Tag{
		"none":                   nil,
		"of another Service":     mark.Tags(shop, testCluster),
		"of a group":             {{Key: mark.TagGroup, Value: mark.Group{ClusterID: testCluster, Namespace: "infra", Name: "edge"}.Mark()}},
		"of another cluster":     {{Key: mark.TagGroup, Value: mark.Group{ClusterID: "another", Namespace: shop.Namespace, Name: "edge"}.Mark()}},
		"own and of a group":     append(mark.Tags(testService("web", 80), testCluster), alicloud.Tag{Key: mark.TagGroup, Value: "x"}),
		"own and what is marked": append(mark.Tags(testService("web", 80), testCluster), alicloud.Tag{Key: mark.TagAllow, Value: testCluster}),
	} {
		for _, labeled := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, %v", name, labeled), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					threeNodes(w)
					w.put(testService("web", 80))
					w.rests("web")
					w.change("web", func(svc *corev1.Service) {
						creating(t, svc, alicloud.LoadBalancer{Name: "forged", Tags: tags, AddressType: alicloud.AddressInternet})
						if !labeled {
							delete(svc.Labels, driver.LabelLoadBalancerID)
						}
					})
					w.restart()
					w.calls()
					w.rests("web")
					if all := w.lbs(); len(all) != 1 || all[0].Name == "forged" || slices.Contains(w.calls(), "CreateLoadBalancer") {
						t.Errorf("CLBs %+v", all)
					}
					if record, _ := driver.RecordOn(w.get("web")); record.Creation != nil {
						t.Errorf("Record %+v", record)
					}
				})
			})
		}
	}
	t.Run("that of another Service", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := killedAfterCreation(t, 0, testService("web", 80))
			victim, begun := w.lbs()[0].ID, w.get("web")
			w.rests("web")
			w.put(testService("thief", 81))
			w.rests("thief")
			w.change("thief", func(svc *corev1.Service) {
				stolen, _ := driver.RecordOn(begun)
				creating(t, svc, nil)
				record, _ := driver.RecordOn(svc)
				record.UID, record.Creation = svc.UID, stolen.Creation
				meta.FindStatusCondition(svc.Status.Conditions, driver.ConditionWritten).Message = string(testkit.Must(json.Marshal(record))(t))
			})
			w.restart()
			w.rests("thief")
			if all := w.lbs(); len(all) != 2 || !slices.ContainsFunc(all, func(lb alicloud.LoadBalancer) bool { return lb.ID == victim }) {
				t.Errorf("CLBs %+v, want %s among them", all, victim)
			}
		})
	})
}

// TestForgedCreationHoldsNoGroup: a creation that somebody has written to the status of a Service which may not join a group keeps no
// Service of the group from its CLB.
func TestForgedCreationHoldsNoGroup(t *testing.T) {
	t.Parallel()
	for _, finalizers := range [][]string{nil, {Finalizer}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			threeNodes(w)
			thief := testService("thief", 81)
			thief.Namespace, thief.Finalizers = "team-b", finalizers
			creating(t, thief, nil)
			record, _ := driver.RecordOn(thief)
			record.UID, record.Group = thief.UID, mark.Group{ClusterID: testCluster, Namespace: "default", Name: "edge"}.Mark()
			meta.FindStatusCondition(thief.Status.Conditions, driver.ConditionWritten).Message = string(testkit.Must(json.Marshal(record))(t))
			_, err := w.kube.CoreV1().Services(thief.Namespace).Create(t.Context(), thief, metav1.CreateOptions{})
			w.must(err)
			w.put(grouped("web", "edge", 80))
			for range 5 {
				w.fillGroups()
				_, _ = w.Reconcile(t.Context(), w.get("web")) //nolint:errcheck // what it has done is looked at
				time.Sleep(5 * time.Second)
			}
			if all := w.lbs(); len(all) != 1 {
				t.Errorf("finalizers %v: CLBs %+v", finalizers, all)
			}
		})
	}
}

// TestTagLostAfterCreation: the process ends after the cloud has created the CLB, and somebody removes the owner tag, before there is a
// listener with a mark. The Record says which CLB it is, so that no second one is made.
func TestTagLostAfterCreation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := killedAfterCreation(t, 0, testService("web", 80))
		id := w.lbs()[0].ID
		testkit.Check(t, w.api.UntagLoadBalancer(t.Context(), id, []string{mark.TagOwner}))
		w.rests("web")
		if all := w.lbs(); len(all) != 1 || all[0].ID != id || w.get("web").Labels[driver.LabelLoadBalancerID] != id {
			t.Errorf("CLBs %+v, want %s alone", all, id)
		}
	})
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
		if record, _ := driver.RecordOn(w.get("web")); record.Creation != nil {
			t.Errorf("Record %+v", record)
		}
	})
}

// TestCreationInVain: a process began to create a CLB while reads did not show the one that the Service has, and was killed. The next one
// deletes what that makes, and the Service keeps its CLB.
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
					creating(t, svc,
						alicloud.LoadBalancer{Name: had.Name, Tags: had.Tags, AddressType: had.AddressType, Spec: had.Spec, DeleteProtection: "on"})
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

// TestCreationInVainThatIsUsed: somebody has made a listener on the CLB that a process began to create beside the one that the Service has.
// It stays.
func TestCreationInVainThatIsUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		threeNodes(w)
		w.put(testService("web", 80))
		w.rests("web")
		had := w.lbs()[0]
		asked := alicloud.LoadBalancer{Name: had.Name, Tags: had.Tags, AddressType: had.AddressType, VPCID: had.VPCID, VSwitchID: had.VSwitchID,
			DeleteProtection: "on"}
		w.change("web", func(svc *corev1.Service) { creating(t, svc, asked) })
		record, _ := driver.RecordOn(w.get("web"))
		second := testkit.Must(w.api.CreateLoadBalancer(t.Context(), asked, record.Creation.Token))(t)
		w.makeListener(second.ID, 443, "by hand")
		w.restart()
		w.rests("web")
		if all := w.lbs(); len(all) != 2 || w.get("web").Labels[driver.LabelLoadBalancerID] != had.ID {
			t.Errorf("CLBs %+v, the Service had %s and is on %v", all, had.ID, w.get("web").Labels)
		}
	})
}

// creating has the Record of a Service say that a process began to create a load balancer, and noted no answer.
func creating(t *testing.T, svc *corev1.Service, parameters any) {
	t.Helper()
	record, _ := driver.RecordOn(svc)
	encoded := testkit.Must(json.Marshal(parameters))(t)
	record.UID, record.Creation = svc.UID, &driver.Creation{Token: rand.Text(), Parameters: encoded, Begun: time.Now()}
	testkube.SetCondition(svc, driver.ConditionWritten, driver.ReasonWritten, string(testkit.Must(json.Marshal(record))(t)))
}
