package slb

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// claimant is a Service whose author wants to have a CLB of others: the finalizer alone has the manager look for one that a process before
// may have made.
func claimant(name string) *corev1.Service {
	svc := testService(name, 8080)
	svc.Finalizers = []string{Finalizer}
	return svc
}

// nameOf is the name of a CLB of the Service's own.
func nameOf(svc *corev1.Service) string { return mark.DefaultName(svc.UID) }

// TestNameOfAnotherServiceIsRefused: nobody gets a CLB to look like that of another Service by an annotation.
func TestNameOfAnotherServiceIsRefused(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	name := mark.DefaultName("0f5e8a1c-1111-2222-3333-444455556666")
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Name, name) })
	w.mustPass("web")
	if events := strings.Join(w.newEvents(), "\n"); !strings.Contains(events, problem.ReasonInvalidAnnotation) ||
		len(writesOf(w.calls())) > 0 {
		t.Errorf("events %s", events)
	}
	for text, want := range map[string]bool{name: false, "a" + strings.Repeat("0", 30): true, name + "0": true, "A" + name[1:]: true,
		"web": true} {
		for _, row := range append(annotation.Table(), annotation.NLBTable()...) {
			if _, ok := row.Value.Parse(text); row.Suffix == annotation.Name && ok != want {
				t.Errorf("%q is accepted: %v", text, ok)
			}
		}
	}
}

// TestNameProvesNothing: a CLB of a group, an existing one and one by hand that have the name which a CLB of a Service's own has are
// neither used, changed nor deleted by that, and keep the Service from nothing: it gets one of its own, and can go.
func TestNameProvesNothing(t *testing.T) {
	t.Parallel()
	for name, makeOthers := range map[string]func(w *world, owner *corev1.Service) []string{
		"of a group": func(w *world, owner *corev1.Service) []string {
			w.putAll(grouped("web", "edge", 80), grouped("shop", "edge", 81))
			id := w.get("web").Labels[driver.LabelLoadBalancerID]
			w.must(w.api.SetLoadBalancerName(w.t.Context(), id, nameOf(owner)))
			return []string{id}
		},
		"by hand": func(w *world, owner *corev1.Service) []string {
			id := w.makeCLB().ID
			w.makeListener(id, 443, "payroll, by hand")
			w.must(w.api.SetLoadBalancerName(w.t.Context(), id, nameOf(owner)))
			return []string{id}
		},
		"two by hand": func(w *world, owner *corev1.Service) []string {
			ids := []string{w.makeCLB().ID, w.makeCLB(alicloud.Tag{Key: mark.TagAllow, Value: testCluster}).ID}
			for _, id := range ids {
				w.must(w.api.SetLoadBalancerName(w.t.Context(), id, nameOf(owner)))
			}
			return ids
		},
	} {
		for label, edit := range map[string]func(svc *corev1.Service, id string){
			"name": func(*corev1.Service, string) {},
			"name and label": func(svc *corev1.Service, id string) {
				svc.Labels = map[string]string{driver.LabelLoadBalancerID: id}
			},
		} {
			t.Run(name+", "+label, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				threeNodes(w)
				svc := claimant("claim")
				others := makeOthers(w, svc)
				edit(svc, others[0])
				before := w.contents(others[0])
				w.put(svc)
				w.restart()
				w.passes("claim", 5)
				w.wantUntouched(others, before)
				if id := w.get("claim").Labels[driver.LabelLoadBalancerID]; label == "name" && (id == "" || slices.Contains(others, id)) {
					t.Errorf("the Service is on %q", id)
				}
				w.change("claim", deleteService)
				w.passes("claim", 5)
				w.wantUntouched(others, before)
				if label == "name" && len(w.get("claim").Finalizers) > 0 {
					t.Errorf("finalizers %v", w.get("claim").Finalizers)
				}
			})
		}
	}
}

// wantUntouched fails unless CLBs of others are there, without an owner, the first of them with what it had.
func (w *world) wantUntouched(ids []string, before map[string][]string) {
	w.t.Helper()
	for _, id := range ids {
		lb := w.lb(id)
		if _, tagged := lb.Tag(mark.TagOwner); tagged {
			w.t.Errorf("%s has an owner: %v", id, lb.Tags)
		}
	}
	for text, had := range before {
		if now := w.contents(ids[0])[text]; !slices.Equal(had, now) {
			w.t.Errorf("%s was %v and is %v", text, had, now)
		}
	}
}

// TestUsedByIDNeverBecomesOwn: an existing CLB that a Service has used by its id stays when the Service goes, whatever name it has by then,
// and whether or not anything says that it was used so.
func TestUsedByIDNeverBecomesOwn(t *testing.T) {
	t.Parallel()
	for _, tags := range [][]alicloud.Tag{nil, {{Key: mark.TagAllow, Value: testCluster}}} {
		for _, untagged := range []bool{false, true} {
			w := newWorld(t)
			threeNodes(w)
			id := w.makeCLB(tags...).ID
			w.makeListener(id, 443, "payroll, by hand")
			w.put(reusing("web", id, "true", 80))
			w.mustPass("web")
			w.must(w.api.SetLoadBalancerName(t.Context(), id, nameOf(w.get("web"))))
			if untagged {
				w.untagged(id)
			}
			w.change("web", func(svc *corev1.Service) {
				delete(svc.Annotations, key(annotation.LoadBalancerID))
				delete(svc.Annotations, key(annotation.ForceOverrideListeners))
			})
			w.restart()
			w.passes("web", 5)
			w.change("web", deleteService)
			w.passes("web", 5)
			listeners, err := w.api.DescribeListeners(t.Context(), id)
			if err != nil || len(listeners[id]) != 1 || listeners[id][0].Port != 443 {
				t.Errorf("tags %v, untagged %v: listeners %v, %v", tags, untagged, listeners, err)
			}
		}
	}
}

