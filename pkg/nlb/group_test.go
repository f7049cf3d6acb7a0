package nlb

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

const edgeNLB = "k8s-group-default-edge"

// fillServices has the cache of Services hold what the API server has.
func (w *world) fillServices() {
	w.t.Helper()
	list := testkit.Must(w.kube.CoreV1().Services(metav1.NamespaceAll).List(w.t.Context(), metav1.ListOptions{}))(w.t)
	all := make([]any, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	testkit.Check(w.t, w.factory.Core().V1().Services().Informer().GetIndexer().Replace(all, ""))
}

// grouped makes a Service of a group that is as old as age says; less is older.
func grouped(name, group string, age int64, change ...func(*corev1.Service)) *corev1.Service {
	return newService(name, append([]func(*corev1.Service){with(annotation.Group, group), born(age)}, change...)...)
}

func born(age int64) func(*corev1.Service) {
	return func(svc *corev1.Service) { svc.CreationTimestamp = metav1.Unix(1_000_000+age, 0) }
}

// together converges Services that depend on each other: what one of them does may be what another one waits for.
func (w *world) together(names ...string) {
	w.t.Helper()
	w.companions = names[1:]
	w.converge(names[0])
	w.companions = nil
}

// groupWorld makes Services and converges them.
func (w *world) groupWorld(services ...*corev1.Service) {
	w.t.Helper()
	w.addNodes("n1", "n2")
	var names []string
	for _, svc := range services {
		w.put(svc)
		names = append(names, svc.Name)
	}
	w.together(names...)
	w.calls()
	w.newEvents()
}

// ownersOf returns who has which listener, by the name of the NLB.
func (w *world) ownersOf() map[string][]string {
	w.t.Helper()
	found := map[string][]string{}
	for _, lb := range testkit.Must(w.account.Client.ListNLBs(w.t.Context(), alicloud.NLBQuery{}))(w.t) {
		name := lb.Name
		for found[name] != nil {
			name += "+"
		}
		found[name] = []string{}
		for _, l := range testkit.Must(w.account.Client.ListNLBListeners(w.t.Context(), []string{lb.ID}))(w.t) {
			owner, _, _ := mark.ParseNLB(model.Text(l.Description))
			listener := model.Listener{NLBListener: l}
			found[name] = append(found[name], listener.Key()+" "+owner.Name)
		}
		slices.Sort(found[name])
	}
	return found
}

func (w *world) wantOwners(want map[string][]string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.ownersOf()); diff != "" {
		w.t.Errorf("listeners (-want +got):\n%s", diff)
	}
}

// hostname is what the status of a Service shows.
func (w *world) hostname(name string) string {
	w.t.Helper()
	shown := w.get(name).Status.LoadBalancer.Ingress
	if len(shown) == 0 {
		return ""
	}
	return shown[0].Hostname
}

// vanish removes a Service as the API server does once nothing holds it.
func (w *world) vanish(name string) {
	w.t.Helper()
	testkit.Check(w.t, w.kube.CoreV1().Services(testkube.Namespace).Delete(w.t.Context(), name, metav1.DeleteOptions{}))
	w.fillServices()
}

// delete has a Service removed, with everything that it has.
func (w *world) delete(name string) {
	w.t.Helper()
	w.remove(name)
	w.fillServices()
	w.converge(name)
	if held := w.get(name).Finalizers; len(held) > 0 {
		w.t.Errorf("finalizers %v hold %s", held, name)
	}
	w.vanish(name)
}

// leavesNothing deletes Services, and checks that nothing but what else is there stays.
func (w *world) leavesNothing(names ...string) {
	w.t.Helper()
	for _, name := range names {
		w.delete(name)
	}
	left := w.ownersOf()
	delete(left, "mine")
	groups := testkit.Must(w.account.Client.ListNLBGroups(w.t.Context(), alicloud.NLBGroupQuery{}))(w.t)
	if len(left)+len(groups) > 0 {
		w.t.Errorf("after the last Service, NLBs %v and %d server groups stay", left, len(groups))
	}
}

