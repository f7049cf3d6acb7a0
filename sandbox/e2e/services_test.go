//go:build unix && fleet

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/api"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/provider"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

const annotationAddressType = "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-address-type"

// balancer is a CLB as the emulator's state shows it.
type balancer struct {
	LoadBalancerID string `json:"LoadBalancerId"`
	Listeners      []struct {
		ListenerPort int
		Status       string
		Scheduler    string
	}
	VServerGroups []struct {
		BackendServers []struct{}
	}
}

func (w *world) balancers() []balancer {
	w.Helper()
	var state struct{ LoadBalancers []balancer }
	w.admin(http.MethodGet, "state", nil, &state)
	return state.LoadBalancers
}

// TestServices is one story on one control plane, with the published role: a Service comes, loses its CLB, changes its type
// and goes, the manager is killed at every write, and what nobody owns in the end is found.
func TestServices(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{nodes: 2})
	w.startManager(routed...)
	w.nodesAreInitialized(names(1, 2))

	for i, d := range []death{
		{action: "CreateLoadBalancer"},
		{action: "CreateLoadBalancer", dropped: true},
		{action: "CreateVServerGroup"},
		{action: "CreateLoadBalancerTCPListener"},
		{action: "StartLoadBalancerListener", dropped: true},
	} {
		name := fmt.Sprintf("killed-%d", i)
		w.killedAt(d, func() { w.createWeb(name) })
		w.clearFaults()
		w.served(name)
		if n := len(w.balancers()); n != 1 {
			t.Fatalf("%d CLBs after the kill at %+v, want 1", n, d)
		}
		w.killedAt(death{action: "DeleteLoadBalancer", dropped: i%2 == 0}, func() { w.deleteWeb(name) })
		w.clearFaults()
		w.serviceIsGone(name)
		w.noBalancers(name)
	}
	w.lostBalancerIsMadeAnew()
	w.unservedCostsNothing()
	w.existingCLBKeepsNothing()
	w.changedTypeLetsGo()
	w.orphansAreFound()
}

func (w *world) createWeb(name string) {
	w.Helper()
	w.createService(name, nil, corev1.ProtocolTCP)
}

// createService makes a Service with port 80 that asks for a CLB of address type intranet.
func (w *world) createService(name string, annotations map[string]string, protocol corev1.Protocol) {
	w.Helper()
	asked := map[string]string{annotationAddressType: "intranet"}
	maps.Copy(asked, annotations)
	_, err := w.client.CoreV1().Services(metav1.NamespaceDefault).Create(w.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: asked},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80, Protocol: protocol}},
			Selector: map[string]string{"app": "web"},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) deleteWeb(name string) {
	w.Helper()
	if err := w.client.CoreV1().Services(metav1.NamespaceDefault).Delete(w.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) patchWeb(name, patch string) {
	w.Helper()
	_, err := w.client.CoreV1().Services(metav1.NamespaceDefault).Patch(w.Context(), name, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{})
	if err != nil {
		w.Fatal(err)
	}
}

// served waits until the Service shows an address and that all is well, and its CLB has its listener and backend servers.
func (w *world) served(name string) *corev1.Service {
	w.Helper()
	var svc *corev1.Service
	w.until(name+" is served", eventDeadline, func(ctx context.Context) string {
		var err error
		if svc, err = w.client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		if len(svc.Status.LoadBalancer.Ingress) == 0 {
			return "no address"
		}
		if !meta.IsStatusConditionTrue(svc.Status.Conditions, service.ConditionSynced) {
			return fmt.Sprintf("conditions %+v", svc.Status.Conditions)
		}
		for _, b := range w.balancers() {
			if b.LoadBalancerID != svc.Labels[driver.LabelLoadBalancerID] {
				continue
			}
			if len(b.Listeners) == 1 && b.Listeners[0].Status == "running" && len(b.VServerGroups) == 1 &&
				len(b.VServerGroups[0].BackendServers) == 2 {
				return ""
			}
			return fmt.Sprintf("%+v", b)
		}
		return "no such CLB: " + svc.Labels[driver.LabelLoadBalancerID]
	})
	return svc
}

func (w *world) serviceIsGone(name string) {
	w.Helper()
	w.until(name+" is gone", eventDeadline, func(ctx context.Context) string {
		if _, err := w.client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("still there, %v", err)
		}
		return ""
	})
}

func (w *world) noBalancers(after string) {
	w.Helper()
	if left := w.balancers(); len(left) != 0 {
		w.Fatalf("left over of %s: %+v", after, left)
	}
}

