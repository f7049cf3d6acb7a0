package provider

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb"
)

// What `make soak` makes longer; the time is a synctest bubble's.
var (
	bothFor  = flag.Duration("soak.both.for", 5*time.Minute, "how long TestSoakOfBothProducts churns, in virtual time")
	bothSeed = flag.Uint64("soak.both.seed", 0, "what TestSoakOfBothProducts decides from; 0 takes one of its own")
)

// both is one program that serves both products, and what happens to it.
type both struct {
	t      *testing.T
	server *emulatortest.Cloud
	client *alicloud.Client
	kube   *fake.Clientset
	random *rand.Rand
	stop   func()
	made   int

	lasting lasting
}

// TestBothProducts: Services with the same backends, one with a CLB and one with an NLB, are served side by side, follow the nodes, and go
// one after the other.
func TestBothProducts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBoth(t, 1)
		b.put("s0", false)
		b.put("s1", true)
		b.settle()
		b.node("n9", true)
		b.settle()
		b.remove("s0")
		b.settle()
		b.remove("s1")
		b.settle()
		b.stop()
	})
}

// TestSoakOfBothProducts churns Services of both products, nodes, the program and the cloud under random faults. In the end each Service
// has what it needs, nothing is left over, and nothing more is written.
func TestSoakOfBothProducts(t *testing.T) {
	t.Parallel()
	seed := testkit.Seed(*bothSeed, 1)
	t.Logf("seed %d, %s", seed, *bothFor)
	synctest.Test(t, func(t *testing.T) {
		b := newBoth(t, seed)
		for end := time.Now().Add(*bothFor); time.Now().Before(end); {
			b.one()
			time.Sleep(time.Duration(b.random.Int64N(int64(4 * time.Second))))
			b.collect()
			b.endLasting(time.Now())
		}
		b.endLasting(b.lasting.until)
		b.server.ClearFaults()
		b.deleteKept()
		b.settle()
		t.Logf("for a while: %v; %d load balancers stayed, because others used them", b.lasting.begun, b.lasting.kept)
		b.stop()
	})
}

func newBoth(t *testing.T, seed uint64) *both {
	t.Helper()
	server := emulatortest.New(t, emulator.Options{Settle: time.Second})
	b := &both{t: t, server: server, client: steadyClient(t, server), kube: testkube.NewClientset(), random: rand.New(rand.NewPCG(seed, 0)), //nolint:gosec // repeatable by its seed
		lasting: lasting{begun: map[string]int{}, touched: sets.New[string]()}}
	for _, name := range []string{"n1", "n2"} {
		b.node(name, true)
	}
	b.stop = serveServices(t, server, b.kube, Settings{})
	return b
}

// one makes one event.
func (b *both) one() {
	name := fmt.Sprintf("s%d", b.random.IntN(8))
	switch n := b.random.IntN(20); {
	case n < 9:
		b.churn(name)
	case n < 13:
		b.node(fmt.Sprintf("n%d", 3+b.random.IntN(3)), b.random.IntN(2) == 0)
	case n < 17:
		b.fault()
	case n < 19:
		b.beginLasting()
	default:
		b.stop()
		b.stop = serveServices(b.t, b.server, b.kube, Settings{})
	}
}

func (b *both) fault() {
	faults := []string{
		`"kind":"write","code":"ServiceUnavailable","status":503`, `"kind":"write","code":"Forbidden.RAM","status":403`,
		`"kind":"write","code":"Conflict.Lock"`, `"kind":"write","code":"OperationDenied"`, `"kind":"write","product":"nlb","job":"failed"`,
		`"drop":"before"`, `"drop":"after"`, `"latency":"2s"`, `"code":"SystemBusy"`, `"code":"Throttling.User"`, `"body":""`, `"body":"{}"`,
		`"kind":"read","code":"ServiceUnavailable","status":503`, `"kind":"read","body":""`,
	}
	b.server.Fault(fmt.Sprintf(`{"action":"*","times":%d,"after":%d,%s}`, 1+b.random.IntN(3), b.random.IntN(5),
		faults[b.random.IntN(len(faults))]))
}

