package nlb

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// listed shows the Services to the manager as its cache would.
func (w *world) listed(names ...string) {
	w.t.Helper()
	for _, name := range names {
		testkit.Check(w.t, w.factory.Core().V1().Services().Informer().GetIndexer().Add(w.get(name)))
	}
}

// TestOldestServiceSetsTheLoadBalancer: two Services manage one existing load balancer and want different things of it. The older one has
// its way, whichever is reconciled first, and the younger one has an event. Neither undoes what the other did.
func TestOldestServiceSetsTheLoadBalancer(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		group := func(name string) string {
			return testkit.Must(w.account.Client.CreateSecurityGroup(t.Context(),
				alicloud.SecurityGroup{VPCID: emulatortest.VPC, Type: alicloud.SecurityGroupEnterprise}, name))(t)
		}
		first, second := group("first"), group("second")
		shared := w.existing("shared")
		w.addNodes("n1")
		on := func(name string, age time.Duration, change ...func(*corev1.Service)) {
			w.put(testkube.Service(name, append([]func(*corev1.Service){
				testkube.Class(Class), with(annotation.LoadBalancerID, shared), with(annotation.ForceOverrideListeners, "true"),
				func(svc *corev1.Service) { svc.CreationTimestamp = metav1.NewTime(time.Now().Add(-age)) },
			}, change...)...))
		}
		on("old", time.Hour, testkube.TCP(80), with(annotation.Name, "old-name"), with(annotation.CrossZoneEnabled, "off"),
			with(annotation.SecurityGroupIDs, first))
		on("new", time.Minute, testkube.TCP(81), with(annotation.Name, "new-name"), with(annotation.CrossZoneEnabled, "on"),
			with(annotation.SecurityGroupIDs, second),
			with(annotation.AddressType, "intranet"))
		both := func() {
			t.Helper()
			w.listed("old", "new")
			for _, name := range []string{"new", "old", "new"} {
				testkit.Check(t, w.Invalidate(t.Context(), w.get(name), "drift"))
				w.converge(name)
			}
			w.listed("old", "new")
		}
		both()
		is := func(name string, crossZone bool, groups ...string) {
			t.Helper()
			lb := testkit.Must(w.account.Client.GetNLB(t.Context(), shared))(t)
			if lb.Name != name || lb.CrossZone != crossZone || !slices.Equal(lb.SecurityGroups, groups) {
				t.Errorf("name %s, cross-zone %v, security groups %v; want %s, %v, %v", lb.Name, lb.CrossZone, lb.SecurityGroups, name, crossZone,
					groups)
			}
		}
		is("old-name", false, first)
		events := w.newEvents()
		mustReport(t, events, "loadbalancer-name has no effect: Service default/old, which is older, sets it on NLB "+shared)
		for _, suffix := range []annotation.Suffix{annotation.CrossZoneEnabled, annotation.SecurityGroupIDs} {
			mustReport(t, events, string(suffix)+" has no effect")
		}
		if slices.ContainsFunc(events, func(e string) bool { return strings.Contains(e, "address-type") }) {
			t.Errorf("events %q about what only one of them sets", events)
		}
		w.calls()
		both()
		if calls := writes(w.calls()); len(calls) > 0 {
			t.Errorf("they undo what each other did: %v", calls)
		}
		w.change("new", without(annotation.Name), without(annotation.SecurityGroupIDs), without(annotation.CrossZoneEnabled))
		both()
		is("old-name", false, first)
		w.change("new", with(annotation.Name, "new-name"))
		w.listed("new")
		w.change("old", without(annotation.Name))
		both()
		is("new-name", false, first)
		w.calls()
		both()
		if calls := writes(w.calls()); len(calls) > 0 {
			t.Errorf("they undo what each other did: %v", calls)
		}
	})
}
