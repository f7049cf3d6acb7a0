package slb

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/emulatortest"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/journal"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

const (
	// soakSettled is for how long a port must have been wanted, or a node ready, so that what the program does to it cannot come from
	// what it knew before: a pass waits for the rate limit up to the next minute, and a call takes up to its timeout.
	soakSettled = 100 * time.Second
	// soakSurvey is how often the state of the cloud is compared with what it was.
	soakSurvey = 5 * time.Second
)

// witness watches what must hold all along, with the eyes of the one who knows what Services and nodes there are.
//
//   - A CLB is deleted only when its Service does not want it, and a Service has one at most. None is there without a Service that it
//     holds by its finalizer.
//   - A listener is deleted only when its Service does not have the port.
//   - A backend server is taken out, or gets no more traffic, only when its node is not ready or gone.
type witness struct {
	// seen is the number of the last call that was judged, and calls counts them.
	seen     int64
	calls    int
	services map[string]*followed
	// readyAt is since when a server is ready.
	readyAt map[string]time.Time
	// hits counts what was seen of the disturbances.
	hits map[string]int
	// before is the cloud at the last survey, by the id of the CLB and the port of the listener; touched are groups whose backend
	// servers, or whose listeners, somebody changed by hand since.
	before   map[string]served
	touched  map[string]bool
	surveyed time.Time
}

// followed is a Service as it is wanted.
type followed struct {
	owner string
	// wantedAt is since when it wants a CLB, zero when it does not; ports are since when it has a port.
	wantedAt time.Time
	ports    map[int]time.Time
}

// served is what a listener has.
type served struct {
	owner, group string
	port         int
	servers      []string
}

func newWitness() *witness {
	return &witness{services: map[string]*followed{}, readyAt: map[string]time.Time{}, hits: map[string]int{}, touched: map[string]bool{}}
}

// follow notes what a Service wants from now on.
func (w *witness) follow(svc *corev1.Service) {
	now, before := time.Now(), w.services[svc.Name]
	if before == nil || before.owner != mark.DefaultName(svc.UID) {
		before = &followed{owner: mark.DefaultName(svc.UID)}
	}
	after := &followed{owner: before.owner, ports: map[int]time.Time{}}
	if Product.Wants(svc) {
		after.wantedAt = before.wantedAt
		if after.wantedAt.IsZero() {
			after.wantedAt = now
		}
	}
	for _, port := range svc.Spec.Ports {
		number := int(port.Port)
		after.ports[number] = now
		if since, had := before.ports[number]; had {
			after.ports[number] = since
		}
	}
	w.services[svc.Name] = after
}

func (w *witness) forget(name string) { delete(w.services, name) }

// ready notes whether a server is ready from now on.
func (w *witness) ready(server string, ready bool) {
	if !ready {
		delete(w.readyAt, server)
	} else if _, was := w.readyAt[server]; !was {
		w.readyAt[server] = time.Now()
	}
}

func settledSince(since, at time.Time) bool { return !since.IsZero() && at.Sub(since) > soakSettled }

// wants reports whether the Service, or its port, has been wanted for so long that everybody knows.
func (w *witness) wants(name string, port int, at time.Time) bool {
	svc := w.services[name]
	return svc != nil && settledSince(svc.wantedAt, at) && (port == 0 || settledSince(svc.ports[port], at))
}

// nameOf returns the Service of an owner.
func (w *witness) nameOf(owner string) string {
	for name, svc := range w.services {
		if svc.owner == owner {
			return name
		}
	}
	return ""
}

// watch judges the calls since the last time, and once in a while the state.
func (s *soak) watch() {
	s.t.Helper()
	for _, call := range s.emulator.Calls(s.witness.seen) {
		s.witness.seen = call.Seq
		s.witness.calls++
		s.witness.count(call)
		switch {
		case call.Kind == "read":
		case call.AccessKeyID == emulatortest.AccessKeyID:
			s.judge(call)
		default:
			s.witness.touch(call)
		}
	}
	if time.Since(s.witness.surveyed) >= soakSurvey {
		s.survey()
	}
}

