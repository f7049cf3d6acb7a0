package nlb

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// left counts what is there of the Service.
func (w *world) left() int {
	w.t.Helper()
	return len(w.balancers("web")) + len(w.groups("web")) + len(w.get("web").Finalizers) + len(w.get("web").Status.LoadBalancer.Ingress)
}

func TestGoldenLife(t *testing.T) {
	t.Parallel()
	clusterIP := func(svc *corev1.Service) {
		svc.Spec.Type, svc.Spec.LoadBalancerClass = corev1.ServiceTypeClusterIP, nil
	}
	nothingLeft := func(t *testing.T, w *world) {
		t.Helper()
		if left := w.left(); left > 0 {
			t.Errorf("%d things are left", left)
		}
	}
	runGolden(t, []life{
		{name: "listener deleted by hand", nodes: 1, service: edits(testkube.TCP(80)), changes: []change{
			{},
			{do: func(w *world) { w.deleteListeners(); w.drift() }, writes: []string{"CreateListener"}, serves: []string{webOn80}},
		}},
		{name: "listener and group deleted by hand", nodes: 1, service: edits(testkube.TCP(80)), changes: []change{
			{},
			{do: func(w *world) {
				w.deleteListeners()
				testkit.Must(w.account.Client.DeleteNLBGroup(w.t.Context(), w.onlyGroup().ID))(w.t)
				w.later(5 * settle)
				w.drift()
			}, writes: []string{"CreateListener=ResourceNotFound.serverGroup", "CreateServerGroup", "AddServersToServerGroup", "CreateListener"},
				serves: []string{webOn80}},
		}},
		{name: "servers removed by hand", nodes: 2, service: edits(testkube.TCP(80)), changes: []change{
			{},
			{do: func(w *world) { w.removeServer("n2"); w.drift() }, writes: []string{"AddServersToServerGroup"}, check: leadsTo("n1 n2")},
		}},
		{name: "type LoadBalancer to ClusterIP and back", nodes: 1, service: edits(testkube.TCP(80)), changes: []change{
			{writes: create},
			{edit: edits(clusterIP), writes: []string{"UpdateLoadBalancerProtection", "DeleteLoadBalancer", "DeleteServerGroup"},
				order: []string{"UpdateLoadBalancerProtection", "DeleteLoadBalancer", "DeleteServerGroup"}, check: nothingLeft},
			{edit: edits(func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeLoadBalancer; testkube.Class(Class)(svc) }), writes: create,
				serves: []string{webOn80}},
		}},
		{name: "annotation of the gate removed", nodes: 1, before: func(w *world) {
			w.config.TypeAnnotation = true
			w.restart()
		}, service: edits(testkube.TCP(80), with(annotation.Type, "nlb"), func(svc *corev1.Service) { svc.Spec.LoadBalancerClass = nil }),
			changes: []change{
				{writes: create, serves: []string{webOn80}},
				{edit: edits(without(annotation.Type)), writes: []string{"UpdateLoadBalancerProtection", "DeleteLoadBalancer", "DeleteServerGroup"},
					check: nothingLeft},
			}},
	})
}

// deleteListeners deletes the listeners of the Service, as somebody in the console would.
func (w *world) deleteListeners() {
	w.t.Helper()
	for _, l := range testkit.Must(w.account.Client.ListNLBListeners(w.t.Context(), []string{w.balancer("web").ID}))(w.t) {
		testkit.Must(w.account.Client.DeleteNLBListener(w.t.Context(), l.ID))(w.t)
		w.later(5 * settle)
	}
}

// TestGoldenOtherClass: a Service of another class, or of none, costs no call and no write to the API server.
func TestGoldenOtherClass(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*corev1.Service){
		"another class": testkube.Class("example.com/other"),
		"no class":      func(svc *corev1.Service) { svc.Spec.LoadBalancerClass = nil },
		"the class of the annotation": func(svc *corev1.Service) {
			svc.Spec.LoadBalancerClass = nil
			testkube.Annotation("service.beta.kubernetes.io/class", Class)(svc)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.addNodes("n1")
				w.put(newService("web", testkube.TCP(80), change))
				w.calls()
				w.kube.ClearActions()
				w.converge("web")
				if calls, events := w.calls(), w.newEvents(); len(calls)+len(events) > 0 {
					t.Errorf("calls %v, events %v", calls, events)
				}
				for _, action := range w.kube.Actions() {
					if action.GetVerb() != "get" {
						t.Errorf("%s of the API server", action.GetVerb())
					}
				}
			})
		})
	}
}

