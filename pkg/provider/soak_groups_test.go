package provider

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// What `make soak` makes longer; the time is a synctest bubble's.
var (
	groupsFor  = flag.Duration("soak.groups.for", 0, "how long TestSoakOfGroups churns, in virtual time; 0 leaves it out")
	groupsSeed = flag.Uint64("soak.groups.seed", 0, "what TestSoakOfGroups decides from; 0 takes one of its own")
)

// groupSoak is what happens to Services that share load balancers of both products.
type groupSoak struct {
	both
	// served are the ports of each Service that clients reached at the last check, and touched the Services that somebody has changed since.
	served  map[string]map[int]bool
	touched map[string]bool
	// groupsAt are the names of the groups of load balancers by the addresses of those.
	groupsAt map[string]string
	// olders is when an older Service of its group last asked for a port of a Service, by the names of both.
	olders map[string]time.Time
	log    []string
}

// planTime is how long a plan may take that has begun before the last change of a Service, with its repeated calls.
const planTime = 15 * time.Second

// TestSoakOfGroups churns Services that join groups, leave them and move between them, nodes, the program and the cloud under random
// faults. No Service loses a port by what happens to others, except to one of its group that has the same port. In the end each has what it
// asks for, nothing is left over, and nothing more is written.
func TestSoakOfGroups(t *testing.T) {
	t.Parallel()
	if *groupsFor == 0 {
		t.Skip("it is a search for unknown defects, and what it finds depends on chance: see make soak")
	}
	seed := testkit.Seed(*groupsSeed, 1)
	t.Logf("seed %d, %s", seed, *groupsFor)
	synctest.Test(t, func(t *testing.T) {
		s := newGroupSoak(t, seed)
		defer func() {
			if t.Failed() {
				for _, svc := range s.services() {
					s.say("%s (%s): %s shows %q: %v", svc.Name, productOf(&svc), wishOf(&svc), addressOf(&svc), svc.Status.Conditions)
				}
				t.Log(strings.Join(s.log, "\n"))
			}
		}()
		for end := time.Now().Add(*groupsFor); time.Now().Before(end) && !t.Failed(); {
			s.one()
			s.pass(time.Duration(s.random.Int64N(int64(8*time.Second))), 500*time.Millisecond)
		}
		s.server.ClearFaults()
		s.say("faults end")
		s.calm()
		if !t.Failed() {
			s.compare()
		}
		s.stop()
	})
}

func newGroupSoak(t *testing.T, seed uint64) *groupSoak {
	t.Helper()
	server := emulatortest.New(t, emulator.Options{Settle: time.Second})
	s := &groupSoak{both: both{t: t, server: server, kube: testkube.NewClientset(), random: rand.New(rand.NewPCG(seed, 0))}, touched: map[string]bool{}, groupsAt: map[string]string{}, olders: map[string]time.Time{}} //nolint:gosec // repeatable by its seed
	for _, name := range []string{"n1", "n2"} {
		s.node(name, true)
	}
	s.stop = serveServices(t, server, s.kube, Settings{})
	return s
}

func (s *groupSoak) say(format string, args ...any) {
	s.log = append(s.log, time.Now().Format("15:04:05.0 ")+fmt.Sprintf(format, args...))
}

// one makes one event.
func (s *groupSoak) one() {
	switch n := s.random.IntN(20); {
	case n < 13:
		s.churn(fmt.Sprintf("s%d", s.random.IntN(6)))
	case n < 15:
		name, there := fmt.Sprintf("n%d", 3+s.random.IntN(2)), s.random.IntN(2) == 0
		s.say("node %s %v", name, there)
		s.node(name, there)
	case n < 19:
		s.say("fault")
		s.fault()
	default:
		s.say("restart")
		s.stop()
		s.stop = serveServices(s.t, s.server, s.kube, Settings{})
	}
}