// silent checks that neither further passes nor a new process write anything.
func (w *world) silent(names ...string) {
	w.t.Helper()
	for _, begin := range []func(){func() {}, w.restart} {
		begin()
		w.calls()
		w.together(names...)
		if calls := writes(w.calls()); len(calls) > 0 {
			w.t.Errorf("further passes wrote %v", calls)
		}
	}
}

// TestGroupSharesOneNLB: the first Service of a group makes the NLB, others have their listeners on it, and the last one that goes deletes
// it.
func TestGroupSharesOneNLB(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.groupWorld(grouped("web", "edge", 1, testkube.TCP(80)), grouped("shop", "edge", 2, testkube.TCP(81), without(annotation.ZoneMaps)))
		w.wantOwners(map[string][]string{edgeNLB: {"tcp:80 web", "tcp:81 shop"}})
		if a, b := w.hostname("web"), w.hostname("shop"); a == "" || a != b {
			t.Errorf("names %q and %q, want one", a, b)
		}
		lb := testkit.Must(w.account.Client.ListNLBs(t.Context(), alicloud.NLBQuery{}))(t)[0]
		if diff := cmp.Diff([]alicloud.Tag{{Key: mark.TagGroup, Value: "c1/default/edge"}}, lb.Tags); diff != "" {
			t.Errorf("tags (-want +got):\n%s", diff)
		}
		w.silent("web", "shop")
		w.delete("web")
		w.wantOwners(map[string][]string{edgeNLB: {"tcp:81 shop"}})
		w.together("shop")
		w.wantOwners(map[string][]string{edgeNLB: {"tcp:81 shop"}})
		w.leavesNothing("shop")
	})
}

// TestGroupAttributesOfNLB: the annotations of the oldest Service decide on the NLB; what others ask for otherwise is a Warning.
func TestGroupAttributesOfNLB(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n1")
		w.put(grouped("web", "edge", 1, testkube.TCP(80), with(annotation.Name, "edge"), with(annotation.AdditionalTags, "team=web"),
			with(annotation.CrossZoneEnabled, "off")))
		w.put(grouped("shop", "edge", 2, testkube.TCP(81), with(annotation.Name, "shops"), with(annotation.DeleteProtection, "off")))
		w.fillServices()
		w.converge("shop") // the younger one makes it as the older one asks
		events := w.newEvents()
		mustReport(t, events, "Warning "+problem.ReasonAnnotationNoEffect,
			`loadbalancer-name: "shops" has no effect: on the NLB of load balancer group default/edge`, "default/web")
		w.together("web", "shop")
		lb := testkit.Must(w.account.Client.ListNLBs(t.Context(), alicloud.NLBQuery{}))(t)[0]
		if team, _ := lb.Tag("team"); lb.Name != "edge" || !lb.DeletionProtection || team != "web" || lb.CrossZone {
			t.Errorf("the NLB is %+v, want the attributes of web", lb)
		}
		w.silent("web", "shop")
		w.delete("web")
		w.together("shop")
		lb = testkit.Must(w.account.Client.ListNLBs(t.Context(), alicloud.NLBQuery{}))(t)[0]
		if team, _ := lb.Tag("team"); lb.Name != "shops" || lb.DeletionProtection || team != "" {
			t.Errorf("the NLB is %+v, want the attributes of shop", lb)
		}
		w.silent("shop")
		w.leavesNothing("shop")
	})
}