// count counts the disturbances that a call shows.
func (w *witness) count(call journal.Call) {
	hits := map[string]bool{
		phaseTagSearchLag:   call.Hidden && strings.HasPrefix(call.Action, "DescribeLoadBalancers") && call.Parameters.Has("Tag.1.Key"),
		phaseReplicaLag:     call.Hidden && !call.Parameters.Has("Tag.1.Key"),
		phaseBackendQuota:   call.Code == "InstanceBackendServerNumberOverLimit",
		phaseInstanceQuota:  call.Code == "QuotaExceeded.AttachedLoadBalancers" || call.Code == "OverQuota",
		phaseNodeOfOtherVPC: slices.Contains([]string{"NetworkConflict", "InvalidBackendServers.Inconsistent", "SomethingNew"}, call.Code),
	}
	if call.AccessKeyID == soakHand && done(call) {
		hits["CLB deleted by hand"] = call.Action == "DeleteLoadBalancer"
		hits["listener deleted by hand"] = call.Action == "DeleteLoadBalancerListener"
		hits["backend server removed by hand"] = call.Action == "RemoveVServerGroupBackendServers"
	}
	for name, hit := range hits {
		if hit {
			w.hits[name]++
		}
	}
}

// done reports whether a call was carried out.
func done(call journal.Call) bool { return call.Code == "" && call.Dropped != "before" }

// judge fails the test for a call of the program that takes away what must stay, whatever became of the call.
func (s *soak) judge(call journal.Call) {
	s.t.Helper()
	w, p := s.witness, call.Parameters
	wrong := func(what string) {
		s.t.Errorf("%s: %s %v takes away %s", call.Time.Format(time.TimeOnly), call.Action, p, what)
	}
	switch call.Action {
	case "DeleteLoadBalancer":
		if name := s.serviceOn(p.Str("LoadBalancerId")); w.wants(name, 0, call.Time) {
			wrong("the CLB of " + name)
		}
	case "DeleteLoadBalancerListener":
		if name := s.serviceOn(p.Str("LoadBalancerId")); w.wants(name, p.Int("ListenerPort", 0), call.Time) {
			wrong("a port of " + name)
		}
	case "RemoveVServerGroupBackendServers":
		s.judgeServers(call, p.Str("BackendServers"), wrong)
	case "ModifyVServerGroupBackendServers":
		s.judgeServers(call, p.Str("OldBackendServers"), wrong)
	case "SetVServerGroupAttribute":
		s.judgeServers(call, p.Str("BackendServers"), func(what string) {
			if strings.Contains(p.Str("BackendServers"), `"Weight":"0"`) {
				wrong(what)
			}
		})
	}
}

func (s *soak) judgeServers(call journal.Call, text string, wrong func(string)) {
	s.t.Helper()
	var servers []struct{ ServerId, Description string } //nolint:revive // names on the wire
	if err := json.Unmarshal([]byte(text), &servers); err != nil {
		s.t.Fatal(err)
	}
	working := map[string][]string{} // by the marks of groups
	for _, server := range servers {
		name, _, marked := mark.Parse(server.Description)
		if !marked {
			continue
		}
		nodePort, _ := strconv.Atoi(strings.Split(server.Description, "/")[1]) //nolint:errcheck // a number in the mark of a group
		if s.witness.wants(name.Name, nodePort-30000, call.Time) && settledSince(s.witness.readyAt[server.ServerId], call.Time) {
			working[server.Description] = append(working[server.Description], server.ServerId)
		}
	}
	for group, ids := range working {
		if !s.makesRoom(group) {
			wrong(fmt.Sprint(ids, " of ", group))
		}
	}
}

// makesRoom reports whether the group with the mark may give up working servers for other Services that lack them: instances were at their
// quota, which counts for an hour, and others are left. If the cloud refuses nearly all instances, each Service gives up several in one
// call, what it has beyond its share, which may be a single one.
func (s *soak) makesRoom(group string) bool {
	if s.witness.hits[phaseInstanceQuota] == 0 {
		return false
	}
	for _, lb := range s.state() {
		if left, ok := lb.Groups[group]; ok {
			return len(left) > 0
		}
	}
	return false
}

