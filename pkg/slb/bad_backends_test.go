package slb

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

const webGroup = "k8s/30080/web/default/c1"

// newTwoVPCs makes a world with a second VPC, whose instances the cloud refuses with the given code, and with three nodes.
func newTwoVPCs(t *testing.T, code string) *world {
	t.Helper()
	config := cloud.DefaultConfig()
	config.VPCs = append(config.VPCs, cloud.VPCConfig{ID: "vpc-other", CIDR: "172.16.0.0/12"})
	config.RouteTables = append(config.RouteTables, cloud.RouteTableConfig{ID: "vtb-other", VPCID: "vpc-other"})
	config.VSwitches = append(config.VSwitches,
		cloud.VSwitchConfig{ID: "vsw-other", VPCID: "vpc-other", Zone: "cn-hangzhou-a", CIDR: "172.16.0.0/16"})
	config.OtherVPCCode = code
	w := newWorldIn(t, config)
	threeNodes(w)
	return w
}

// addFarNode makes a node whose instance is in the other VPC.
func (w *world) addFarNode(name string) {
	w.t.Helper()
	if _, err := w.emulator.PutInstance("i-"+name, emulator.InstanceSpec{VSwitchID: "vsw-other"}); err != nil {
		w.t.Fatal(err)
	}
	w.putNode(testNode(name))
}

func (w *world) servers(group string) []string {
	return short(w.state()["a0f5e8a1cweb"].Groups[group])
}

func (w *world) wantBackends(what string, want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.servers(webGroup)); diff != "" {
		w.t.Errorf("%s: backend servers (-want +got):\n%s", what, diff)
	}
}

// wantRefusal fails unless the pass reports one refused server with the code and the request id.
func (w *world) wantRefusal(server, code string) {
	w.t.Helper()
	err := w.pass("web")
	if err == nil || !strings.Contains(err.Error(), server) || !strings.Contains(err.Error(), code) ||
		!strings.Contains(err.Error(), "request ") {
		w.t.Errorf("error %v, want one with %s, %s and the request id", err, server, code)
	}
}

// otherVPCCodes are codes with which the cloud may refuse an instance of another VPC.
var otherVPCCodes = map[string]string{"": "NetworkConflict", "InvalidBackendServers.Inconsistent": "InvalidBackendServers.Inconsistent",
	"SomethingNew": "SomethingNew"}

// TestNodeOfAnotherVPCBlocksNoOther: whatever the code, the others serve, and new ones join.
func TestNodeOfAnotherVPCBlocksNoOther(t *testing.T) {
	t.Parallel()
	for given, code := range otherVPCCodes {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			w := newTwoVPCs(t, given)
			w.addFarNode("far")
			w.put(testService("web", 80))
			w.wantRefusal("i-far", code)
			w.wantBackends("new Service", "i-a 100", "i-b 100", "i-c 100")
			if listeners := w.state()["a0f5e8a1cweb"].Listeners; len(listeners) != 1 {
				t.Errorf("listeners %v, want one", listeners)
			}
			w.addNode("d")
			w.wantRefusal("i-far", code)
			w.wantBackends("a node joins", "i-a 100", "i-b 100", "i-c 100", "i-d 100")
			if events := w.newEvents(); slices.ContainsFunc(events[1:], func(e string) bool { return strings.Contains(e, code) }) {
				t.Errorf("events %q, want one about the refusal", events)
			}
		})
	}
}

// TestInstanceAtItsQuotaBlocksNoOther: an instance that is behind as many CLBs as it may be keeps no other out.
func TestInstanceAtItsQuotaBlocksNoOther(t *testing.T) {
	t.Parallel()
	for given, code := range map[string]string{"": "QuotaExceeded.AttachedLoadBalancers", "OverQuota": "OverQuota",
		"SomethingNew": "SomethingNew"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			config := cloud.DefaultConfig()
			config.Quotas = cloud.Limits{LBsPerInstance: 1}
			config.AttachedQuotaCode = given
			w := newWorldIn(t, config)
			w.addNode("a")
			w.put(testService("first", 80))
			w.mustPass("first")
			w.addNode("b")
			w.addNode("c")
			w.put(testService("web", 80))
			w.wantRefusal("i-a", code)
			w.wantBackends("new Service", "i-b 100", "i-c 100")
			w.addNode("d")
			if err := w.pass("first"); err == nil {
				t.Error("the first Service gets instances at their quota")
			}
			w.addNode("e")
			w.wantRefusal("i-d", code)
			w.wantBackends("nodes join", "i-b 100", "i-c 100", "i-e 100")
		})
	}
}