// churn makes, changes or deletes a Service.
func (s *groupSoak) churn(name string) {
	services := s.kube.CoreV1().Services(testkube.Namespace)
	svc, err := services.Get(s.t.Context(), name, metav1.GetOptions{})
	s.touched[name] = true
	switch {
	case err != nil:
		svc = testkube.Service(name, testkube.TCP(80))
		if s.random.IntN(2) == 0 {
			testkube.Class(nlb.Class)(svc)
		}
		s.made++
		svc.UID += types.UID(fmt.Sprintf("-%04d", s.made)) // the API server gives no UID twice
		svc.CreationTimestamp = metav1.Now()
		s.reshape(svc)
		testkit.Must(services.Create(s.t.Context(), svc, metav1.CreateOptions{}))(s.t)
	case svc.DeletionTimestamp != nil:
	case s.random.IntN(5) == 0:
		s.say("remove %s", name)
		s.remove(name)
	default:
		s.change(name, s.reshape)
	}
}

// reshape gives a Service another group, or none, and other ports.
func (s *groupSoak) reshape(svc *corev1.Service) {
	svc.Annotations = map[string]string{
		"service.beta.kubernetes.io/alibaba-cloud-loadbalancer-zone-maps": "cn-hangzhou-a:vsw-a,cn-hangzhou-b:vsw-b",
	}
	if group := []string{"", "edge", "edge", "other"}[s.random.IntN(4)]; group != "" {
		svc.Annotations[annotation.Group.Key()] = group
		if s.random.IntN(2) == 0 {
			svc.Annotations[annotation.GroupOverflow.Key()] = "true"
		}
	}
	svc.Spec.Ports = nil
	for _, port := range s.random.Perm(4)[:1+s.random.IntN(2)] {
		svc.Spec.Ports = append(svc.Spec.Ports, testkube.Port(int32(80+port), corev1.ProtocolTCP)) //nolint:gosec // small
	}
	s.say("%s (%s): %s", svc.Name, productOf(svc), wishOf(svc))
}

func productOf(svc *corev1.Service) string {
	if svc.Spec.LoadBalancerClass != nil {
		return "NLB"
	}
	return "CLB"
}

func wishOf(svc *corev1.Service) string {
	ports := []int32{}
	for _, port := range svc.Spec.Ports {
		ports = append(ports, port.Port)
	}
	return fmt.Sprintf("group %q overflow %q ports %v", svc.Annotations[annotation.Group.Key()],
		svc.Annotations[annotation.GroupOverflow.Key()], ports)
}

// pass lets time go by, and checks every now and then that nobody has lost traffic.
func (s *groupSoak) pass(d, glance time.Duration) {
	s.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end) && !s.t.Failed(); {
		time.Sleep(glance)
		s.collect()
		s.witness()
	}
}

// calm waits until nothing is written any more.
func (s *groupSoak) calm() {
	s.t.Helper()
	for range 12 {
		before := s.server.Last()
		s.pass(15*time.Minute, 5*time.Second)
		if s.t.Failed() || s.writes(before) == 0 {
			return
		}
	}
	s.t.Error("no end of writes after three hours")
}

// listenerOf is a listener of a Service, as a client and the user's bill see it.
type listenerOf struct {
	service, address, balancer, group string
	port, servers                     int
	running                           bool
}

