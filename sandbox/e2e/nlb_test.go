//go:build unix && fleet

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/provider"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/slb"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

// quiet is how long nothing may happen for a test to believe that nothing happens.
const quiet = 3 * time.Second

// nlbState is what the emulator's state shows of NLBs.
type nlbState struct {
	NetworkLoadBalancers []struct {
		LoadBalancerID     string `json:"LoadBalancerId"`
		LoadBalancerStatus string
		DNSName            string
		Listeners          []struct {
			ListenerPort   int
			ListenerStatus string
			ServerGroupID  string `json:"ServerGroupId"`
		}
	}
	ServerGroups []struct {
		ServerGroupID string `json:"ServerGroupId"`
		Servers       []struct {
			ServerID string `json:"ServerId"`
		}
	}
}

func (w *world) nlbState() nlbState {
	w.Helper()
	var state nlbState
	w.admin(http.MethodGet, "state", nil, &state)
	return state
}

// servers returns the backend servers of the only listener of the NLB with the name.
func (s nlbState) servers(dnsName string) (instances []string, missing string) {
	for _, lb := range s.NetworkLoadBalancers {
		if lb.DNSName != dnsName {
			continue
		}
		if lb.LoadBalancerStatus != "Active" || len(lb.Listeners) != 1 || lb.Listeners[0].ListenerStatus != "Running" {
			return nil, fmt.Sprintf("%+v", lb)
		}
		for _, group := range s.ServerGroups {
			if group.ServerGroupID == lb.Listeners[0].ServerGroupID {
				for _, server := range group.Servers {
					instances = append(instances, server.ServerID)
				}
			}
		}
		slices.Sort(instances)
		return instances, ""
	}
	return nil, "no NLB with the name " + dnsName
}

// TestNLB is the story of a Service with an NLB, under the published role and the published RAM policy.
func TestNLB(t *testing.T) {
	t.Parallel()
	config := cloud.DefaultConfig()
	config.AccessKeys = []cloud.AccessKeyConfig{{ID: cluster.AccessKeyID, Secret: cluster.AccessKeySecret, Permissions: publishedPolicy(t)}}
	w := newWorld(t, worldOptions{nodes: 2, cloud: config, up: []string{"--settle", "100ms"}})
	w.startManager(routed...)
	w.nodesAreInitialized(names(1, 2))

	w.createNLB("web")
	w.servedByNLB("web", instanceID(1), instanceID(2))
	w.endpointsAreFollowed("web")
	w.nothingIsWrittenAnew("web")
	w.changedClassIsPlanned("web")
	w.nlbIsLeftAlone("web", "new")
	w.nlbOrphansAreFound("new")

	for _, call := range w.calls(0) {
		if call.Code == "Forbidden.RAM" {
			t.Errorf("the published RAM policy lacks %s:%s", call.Product, call.Action)
		}
	}
	w.nlbOrphansThatCannotBeReadAreAnError()
}

// createNLB makes a Service with port 80 that asks for an NLB, and whose endpoints the test makes.
func (w *world) createNLB(name string) {
	w.Helper()
	_, err := w.client.CoreV1().Services(metav1.NamespaceDefault).Create(w.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
			annotationAddressType: "intranet",
			"service.beta.kubernetes.io/alibaba-cloud-loadbalancer-zone-maps": "cn-hangzhou-a:vsw-a,cn-hangzhou-b:vsw-b",
		}},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new(nlb.Class),
			Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) service(name string) *corev1.Service {
	w.Helper()
	svc, err := w.client.CoreV1().Services(metav1.NamespaceDefault).Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return svc
}

