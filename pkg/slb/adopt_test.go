package slb

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// officialCLB makes what the official CCM makes for a Service, in its order and with its marks.
func (w *world) officialCLB(svc *corev1.Service, clusterID string) alicloud.LoadBalancer {
	w.t.Helper()
	ctx, must := w.t.Context(), func(err error) {
		w.t.Helper()
		if err != nil {
			w.t.Fatal(err)
		}
	}
	name := mark.DefaultName(svc.UID)
	lb, err := w.api.CreateLoadBalancer(ctx, alicloud.LoadBalancer{
		Name: name, AddressType: alicloud.AddressIntranet, VPCID: "vpc-emulator", VSwitchID: "vsw-a", InstanceChargeType: "PayByCLCU",
		DeleteProtection: "on", ModificationProtection: alicloud.ConsoleProtection, ModificationProtectionReason: "managed.by.ack",
		Tags: []alicloud.Tag{{Key: "kubernetes.do.not.delete", Value: name}, {Key: "ack.aliyun.com", Value: clusterID}},
	}, "")
	must(err)
	for _, port := range svc.Spec.Ports {
		mark := func(number string) string {
			return strings.Join([]string{"k8s", number, svc.Name, svc.Namespace, clusterID}, "/")
		}
		group := mark(strings.TrimPrefix(port.Name, "tcp-"))
		group = strings.Replace(group, "k8s/", "k8s/300", 1)
		id, err := w.api.CreateVServerGroup(ctx, lb.ID, group, nil)
		must(err)
		var members []alicloud.Backend
		for _, server := range []string{"i-a", "i-b", "i-c"} {
			members = append(members, alicloud.Backend{
				BackendKey: alicloud.BackendKey{Type: alicloud.BackendECS, ServerID: server, Port: int(port.NodePort)}, Weight: 100, Description: group,
			})
		}
		must(w.api.AddBackends(ctx, id, members))
		key := alicloud.ListenerKey{Port: int(port.Port), Protocol: alicloud.ProtocolTCP}
		must(w.api.CreateListener(ctx, lb.ID, alicloud.Listener{
			ListenerKey: key, Description: mark(strings.TrimPrefix(port.Name, "tcp-")), VServerGroupID: id, Attributes: alicloud.Attributes{"Scheduler": "rr"},
		}))
		must(w.api.StartListener(ctx, lb.ID, key))
	}
	w.calls()
	return lb
}

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
			svc.Finalizers = []string{service.Finalizer}
			svc.Labels = map[string]string{service.LabelHash: "0", service.LabelLoadBalancerID: "lb-old"}
			w.officialCLB(svc, clusterID)
			w.put(svc)
			w.mustPass("web")
			if writes := writesOf(w.calls()); len(writes) != 0 {
				t.Errorf("adoption writes %v", writes)
			}
			if w.get("web").Labels[service.LabelHash] != "0" {
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

func TestCLBWhoseTagsAreGoneIsFoundByName(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	if err := w.api.UntagLoadBalancer(t.Context(), w.get("web").Labels[service.LabelLoadBalancerID], []string{mark.TagOwner, mark.TagCluster}); err != nil {
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

// TestMemberQuota: additions that find no room wait for the removals of the same pass.
func TestMemberQuota(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	w.addNode("d")
	w.addNode("e")
	w.deleteNode("c")
	w.fault(map[string]any{"action": "AddVServerGroupBackendServers", "code": "InstanceBackendServerNumberOverLimit", "status": 400})
	w.mustPass("web")
	if diff := cmp.Diff([]string{"i-a 100", "i-b 100", "i-d 100", "i-e 100"}, short(w.state()["a0f5e8a1cweb"].Groups["k8s/30080/web/default/c1"])); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
}
