package provider

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// What holds while the cloud refuses something, does not show something, or has something of somebody else.
const (
	// followIn is when the backends have followed the nodes and pods.
	followIn = 10 * time.Second
	// openIn is when a new port is served, and a new certificate used.
	openIn = time.Minute
	// goneIn is when a Service that is deleted is released.
	goneIn = time.Hour
	// healIn is when all is as wanted after the fault has ended: what takes away something that works is tried every six hours at last.
	healIn = 7 * time.Hour
	// A thing that stays refused may cost so many calls that change something, and so many events, in a day.
	writesADay, eventsADay = 30, 10
)

// rule is one of those that hold, by its letter.
type rule string

const (
	leaves  rule = "a: who goes leaves"
	joins   rule = "a: who comes joins"
	keeps   rule = "b: ports stay served"
	opens   rule = "b: another port is served"
	rotates rule = "c: a certificate rotates"
	goes    rule = "d: the Service can be deleted"
	writes  rule = "e: few writes"
	says    rule = "e: few events"
	heals   rule = "f: all is as wanted after the fault"
	ends    rule = "f: nothing is left after the deletion"
)

// wrong is what is wrong for a day.
type wrong struct {
	kind, name string
	stage      *stage
	// refuses decides about a call.
	refuses func(request) (code string, status int)
	// restart has a new process begin with the fault, which then knows nothing but what the Service says; first has the fault be there before
	// the Service.
	restart, first bool
	make           func(w *ruled)
	// cannot are the rules that cannot hold, since they need what is refused.
	cannot []rule
}

func refusesAction(action, code string, status int) func(request) (string, int) {
	return func(r request) (string, int) {
		if r.action == action {
			return code, status
		}
		return "", 0
	}
}

// run is what came of the life of a Service: which rules were broken and how, the state after the edit, the settings that it had before,
// and the calls from the edit on.
type run struct {
	broken  map[rule]string
	changed []string
	based   map[string]bool
	calls   []request
}

// live goes through the life of a Service with a fault, or without any.
func (s *side) live(t *testing.T, stage *stage, f *wrong) (done run) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newRuled(t, s)
		defer func() { w.stop() }()
		done = w.live(stage, f)
	})
	return done
}

func (w *ruled) sleep(seconds int) { time.Sleep(time.Duration(seconds) * time.Second) }

func (w *ruled) live(stage *stage, f *wrong) run {
	w.t.Helper()
	s, done := w.side, run{broken: map[rule]string{}}
	check := func(r rule, atMost time.Duration, holds func() bool) {
		w.t.Helper()
		if w.until(atMost, holds) {
			return
		}
		done.broken[r] = fmt.Sprint(s.served(w))
	}
	begin := func() {
		if f != nil {
			w.manager.from(f.refuses)
		}
	}
	svc := testkube.Service("web", stage.base...)
	w.pods = stage.pods
	w.members(svc, "n1", "n2", "n3")
	if f != nil && f.first {
		begin()
	}
	testkit.Must(w.kube.CoreV1().Services(testkube.Namespace).Create(w.t.Context(), svc, metav1.CreateOptions{}))(w.t)
	time.Sleep(5 * time.Minute)
	if f == nil || !f.first {
		if !s.served(w).everywhere("i-n1", "i-n2", "i-n3") {
			w.t.Fatalf("%s: not served in the beginning: %v, %v", stage.name, s.served(w), w.get().Status.Conditions)
		}
		if f != nil && f.make != nil {
			f.make(w)
		}
	}
	before := s.served(w)
	begin()
	if f != nil && f.restart {
		w.restart()
		time.Sleep(time.Minute)
	}
	done.based = map[string]bool{}
	for _, call := range w.manager.since() {
		for name := range call.values {
			done.based[name+"="+call.values.Get(name)] = true
		}
	}
	w.change(stage.edit...)
	time.Sleep(2 * time.Minute)
	if f != nil && f.refuses != nil && !f.restart {
		time.Sleep(30 * time.Minute) // what is refused is remembered, and what cannot be read is due
	}

	w.gone("n1")
	check(leaves, followIn, func() bool { return w.wanted().nowhere("i-n1") })
	w.came("n4")
	check(joins, followIn, func() bool { return w.wanted().with("i-n4") })
	w.change(func(svc *corev1.Service) {
		svc.Spec.Ports = append(svc.Spec.Ports, testkube.Port(90, corev1.ProtocolTCP))
	})
	w.members(w.get(), "n2", "n3", "n4")
	check(opens, openIn, func() bool { return len(s.served(w)[strings.ToLower("tcp")+":90"])+len(s.served(w)["TCP:90"]) == 3 })
	w.change(with(annotation.CertID, "cert-2"))
	check(rotates, openIn, func() bool { return s.certificate(w) == "cert-2" })
	now := s.served(w)
	for port := range before {
		if len(now[port]) == 0 && w.asksFor(port) {
			done.broken[keeps] = fmt.Sprint(port, " is not served: ", now)
		}
	}
	done.calls = append(done.calls, w.manager.since()...)
	w.events()
	time.Sleep(24 * time.Hour) // without a fault, too: a charge type takes effect at midnight
	w.costs(&done)
	w.manager.from(nil)
	if f != nil && !w.until(healIn, func() bool { return slices.Equal(stage.wanted, s.state(w)) }) {
		done.broken[heals] = cmp.Diff(stage.wanted, s.state(w))
	}
	done.changed = s.state(w)

	w.manager.since()
	w.events()
	begin()
	w.deleteIt()
	check(goes, goneIn, w.released)
	if !w.released() {
		time.Sleep(24 * time.Hour)
		w.costs(&done)
	}
	done.calls = append(done.calls, w.manager.since()...)
	w.manager.from(nil)
	check(ends, healIn, func() bool {
		return w.released() && !slices.ContainsFunc(s.state(w), func(line string) bool { return strings.HasPrefix(line, "load balancer") })
	})
	if done.broken[ends] != "" {
		done.broken[ends] = fmt.Sprint(w.get().Finalizers, s.state(w))
	}
	return done
}