// servedByNLB waits until the Service shows the name of an NLB with these backend servers, and that all is well.
func (w *world) servedByNLB(name string, instances ...string) {
	w.Helper()
	w.until(name+" is served by an NLB", eventDeadline, func(context.Context) string {
		svc := w.service(name)
		if len(svc.Status.LoadBalancer.Ingress) != 1 || svc.Status.LoadBalancer.Ingress[0].Hostname == "" {
			return fmt.Sprintf("status %+v", svc.Status)
		}
		if !meta.IsStatusConditionTrue(svc.Status.Conditions, service.ConditionSynced) {
			return fmt.Sprintf("conditions %+v", svc.Status.Conditions)
		}
		if !slices.Contains(svc.Finalizers, nlb.Finalizer) || svc.Labels[driver.LabelLoadBalancerID] == "" {
			return fmt.Sprintf("finalizers %v, labels %v", svc.Finalizers, svc.Labels)
		}
		got, missing := w.nlbState().servers(svc.Status.LoadBalancer.Ingress[0].Hostname)
		if missing == "" && !slices.Equal(got, instances) {
			return fmt.Sprintf("backend servers %v, want %v", got, instances)
		}
		return missing
	})
}

// endpointsAreFollowed has endpoints on one node, then on both, and takes a node away and gives it back.
func (w *world) endpointsAreFollowed(name string) {
	w.Helper()
	w.patchWeb(name, `{"spec":{"externalTrafficPolicy":"Local"}}`)
	w.putEndpoints(name, nodeName(1))
	w.servedByNLB(name, instanceID(1))
	w.putEndpoints(name, nodeName(1), nodeName(2))
	w.servedByNLB(name, instanceID(1), instanceID(2))
	w.patchWeb(name, `{"spec":{"externalTrafficPolicy":"Cluster"}}`)
	w.exclude(nodeName(2), "true")
	w.servedByNLB(name, instanceID(1))
	w.exclude(nodeName(2), "")
	w.servedByNLB(name, instanceID(1), instanceID(2))
}

// exclude labels a node that load balancers are to leave out; without a value the label goes.
func (w *world) exclude(node, value string) {
	w.Helper()
	label := map[string]*string{corev1.LabelNodeExcludeBalancers: &value}
	if value == "" {
		label[corev1.LabelNodeExcludeBalancers] = nil
	}
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": label}})
	if err != nil {
		w.Fatal(err)
	}
	if _, err = w.client.CoreV1().Nodes().Patch(w.Context(), node, types.MergePatchType, text, metav1.PatchOptions{}); err != nil {
		w.Fatal(err)
	}
}

// putEndpoints gives the Service one endpoint on each of the nodes.
func (w *world) putEndpoints(name string, nodes ...string) {
	w.Helper()
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: new(int32(80))}},
	}
	for i, node := range nodes {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.244.%d.9", i)}, NodeName: &node, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		})
	}
	slices := w.client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault)
	_, err := slices.Update(w.Context(), slice, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = slices.Create(w.Context(), slice, metav1.CreateOptions{})
	}
	if err != nil {
		w.Fatal(err)
	}
}

// nothingIsWrittenAnew restarts the manager, which reads and writes nothing.
func (w *world) nothingIsWrittenAnew(name string) {
	w.Helper()
	before := w.service(name)
	w.stopManager()
	mark := w.lastCall()
	w.startManager(routed...)
	w.until("the new manager has read the NLB", eventDeadline, func(context.Context) string {
		return atLeast(count(w.calls(mark), "ListServerGroupServers"), 1)
	})
	w.noWrites(mark)
	if after := w.service(name); after.ResourceVersion != before.ResourceVersion {
		w.Errorf("the Service was written: %+v, before %+v", after, before)
	}
}

// noWrites watches for a while that the manager writes nothing to a load balancer.
func (w *world) noWrites(mark int64) {
	w.Helper()
	w.holds("no write", quiet, func(context.Context) string {
		for _, c := range w.calls(mark) {
			if c.Kind == "write" && (c.Product == "nlb" || c.Product == "slb") {
				return c.Product + ":" + c.Action
			}
		}
		return ""
	})
}

