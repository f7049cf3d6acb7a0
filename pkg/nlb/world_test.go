package nlb

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
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
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testcloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/sources"
)

const (
	testCluster = "c1"
	twoZones    = "cn-hangzhou-a:vsw-a,cn-hangzhou-b:vsw-b"
	// settle is what a job takes in the cloud of tests; a creation takes twenty times as long.
	settle = time.Second
)

var errDead = errors.New("the process is dead")

// mortal kills its process after a number of writes: nothing gets out any more.
type mortal struct {
	mu            sync.Mutex // guards the rest
	writes, limit int        // limit 0 = immortal
	dead          bool
	next          http.RoundTripper
}

func (m *mortal) RoundTrip(request *http.Request) (*http.Response, error) {
	if m.isDead() {
		return nil, errDead
	}
	answer, err := m.next.RoundTrip(request)
	action := request.URL.Query().Get("Action")
	if !isRead(action) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.writes++; m.limit > 0 && m.writes >= m.limit {
			m.dead = true
		}
	}
	return answer, err
}

func (m *mortal) isDead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

// diesAfter kills the process after some more writes.
func (m *mortal) diesAfter(writes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limit = m.writes + writes
}

func isRead(action string) bool {
	return slices.ContainsFunc([]string{"Get", "List", "Describe"}, func(verb string) bool { return strings.HasPrefix(action, verb) })
}

// world is one emulated cloud, one fake API server and one reconciler over them, in a bubble of virtual time. Caches are filled by
// hand.
type world struct {
	t         testing.TB
	account   *testcloud.Account
	kube      *fake.Clientset
	factory   informers.SharedInformerFactory
	events    chan string
	config    config.Config
	engine    *engine
	transport *mortal
	// companions are Services that have passes, too, whenever another one converges: what one of them does may be what another one waits for.
	companions []string
	// podCache is nil where the policy does not restrict the addresses of backends.
	podCache *sources.Pods
	*service.Reconciler
}

// inWorld runs a test in a world of its own.
func inWorld(t *testing.T, test func(t *testing.T, w *world), change ...func(*cloud.Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newWorld(t, change...)) })
}

func newWorld(tb testing.TB, change ...func(*cloud.Config)) *world {
	tb.Helper()
	cfg := cloud.DefaultConfig()
	cfg.Certificates = []cloud.CertificateConfig{{ID: "cert-1"}, {ID: "cert-2"}, {ID: "cert-3"}, {ID: "ca-1", CA: true}}
	cfg.VPCs[0].IPv6CIDR, cfg.VSwitches[0].IPv6CIDR, cfg.VSwitches[1].IPv6CIDR = "2001:db8::/56", "2001:db8::/64", "2001:db8:0:1::/64"
	for _, f := range change {
		f(cfg)
	}
	w := &world{
		t: tb, account: testcloud.New(tb, emulator.Options{Config: cfg, Settle: settle}), kube: testkube.NewClientset(),
		events: make(chan string, 1000),
		config: config.Config{ClusterID: testCluster, VPCID: emulatortest.VPC, VSwitchIDs: []string{"vsw-a", "vsw-b"},
			Region: emulatortest.Region},
	}
	w.kube.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return w.transport.isDead(), nil, errDead })
	w.factory = informers.NewSharedInformerFactory(w.kube, 0)
	w.restart()
	return w
}

// restart begins anew with a process that remembers nothing.
func (w *world) restart() {
	w.t.Helper()
	w.transport = &mortal{next: w.account.Transport()}
	client := w.account.NewClient(func(o *alicloud.Options) { o.Transport = w.transport })
	w.engine = NewEngine(client, w.config, w.factory.Core().V1().Services().Lister()).(*engine) //nolint:forcetypeassert // it is one
	w.Reconciler = service.NewReconciler(w.options(client))
}

func (w *world) options(client *alicloud.Client) service.Options {
	return service.Options{
		Engines: []driver.Engine{w.engine}, Network: client, Config: w.config, Client: w.kube, Recorder: &record.FakeRecorder{Events: w.events},
		Services: w.factory.Core().V1().Services(), Nodes: w.factory.Core().V1().Nodes(),
		EndpointSlices: w.factory.Discovery().V1().EndpointSlices(), InstanceID: testkube.InstanceID, Pods: w.podCache,
	}
}

