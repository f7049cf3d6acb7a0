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
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/record"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
)

// What `make soak` makes longer. Real time takes as long as it says; otherwise the time is a synctest bubble's, which is
// over as soon as the work in it is done.
var (
	soakFor      = flag.Duration("soak.for", time.Minute, "how long TestSoak churns")
	soakServices = flag.Int("soak.services", 25, "how many Services TestSoak churns")
	soakSeed     = flag.Uint64("soak.seed", 0, "what TestSoak decides from; 0 takes one of its own")
	soakReal     = flag.Bool("soak.real", false, "let TestSoak run in real time")
)

const (
	// soakPace is the mean time between two events.
	soakPace = 200 * time.Millisecond
	// soakResync makes drift passes part of the churn.
	soakResync = 30 * time.Second
	// soakPatience is how long the end state may take: a quota of 60 or 90 calls a minute for what is left to do.
	soakPatience = 30 * time.Minute
)

// TestSoak churns Services, nodes, the program itself and the cloud under random faults. In the end the cloud is what a
// program makes of it that sees only the end, nothing is left over, and nothing more is written.
func TestSoak(t *testing.T) {
	t.Parallel()
	seed := *soakSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
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
	// events and faults count what happened.
	events, restarts int
}

func soakWith(t *testing.T, seed uint64) {
	t.Helper()
	s := newSoak(t, seed)
	s.start()
	for end := time.Now().Add(*soakFor); time.Now().Before(end); s.events++ {
		s.one()
		time.Sleep(time.Duration(s.random.Int64N(int64(2 * soakPace))))
	}
	s.clearFaults()
	want := s.desired()
	s.settle(want)
	s.stop()
	calls := s.emulator.Calls(0)
	t.Logf("%d events, %d restarts, %d calls, %d CLBs in the end", s.events, s.restarts, len(calls), len(want))
}

func newSoak(t *testing.T, seed uint64) *soak {
	t.Helper()
	s := &soak{
		world: &world{
			t: t, emulator: processCloud(t), kube: newClientset(),
			config: config.Config{ClusterID: testCluster, VPCID: "vpc-emulator", VSwitchIDs: []string{"vsw-a", "vsw-b"}},
		},
		random: rand.New(rand.NewPCG(seed, 0)), nodes: map[string]*corev1.Node{},
	}
	for _, name := range []string{"z", "y"} { // two that always stay
		s.join(name)
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
	opts := s.options()
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
	case n < 55:
		s.churn(name)
	case n < 75:
		s.node(string(rune('a' + s.random.IntN(8))))
	case n < 90:
		s.breakCalls()
	case n < 98:
		s.meddle()
	default:
		s.restarts++
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
		made.UID += "-00000000"
		s.shape(made)
		s.put(made)
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
	if svc.DeletionTimestamp != nil && len(svc.Finalizers) == 0 {
		err = services.Delete(s.t.Context(), name, metav1.DeleteOptions{})
	} else {
		_, err = services.Update(s.t.Context(), svc, metav1.UpdateOptions{})
	}
	if err != nil {
		s.t.Fatal(err)
	}
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

func (s *soak) join(name string) {
	if _, err := s.emulator.PutInstance("i-"+name, emulator.InstanceSpec{}); err != nil {
		s.t.Fatal(err)
	}
	s.nodes[name] = testNode(name)
	if _, err := s.kube.CoreV1().Nodes().Create(s.t.Context(), s.nodes[name], metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// node has a node join, fall ill, get well or leave.
func (s *soak) node(name string) {
	nodes := s.kube.CoreV1().Nodes()
	var err error
	switch {
	case s.nodes[name] == nil:
		s.join(name)
	case s.random.IntN(2) == 0:
		delete(s.nodes, name)
		err = nodes.Delete(s.t.Context(), name, metav1.DeleteOptions{})
	default:
		s.nodes[name] = testNode(name)
		if s.random.IntN(2) == 0 {
			notReady(s.nodes[name])
		}
		_, err = nodes.Update(s.t.Context(), s.nodes[name], metav1.UpdateOptions{})
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// breakCalls makes some calls to come go wrong.
func (s *soak) breakCalls() {
	kinds := []map[string]any{
		{"code": "InternalError", "status": 500}, {"drop": "before"}, {"drop": "after"}, {"code": "SystemBusy"},
		{"code": "OperationDenied"}, {"latency": "2s"}, {"kind": "write", "drop": "after"}, {"kind": "read", "code": "ServiceUnavailable", "status": 503},
	}
	rule := map[string]any{"action": "*", "after": s.random.IntN(5), "times": 1 + s.random.IntN(3)}
	maps.Copy(rule, kinds[s.random.IntN(len(kinds))])
	s.fault(rule)
}

// meddle changes something in the cloud as a person does in the console.
func (s *soak) meddle() {
	client, ctx := processClient(s.t, s.emulator), s.t.Context()
	all, err := client.DescribeLoadBalancers(ctx, queryAll())
	if err != nil || len(all) == 0 {
		return // a fault hit this call
	}
	id := all[s.random.IntN(len(all))].ID
	listeners, err := client.DescribeListeners(ctx, id)
	if err != nil {
		return
	}
	// What a fault does to these calls is one more thing that may happen.
	switch s.random.IntN(3) {
	case 0:
		if err := client.SetDeleteProtection(ctx, id, "off"); err == nil {
			_ = client.DeleteLoadBalancer(ctx, id)
		}
	case 1:
		for _, listener := range listeners[id] {
			_ = client.DeleteListener(ctx, id, listener.ListenerKey)
		}
	default:
		groups, _ := client.DescribeVServerGroups(ctx, id)
		for _, group := range groups {
			full, _ := client.DescribeVServerGroup(ctx, group.ID)
			_ = client.RemoveBackends(ctx, group.ID, full.Backends[:min(1, len(full.Backends))])
		}
	}
}

// desired returns what a program makes of the Services and nodes as they are now in a cloud that is empty.
func (s *soak) desired() map[string]cloudLB {
	s.t.Helper()
	e := processCloud(s.t)
	fresh := &world{t: s.t, emulator: e, api: processClient(s.t, e), kube: newClientset(), config: s.config, transport: &mortal{}}
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
		if !service.Wants(svc, Class) {
			continue
		}
		made := testService(svc.Name)
		made.UID, made.Annotations, made.Spec = svc.UID, svc.Annotations, svc.Spec
		fresh.put(made)
		fresh.mustPass(svc.Name)
	}
	return fresh.state()
}

// settle waits until the cloud is as wanted, then watches a few drift passes over everything: they write nothing.
func (s *soak) settle(want map[string]cloudLB) {
	s.t.Helper()
	for end := time.Now().Add(soakPatience); ; time.Sleep(soakResync) {
		diff := cmp.Diff(want, s.state(), cmp.Transformer("sorted", sortedMembers))
		if diff == "" {
			break
		}
		if time.Now().After(end) {
			s.t.Errorf("state after %s (-wanted +got):\n%s", soakPatience, diff)
			return
		}
	}
	time.Sleep(2 * soakResync) // a look at what somebody else's hands did last may still be under way
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