// changedClassIsPlanned changes the class while no manager runs, asks what a manager would do, has it done, and changes it back.
func (w *world) changedClassIsPlanned(name string) {
	w.Helper()
	w.stopManager()
	w.patchWeb(name, `{"spec":{"type":"ClusterIP"}}`)
	w.patchWeb(name, `{"spec":{"type":"LoadBalancer","loadBalancerClass":"`+slb.Class+`"}}`)
	mark := w.lastCall()
	code, out := w.ask("plan", "text")
	if code != 2 || !strings.Contains(out, "Service default/"+name+"\n") || !strings.Contains(out, "delete NLB: ") ||
		strings.Contains(out, "create") {
		w.Errorf("plan of a Service whose class has changed: exit code %d, %q; want only the deletion of its NLB", code, out)
	}
	w.noWrites(mark)
	w.startManager(routed...)
	w.served(name)
	if left := w.nlbState(); len(left.NetworkLoadBalancers)+len(left.ServerGroups) > 0 ||
		slices.Contains(w.service(name).Finalizers, nlb.Finalizer) {
		w.Errorf("left of the NLB of a Service with a CLB: %+v", left)
	}
	w.patchWeb(name, `{"spec":{"type":"ClusterIP"}}`)
	w.patchWeb(name, `{"spec":{"type":"LoadBalancer","loadBalancerClass":"`+nlb.Class+`"}}`)
	w.servedByNLB(name, instanceID(1), instanceID(2))
	w.noBalancers(name)
}

// nlbIsLeftAlone runs a manager without NLB: a Service that has one is not deleted, and another one gets none, until NLB is on again.
func (w *world) nlbIsLeftAlone(has, asks string) {
	w.Helper()
	w.stopManager()
	mark := w.lastCall()
	w.startManager(append(slices.Clone(routed), "--controllers=node,route,service")...)
	w.createNLB(asks)
	w.deleteWeb(has)
	w.createWeb("beside") // shows that the manager is at work
	w.served("beside")
	w.noNLBCalls(mark)
	if svc := w.service(asks); len(svc.Finalizers) > 0 || len(svc.Status.Conditions) > 0 {
		w.Errorf("Service %s was touched: %+v", asks, svc)
	}
	w.service(has) // its finalizer keeps it
	w.deleteWeb("beside")
	w.serviceIsGone("beside")
	w.stopManager()

	w.startManager(append(slices.Clone(routed), "--controllers=node,route,service,nlb")...)
	w.serviceIsGone(has)
	w.servedByNLB(asks, instanceID(1), instanceID(2))
	if n := len(w.nlbState().NetworkLoadBalancers); n != 1 {
		w.Errorf("%d NLBs, want 1", n)
	}
}

func (w *world) noNLBCalls(mark int64) {
	w.Helper()
	w.holds("no call of NLB", quiet, func(context.Context) string {
		for _, c := range w.calls(mark) {
			if c.Product == "nlb" {
				return c.Action
			}
		}
		return ""
	})
}

// nlbOrphansAreFound has a Service lose its finalizer while no manager runs, and asks the program what is left over.
func (w *world) nlbOrphansAreFound(name string) {
	w.Helper()
	w.stopManager()
	if code, out := w.ask("orphans", "text"); code != 0 {
		w.Errorf("orphans while every Service is there: exit code %d, %q", code, out)
	}
	w.patchWeb(name, `{"metadata":{"finalizers":null}}`)
	w.deleteWeb(name)
	w.serviceIsGone(name)
	code, out := w.ask("orphans", "json")
	var found provider.Orphans
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		w.Fatalf("%v in %q", err, out)
	}
	var kinds []string
	for _, orphan := range found.Orphans {
		kinds = append(kinds, orphan.Kind)
	}
	if want := []string{driver.OrphanLoadBalancer, driver.OrphanServerGroup}; code != 2 || !slices.Equal(kinds, want) {
		w.Errorf("exit code %d, orphans %+v, want 2 and %v", code, found, want)
	}
}

// nlbOrphansThatCannotBeReadAreAnError asks again with a key that may not read server groups.
func (w *world) nlbOrphansThatCannotBeReadAreAnError() {
	w.Helper()
	w.fault(map[string]any{"action": "ListServerGroups", "code": "Forbidden.RAM", "status": 403, "times": 0})
	code, out := w.ask("orphans", "text")
	if code != 1 || !strings.Contains(out, driver.OrphanLoadBalancer) || !strings.Contains(out, "Could not be read, so there may be more") {
		w.Errorf("exit code %d, want 1; %q", code, out)
	}
	w.clearFaults()
}
