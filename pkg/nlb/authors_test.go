package nlb

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/policy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sources"
)

// TestForgedPodStatusPublishesNoMachine: whoever can write the status of a Pod can have it show any address. One that is on no node counts
// for nothing, and none has the address of a machine that is no node, or of another node, as its own.
func TestForgedPodStatusPublishesNoMachine(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		machine, node string
		rules         []policy.AddressRule
		want          bool
	}{
		"never scheduled":            {"db", "", nil, false},
		"never scheduled, on a node": {"n1", "", nil, false},
		"machine that is no node":    {"db", "n1", nil, false},
		"that a rule allows": {"db", "n1", []policy.AddressRule{{Namespaces: []string{testkube.Namespace}, CIDRs: []string{"10.0.0.0/8"}}},
			true},
		"hostNetwork":                 {"n1", "n1", nil, true},
		"hostNetwork of another node": {"n2", "n1", nil, false},
	} {
		for kind, typed := range map[string]func(*corev1.Service){"": eni, ", by address": func(svc *corev1.Service) {
			eni(svc)
			with(annotation.ServerGroupType, "Ip")(svc)
		}} {
			t.Run(name+kind, func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, w *world) {
					w.config.Policy = policy.Policy{EndpointAddresses: policy.AddressesPods, AllowedAddresses: test.rules}
					w.podCache = sources.NewPods(t.Context(), w.kube)
					w.restart()
					w.addNodes("n1", "n2", "db")
					w.deleteNode("db")
					for _, name := range []string{"n1", "n2"} {
						node := testkube.Node(name)
						node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: w.address(t, name)}}
						testkit.Check(t, w.factory.Core().V1().Nodes().Informer().GetIndexer().Add(node))
					}
					address := w.address(t, test.machine)
					pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "forged", Namespace: testkube.Namespace},
						Spec:   corev1.PodSpec{NodeName: test.node},
						Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: address}}}}
					testkit.Must(w.kube.CoreV1().Pods(testkube.Namespace).Create(t.Context(), pod, metav1.CreateOptions{}))(t)
					slice := testkube.EndpointSlice("web", testkube.Port(80, corev1.ProtocolTCP), address+"@n1")
					slice.Endpoints[0].TargetRef = &corev1.ObjectReference{Kind: "Pod", Namespace: testkube.Namespace, Name: pod.Name}
					w.putSlice(slice)
					w.put(newService("web", testkube.TCP(80), typed))
					_ = w.try("web") //nolint:errcheck // what it has done is looked at
					got := strings.Join(w.listeners(w.balancer("web").ID), "\n")
					if strings.Contains(got, address) != test.want {
						t.Errorf("listeners %s, want %s there: %v; events %q", got, address, test.want, w.newEvents())
					}
				})
			})
		}
	}
}

// TestPauseEndsWithTheNamespace: a Service that is paused by its annotation does not hold the deletion of its namespace, and still holds
// its own.
func TestPauseEndsWithTheNamespace(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.serve(1, testkube.TCP(80))
		id := w.balancer("web").ID
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: testkube.Namespace}}
		namespaces := w.kube.CoreV1().Namespaces()
		testkit.Must(namespaces.Create(t.Context(), namespace, metav1.CreateOptions{}))(t)
		w.change("web", testkube.Annotation(driver.AnnotationPaused, "true"))
		w.remove("web")
		w.converge("web")
		if !driver.HasFinalizer(w.get("web"), Finalizer) || !w.exists(id) {
			t.Fatal("the pause does not hold")
		}
		namespace.DeletionTimestamp = new(metav1.Now())
		testkit.Must(namespaces.Update(t.Context(), namespace, metav1.UpdateOptions{}))(t)
		w.converge("web")
		w.later(30 * settle)
		if driver.HasFinalizer(w.get("web"), Finalizer) || w.exists(id) {
			t.Errorf("finalizers %v, the NLB is there: %v", w.get("web").Finalizers, w.exists(id))
		}
	})
}

// TestNamingKeepsNoNLB: a Service of another namespace names the NLB of a group that it may not join, or of a Service, by ID. It gets
// nothing there, and the NLB goes with the Service.
func TestNamingKeepsNoNLB(t *testing.T) {
	t.Parallel()
	for name, svc := range map[string]*corev1.Service{
		"of a group": grouped("web", "edge", 1, testkube.TCP(80)), "of a Service": newService("web", testkube.TCP(80)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) { w.thiefKeepsNothing(svc) })
		})
	}
}

