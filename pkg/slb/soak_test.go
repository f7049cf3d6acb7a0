package slb

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/record"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// What `make soak` makes longer. Real time takes as long as it says; otherwise the time is a synctest bubble's, which is
// over as soon as the work in it is done.
var (
	soakFor      = flag.Duration("soak.for", 3*time.Minute, "how long TestSoak churns")
	soakServices = flag.Int("soak.services", 15, "how many Services TestSoak churns")
	soakSeed     = flag.Uint64("soak.seed", 0, "what TestSoak decides from; 0 takes one of its own")
	soakPace     = flag.Duration("soak.pace", 400*time.Millisecond, "the mean time between two events of TestSoak")
	soakReal     = flag.Bool("soak.real", false, "let TestSoak run in real time")
)

const (
	// soakResync makes drift passes part of the churn.
	soakResync = 30 * time.Second
	// soakPatience is how long the end state may take: a refusal because of a quota counts for an hour, and the rest are 60 or 90 calls a
	// minute for what is left to do.
	soakPatience = 75 * time.Minute
)

// TestSoak churns Services, nodes, the program itself and the cloud under random faults. All along, no CLB is lost or doubled, no
// listener of a live port and no ready backend server goes (see [witness]). In the end the cloud is what a program makes of it that sees
// only the end, nothing is left over, and nothing more is written. Every fault has hit calls, so that the test does not pass by
// injecting nothing.
func TestSoak(t *testing.T) {
	t.Parallel()
	seed := testkit.Seed(*soakSeed, 1795821710658799048) // in its course, a new CLB loses its tag
	t.Logf("seed %d, %d Services, %s", seed, *soakServices, *soakFor)
	if *soakReal {
		soakWith(t, seed)
		return
	}
	synctest.Test(t, func(t *testing.T) { soakWith(t, seed) })
}

// soak is a program over a cloud, and what happens to both.
type soak struct {
	*world
	random *rand.Rand
	nodes  map[string]*corev1.Node
	names  []string
	stop   func()
	// witness watches what must hold all along.
	witness *witness
	// faults are those injected, and phase what the cloud does for a while.
	faults soakFaults
	phase  soakPhase
	// events counts what happened, and uids the Services that were made.
	events, uids int
}

func soakWith(t *testing.T, seed uint64) {
	t.Helper()
	s := newSoak(t, seed)
	s.start()
	for end := time.Now().Add(*soakFor); time.Now().Before(end); s.events++ {
		s.one()
		time.Sleep(time.Duration(s.random.Int64N(int64(2 * *soakPace))))
		s.elapse()
	}
	s.calm()
	want := s.desired()
	s.settle(want)
	s.stop()
	s.watch()
	t.Logf("%d events, %d calls, %d CLBs in the end; %s", s.events, s.witness.calls, len(want), s.hits())
}

// elapse watches, ends what lasts for a while, and removes Services that nothing holds any more.
func (s *soak) elapse() {
	s.t.Helper()
	s.watch()
	if !s.phase.until.IsZero() && time.Now().After(s.phase.until) {
		s.endPhase()
	}
	s.collect()
}