// cloud returns all listeners, and how many load balancers and groups of backend servers there are.
func (s *groupSoak) cloud() (listeners []listenerOf, balancers map[string]int, groups int) {
	s.t.Helper()
	var state struct {
		LoadBalancers []struct {
			LoadBalancerId, Address string //nolint:revive // names on the wire
			Tags                    struct {
				Tag []struct{ TagKey, TagValue string }
			}
			Listeners     []map[string]any
			VServerGroups []struct {
				VServerGroupId string //nolint:revive // see above
				BackendServers []struct{ Weight int }
			}
		}
		NetworkLoadBalancers []struct {
			LoadBalancerId, DNSName, LoadBalancerStatus string //nolint:revive // see above
			Tags                                        []struct{ Key, Value string }
			Listeners                                   []struct {
				ListenerStatus, ListenerDescription, ServerGroupId string //nolint:revive // see above
				ListenerPort                                       int
			}
		}
		ServerGroups []struct {
			ServerGroupId string //nolint:revive // see above
			Servers       []struct{ Status string }
		}
	}
	s.server.Read("state", &state)
	balancers = map[string]int{}
	for _, lb := range state.LoadBalancers {
		balancers[lb.LoadBalancerId] = 0
		servers, group := map[string]int{}, ""
		for _, g := range lb.VServerGroups {
			servers[g.VServerGroupId] = len(g.BackendServers)
			groups++
		}
		for _, tag := range lb.Tags.Tag {
			if tag.TagKey == mark.TagGroup {
				group = tag.TagValue
			}
		}
		for _, l := range lb.Listeners {
			text := func(name string) string { v, _ := l[name].(string); return v }
			port, _ := l["ListenerPort"].(float64)
			owner, _, _ := mark.Parse(text("Description"))
			listeners = append(listeners, listenerOf{
				service: owner.Name, address: lb.Address, balancer: lb.LoadBalancerId, group: group, port: int(port),
				servers: servers[text("VServerGroupId")], running: text("Status") != "stopped",
			})
			balancers[lb.LoadBalancerId]++
		}
	}
	servers := map[string]int{}
	for _, g := range state.ServerGroups {
		groups++
		for _, one := range g.Servers {
			if one.Status == "Available" {
				servers[g.ServerGroupId]++
			}
		}
	}
	for _, lb := range state.NetworkLoadBalancers {
		if lb.LoadBalancerStatus == "Deleting" {
			continue
		}
		balancers[lb.LoadBalancerId] = 0
		group := ""
		for _, tag := range lb.Tags {
			if tag.Key == mark.TagGroup {
				group = tag.Value
			}
		}
		for _, l := range lb.Listeners {
			owner, _, _ := mark.ParseNLB(l.ListenerDescription)
			listeners = append(listeners, listenerOf{
				service: owner.Name, address: lb.DNSName, balancer: lb.LoadBalancerId, group: group, port: l.ListenerPort,
				servers: servers[l.ServerGroupId], running: l.ListenerStatus == "Running" || l.ListenerStatus == "Configuring",
			})
			balancers[lb.LoadBalancerId]++
		}
	}
	return listeners, balancers, groups
}

func addressOf(svc *corev1.Service) string {
	for _, ingress := range svc.Status.LoadBalancer.Ingress {
		return ingress.IP + ingress.Hostname
	}
	return ""
}

// witness fails for a port that a Service has lost by what happened to others.
func (s *groupSoak) witness() {
	s.t.Helper()
	// In this order: a status shows an address once that serves, and what it showed before stays for a while.
	services, now := s.services(), map[string]map[int]bool{}
	listeners, _, _ := s.cloud()
	for _, l := range listeners {
		if group, ok := mark.ParseGroup(l.group); ok {
			s.groupsAt[l.address] = group.Name
		}
	}
	for i := range services {
		svc := &services[i]
		now[svc.Name] = map[int]bool{}
		for _, l := range listeners {
			if l.service == svc.Name && l.address == addressOf(svc) && l.running && l.servers > 0 {
				now[svc.Name][l.port] = true
			}
		}
		s.noteOlders(services, svc)
		if s.touched[svc.Name] || svc.DeletionTimestamp != nil {
			continue
		}
		for port := range s.served[svc.Name] {
			if !now[svc.Name][port] && asksFor(svc, port) && time.Since(s.olders[fmt.Sprint(svc.Name, port)]) > planTime {
				s.t.Errorf("%s: %s at %q has lost port %d (%s): %+v", time.Now().Format("15:04:05.0"), svc.Name, addressOf(svc), port, wishOf(svc),
					listeners)
			}
		}
	}
	s.served = now
	for name := range s.touched {
		// What the Service had before it was changed, it may lose until it is served as it asks for.
		if svc, ok := find(services, name); !ok || servedAsAsked(svc, now[name]) {
			delete(s.touched, name)
		}
	}
}

// noteOlders notes which ports of a Service an older one asks for. The plan that gives one of them up may be carried out a while after the
// older one has changed its mind; the Service has the port again soon after that.
func (s *groupSoak) noteOlders(services []corev1.Service, svc *corev1.Service) {
	for _, port := range svc.Spec.Ports {
		if isOlders(services, svc, int(port.Port), s.groupsAt[addressOf(svc)]) {
			s.olders[fmt.Sprint(svc.Name, port.Port)] = time.Now()
		}
	}
}