// addNodes makes instances and the Nodes that they are.
func (w *world) addNodes(names ...string) {
	w.t.Helper()
	for _, name := range names {
		w.account.Put(testkube.InstanceOf(name), "{}")
		testkit.Check(w.t, w.factory.Core().V1().Nodes().Informer().GetIndexer().Add(testkube.Node(name)))
	}
}

// addressOf gives a node an InternalIP.
func (w *world) addressOf(name, address string) {
	w.t.Helper()
	node := testkube.Node(name)
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
	testkit.Check(w.t, w.factory.Core().V1().Nodes().Informer().GetIndexer().Update(node))
}

func (w *world) deleteNode(name string) {
	w.t.Helper()
	testkit.Check(w.t, w.factory.Core().V1().Nodes().Informer().GetIndexer().Delete(testkube.Node(name)))
}

func (w *world) putSlice(slice *discoveryv1.EndpointSlice) {
	w.t.Helper()
	testkit.Check(w.t, w.factory.Discovery().V1().EndpointSlices().Informer().GetIndexer().Add(slice))
}

// newService returns a Service of the NLB class in two zones.
func newService(name string, change ...func(*corev1.Service)) *corev1.Service {
	return testkube.Service(name, append([]func(*corev1.Service){testkube.Class(Class), with(annotation.ZoneMaps, twoZones)}, change...)...)
}

func with(suffix annotation.Suffix, value string) func(*corev1.Service) {
	return testkube.Annotation(suffix.Key(), value)
}

func without(suffix annotation.Suffix) func(*corev1.Service) {
	return func(svc *corev1.Service) { delete(svc.Annotations, suffix.Key()) }
}

func (w *world) put(svc *corev1.Service) {
	w.t.Helper()
	_, err := w.kube.CoreV1().Services(svc.Namespace).Create(w.t.Context(), svc, metav1.CreateOptions{})
	testkit.Check(w.t, err)
}

func (w *world) get(name string) *corev1.Service {
	w.t.Helper()
	return testkit.Must(w.kube.CoreV1().Services(testkube.Namespace).Get(w.t.Context(), name, metav1.GetOptions{}))(w.t)
}

func (w *world) change(name string, changes ...func(*corev1.Service)) {
	w.t.Helper()
	svc := w.get(name)
	for _, f := range changes {
		f(svc)
	}
	_, err := w.kube.CoreV1().Services(testkube.Namespace).Update(w.t.Context(), svc, metav1.UpdateOptions{})
	testkit.Check(w.t, err)
}

// remove asks for the deletion of a Service. The fake API server would delete it at once.
func (w *world) remove(name string) {
	w.t.Helper()
	now := metav1.Now()
	w.change(name, func(svc *corev1.Service) { svc.DeletionTimestamp = &now })
}

// removeWhileMoving changes the Service web so that it moves, and asks for its deletion after one pass, in which the process may be killed.
func (w *world) removeWhileMoving(changes ...func(*corev1.Service)) {
	w.t.Helper()
	w.change("web", changes...)
	_, _ = w.Reconcile(w.t.Context(), w.get("web")) //nolint:errcheck // it may be killed in it
	if w.transport.isDead() {
		w.restart()
	}
	w.remove("web")
}

// conflictWait is how often a port that belongs to somebody else is read again.
const conflictWait = time.Minute

// soon is the longest wait that is part of a convergence: a longer one is that for the next pass for drift.
const soon = 2 * time.Minute

// try makes passes over a Service and its companions, as they become due, until nothing is to be done any more.
func (w *world) try(name string) error {
	if len(w.companions) == 0 {
		return w.tryOne(name)
	}
	for range 3 {
		for _, one := range append([]string{name}, w.companions...) {
			w.fillServices()
			if err := w.tryOne(one); err != nil {
				return err
			}
		}
	}
	return nil
}