// collect removes deleted Services without finalizers, as an API server does.
func (s *soak) collect() {
	services := s.kube.CoreV1().Services(testNamespace)
	all, err := services.List(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range all.Items {
		if svc := &all.Items[i]; svc.DeletionTimestamp != nil && len(svc.Finalizers) == 0 {
			if err := services.Delete(s.t.Context(), svc.Name, metav1.DeleteOptions{}); err != nil {
				s.t.Fatal(err)
			}
			s.witness.forget(svc.Name)
		}
	}
}

// calm ends everything that disturbs.
func (s *soak) calm() {
	s.t.Helper()
	s.endPhase()
	s.dismiss(soakBadNode)
	s.collectHits()
}

func newSoak(t *testing.T, seed uint64) *soak {
	t.Helper()
	s := &soak{
		world: &world{
			t: t, emulator: soakCloud(t, seed), kube: testkit.NewClientset(),
			config: config.Config{ClusterID: testCluster, VPCID: "vpc-emulator", VSwitchIDs: []string{"vsw-a", "vsw-b"}, Quotas: soakBook()},
		},
		random: rand.New(rand.NewPCG(seed, 0)), nodes: map[string]*corev1.Node{}, witness: newWitness(),
	}
	for _, name := range []string{"z", "y", "x"} { // three that always stay
		s.join(name, "")
	}
	for i := range *soakServices {
		s.names = append(s.names, fmt.Sprintf("s%03d", i))
	}
	return s
}

// start runs a program that remembers nothing.
func (s *soak) start() {
	s.t.Helper()
	s.api = processClient(s.t, s.emulator)
	s.factory = informers.NewSharedInformerFactory(s.kube, 0)
	s.config.Quotas = soakBook()
	opts := s.options()
	opts.Engines = []driver.Engine{NewEngine(s.api, s.config, s.factory.Core().V1().Services().Lister())}
	opts.Recorder, opts.ResyncPeriod = &record.FakeRecorder{}, soakResync
	s.Reconciler = service.NewReconciler(opts)
	controller, err := service.NewController(opts, s.Reconciler)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	s.factory.Start(ctx.Done())
	go func() {
		defer close(done)
		controller.Run(ctx)
	}()
	factory := s.factory
	s.stop = func() {
		cancel()
		<-done
		factory.Shutdown()
	}
}

// one makes one event.
func (s *soak) one() {
	name := s.names[s.random.IntN(len(s.names))]
	switch n := s.random.IntN(100); {
	case n < 53:
		s.churn(name)
	case n < 70:
		s.node(string(rune('a' + s.random.IntN(6))))
	case n < 85:
		s.breakCalls()
	case n < 90:
		s.beginPhase()
	case n < 98:
		s.meddle()
	default:
		s.faults.count("restart of the manager", 1)
		s.stop()
		s.start()
	}
}

// churn makes, changes, lets go of or deletes a Service.
func (s *soak) churn(name string) {
	services := s.kube.CoreV1().Services(testNamespace)
	svc, err := services.Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		made := testService(name, 80)
		made.UID += types.UID(fmt.Sprintf("-%08d", s.uids)) // the API server gives no UID twice
		s.uids++
		s.shape(made)
		s.put(made)
		s.witness.follow(made)
		return
	}
	switch s.random.IntN(6) {
	case 0:
		if svc.DeletionTimestamp == nil {
			deleteService(svc) // the API server waits for the finalizer, and so does what follows
		}
	case 1:
		if svc.Spec.Type = corev1.ServiceTypeLoadBalancer; s.random.IntN(2) == 0 {
			svc.Spec.Type = corev1.ServiceTypeClusterIP
		}
	default:
		s.shape(svc)
	}
	s.watch() // what was called so far was about the Service as it was
	if _, err = services.Update(s.t.Context(), svc, metav1.UpdateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	s.witness.follow(svc)
}

// shape gives a Service some of four ports and some settings.
func (s *soak) shape(svc *corev1.Service) {
	svc.Spec.Ports = nil
	for port := range int32(3) {
		if port == 0 || s.random.IntN(2) == 0 {
			svc.Spec.Ports = append(svc.Spec.Ports, testPort(80+port, corev1.ProtocolTCP))
		}
	}
	// Managed, so that it comes back also when a hand or a removal that was undone switched it off.
	annotate(svc, annotation.DeleteProtection, []string{"on", "off"}[s.random.IntN(2)])
	annotate(svc, annotation.HealthyThreshold, strconv.Itoa(2+s.random.IntN(9)))
	annotate(svc, annotation.DefaultWeight, strconv.Itoa(1+s.random.IntN(100)))
	delete(svc.Annotations, key(annotation.Scheduler))
	if s.random.IntN(2) == 0 {
		annotate(svc, annotation.Scheduler, "wlc")
	}
}

// join has a node join, whose instance is in the given vSwitch.
func (s *soak) join(name, vswitch string) {
	s.t.Helper()
	if _, err := s.emulator.PutInstance("i-"+name, emulator.InstanceSpec{VSwitchID: vswitch}); err != nil {
		s.t.Fatal(err)
	}
	s.nodes[name] = testNode(name)
	s.witness.ready("i-"+name, true)
	if _, err := s.kube.CoreV1().Nodes().Create(s.t.Context(), s.nodes[name], metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// node has a node join, fall ill, get well or leave.
func (s *soak) node(name string) {
	s.watch() // what was called so far was about the node as it was
	switch {
	case s.nodes[name] == nil:
		s.join(name, "")
	case s.random.IntN(2) == 0:
		s.dismiss(name)
	default:
		s.nodes[name] = testNode(name)
		if s.random.IntN(2) == 0 {
			notReady(s.nodes[name])
		}
		s.witness.ready("i-"+name, s.nodes[name].Status.Conditions[0].Status == corev1.ConditionTrue)
		if _, err := s.kube.CoreV1().Nodes().Update(s.t.Context(), s.nodes[name], metav1.UpdateOptions{}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// dismiss has a node leave, if it is there.
func (s *soak) dismiss(name string) {
	s.t.Helper()
	if s.nodes[name] == nil {
		return
	}
	delete(s.nodes, name)
	s.witness.ready("i-"+name, false)
	if err := s.kube.CoreV1().Nodes().Delete(s.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// soakBook is what a new process knows of the quotas.
func soakBook() *quota.Book { return smallQuotas(soakQuotas.BackendsPerLB, soakQuotas.LBsPerInstance) }

// desired returns what a program makes of the Services and nodes as they are now in a cloud that is empty.
func (s *soak) desired() map[string]cloudLB {
	s.t.Helper()
	e := processCloud(s.t)
	fresh := &world{t: s.t, emulator: e, api: processClient(s.t, e), kube: testkit.NewClientset(), config: s.config, transport: &mortal{}}
	fresh.config.Quotas = soakBook() // which no refusal has taught
	fresh.factory = informers.NewSharedInformerFactory(fresh.kube, 0)
	opts := fresh.options()
	opts.Recorder = &record.FakeRecorder{}
	fresh.Reconciler = service.NewReconciler(opts)
	for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
		if _, err := e.PutInstance("i-"+name, emulator.InstanceSpec{}); err != nil {
			s.t.Fatal(err)
		}
		fresh.putNode(s.nodes[name])
	}
	services, err := s.kube.CoreV1().Services(testNamespace).List(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range services.Items {
		svc := &services.Items[i]
		if !Product.Wants(svc) {
			continue
		}
		made := testService(svc.Name)
		made.UID, made.Annotations, made.Spec = svc.UID, svc.Annotations, svc.Spec
		fresh.put(made)
		fresh.mustPass(svc.Name)
	}
	return fresh.state()
}

// unreleased returns the state without what Services have released. A Service that gets another CLB afterwards gives it the same name.
func (s *soak) unreleased() map[string]cloudLB {
	s.t.Helper()
	var raw rawState
	s.read("state", &raw)
	// plain changes the listeners, and must see each of them once.
	raw.LoadBalancers = slices.DeleteFunc(raw.LoadBalancers, func(lb stateLB) bool { return len(lb.Listeners) == 0 && lb.plain().released() })
	return raw.plain()
}

// settle waits until the cloud is as wanted, then watches a few drift passes over everything: they write nothing.
func (s *soak) settle(want map[string]cloudLB) {
	s.t.Helper()
	for end := time.Now().Add(soakPatience); ; time.Sleep(soakResync) {
		s.elapse()
		have := s.unreleased()
		diff := cmp.Diff(want, have, cmp.Transformer("sorted", sortedBackends))
		if diff == "" {
			break
		}
		if time.Now().After(end) {
			s.t.Errorf("state after %s (-wanted +got):\n%s", soakPatience, diff)
			return
		}
	}
	time.Sleep(2 * soakResync) // a pass that reads what somebody changed by hand may still be under way
	s.calls()
	time.Sleep(4 * soakResync)
	calls := s.calls()
	if writes := writesOf(calls); len(writes) > 0 {
		s.t.Errorf("with everything in order, it writes %v", writes)
	}
	if len(calls) == 0 && len(want) > 0 {
		s.t.Error("no drift pass has looked at the cloud")
	}
}