// TestGoldenManyOnOne: twenty Services on one load balancer, each with a port of its own, at the same time.
func TestGoldenManyOnOne(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		const services = 20
		w.addNodes("n1")
		id := w.existing("by-hand")
		errs := make([]error, services)
		var wait sync.WaitGroup
		for i := range services {
			name := fmt.Sprintf("web%d", i)
			w.put(newService(name, testkube.TCP(int32(80+i)), without(annotation.ZoneMaps), with(annotation.LoadBalancerID, id),
				with(annotation.ForceOverrideListeners, "true")))
			wait.Go(func() { errs[i] = w.try(name) })
		}
		wait.Wait()
		for i, err := range errs {
			if err != nil {
				t.Errorf("web%d: %v", i, err)
			}
		}
		if got := w.listeners(id); len(got) != services || slices.ContainsFunc(got, func(l string) bool {
			return !strings.Contains(l, "i-n1:")
		}) {
			t.Errorf("listeners %v, want %d", got, services)
		}
		w.calls()
		for i := range services {
			w.converge(fmt.Sprintf("web%d", i))
		}
		if calls := w.calls(); len(calls) > 0 {
			t.Errorf("further passes made the calls %v", calls)
		}
	})
}

// TestGoldenOtherVPC: an existing load balancer may be in another VPC; groups are made there. Instances cannot be their servers, addresses
// can.
func TestGoldenOtherVPC(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		id := testkit.Must(w.account.Client.CreateNLB(t.Context(), alicloud.NLB{
			Name: "other", VPCID: "vpc-2", AddressType: alicloud.NLBIntranet,
			Zones: []alicloud.NLBZone{{ZoneID: "cn-hangzhou-a", VSwitchID: "vsw-x"}, {ZoneID: "cn-hangzhou-b", VSwitchID: "vsw-y"}},
		}, "other"))(t)
		w.later(30 * settle)
		w.addNodes("n1")
		w.internalIP("n1")
		w.put(newService("web", testkube.TCP(80), without(annotation.ZoneMaps), with(annotation.LoadBalancerID, id),
			with(annotation.ForceOverrideListeners, "true")))
		_ = w.try("web") //nolint:errcheck // the cloud takes no instance of another VPC
		mustReport(t, w.newEvents(), "the NLB is in vpc-2", "loadbalancer-server-group-type: Ip")
		w.change("web", with(annotation.ServerGroupType, "Ip"))
		w.converge("web")
		if got := w.onlyGroup(); got.VPCID != "vpc-2" || got.Type != alicloud.NLBIPGroup {
			t.Errorf("group %+v", got)
		}
		if got, want := w.listeners(id), []string{"TCP:80 " + w.podAddress("n1") + ":30080=100"}; !slices.Equal(got, want) {
			t.Errorf("listeners %v, want %v", got, want)
		}
		if events := w.newEvents(); slices.ContainsFunc(events, func(e string) bool { return strings.Contains(e, "the NLB is in vpc-2") }) {
			t.Errorf("events %v", events)
		}
		w.quiet("web")
	}, func(c *cloud.Config) {
		c.VPCs = append(c.VPCs, cloud.VPCConfig{ID: "vpc-2", CIDR: "172.16.0.0/12"})
		c.RouteTables = append(c.RouteTables, cloud.RouteTableConfig{ID: "vtb-2", VPCID: "vpc-2"})
		c.VSwitches = append(c.VSwitches,
			cloud.VSwitchConfig{ID: "vsw-x", VPCID: "vpc-2", Zone: "cn-hangzhou-a", CIDR: "172.16.0.0/24"},
			cloud.VSwitchConfig{ID: "vsw-y", VPCID: "vpc-2", Zone: "cn-hangzhou-b", CIDR: "172.16.1.0/24"})
	})
}

// groupByHand makes a server group with a server of somebody else's.
func (w *world) groupByHand(name string) string {
	w.t.Helper()
	id, _, err := w.account.Client.CreateNLBGroup(w.t.Context(),
		alicloud.NLBGroup{Name: name, Type: alicloud.NLBInstanceGroup, Protocol: alicloud.NLBTCP, VPCID: w.config.VPCID}, name)
	testkit.Check(w.t, err)
	w.later(5 * settle)
	server := node("x", 9999, 50)
	server.Description = "by hand"
	testkit.Must(w.account.Client.AddNLBServers(w.t.Context(), id, []alicloud.NLBServer{server}))(w.t)
	w.later(5 * settle)
	return id
}