// serviceOn returns the Service whose CLB has the id, as of the last survey.
func (s *soak) serviceOn(id string) string {
	for key, listener := range s.witness.before {
		if strings.HasPrefix(key, id+" ") {
			return s.witness.nameOf(listener.owner)
		}
	}
	return ""
}

// touch notes what somebody changed by hand.
func (w *witness) touch(call journal.Call) {
	w.touched[call.Parameters.Str("VServerGroupId")] = true
	for key := range w.before {
		if strings.HasPrefix(key, call.Parameters.Str("LoadBalancerId")+" ") {
			delete(w.before, key)
		}
	}
}

// survey compares the cloud with what it was the last time.
func (s *soak) survey() {
	s.t.Helper()
	w, now := s.witness, time.Now()
	after, owners := s.take()
	for owner, ids := range owners {
		if len(ids) > 1 {
			s.t.Errorf("%s: the Service of %s has the CLBs %v", now.Format(time.TimeOnly), owner, ids)
		}
	}
	s.wantHeld(owners)
	for key, before := range w.before {
		name := w.nameOf(before.owner)
		if !w.wants(name, before.port, now) || w.touched[before.group] {
			continue
		}
		have, there := after[key]
		if !there && before.port != 0 {
			s.t.Errorf("%s: the listener %s of %s is gone", now.Format(time.TimeOnly), key, name)
		}
		for _, server := range before.servers {
			if there && settledSince(w.readyAt[server], now) && !slices.Contains(have.servers, server) {
				s.t.Errorf("%s: the listener %s of %s has lost %s", now.Format(time.TimeOnly), key, name, server)
			}
		}
	}
	// A call that was made by hand after the state was taken would else be missed.
	w.before, w.surveyed = after, now
	clear(w.touched)
}

// take returns what every listener has, and the CLBs by their names, which in this test say whose they are.
func (s *soak) take() (listeners map[string]served, owners map[string][]string) {
	s.t.Helper()
	var raw rawState
	s.read("state", &raw)
	listeners, owners = map[string]served{}, map[string][]string{}
	for _, lb := range raw.LoadBalancers {
		owner := lb.LoadBalancerName
		if lb.plain().released() {
			continue
		}
		owners[owner] = append(owners[owner], lb.LoadBalancerId)
		listeners[lb.LoadBalancerId+" "] = served{owner: owner}
		for _, listener := range lb.Listeners {
			port, _ := listener["ListenerPort"].(float64)
			group, _ := listener["VServerGroupId"].(string)
			listeners[fmt.Sprintf("%s %v", lb.LoadBalancerId, port)] = served{owner, group, int(port), lb.serversOf(group)}
		}
	}
	return listeners, owners
}

// released reports whether the deletion of a Service left the CLB to whoever had removed its owner tag: it has nothing of the Service.
func (lb cloudLB) released() bool {
	return lb.Tags[mark.TagOwner] == "" && len(lb.Listeners) == 0 && len(lb.Groups) == 0
}

// serversOf returns the servers of a group that get traffic.
func (lb stateLB) serversOf(group string) []string {
	var servers []string
	for _, g := range lb.VServerGroups {
		for _, b := range g.BackendServers {
			if g.VServerGroupId == group && b.Weight > 0 {
				servers = append(servers, b.ServerId)
			}
		}
	}
	return servers
}

// wantHeld fails for a CLB that no Service holds by its finalizer.
func (s *soak) wantHeld(owners map[string][]string) {
	s.t.Helper()
	held := func() map[string]bool {
		all, err := s.kube.CoreV1().Services(testNamespace).List(s.t.Context(), metav1.ListOptions{})
		if err != nil {
			s.t.Fatal(err)
		}
		names := map[string]bool{}
		for i := range all.Items {
			names[mark.DefaultName(all.Items[i].UID)] = driver.HasFinalizer(&all.Items[i], Finalizer)
		}
		return names
	}
	free := held()
	for _, owner := range slices.Sorted(maps.Keys(owners)) {
		if free[owner] {
			continue
		}
		if _, now := s.take(); len(now[owner]) > 0 { // else it went between the two readings
			s.t.Errorf("CLBs %v of %s are held by no Service", now[owner], owner)
		}
	}
}
