package slb

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sources"
)

const (
	testNamespace = "default"
	testCluster   = "c1"
	testRegion    = emulatortest.Region

	testCertificate = "cert-1"
	testACL         = "acl-1"
)

// testGoneOver is so short that the next pass confirms that a CLB is gone.
const testGoneOver = time.Nanosecond

// maxAtOnce is how many passes in a row may be due at once.
const maxAtOnce = 100

var errDead = errors.New("the process is dead")

// world is one emulated cloud, one fake API server and one reconciler over them. Caches are filled by hand, so that a
// test decides what has been seen.
type world struct {
	t         testing.TB
	emulator  *emulatortest.Cloud
	kube      *fake.Clientset
	factory   informers.SharedInformerFactory
	events    chan string
	config    config.Config
	api       API
	transport *mortal
	// withoutSlices is a role that may not list EndpointSlices.
	withoutSlices bool
	// pods is nil where the policy does not restrict the addresses of backends.
	pods *sources.Pods
	// moveGrace is how long a Service stays at a place that it has left, 0 for next to nothing.
	moveGrace time.Duration
	*service.Reconciler
}

// mortal kills its process after a number of writes: nothing gets out any more.
type mortal struct {
	mu     sync.Mutex // guards the rest
	writes int
	limit  int // 0 = immortal
	dead   bool
	next   http.RoundTripper
}

func (m *mortal) RoundTrip(request *http.Request) (*http.Response, error) {
	if m.isDead() {
		return nil, errDead
	}
	answer, err := m.next.RoundTrip(request)
	if !strings.HasPrefix(request.URL.Query().Get("Action"), "Describe") {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.writes++; m.limit > 0 && m.writes >= m.limit {
			m.dead = true
		}
	}
	return answer, err
}

func (m *mortal) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = true
}

func (m *mortal) isDead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	return newWorldWith(tb, cloud.Limits{})
}

// newWorldWith makes a world whose cloud has the given limits in place of the usual ones.
func newWorldWith(tb testing.TB, limits cloud.Limits) *world {
	tb.Helper()
	config := cloud.DefaultConfig()
	config.Quotas = limits
	return newWorldIn(tb, config)
}

// newWorldIn makes a world in a cloud with the given settings, and what tests use besides.
func newWorldIn(tb testing.TB, cfg *cloud.Config) *world {
	tb.Helper()
	w := unstartedWorld(tb, cfg)
	w.restart()
	return w
}

func unstartedWorld(tb testing.TB, cfg *cloud.Config) *world {
	tb.Helper()
	cfg.Certificates = []cloud.CertificateConfig{
		{ID: testCertificate}, {ID: "cert-2"},
		{ID: "cert-expired", Expires: time.Now().Add(-time.Hour)}, {ID: "cert-expiring", Expires: time.Now().Add(time.Hour)},
	}
	cfg.VPCs[0].IPv6CIDR, cfg.VSwitches[0].IPv6CIDR = "2001:db8::/56", "2001:db8::/64"
	cfg.ACLs = []cloud.ACLConfig{{ID: testACL, Entries: []string{"10.0.0.0/8"}}, {ID: "acl-2", Entries: []string{"10.0.0.0/8"}}}
	e := emulatortest.New(tb, emulator.Options{Config: cfg})
	w := &world{
		t: tb, emulator: e, kube: testkube.NewClientset(), events: make(chan string, 1000),
		config: config.Config{ClusterID: testCluster, VPCID: emulatortest.VPC, VSwitchIDs: []string{"vsw-a", "vsw-b"}, Region: testRegion},
	}
	w.kube.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return w.transport.isDead(), nil, errDead
	})
	w.factory = informers.NewSharedInformerFactory(w.kube, 0)
	return w
}