// TestGoldenJoinedGroups: a Service has servers in groups of others, which it leaves as they are: their other servers, and the groups
// themselves. With another annotation, its servers move; with the Service, they go.
func TestGoldenJoinedGroups(t *testing.T) {
	t.Parallel()
	for _, override := range []string{"true", "false"} {
		t.Run("override "+override, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.addNodes("n1", "n2", "x")
				w.deleteNode("x")
				id, a, b := w.existing("by-hand"), w.groupByHand("shop-a"), w.groupByHand("shop-b")
				join := func(group string) func(*corev1.Service) { return with(annotation.VGroupPort, group+":80") }
				want := func(group string, servers ...string) {
					t.Helper()
					if got := w.servers(group); !slices.Equal(got, append(servers, "i-x:9999=50")) {
						t.Errorf("servers %v, want %v and that of somebody else", got, servers)
					}
				}
				w.put(newService("web", testkube.TCP(80), without(annotation.ZoneMaps), with(annotation.LoadBalancerID, id),
					with(annotation.ForceOverrideListeners, override), join(a), with(annotation.Weight, "60")))
				w.converge("web")
				want(a, "i-n1:30080=30", "i-n2:30080=30")
				w.quiet("web")
				w.change("web", join(b))
				w.converge("web")
				w.later(5 * settle)
				want(a)
				want(b, "i-n1:30080=30", "i-n2:30080=30")
				w.quiet("web")
				w.newEvents()
				w.change("web", with(annotation.VGroupPort, b+":80,"+a+":81"))
				w.converge("web")
				mustReport(t, w.newEvents(), a+":81 has no effect, because the Service has no port 81")
				w.remove("web")
				w.converge("web")
				w.later(5 * settle)
				want(a)
				want(b)
				if left := len(w.get("web").Finalizers) + len(w.listeners(id)); left > 0 {
					t.Errorf("%d things are left", left)
				}
			})
		})
	}
}

// TestGroupOfAnotherServiceStays: a Service that names the group of another Service, which its cloud controller manager made, has no part
// in it, and takes nothing of it along.
func TestGroupOfAnotherServiceStays(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n1")
		id := w.existing("by-hand")
		group, _, err := w.account.Client.CreateNLBGroup(t.Context(), alicloud.NLBGroup{
			Name: "k8s.30080.TCP.other.default.c1", Type: alicloud.NLBInstanceGroup, Protocol: alicloud.NLBTCP, VPCID: w.config.VPCID,
			Tags: []alicloud.Tag{*w.owner("other")},
		}, "other")
		testkit.Check(t, err)
		w.later(5 * settle)
		w.put(newService("web", testkube.TCP(80), without(annotation.ZoneMaps), with(annotation.LoadBalancerID, id),
			with(annotation.ForceOverrideListeners, "true"), with(annotation.VGroupPort, group+":80")))
		w.converge("web")
		mustReport(t, w.newEvents(), "or may not be used, because a cloud controller manager made it")
		w.remove("web")
		w.converge("web")
		w.later(5 * settle)
		if got := w.groups("other"); len(got) != 1 || len(w.get("web").Finalizers) > 0 {
			t.Errorf("groups %v, finalizers %v", got, w.get("web").Finalizers)
		}
	})
}

// TestGoldenReadinessGate: the gate of a pod opens once the pod is a server, and not before the job that makes it one has ended.
func TestGoldenReadinessGate(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n1", "n2")
		w.gatedPod("p1")
		slice := testkube.EndpointSlice("web", tcpPort(80), w.podAddress("n1")+"@n1", "?"+w.podAddress("n2")+"@n2")
		slice.Endpoints[1].TargetRef = &corev1.ObjectReference{Kind: "Pod", Name: "p1", UID: types.UID("uid-p1")}
		w.putSlice(slice)
		w.put(newService("web", testkube.TCP(80), eni))
		opened := false
		for range 50 {
			wait, err := w.Reconcile(t.Context(), w.get("web"))
			testkit.Check(t, err)
			registered := false
			for _, group := range w.groups("web") {
				registered = slices.Contains(w.servers(group.ID), w.podAddress("n2")+":8080=100")
			}
			if opened = w.gate("p1") == corev1.ConditionTrue; opened {
				if !registered {
					t.Fatal("the gate is open before the pod is a server")
				}
				break
			}
			w.later(max(min(wait, soon), settle))
		}
		if !opened {
			t.Error("the gate of a server is closed")
		}
		w.converge("web")
		leadsTo("n1 n2")(t, w)
	})
}