// lostBalancerIsMadeAnew deletes the CLB as a person does in the console. The next manager looks at once; a running one
// within ten minutes.
func (w *world) lostBalancerIsMadeAnew() {
	w.Helper()
	w.createWeb("lost")
	before := w.served("lost").Labels[driver.LabelLoadBalancerID]
	w.stopManager()
	for _, action := range []string{"SetLoadBalancerDeleteProtection", "DeleteLoadBalancer"} {
		w.asPerson(api.VersionSLB, action, map[string]string{"LoadBalancerId": before, "DeleteProtection": "off"})
	}
	w.startManager(routed...)
	w.until("another CLB", eventDeadline, func(ctx context.Context) string {
		svc, err := w.client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "lost", metav1.GetOptions{})
		if err != nil || svc.Labels[driver.LabelLoadBalancerID] == before {
			return fmt.Sprintf("the old one, %v", err)
		}
		return ""
	})
	w.served("lost")
	w.until("the event", eventDeadline, func(ctx context.Context) string {
		return w.eventsOf(ctx, "lost", problem.ReasonLoadBalancerRecreated, 1)
	})
	w.deleteWeb("lost")
	w.serviceIsGone("lost")
	w.noBalancers("lost")
}

// changedTypeLetsGo changes the type there and back, and then to another class.
func (w *world) changedTypeLetsGo() {
	w.Helper()
	w.createWeb("changed")
	w.served("changed")
	w.patchWeb("changed", `{"spec":{"type":"ClusterIP"}}`)
	w.until("the CLB is gone", eventDeadline, func(context.Context) string { return atMost(len(w.balancers()), 0) })
	w.patchWeb("changed", `{"spec":{"type":"LoadBalancer"}}`)
	w.served("changed")
	w.patchWeb("changed", `{"spec":{"type":"ClusterIP"}}`)
	w.patchWeb("changed", `{"spec":{"type":"LoadBalancer","loadBalancerClass":"example.com/other"}}`)
	w.until("the CLB is gone and nothing of ours on the Service", eventDeadline, func(ctx context.Context) string {
		svc, err := w.client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "changed", metav1.GetOptions{})
		if err != nil || len(svc.Finalizers) > 0 || len(svc.Status.LoadBalancer.Ingress) > 0 {
			return fmt.Sprintf("%v, finalizers %v, status %v", err, svc.Finalizers, svc.Status.LoadBalancer)
		}
		return atMost(len(w.balancers()), 0)
	})
	w.deleteWeb("changed")
	w.serviceIsGone("changed")
}

func atMost(have, want int) string {
	if have <= want {
		return ""
	}
	return fmt.Sprintf("%d, want at most %d", have, want)
}

// orphansAreFound has a Service lose its finalizer while no manager runs, and asks the program what is left over.
func (w *world) orphansAreFound() {
	w.Helper()
	w.createWeb("kept")
	w.served("kept")
	w.createWeb("vanished")
	id := w.served("vanished").Labels[driver.LabelLoadBalancerID]
	w.stopManager()
	if code, out := w.orphans("text"); code != 0 || !strings.HasPrefix(out, "Every resource of cluster") {
		w.Errorf("orphans while every Service is there: exit code %d, %q", code, out)
	}
	w.patchWeb("vanished", `{"metadata":{"finalizers":null}}`)
	w.deleteWeb("vanished")
	w.serviceIsGone("vanished")
	mark := w.lastCall()
	code, out := w.orphans("json")
	var found provider.Orphans
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		w.Fatalf("%v in %q", err, out)
	}
	if code != 2 || len(found.Orphans) != 1 || found.Orphans[0].ID != id || found.Orphans[0].Kind != driver.OrphanLoadBalancer {
		w.Errorf("exit code %d, orphans %+v, want 2 and %s", code, found, id)
	}
	for _, c := range w.calls(mark) {
		if c.Kind == "write" {
			w.Errorf("orphans writes: %+v", c)
		}
	}
}

func (w *world) orphans(output string) (int, string) {
	w.Helper()
	return w.ask("orphans", output)
}

// ask runs a command that only reads with the manager's own identity and returns its exit code and what it printed.
func (w *world) ask(command, output string) (int, string) {
	w.Helper()
	endpoint := strings.TrimPrefix(w.url, "http://")
	p := launch(w.T, managerProgram, []string{
		"SLB_ENDPOINT=" + endpoint, "NLB_ENDPOINT=" + endpoint, "VPC_ENDPOINT=" + endpoint, "ECS_ENDPOINT=" + endpoint,
		"ALICLOUD_CLIENT_SCHEME=HTTP",
	}, command, "--output="+output, "--cloud-provider=alicloud", "--cloud-config="+w.cloudConfig(), "--kubeconfig="+w.as.Kubeconfig,
		"--configure-cloud-routes=false")
	return p.wait(startDeadline), p.stdout.String()
}