// TestOldestHasThePort: of two Services that want one port, the older one has it, also where it comes later, and the younger one says so.
// With the annotation loadbalancer-group-overflow, it gets another NLB.
func TestOldestHasThePort(t *testing.T) {
	t.Parallel()
	conflict := "Warning " + problem.ReasonListenerConflict +
		" port 80 of load balancer group default/edge belongs to Service default/web, which is older"
	t.Run("younger one comes", func(t *testing.T) {
		t.Parallel()
		inWorld(t, func(t *testing.T, w *world) {
			w.groupWorld(grouped("web", "edge", 1, testkube.TCP(80)))
			w.put(grouped("shop", "edge", 2, testkube.TCP(80), testkube.TCP(81)))
			w.together("shop", "web")
			mustReport(t, w.newEvents(), conflict)
			w.wantOwners(map[string][]string{edgeNLB: {"tcp:80 web", "tcp:81 shop"}})
			ports := w.get("shop").Status.LoadBalancer.Ingress[0].Ports
			if !slices.ContainsFunc(ports, func(p corev1.PortStatus) bool {
				return p.Port == 80 && p.Error != nil && strings.HasSuffix(*p.Error, problem.ReasonListenerConflict)
			}) {
				t.Errorf("the status says of the ports %v", ports)
			}
			w.silent("web", "shop")
			w.delete("web")
			w.together("shop")
			w.wantOwners(map[string][]string{edgeNLB: {"tcp:80 shop", "tcp:81 shop"}})
			w.leavesNothing("shop")
		})
	})
	t.Run("older one comes", func(t *testing.T) {
		t.Parallel()
		inWorld(t, func(t *testing.T, w *world) {
			w.groupWorld(grouped("shop", "edge", 2, testkube.TCP(80)))
			w.put(grouped("web", "edge", 1, testkube.TCP(80)))
			w.together("web", "shop", "web")
			mustReport(t, w.newEvents(), conflict)
			w.wantOwners(map[string][]string{edgeNLB: {"tcp:80 web"}})
			w.silent("web", "shop")
			w.leavesNothing("web", "shop")
		})
	})
	t.Run("with overflow", func(t *testing.T) {
		t.Parallel()
		inWorld(t, func(t *testing.T, w *world) {
			w.groupWorld(grouped("web", "edge", 1, testkube.TCP(80)),
				grouped("shop", "edge", 2, testkube.TCP(80), with(annotation.GroupOverflow, "true")))
			w.wantOwners(map[string][]string{edgeNLB: {"tcp:80 web"}, edgeNLB + "+": {"tcp:80 shop"}})
			if w.hostname("web") == w.hostname("shop") {
				t.Error("both have one name")
			}
			w.silent("web", "shop")
			w.leavesNothing("web", "shop")
		})
	})
}

// TestRestrictedServiceSharesNoNLB: security groups act on all listeners of an NLB. A Service that restricts its clients gets no listener
// on one that others decide on.
func TestRestrictedServiceSharesNoNLB(t *testing.T) {
	t.Parallel()
	ranges := func(string) func(*corev1.Service) {
		return func(svc *corev1.Service) { svc.Spec.LoadBalancerSourceRanges = []string{"10.0.0.0/8"} }
	}
	for name, test := range map[string]struct {
		change func(securityGroup string) func(*corev1.Service)
		want   string
	}{
		"source ranges": {ranges, "restricts its clients by loadBalancerSourceRanges"},
		"security groups": {func(sg string) func(*corev1.Service) {
			return with(annotation.SecurityGroupIDs, sg)
		}, "the oldest Service decides on that, which is default/web"},
		"private": {func(string) func(*corev1.Service) {
			return with(annotation.AddressType, "intranet")
		}, "is public, and the Service asks for a private one"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.groupWorld(grouped("web", "edge", 1, testkube.TCP(80)))
				sg := testkit.Must(w.account.Client.CreateSecurityGroup(t.Context(),
					alicloud.SecurityGroup{VPCID: emulatortest.VPC, Type: alicloud.SecurityGroupEnterprise}, "own"))(t)
				w.put(grouped("shop", "edge", 2, testkube.TCP(81), test.change(sg)))
				w.together("shop", "web")
				events := strings.Join(w.newEvents(), "\n")
				if !strings.Contains(events, "Warning "+problem.ReasonLoadBalancerNotReusable) || !strings.Contains(events, test.want) {
					t.Errorf("events %s", events)
				}
				w.wantOwners(map[string][]string{edgeNLB: {"tcp:80 web"}})
				w.change("shop", without(annotation.Group))
				w.together("shop", "web")
				if owners := w.ownersOf(); len(owners) != 2 || !slices.Contains(slices.Collect(maps.Keys(owners)), edgeNLB) {
					t.Errorf("listeners %v", owners)
				}
				w.leavesNothing("shop", "web")
			})
		})
	}
}

// tries makes passes over Services, which may fail.
func (w *world) tries(rounds int, names ...string) {
	w.t.Helper()
	for range rounds {
		for _, name := range names {
			w.fillServices()
			_ = w.try(name)
		}
		time.Sleep(10 * time.Second)
	}
}