// asksFor reports whether the Service has a port that is served.
func (w *ruled) asksFor(port string) bool {
	_, number, _ := strings.Cut(port, ":")
	return slices.ContainsFunc(w.get().Spec.Ports, func(p corev1.ServicePort) bool { return fmt.Sprint(p.Port) == number })
}

// wanted are the ports that run and that the Service has: nobody connects to one that it has given up.
func (w *ruled) wanted() portsServed {
	all := w.side.served(w)
	maps.DeleteFunc(all, func(port string, _ []string) bool { return !w.asksFor(port) })
	return all
}

// members makes the nodes the endpoints of the Service, where it has such.
func (w *ruled) members(svc *corev1.Service, names ...string) {
	w.t.Helper()
	if w.pods {
		w.putPods(svc, names...)
	}
}

func (w *ruled) gone(name string) {
	w.t.Helper()
	if w.pods {
		w.members(w.get(), "n2", "n3")
		return
	}
	w.deleteNode(name)
}

func (w *ruled) came(name string) {
	w.t.Helper()
	w.addNode(name)
	w.members(w.get(), "n2", "n3", "n4")
}

// costs notes what a day has cost.
func (w *ruled) costs(done *run) {
	refused, made := map[string]int{}, map[string]int{}
	for _, r := range w.manager.since() {
		if r.isRead() {
			continue
		}
		made[r.thing()]++
		if r.refused {
			refused[r.thing()]++
		}
	}
	total := 0
	for _, n := range made {
		total += n
	}
	if things := max(1, len(refused)); total > writesADay*things {
		done.broken[writes] = fmt.Sprintf("%d for %d things: %s", total, things, most(made))
	}
	if all := w.events(); len(all) > eventsADay*max(1, len(refused)) {
		texts := map[string]int{}
		for _, e := range all {
			texts[e[:min(len(e), 150)]]++
		}
		done.broken[says] = fmt.Sprintf("%d: %s", len(all), most(texts))
	}
}

// most are those that there are most of.
func most(counted map[string]int) string {
	names := slices.SortedFunc(maps.Keys(counted), func(a, b string) int { return counted[b] - counted[a] })
	var all []string
	for _, name := range names[:min(4, len(names))] {
		all = append(all, fmt.Sprintf("%d x %s", counted[name], name))
	}
	return strings.Join(all, "; ")
}