// node makes a node or takes it away.
func (b *both) node(name string, there bool) {
	nodes := b.kube.CoreV1().Nodes()
	_, err := nodes.Get(b.t.Context(), name, metav1.GetOptions{})
	switch {
	case there && err != nil:
		b.server.Put(testkube.InstanceOf(name), "{}")
		testkit.Must(nodes.Create(b.t.Context(), testkube.Node(name), metav1.CreateOptions{}))(b.t)
	case !there && err == nil:
		testkit.Check(b.t, nodes.Delete(b.t.Context(), name, metav1.DeleteOptions{}))
	}
}

// put makes a Service with an NLB or a CLB.
func (b *both) put(name string, isNLB bool, change ...func(*corev1.Service)) {
	svc := testkube.Service(name, testkube.TCP(80))
	if isNLB {
		testkube.Class(nlb.Class)(svc)
		testkube.Annotation("service.beta.kubernetes.io/alibaba-cloud-loadbalancer-zone-maps", "cn-hangzhou-a:vsw-a,cn-hangzhou-b:vsw-b")(svc)
	}
	b.made++
	svc.UID += types.UID(fmt.Sprintf("-%04d", b.made)) // the API server gives no UID twice
	for _, f := range change {
		f(svc)
	}
	testkit.Must(b.kube.CoreV1().Services(testkube.Namespace).Create(b.t.Context(), svc, metav1.CreateOptions{}))(b.t)
}

func (b *both) remove(name string) {
	b.change(name, func(svc *corev1.Service) {
		now := metav1.Now()
		svc.DeletionTimestamp = &now
	})
}

func (b *both) change(name string, change func(*corev1.Service)) {
	services := b.kube.CoreV1().Services(testkube.Namespace)
	svc := testkit.Must(services.Get(b.t.Context(), name, metav1.GetOptions{}))(b.t)
	change(svc)
	testkit.Must(services.Update(b.t.Context(), svc, metav1.UpdateOptions{}))(b.t)
}

// churn makes, changes or deletes a Service.
func (b *both) churn(name string) {
	svc, err := b.kube.CoreV1().Services(testkube.Namespace).Get(b.t.Context(), name, metav1.GetOptions{})
	switch {
	case err != nil:
		b.put(name, b.random.IntN(2) == 0)
	case svc.DeletionTimestamp != nil:
	case b.random.IntN(4) == 0:
		b.remove(name)
	default:
		b.change(name, func(svc *corev1.Service) {
			svc.Spec.Ports = []corev1.ServicePort{testkube.Port(80, corev1.ProtocolTCP)}
			if b.random.IntN(2) == 0 {
				svc.Spec.Ports = append(svc.Spec.Ports, testkube.Port(443, corev1.ProtocolTCP))
			}
			if svc.Annotations == nil {
				svc.Annotations = map[string]string{}
			}
			testkube.Annotation("service.beta.kubernetes.io/alibaba-cloud-loadbalancer-default-weight", fmt.Sprint(10+b.random.IntN(3)))(svc)
		})
	}
}

// services are those that are there. Deleted ones without finalizers go, as in an API server.
func (b *both) services() []corev1.Service {
	b.t.Helper()
	return testkit.Must(b.kube.CoreV1().Services(testkube.Namespace).List(b.t.Context(), metav1.ListOptions{}))(b.t).Items
}

func (b *both) collect() {
	for _, svc := range b.services() {
		if svc.DeletionTimestamp != nil && len(svc.Finalizers) == 0 {
			testkit.Check(b.t, b.kube.CoreV1().Services(testkube.Namespace).Delete(b.t.Context(), svc.Name, metav1.DeleteOptions{}))
		}
	}
}

// driftFound is when a new process has found what an earlier one left behind that no listener shows: a vServer group without one.
const driftFound = 15 * time.Minute

