package slb

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sources"
)

// strictWorld makes a world for a bubble whose Services have only addresses of Pods as backend servers.
func strictWorld(t *testing.T, rules ...policy.AddressRule) *world {
	t.Helper()
	w := unstartedWorld(t, cloud.DefaultConfig())
	w.config.Policy = policy.Policy{EndpointAddresses: policy.AddressesPods, AllowedAddresses: rules}
	w.pods = sources.NewPods(t.Context(), w.kube)
	w.restart()
	threeNodes(w)
	return w
}

// putAddressedPod creates or replaces a Pod with an address, on the node that has the address, else on a.
func (w *world) putAddressedPod(namespace, name, address string, change ...func(*corev1.Pod)) {
	w.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: address}}}}
	pod.Spec.NodeName = "a"
	for _, node := range []string{"b", "c"} {
		if w.addressOf("i-"+node) == address {
			pod.Spec.NodeName = node
		}
	}
	for _, f := range change {
		f(pod)
	}
	pods := w.kube.CoreV1().Pods(namespace)
	_, err := pods.Update(w.t.Context(), pod, metav1.UpdateOptions{})
	if err != nil {
		_, err = pods.Create(w.t.Context(), pod, metav1.CreateOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
}

// putTargets puts a slice with one endpoint per item "address pod", or "address" for one without a pod, or "address namespace/pod".
func (w *world) putTargets(svc *corev1.Service, items ...string) {
	w.t.Helper()
	addresses := make([]string, 0, len(items))
	for _, item := range items {
		address, _, _ := strings.Cut(item, " ")
		addresses = append(addresses, address+"@a")
	}
	slice := testSlice(svc.Spec.Ports[0], addresses...)
	slice.Name = "web-1"
	for i, item := range items {
		_, pod, named := strings.Cut(item, " ")
		if !named {
			continue
		}
		target := &corev1.ObjectReference{Kind: "Pod", Namespace: testNamespace, Name: pod}
		if namespace, name, other := strings.Cut(pod, "/"); other {
			target.Namespace, target.Name = namespace, name
		}
		slice.Endpoints[i].TargetRef = target
	}
	w.putSlice(slice)
}

// backendAddresses are the addresses of the backend servers of the Service's only group.
func (w *world) backendAddresses() []string {
	addresses := []string{}
	for _, servers := range w.state()["a0f5e8a1cweb"].Groups {
		for _, server := range servers {
			address, _, _ := strings.Cut(strings.Fields(server)[1], ":")
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// TestOnlyPodsAreBackends: an address of an EndpointSlice that no Pod of the namespace has does not become a backend server, and leaves if
// it is one. Otherwise, whoever may write EndpointSlices could publish every machine of the VPC.
func TestOnlyPodsAreBackends(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world, *corev1.Service){
		"pods are the backends": func(_ *world, svc *corev1.Service) { eni(svc) },
		"virtual node": func(w *world, svc *corev1.Service) {
			w.putNode(testNode("a", labeled(nodes.LabelType, nodes.TypeVirtualKubelet), foreignProvider))
			// Whose address the pod of the virtual node has here.
			w.putNode(testNode("machine", func(node *corev1.Node) { node.Spec.ProviderID = testRegion + ".i-a" }))
			svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := strictWorld(t)
				a, b, c := w.addressOf("i-a"), w.addressOf("i-b"), w.addressOf("i-c")
				w.putAddressedPod(testNamespace, "web-a", a)
				w.putAddressedPod(testNamespace, "web-b", "10.9.9.9")
				w.putAddressedPod("other", "theirs", c)
				w.putAddressedPod(testNamespace, "done", b, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded })
				svc := testService("web", 80)
				change(w, svc)
				w.put(svc)
				for _, test := range []struct {
					name  string
					items []string
					want  []string
				}{
					{"a pod", []string{a + " web-a"}, []string{a}},
					{"no target", []string{a + " web-a", b}, []string{a}},
					{"a pod without the address", []string{a + " web-a", b + " web-b"}, []string{a}},
					{"a pod that does not exist", []string{a + " web-a", b + " none"}, []string{a}},
					{"a pod that has ended", []string{a + " web-a", b + " done"}, []string{a}},
					{"a pod of another namespace", []string{a + " web-a", c + " other/theirs"}, []string{a}},
					{"a pod of another namespace by its name only", []string{a + " web-a", c + " theirs"}, []string{a}},
					{"twice, once without target", []string{a, a + " web-a"}, []string{a}},
				} {
					w.putTargets(svc, test.items...)
					w.mustPass("web")
					if diff := cmp.Diff(test.want, w.backendAddresses()); diff != "" {
						t.Errorf("%s: backend servers (-want +got):\n%s", test.name, diff)
					}
				}
				w.putTargets(svc, a+" web-a", b+" web-b")
				w.mustPass("web")
				if events := strings.Join(w.newEvents(), "\n"); !strings.Contains(events, "no Pod of the namespace has the addresses "+b) {
					t.Errorf("events = %s, want one that names %s", events, b)
				}
				w.putAddressedPod(testNamespace, "web-b", b)
				w.mustPass("web")
				if got := len(w.backendAddresses()); got != 2 {
					t.Errorf("after a pod got its address there are %d backend servers, want 2", got)
				}
				if err := w.kube.CoreV1().Pods(testNamespace).Delete(t.Context(), "web-a", metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				w.mustPass("web")
				if diff := cmp.Diff([]string{b}, w.backendAddresses()); diff != "" {
					t.Errorf("after a pod went (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestAllowedAddresses: a Service without a selector sends to addresses that a rule gives its namespace, and to no others.
func TestAllowedAddresses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := strictWorld(t, policy.AddressRule{Namespaces: []string{"other"}, CIDRs: []string{"0.0.0.0/0"}})
		a, b := w.addressOf("i-a"), w.addressOf("i-b")
		w.config.Policy.AllowedAddresses = append(w.config.Policy.AllowedAddresses,
			policy.AddressRule{Namespaces: []string{"def*"}, CIDRs: []string{a + "/32"}})
		w.restart()
		svc := testService("web", 80)
		svc.Spec.Selector = nil
		eni(svc)
		w.put(svc)
		w.putTargets(svc, a, b)
		w.mustPass("web")
		if diff := cmp.Diff([]string{a}, w.backendAddresses()); diff != "" {
			t.Errorf("backend servers (-want +got):\n%s", diff)
		}
	})
}

// TestUnreadPodsStay: while the Pods of a namespace cannot be read, backend servers stay and none is added.
func TestUnreadPodsStay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := strictWorld(t)
		a, b, c := w.addressOf("i-a"), w.addressOf("i-b"), w.addressOf("i-c")
		w.putAddressedPod(testNamespace, "web-a", a)
		w.putAddressedPod(testNamespace, "web-b", b)
		w.putAddressedPod(testNamespace, "web-c", c)
		svc := testService("web", 80)
		eni(svc)
		w.put(svc)
		w.putTargets(svc, a+" web-a", b+" web-b")
		w.mustPass("web")
		w.kube.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errDead })
		w.pods = sources.NewPods(t.Context(), w.kube)
		w.restart()
		w.putTargets(svc, b+" web-b", c+" web-c") // web-a is no endpoint any more
		w.mustPass("web")
		if diff := cmp.Diff([]string{b}, w.backendAddresses()); diff != "" {
			t.Errorf("backend servers (-want +got):\n%s", diff)
		}
		if events := strings.Join(w.newEvents(), "\n"); !strings.Contains(events, "the Pods of the namespace cannot be read") {
			t.Errorf("events = %s, want one that says why", events)
		}
	})
}