// faults are all that can go wrong with a product: each action that it calls, each parameter of a setting, and all that is somebody else's.
func (s *side) faults() (all []*wrong) {
	seen := map[string]bool{}
	for i := range s.stages {
		stage := &s.stages[i]
		for _, call := range stage.calls {
			if call.isRead() {
				continue
			}
			if !seen[call.action] {
				seen[call.action] = true
				for _, code := range []string{"InvalidParameter", "Forbidden.RAM"} {
					status := http.StatusBadRequest
					if code == "Forbidden.RAM" {
						status = http.StatusForbidden
					}
					all = append(all, &wrong{
						kind: code, name: call.action, stage: stage, refuses: refusesAction(call.action, code, status),
						first:  call.action == "CreateLoadBalancer",
						cannot: s.without(call.action),
					})
				}
			}
			for _, name := range slices.Sorted(maps.Keys(call.values)) { // the sample is the same in each run
				value := call.values.Get(name)
				if key := call.action + " " + name; isSetting(name) && !seen[key] && !stage.based[name+"="+value] {
					seen[key] = true
					all = append(all,
						&wrong{kind: "setting", name: key + "=" + value, stage: stage, cannot: s.lacking(call.action, name),
							refuses: func(r request) (string, int) {
								if r.action == call.action && r.values.Get(name) == value {
									return "InvalidParameter", http.StatusBadRequest
								}
								return "", 0
							}})
				}
			}
		}
	}
	for _, action := range alicloud.ActionsOf(s.feature) {
		if !action.IsRead() {
			continue
		}
		stage := &s.stages[0]
		for i := range s.stages {
			if action.Name == "DescribeEipAddresses" && s.stages[i].name == "elastic address" ||
				s.stages[i].pods && (action.Name == "DescribeNetworkInterfaces" || action.Name == "DescribeVpcs") {
				stage = &s.stages[i]
			}
		}
		refuses := refusesAction(action.Name, "Forbidden.RAM", http.StatusForbidden)
		all = append(all,
			&wrong{kind: "unreadable", name: action.Name, stage: stage, refuses: refuses, cannot: s.without(action.Name)},
			&wrong{kind: "unreadable from the start", name: action.Name, stage: stage, refuses: refuses, restart: true,
				cannot: s.unknown(action.Name)})
	}
	for _, thing := range s.foreign {
		all = append(all, &wrong{kind: "foreign", name: thing.name, stage: &s.stages[0], make: thing.make, cannot: thing.cannot})
	}
	slices.SortStableFunc(all, func(a, b *wrong) int { return strings.Compare(a.kind+a.name, b.kind+b.name) })
	return all
}

// isSetting reports whether a parameter of a call is something that the Service asks for.
func isSetting(name string) bool {
	return !slices.ContainsFunc([]string{
		"Action", "Version", "Format", "Timestamp", "Signature", "AccessKeyId", "RegionId", "Token", "LoadBalancerId", "ListenerPort",
		"VServerGroupId", "ServerGroupId", "ListenerId",
		"ResourceId", "ResourceType", "Server", "Old", "New", "BackendServer", "Description", "VpcId", "SecurityGroupRuleId", "SecurityGroupId",
		"AclId", "DomainExtensionId", "Protocol",
	}, func(prefix string) bool { return strings.HasPrefix(name, prefix) || strings.HasSuffix(name, prefix) })
}

func (s *side) without(action string) (cannot []rule) {
	for r, needed := range map[rule][]string{
		joins: append(slices.Clone(s.joins), s.interfaces...), leaves: s.leaves, opens: slices.Concat(s.joins, s.interfaces, s.opens, s.fresh),
		rotates: s.rotates, goes: s.removes,
	} {
		if slices.Contains(needed, action) {
			cannot = append(cannot, r)
		}
	}
	return cannot
}

// lacking are the rules that cannot hold while a setting is refused in the creation of whatever has it.
// A certificate that is refused does not rotate.
func (s *side) lacking(action, setting string) (cannot []rule) {
	if strings.HasPrefix(action, "Create") || slices.Contains(s.fresh, action) {
		cannot = append(cannot, opens)
	}
	if strings.Contains(setting, "Certificate") {
		cannot = append(cannot, rotates)
	}
	return cannot
}

func (s *side) unknown(action string) []rule {
	switch {
	case action == s.listeners:
		return append(s.without(action), rotates)
	case slices.Contains(s.known, action):
		return append(s.without(action), joins, leaves, opens, rotates)
	case slices.Contains(s.members, action): // a new process that cannot read a group at all plans nothing for the load balancer
		return append(s.without(action), joins, leaves, opens, rotates)
	}
	return s.without(action)
}

// triedOf is of how many faults of a kind one is tried with -short, on either product in turn.
const triedOf = 120

// TestRulesHold: while something of a load balancer is refused, or cannot be read, or is somebody else's, everything else goes on, and all
// is as wanted when that ends.
func TestRulesHold(t *testing.T) {
	t.Parallel()
	for product, s := range []*side{ofCLB(), ofNLB()} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for i := range s.stages {
				stage := &s.stages[i]
				t.Run("undisturbed/"+stage.name, func(t *testing.T) {
					done := s.live(t, stage, nil)
					stage.wanted, stage.calls, stage.based = done.changed, done.calls, done.based
					if len(done.broken) > 0 {
						t.Fatalf("%v", done.broken)
					}
				})
			}
			kinds := map[string]int{}
			for _, f := range s.faults() {
				kinds[f.kind]++
				if !testkit.Tried(kinds[f.kind]-1, triedOf) || !testkit.Tried(len(kinds)+product, 2) {
					continue
				}
				t.Run(f.kind+"/"+f.name, func(t *testing.T) {
					t.Parallel()
					for r, how := range s.live(t, f.stage, f).broken {
						if !slices.Contains(f.cannot, r) {
							t.Errorf("%s: %s", r, how)
						}
					}
				})
			}
		})
	}
}
