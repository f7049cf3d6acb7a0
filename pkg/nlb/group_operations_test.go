package nlb

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

const (
	ownNLB   = "a0f5e8a1cweb"
	otherNLB = "k8s-group-default-other"
)

// inGroups has the Services web and shop, the older one of which is web, where owners says, and nothing else.
func inGroups(owners map[string][]string) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		t.Helper()
		if diff := cmp.Diff(owners, w.ownersOf()); diff != "" {
			t.Errorf("listeners (-want +got):\n%s", diff)
		}
		for _, name := range []string{"web", "shop"} {
			svc := w.get(name)
			if record, _ := driver.RecordOn(svc); len(record.Leaving) > 0 {
				t.Errorf("%s has still %v to leave", name, record.Leaving)
			}
			if svc.DeletionTimestamp != nil && len(svc.Finalizers) > 0 {
				t.Errorf("finalizers %v hold %s", svc.Finalizers, name)
			}
		}
		listeners := 0
		for _, of := range owners {
			listeners += len(of)
		}
		if groups := testkit.Must(w.account.Client.ListNLBGroups(t.Context(), alicloud.NLBGroupQuery{}))(t); len(groups) != listeners {
			t.Errorf("%d server groups for %d listeners", len(groups), listeners)
		}
		if found := testkit.Must(w.engine.Orphans(t.Context(), w.census()))(t).Orphans; len(found) > 0 {
			t.Errorf("orphans: %v", found)
		}
	}
}

// census is what a search for orphans is about.
func (w *world) census() driver.OrphanQuery {
	w.t.Helper()
	list := testkit.Must(w.kube.CoreV1().Services(testkube.Namespace).List(w.t.Context(), metav1.ListOptions{}))(w.t)
	query := driver.OrphanQuery{}
	for i := range list.Items {
		if svc := &list.Items[i]; svc.DeletionTimestamp == nil || len(svc.Finalizers) > 0 {
			query.Services = append(query.Services, svc)
		}
	}
	return query
}

// Where the listeners of the Services web and shop are: together, or web in another group.
var (
	webAndShop   = map[string][]string{edgeNLB: {"tcp:80 web", "tcp:81 shop"}}
	webElsewhere = map[string][]string{edgeNLB: {"tcp:81 shop"}, otherNLB: {"tcp:80 web"}}
)

// webInGroup is the oldest Service of its group.
func webInGroup(change ...func(*corev1.Service)) *corev1.Service {
	return grouped("web", "edge", 1, append(change, testkube.TCP(80))...)
}

// servedTogether begins with the Service web, and with shop as one whose passes go on, too.
func servedTogether(services ...*corev1.Service) func(*world) {
	return func(w *world) {
		w.addNodes("n1", "n2")
		for _, svc := range services {
			w.put(svc.DeepCopy())
		}
		w.companions = []string{"shop"}
		w.converge("web")
	}
}

// withoutPort takes a port from a Service.
func withoutPort(number int32) func(*corev1.Service) {
	return func(svc *corev1.Service) {
		svc.Spec.Ports = slices.DeleteFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == number })
	}
}

// groupOperations are those of Services that share NLBs.
func groupOperations() []operation {
	change := func(changes ...func(*corev1.Service)) func(*world) {
		return func(w *world) { w.change("web", changes...) }
	}
	to := func(group string) func(*world) { return change(with(annotation.Group, group)) }
	web, shop := webInGroup, grouped("shop", "edge", 2, testkube.TCP(81))
	return []operation{
		{"group created", func(w *world) { w.addNodes("n1", "n2") }, func(w *world) {
			w.put(web())
			w.put(shop.DeepCopy())
			w.companions = []string{"shop"}
		}, inGroups(webAndShop), nil},
		{"into a group", servedTogether(web(without(annotation.Group)), shop), to("edge"), inGroups(webAndShop), nil},
		{"out of a group", servedTogether(web(), shop), change(without(annotation.Group)),
			inGroups(map[string][]string{edgeNLB: {"tcp:81 shop"}, ownNLB: {"tcp:80 web"}}), nil},
		{"to another group", servedTogether(web(), shop), to("other"), inGroups(webElsewhere), nil},
		{"to another group, with one port less", servedTogether(web(testkube.TCP(82)), shop),
			change(with(annotation.Group, "other"), withoutPort(82)), inGroups(webElsewhere), nil},
		{"to another group, the last one", servedTogether(web(with(annotation.Group, "other")), shop), to("edge"), inGroups(webAndShop), nil},
		{"to the next NLB of its group", servedTogether(web(with(annotation.GroupOverflow, "true")), grouped("shop", "edge", 0, testkube.TCP(81))),
			change(testkube.TCP(81)), inGroups(map[string][]string{edgeNLB: {"tcp:81 shop"}, edgeNLB + "+": {"tcp:80 web", "tcp:81 web"}}), nil},
		{"from an existing NLB to a group", func(w *world) {
			id := w.existing("mine")
			servedTogether(web(without(annotation.Group), with(annotation.LoadBalancerID, id), with(annotation.ForceOverrideListeners, "true"),
				with(annotation.AdditionalTags, "a=1")), shop)(w)
		}, change(with(annotation.Group, "edge"), without(annotation.LoadBalancerID), without(annotation.ForceOverrideListeners)),
			inGroups(map[string][]string{edgeNLB: {"tcp:80 web", "tcp:81 shop"}, "mine": {}}), nil},
		{"the oldest one deleted", servedTogether(web(with(annotation.AdditionalTags, "a=1")), shop), func(w *world) { w.remove("web") },
			inGroups(map[string][]string{edgeNLB: {"tcp:81 shop"}}), nil},
		{"two deleted at once", servedTogether(web(), shop), func(w *world) { w.remove("web"); w.remove("shop") },
			inGroups(map[string][]string{}), nil},
		{"removed while it moves to a group", servedTogether(web(), shop), func(w *world) {
			w.fillServices()
			w.removeWhileMoving(with(annotation.Group, "other"))
		}, inGroups(map[string][]string{edgeNLB: {"tcp:81 shop"}}), nil},
		{"a port of a younger one", servedTogether(web(), grouped("shop", "edge", 2, testkube.TCP(81), with(annotation.GroupOverflow, "true"))),
			change(testkube.TCP(81)),
			inGroups(map[string][]string{edgeNLB: {"tcp:80 web", "tcp:81 web"}, edgeNLB + "+": {"tcp:81 shop"}}), nil},
	}
}