// settle waits until nothing is to be done any more, and checks what is there: for each Service what it needs, and nothing else.
func (b *both) settle() {
	b.t.Helper()
	quiet := false
	for range 8 {
		before := b.server.Last()
		time.Sleep(driftFound)
		b.collect()
		if quiet = b.writes(before) == 0; quiet {
			break
		}
	}
	if !quiet {
		b.t.Error("no end of writes after two hours")
	}
	want, services := map[string]int{}, b.services()
	for i := range services {
		svc := &services[i]
		want["a"+strings.ReplaceAll(string(svc.UID), "-", "")] = len(svc.Spec.Ports)
		if len(svc.Status.LoadBalancer.Ingress) != 1 {
			b.t.Errorf("%s shows %+v, conditions %+v", svc.Name, svc.Status.LoadBalancer.Ingress, svc.Status.Conditions)
		}
	}
	b.compare(want)
}

// machines is how many nodes can be backends.
func (b *both) machines() int {
	all := testkit.Must(b.kube.CoreV1().Nodes().List(b.t.Context(), metav1.ListOptions{}))(b.t).Items
	return len(slices.DeleteFunc(all, func(n corev1.Node) bool { return n.Labels[nodes.LabelType] == nodes.TypeVirtualKubelet }))
}

func (b *both) writes(since int64) int { return len(b.written(since)) }

// written are the writes since a call.
func (b *both) written(since int64) []string {
	var calls []string
	for _, call := range b.server.Calls(since) {
		if !slices.ContainsFunc([]string{"Get", "List", "Describe"}, func(verb string) bool { return strings.HasPrefix(call.Action, verb) }) {
			calls = append(calls, fmt.Sprintf("%s %s %s %v", call.Time.Format("15:04:05.0"), call.Action, call.Code, call.Parameters))
		}
	}
	return calls
}

// compare checks that there are these load balancers, by the value of their owner tag, with so many listeners, each with all nodes.
func (b *both) compare(want map[string]int) {
	b.t.Helper()
	ctx, nodes := b.t.Context(), b.machines()
	got := map[string]int{}
	for _, lb := range testkit.Must(b.client.ListNLBs(ctx, alicloud.NLBQuery{}))(b.t) {
		owner, _ := lb.Tag("kubernetes.do.not.delete")
		for _, l := range testkit.Must(b.client.ListNLBListeners(ctx, []string{lb.ID}))(b.t) {
			got[owner]++
			if servers := testkit.Must(b.client.ListNLBServers(ctx, *l.ServerGroupID))(b.t); len(servers) != nodes {
				b.t.Errorf("%s: %d servers, want %d", owner, len(servers), nodes)
			}
		}
	}
	listeners := 0
	for _, n := range got {
		listeners += n
	}
	if groups := testkit.Must(b.client.ListNLBGroups(ctx, alicloud.NLBGroupQuery{}))(b.t); len(groups) != listeners {
		b.t.Errorf("%d server groups for %d listeners of NLBs", len(groups), listeners)
	}
	for _, lb := range testkit.Must(b.client.DescribeLoadBalancers(ctx, alicloud.LoadBalancerQuery{}))(b.t) {
		owner, _ := lb.Tag("kubernetes.do.not.delete")
		groups := testkit.Must(b.client.DescribeVServerGroups(ctx, lb.ID))(b.t)
		got[owner] += len(testkit.Must(b.client.DescribeListeners(ctx, lb.ID))(b.t)[lb.ID])
		for _, group := range groups {
			if full := testkit.Must(b.client.DescribeVServerGroup(ctx, group.ID))(b.t); len(full.Backends) != nodes {
				b.t.Errorf("%s: %d backend servers, want %d", owner, len(full.Backends), nodes)
			}
		}
		if len(groups) != got[owner] {
			b.t.Errorf("%s: %d vServer groups for %d listeners", owner, len(groups), got[owner])
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		b.t.Errorf("load balancers with their listeners: %v, want %v", got, want)
	}
}