// restart begins anew with a process that remembers nothing.
func (w *world) restart() {
	w.t.Helper()
	// Within the process: it costs half of what sockets do, and works in a synctest bubble.
	w.transport = &mortal{next: w.emulator.Transport()}
	const address = "cloud"
	client, err := alicloud.New(alicloud.Options{
		Region: testRegion, Credentials: testKey(), Transport: w.transport,
		Endpoints: alicloud.Endpoints{PlainHTTP: true, SLB: address, VPC: address, ECS: address},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.api = client
	w.Reconciler = service.NewReconciler(w.options())
}

func testKey() alicloud.StaticCredentials {
	return alicloud.StaticCredentials{AccessKeyID: emulatortest.AccessKeyID, AccessKeySecret: emulatortest.AccessKeySecret}
}

func (w *world) options() service.Options {
	engine := NewEngine(w.api, w.config, w.factory.Core().V1().Services().Lister()).(*engine)
	engine.missing.Over = testGoneOver
	opts := service.Options{
		Engines: []driver.Engine{engine}, Network: w.api, Config: w.config, Client: w.kube, Recorder: w.recorder(),
		Services: w.factory.Core().V1().Services(), Nodes: w.factory.Core().V1().Nodes(),
		EndpointSlices: w.factory.Discovery().V1().EndpointSlices(), InstanceID: testInstanceID, Pods: w.pods,
		MoveGrace: max(w.moveGrace, time.Nanosecond),
	}
	if w.withoutSlices {
		opts.EndpointSlices, opts.Endpoints = nil, w.factory.Core().V1().Endpoints()
	}
	return opts
}

func (w *world) recorder() record.EventRecorder { return &record.FakeRecorder{Events: w.events} }

// testInstanceID reads provider IDs of the form region.instance.
func testInstanceID(node *corev1.Node) (string, error) {
	region, id, ok := strings.Cut(node.Spec.ProviderID, ".")
	if !ok || region != testRegion {
		return "", fmt.Errorf("provider ID %q is none of ours", node.Spec.ProviderID)
	}
	return id, nil
}

// addNode makes an instance and the Node that it is.
func (w *world) addNode(name string, change ...func(*corev1.Node)) *corev1.Node {
	w.t.Helper()
	if _, err := w.emulator.PutInstance("i-"+name, emulator.InstanceSpec{}); err != nil {
		w.t.Fatal(err)
	}
	node := testNode(name, change...)
	w.putNode(node)
	return node
}

func (w *world) putNode(node *corev1.Node) {
	w.t.Helper()
	if err := w.factory.Core().V1().Nodes().Informer().GetIndexer().Add(node); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) deleteNode(name string) {
	w.t.Helper()
	if err := w.factory.Core().V1().Nodes().Informer().GetIndexer().Delete(testNode(name)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) putSlice(slice *discoveryv1.EndpointSlice) {
	w.t.Helper()
	if err := w.factory.Discovery().V1().EndpointSlices().Informer().GetIndexer().Add(slice); err != nil {
		w.t.Fatal(err)
	}
}

func testNode(name string, change ...func(*corev1.Node)) *corev1.Node {
	return testkube.Node(name, change...)
}

// testService makes a Service with the given TCP ports; the node port is 30000 higher.
func testService(name string, ports ...int32) *corev1.Service {
	svc := testkube.Service(name, testkube.TCP(ports...))
	annotate(svc, annotation.AddressType, "intranet")
	return svc
}

func testPort(port int32, protocol corev1.Protocol) corev1.ServicePort {
	return testkube.Port(port, protocol)
}

func key(suffix annotation.Suffix) string { return suffix.Key() }

func annotate(svc *corev1.Service, suffix annotation.Suffix, value string) {
	svc.Annotations[key(suffix)] = value
}

// apply makes the Service in the API server what f makes of it, or creates it.
func (w *world) put(svc *corev1.Service) {
	w.t.Helper()
	if _, err := w.kube.CoreV1().Services(svc.Namespace).Create(w.t.Context(), svc, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) get(name string) *corev1.Service {
	w.t.Helper()
	svc, err := w.kube.CoreV1().Services(testNamespace).Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return svc
}

func (w *world) change(name string, f func(*corev1.Service)) {
	w.t.Helper()
	svc := w.get(name)
	f(svc)
	if _, err := w.kube.CoreV1().Services(testNamespace).Update(w.t.Context(), svc, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// pass makes one pass over the Service as the API server has it, and the further ones that are due at once: they confirm that its CLB is
// gone, or go on with what the one before has learned.
func (w *world) pass(name string) error {
	for n := 0; ; n++ {
		if n == maxAtOnce {
			return fmt.Errorf("%d passes over %s, and another one is due at once", n, name)
		}
		w.fillGroups()
		svc, err := w.kube.CoreV1().Services(testNamespace).Get(w.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		wait, err := w.Reconcile(w.t.Context(), svc)
		if err != nil || wait == 0 || wait > 2*time.Millisecond { // after a move, the former place is left so soon
			return err
		}
		time.Sleep(wait) // a bubble has a time of its own
	}
}

func (w *world) mustPass(name string) {
	w.t.Helper()
	if err := w.pass(name); err != nil {
		w.t.Fatalf("pass over %s: %v", name, err)
	}
}

// drift makes the next pass read the cloud.
func (w *world) drift(name string) {
	w.t.Helper()
	if err := w.Invalidate(w.t.Context(), w.get(name), "the test says so"); err != nil {
		w.t.Fatal(err)
	}
}

// wantRest fails if a pass for drift over the Service writes anything.
func (w *world) wantRest(name string) {
	w.t.Helper()
	w.calls()
	w.drift(name)
	w.mustPass(name)
	if writes := writesOf(w.calls()); len(writes) != 0 {
		w.t.Errorf("the next pass writes %v", writes)
	}
}

// calls returns the actions since the last time, as "Action" or "Action=Code".
func (w *world) calls() []string { return w.emulator.NewActions() }

func writesOf(actions []string) []string { return emulatortest.Writes(actions) }

// newEvents returns the events since the last time.
func (w *world) newEvents() []string {
	var events []string
	for {
		select {
		case event := <-w.events:
			events = append(events, event)
		default:
			return events
		}
	}
}

// fault injects a fault.
func (w *world) fault(rule map[string]any) {
	w.t.Helper()
	body, err := json.Marshal(rule)
	if err != nil {
		w.t.Fatal(err)
	}
	w.emulator.Fault(string(body))
}

// faultHits counts the calls that the injected faults hit.
func (w *world) faultHits() int { return w.emulator.FaultHits() }

func (w *world) clearFaults() { w.emulator.ClearFaults() }

// read asks the emulator's admin API.
func (w *world) read(page string, into any) { w.emulator.Read(page, into) }