// tryOne makes passes over a Service, as they become due, until nothing is to be done any more, or until they fail in the same way again
// and again.
func (w *world) tryOne(name string) error {
	var last error
	same := 0
	for range 200 {
		svc, err := w.kube.CoreV1().Services(testkube.Namespace).Get(w.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		wait, err := w.Reconcile(w.t.Context(), svc)
		if same++; err == nil || last == nil || alicloud.Lasting(err) != alicloud.Lasting(last) {
			same = 0
		}
		switch last = err; {
		case same == 40: // twice as long as a creation takes
			return err
		case w.transport.isDead():
			return errDead
		case err != nil:
			wait = settle
		case wait == 0 || wait > soon, wait == conflictWait:
			return nil
		}
		time.Sleep(wait)
	}
	return fmt.Errorf("no end after 200 passes: %w", last)
}

// converge makes passes over a Service until it is as it has to be.
func (w *world) converge(name string) {
	w.t.Helper()
	if err := w.try(name); err != nil {
		w.t.Fatalf("%s: %v", name, err)
	}
}

// calls returns the actions since the last time, reads by polls of jobs aside.
func (w *world) calls() []string { return w.account.NewActions() }

// writes are those of the actions that change something.
func writes(actions []string) []string {
	return slices.DeleteFunc(actions, isRead)
}

// quiet checks that a further pass makes no call, and one that reads everything no write.
func (w *world) quiet(name string) {
	w.t.Helper()
	w.converge(name) // the read for drift, if it is due so soon that the next pass would wait for it
	w.calls()
	w.converge(name)
	if calls := w.calls(); len(calls) > 0 {
		w.t.Errorf("a further pass made the calls %v", calls)
	}
	w.restart()
	w.converge(name)
	if calls := writes(w.calls()); len(calls) > 0 {
		w.t.Errorf("a new process wrote %v", calls)
	}
}

// serve makes nodes n1, n2 and so on, and the Service web, and waits until it is as it has to be.
func (w *world) serve(nodes int, change ...func(*corev1.Service)) {
	w.t.Helper()
	for i := range nodes {
		w.addNodes(fmt.Sprintf("n%d", i+1))
	}
	w.put(newService("web", change...))
	w.converge("web")
}

// later lets time go by.
func (w *world) later(d time.Duration) {
	w.t.Helper()
	time.Sleep(d)
}

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

// balancers returns the load balancers of a Service.
func (w *world) balancers(name string) []alicloud.NLB {
	w.t.Helper()
	return testkit.Must(w.account.Client.ListNLBs(w.t.Context(), alicloud.NLBQuery{Tag: w.owner(name)}))(w.t)
}

func (w *world) owner(name string) *alicloud.Tag {
	return &alicloud.Tag{Key: mark.TagOwner, Value: mark.DefaultName(testkube.Service(name).UID)}
}

// balancer returns the one load balancer of a Service.
func (w *world) balancer(name string) alicloud.NLB {
	w.t.Helper()
	found := w.balancers(name)
	if len(found) != 1 {
		w.t.Fatalf("%d load balancers of %s", len(found), name)
	}
	return found[0]
}

// listeners shows the listeners of a load balancer with their servers.
func (w *world) listeners(id string) []string {
	w.t.Helper()
	var shown []string
	for _, l := range testkit.Must(w.account.Client.ListNLBListeners(w.t.Context(), []string{id}))(w.t) {
		text := fmt.Sprintf("%s:%d", l.Protocol, l.Port)
		if l.Port == 0 {
			text = fmt.Sprintf("%s:%d-%d", l.Protocol, l.StartPort, l.EndPort)
		}
		shown = append(shown, text+" "+strings.Join(w.servers(*l.ServerGroupID), " "))
	}
	slices.Sort(shown)
	return shown
}

func (w *world) servers(group string) []string {
	w.t.Helper()
	var shown []string
	for _, s := range testkit.Must(w.account.Client.ListNLBServers(w.t.Context(), group))(w.t) {
		id := s.ID
		if s.Type == alicloud.NLBServerENI {
			id = s.IP
		}
		shown = append(shown, fmt.Sprintf("%s:%d=%d", id, s.Port, s.Weight))
	}
	slices.Sort(shown)
	return shown
}

func (w *world) groups(name string) []alicloud.NLBGroup {
	w.t.Helper()
	return testkit.Must(w.account.Client.ListNLBGroups(w.t.Context(), alicloud.NLBGroupQuery{Tag: w.owner(name)}))(w.t)
}