// TestRefusedBackendBlocksNoCertificateRotation: the listener follows its annotation while a backend server is refused, and also while
// the CLB has no room for one.
func TestRefusedBackendBlocksNoCertificateRotation(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{"refused": "NetworkConflict", "quota": "InstanceBackendServerNumberOverLimit"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTwoVPCs(t, "")
			svc := testService("web", 443)
			annotate(svc, annotation.ProtocolPort, "https:443")
			annotate(svc, annotation.CertID, testCertificate)
			w.put(svc)
			w.mustPass("web")
			w.addNode("d")
			w.fault(map[string]any{"action": "AddVServerGroupBackendServers", "code": code, "status": 400, "times": 0})
			w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.CertID, "cert-2") })
			w.wantRefusal("", code)
			if got := w.state()["a0f5e8a1cweb"].Listeners["https:443"]; !strings.Contains(fmt.Sprint(got["HTTPSListenerConfig"]),
				"ServerCertificateId:cert-2 ") {
				t.Errorf("listener %v, want cert-2", got)
			}
		})
	}
}

// TestRefusedServerWaits: a backend server that the cloud refuses twice costs no further call for a while.
func TestRefusedServerWaits(t *testing.T) {
	t.Parallel()
	w := newTwoVPCs(t, "")
	w.addFarNode("far")
	w.put(testService("web", 80))
	w.wantRefusal("i-far", "NetworkConflict")
	w.wantRefusal("i-far", "NetworkConflict")
	w.calls()
	w.wantRefusal("i-far", "NetworkConflict")
	if writes := writesOf(w.calls()); len(writes) > 0 {
		t.Errorf("writes %v, want none while the server waits", writes)
	}
}

// TestNodePortChangeAtQuotaConverges: the new group is created although the CLB has no room for its backend servers, which follow when
// the old group is gone.
func TestNodePortChangeAtQuotaConverges(t *testing.T) {
	t.Parallel()
	for _, quota := range []int{3, 4, 5} {
		w := newWorldWith(t, cloud.Limits{BackendsPerLB: quota})
		threeNodes(w)
		w.put(testService("web", 80))
		w.mustPass("web")
		w.change("web", func(svc *corev1.Service) { svc.Spec.Ports[0].NodePort = 31000 })
		w.mustPass("web")
		if diff := cmp.Diff([]string{"i-a 100", "i-b 100", "i-c 100"}, w.servers("k8s/31000/web/default/c1")); diff != "" {
			t.Errorf("quota %d: backend servers (-want +got):\n%s", quota, diff)
		}
		if groups := w.state()["a0f5e8a1cweb"].Groups; len(groups) != 1 {
			t.Errorf("quota %d: groups %v, want one", quota, groups)
		}
	}
}

// TestSecondPortAtQuotaIsServed: a port whose backend servers find no room for all of them has as many as fit, and its listener.
func TestSecondPortAtQuotaIsServed(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, cloud.Limits{BackendsPerLB: 5})
	threeNodes(w)
	w.put(testService("web", 80, 81))
	err := w.pass("web")
	if err == nil || !strings.Contains(err.Error(), "InstanceBackendServerNumberOverLimit") || !strings.Contains(err.Error(), "request ") {
		t.Errorf("error %v, want the quota with code and request id", err)
	}
	state := w.state()["a0f5e8a1cweb"]
	if len(state.Listeners) != 2 || len(state.Groups["k8s/30081/web/default/c1"]) != 2 {
		t.Errorf("%v, want two listeners and two backend servers in the second group", state)
	}
}

// TestRefusedReplacementEmptiesNoGroup: what no longer answers for sure leaves for something that does; while the cloud refuses what
// comes, the last ones stay.
func TestRefusedReplacementEmptiesNoGroup(t *testing.T) {
	t.Parallel()
	w := newTwoVPCs(t, "")
	w.put(testService("web", 80))
	w.mustPass("web")
	for _, name := range []string{"a", "b", "c"} {
		w.deleteNode(name)
		w.addFarNode("far-" + name)
	}
	w.wantRefusal("i-far-a", "NetworkConflict")
	w.wantBackends("all refused", "i-a 100", "i-b 100", "i-c 100")
	w.addNode("d")
	w.wantRefusal("i-far-a", "NetworkConflict")
	w.wantBackends("one accepted", "i-d 100")
}