// isOlders reports whether an older Service asks for a port of a Service, in the group that it asks for or in that whose load balancer it
// is on. Ports are given to the oldest one, also if the other one only stays there because it cannot move.
func isOlders(services []corev1.Service, svc *corev1.Service, port int, on string) bool {
	return slices.ContainsFunc(othersOfGroup(services, svc, svc.Annotations[annotation.Group.Key()], on), func(other corev1.Service) bool {
		return !svc.CreationTimestamp.Before(&other.CreationTimestamp) && asksFor(&other, port)
	})
}

// othersOfGroup are the other Services that ask for one of the groups.
func othersOfGroup(services []corev1.Service, svc *corev1.Service, groups ...string) []corev1.Service {
	return slices.DeleteFunc(slices.Clone(services), func(other corev1.Service) bool {
		group := other.Annotations[annotation.Group.Key()]
		return group == "" || other.Name == svc.Name || productOf(&other) != productOf(svc) || !slices.Contains(groups, group)
	})
}

func asksFor(svc *corev1.Service, port int) bool {
	return slices.ContainsFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool { return int(p.Port) == port })
}

func servedAsAsked(svc *corev1.Service, served map[int]bool) bool {
	return len(served) == len(svc.Spec.Ports) && !slices.ContainsFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool {
		return !served[int(p.Port)]
	})
}

func find(services []corev1.Service, name string) (*corev1.Service, bool) {
	for i := range services {
		if services[i].Name == name {
			return &services[i], true
		}
	}
	return nil, false
}

// compare checks that each Service has what it asks for, as far as no other one of its group has that, and that there is nothing else.
func (s *groupSoak) compare() {
	s.t.Helper()
	listeners, balancers, groups := s.cloud()
	services := s.services()
	for _, id := range slices.Sorted(maps.Keys(balancers)) {
		if balancers[id] == 0 {
			s.t.Errorf("nothing is on load balancer %s", id)
		}
	}
	nodes := len(testkit.Must(s.kube.CoreV1().Nodes().List(s.t.Context(), metav1.ListOptions{}))(s.t).Items)
	has, waiting := map[string]int{}, 0
	for _, l := range listeners {
		svc, ok := find(services, l.service)
		if !ok || !asksFor(svc, l.port) {
			s.t.Errorf("nobody wants %+v", l)
			continue
		}
		has[fmt.Sprint(l.service, l.port)]++
		if l.servers != nodes || !l.running || l.address != addressOf(svc) {
			s.t.Errorf("%+v: want %d servers; %s shows %q", l, nodes, svc.Name, addressOf(svc))
		}
	}
	for i := range services {
		svc := &services[i]
		for _, port := range svc.Spec.Ports {
			if has[fmt.Sprint(svc.Name, port.Port)] == 0 {
				waiting++ // for the port: the group of it may be there already
			}
			if n := has[fmt.Sprint(svc.Name, port.Port)]; n > 1 || n == 0 && !competes(services, svc) {
				s.t.Errorf("%s (%s) has %d listeners for port %d (%s), conditions %+v", svc.Name, productOf(svc), n, port.Port, wishOf(svc),
					svc.Status.Conditions)
			}
		}
	}
	if groups < len(listeners) || groups > len(listeners)+waiting {
		s.t.Errorf("%d groups of backend servers for %d listeners, and %d ports that Services wait for", groups, len(listeners), waiting)
	}
}

// competes reports whether a Service may have to go without a port, because another one of its group asks for it.
func competes(services []corev1.Service, svc *corev1.Service) bool {
	return svc.Annotations[annotation.GroupOverflow.Key()] == "" &&
		slices.ContainsFunc(othersOfGroup(services, svc, svc.Annotations[annotation.Group.Key()]), func(other corev1.Service) bool {
			return slices.ContainsFunc(other.Spec.Ports, func(p corev1.ServicePort) bool { return slices.Contains(svc.Spec.Ports, p) })
		})
}