func (w *world) thiefKeepsNothing(victim *corev1.Service) {
	t := w.t
	t.Helper()
	w.groupWorld(victim)
	id := w.current("web")
	thief := newService("thief", testkube.TCP(81), without(annotation.ZoneMaps), with(annotation.LoadBalancerID, id),
		with(annotation.ForceOverrideListeners, "true"))
	thief.Namespace = "team-b"
	w.put(thief)
	steal := func() *corev1.Service {
		w.fillServices()
		for range 5 {
			svc := testkit.Must(w.kube.CoreV1().Services(thief.Namespace).Get(t.Context(), thief.Name, metav1.GetOptions{}))(t)
			_, _ = w.Reconcile(t.Context(), svc) //nolint:errcheck // it is refused
			w.later(settle)
		}
		return testkit.Must(w.kube.CoreV1().Services(thief.Namespace).Get(t.Context(), thief.Name, metav1.GetOptions{}))(t)
	}
	before := w.listeners(id)
	if steal(); len(before) != 1 || len(w.listeners(id)) != 1 {
		t.Errorf("listeners %v, and before %v", w.listeners(id), before)
	}
	w.remove("web")
	w.converge("web")
	w.later(30 * settle)
	if svc := steal(); w.exists(id) || len(svc.Status.LoadBalancer.Ingress) > 0 || len(w.get("web").Finalizers) > 0 {
		t.Errorf("it is there: %v, status %+v", w.exists(id), svc.Status)
	}
}

// TestServerGroupsTellNothing: whoever can edit Services finds out by the annotation vgroup-port as little which server groups there are,
// whose they are and where.
func TestServerGroupsTellNothing(t *testing.T) {
	t.Parallel()
	heard := func(t *testing.T, there *alicloud.NLBGroup) (said string) {
		t.Helper()
		inWorld(t, func(t *testing.T, w *world) {
			w.addNodes("n1")
			id := "sgp-none"
			if there != nil {
				made, _, err := w.account.Client.CreateNLBGroup(t.Context(), *there, "theirs")
				testkit.Check(t, err)
				w.later(5 * settle)
				id = made
			}
			w.put(newService("claim", testkube.TCP(80), without(annotation.ZoneMaps), with(annotation.LoadBalancerID, w.existing("harmless")),
				with(annotation.ForceOverrideListeners, "true"), with(annotation.VGroupPort, id+":80")))
			_ = w.try("claim") //nolint:errcheck // it is refused
			said = strings.Join(w.newEvents(), "\n")
			for _, condition := range w.get("claim").Status.Conditions {
				if condition.Type != driver.ConditionWritten {
					said += "\n" + condition.Reason + " " + condition.Message
				}
			}
			said = strings.ReplaceAll(strings.ReplaceAll(said, id, "GROUP"), w.current("claim"), "NLB")
		})
		return said
	}
	group := func(name string, kind string, tags ...alicloud.Tag) *alicloud.NLBGroup {
		return &alicloud.NLBGroup{Name: name, Type: kind, Protocol: alicloud.NLBTCP, VPCID: emulatortest.VPC, Tags: tags}
	}
	want := heard(t, nil)
	for name, there := range map[string]*alicloud.NLBGroup{
		"of a Service":                  group("k8s.30080.TCP.shop.team-b.c1", alicloud.NLBInstanceGroup),
		"with an owner":                 group("theirs", alicloud.NLBInstanceGroup, alicloud.Tag{Key: mark.TagOwner, Value: "a1"}),
		"of a Service, of another type": group("k8s.8080.TCP.shop.team-b.c1", alicloud.NLBIPGroup),
	} {
		if got := heard(t, there); got != want {
			t.Errorf("%s: it is said\n%s\nand of one that does not exist\n%s", name, got, want)
		}
	}
}

// TestAdoptionWithoutTags: an NLB that the official CCM has made, and whose tags are gone, is adopted without a write, by the name that the
// status shows and its marks. When the Service goes, it gets its tag, and goes, too.
func TestAdoptionWithoutTags(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		kind := adoptedKinds()[0]
		made := kind.official(t, w)
		id := kind.begin(w)
		made.make(w, id)
		lb := w.balancer("web")
		testkit.Check(t, w.account.Client.UntagNLB(t.Context(), alicloud.NLBTagLoadBalancer, []string{lb.ID},
			[]string{mark.TagOwner, mark.TagCluster}))
		w.later(settle)
		svc := newService("web", append(kind.changes(id), func(svc *corev1.Service) { svc.Finalizers = []string{Finalizer} })...)
		svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: lb.DNSName}}
		w.put(svc)
		w.calls()
		w.converge("web")
		if calls := writes(w.calls()); len(calls) > 0 || w.current("web") != lb.ID {
			t.Errorf("writes %v, on %s", calls, w.current("web"))
		}
		w.restart()
		w.remove("web")
		w.converge("web")
		w.later(30 * settle)
		if w.exists(lb.ID) || len(w.get("web").Finalizers) > 0 {
			t.Errorf("it is there: %v, finalizers %v, events %q", w.exists(lb.ID), w.get("web").Finalizers, w.newEvents())
		}
	})
}