// TestLabelUsesNothing: a Service that names an existing CLB by its label alone, with a finalizer that says that it had one, gets one of
// its own. The annotation may be forbidden in its namespace.
func TestLabelUsesNothing(t *testing.T) {
	t.Parallel()
	for _, tag := range []alicloud.Tag{{Key: mark.TagAllow, Value: testCluster}, {Key: mark.TagReused, Value: "true"}} {
		w := newWorld(t)
		threeNodes(w)
		id := w.makeCLB(tag).ID
		svc := claimant("claim")
		svc.Labels = map[string]string{driver.LabelLoadBalancerID: id}
		annotate(svc, annotation.ForceOverrideListeners, "true")
		w.put(svc)
		w.passes("claim", 5)
		listeners, err := w.api.DescribeListeners(t.Context(), id)
		if own := w.get("claim").Labels[driver.LabelLoadBalancerID]; err != nil || len(listeners[id]) > 0 || own == id || own == "" {
			t.Errorf("%s: listeners %v, %v, the Service is on %q", tag.Key, listeners[id], err, own)
		}
	}
}

// TestLabelKeepsNothing: a Service that names the CLB of a group by its label alone does not keep that from going with the last Service of
// the group.
func TestLabelKeepsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	w.putAll(grouped("web", "edge", 80))
	id := w.get("web").Labels[driver.LabelLoadBalancerID]
	svc := claimant("claim")
	svc.Labels = map[string]string{driver.LabelLoadBalancerID: id}
	annotate(svc, annotation.AddressType, "neither") // so that it gets no CLB of its own
	w.put(svc)
	w.passes("claim", 5)
	w.change("web", deleteService)
	w.fillGroups()
	w.passes("web", 8)
	if all := w.lbs(); len(all) > 0 || len(w.get("web").Finalizers) > 0 {
		t.Errorf("CLBs %+v, the other one has the labels %v", all, w.get("claim").Labels)
	}
}

// TestLabelWritesNothing: a Service that wants to be preserved, and names an existing CLB of others by its label alone, writes nothing to
// that when it goes.
func TestLabelWritesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	id := w.makeCLB(alicloud.Tag{Key: mark.TagReused, Value: "true"}).ID
	w.makeListener(id, 443, "payroll, by hand")
	svc := claimant("claim")
	svc.Labels = map[string]string{driver.LabelLoadBalancerID: id}
	annotate(svc, annotation.PreserveOnDelete, "true")
	w.put(svc)
	w.change("claim", deleteService)
	w.calls()
	w.passes("claim", 5)
	if writes := writesOf(w.calls()); len(writes) > 0 {
		t.Errorf("writes %v, tags %v", writes, w.lb(id).Tags)
	}
}

// TestListenerOfOthersKeepsCLB: a CLB of the Service's own on which somebody else has a listener stays, and what is the Service's goes from
// it.
func TestListenerOfOthersKeepsCLB(t *testing.T) {
	t.Parallel()
	for when, then := range knownOrNot() {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			w := settled(t, testService("web", 80))
			id := w.onlyCLB()
			w.makeListener(id, 443, "by hand")
			then(w)
			w.newEvents()
			w.change("web", deleteService)
			w.passes("web", 5)
			listeners, err := w.api.DescribeListeners(t.Context(), id)
			if err != nil || len(listeners[id]) != 1 || listeners[id][0].Port != 443 {
				t.Fatalf("listeners %v, %v", listeners, err)
			}
			if groups, err := w.api.DescribeVServerGroups(t.Context(), id); err != nil || len(groups) > 0 {
				t.Errorf("groups %v, %v", groups, err)
			}
			if len(w.get("web").Finalizers) > 0 {
				t.Errorf("finalizers %v", w.get("web").Finalizers)
			}
			if events := w.newEvents(); len(events) != 1 || !strings.HasPrefix(events[0], "Warning LoadBalancerKept CLB "+id) ||
				!strings.Contains(events[0], "tcp:443") {
				t.Errorf("events %q", events)
			}
		})
	}
}

// TestAdoptionWithoutTags: a CLB that the official CCM has made, and whose tags are gone, is adopted without a write, by the address that
// the status shows and its marks. When the Service goes, it gets its tag, and goes, too.
func TestAdoptionWithoutTags(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	svc := testService("web", 80)
	svc.Finalizers = []string{Finalizer}
	lb := w.officialCLB(svc, testCluster)
	svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: lb.Address}}
	w.put(svc)
	w.untagged(lb.ID)
	w.calls()
	w.mustPass("web")
	w.mustPass("web")
	if writes := writesOf(w.calls()); len(writes) > 0 || w.get("web").Labels[driver.LabelLoadBalancerID] != lb.ID {
		t.Fatalf("adoption writes %v, labels %v", writes, w.get("web").Labels)
	}
	w.restart()
	w.change("web", deleteService)
	w.passes("web", 5)
	if writes := writesOf(w.calls()); len(writes) == 0 || writes[0] != "TagResources" || len(w.lbs()) > 0 || len(w.get("web").Finalizers) > 0 {
		t.Errorf("writes %v, CLBs %v", writes, w.lbs())
	}
}
