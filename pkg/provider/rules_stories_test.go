package provider

import (
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
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// tell makes a Service that is served by n1, n2 and n3, and tells what happens to it then.
func (s *side) tell(t *testing.T, story func(w *ruled)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newRuled(t, s)
		defer func() { w.stop() }()
		testkit.Must(w.kube.CoreV1().Services(testkube.Namespace).Create(t.Context(), testkube.Service("web", s.stages[0].base...),
			metav1.CreateOptions{}))(t)
		time.Sleep(5 * time.Minute)
		w.must(time.Second, "served in the beginning", func() bool { return s.served(w).everywhere("i-n1", "i-n2", "i-n3") })
		w.manager.since()
		story(w)
	})
}

// must waits until something holds, and fails if it does not in time.
func (w *ruled) must(atMost time.Duration, what string, holds func() bool) {
	w.t.Helper()
	if !w.until(atMost, holds) {
		w.t.Errorf("%s: not within %s: %v, %v", what, atMost, w.side.served(w), w.get().Status.Conditions)
	}
}

// inSync reports whether the Service says that all is as it asks for.
func (w *ruled) inSync() bool {
	return slices.ContainsFunc(w.get().Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == service.ConditionSynced && c.Status == metav1.ConditionTrue
	})
}

// written are the calls since the last time that change something.
func (w *ruled) written() []request {
	return slices.DeleteFunc(w.manager.since(), request.isRead)
}

// eachProduct tells a story of each product, and with -short of one of them.
func eachProduct(t *testing.T, row int, story func(t *testing.T, s *side)) {
	t.Helper()
	sides := []*side{ofCLB(), ofNLB()}
	for _, i := range testkit.Sample(row, len(sides)) {
		s := sides[i]
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			story(t, s)
		})
	}
}

// TestUnreadForDays: a part of a load balancer cannot be read for three days, and the process begins anew while that lasts. Its address
// stays, nothing is made twice, and in the end all is as it was before, for the nodes that there are.
func TestUnreadForDays(t *testing.T) {
	t.Parallel()
	half := 36 * time.Hour
	if testing.Short() {
		half = 6 * time.Hour
	}
	eachProduct(t, 1, func(t *testing.T, s *side) {
		parts := slices.Concat([]string{s.listeners}, s.known, s.members)
		for i, part := range parts {
			if !testkit.Tried(i, len(parts)) {
				continue
			}
			t.Run(part, func(t *testing.T) {
				t.Parallel()
				s.tell(t, func(w *ruled) {
					before, shown := s.state(w), w.get().Status.LoadBalancer
					w.manager.from(refusesAction(part, "Forbidden.RAM", http.StatusForbidden))
					time.Sleep(half)
					w.deleteNode("n1")
					w.must(followIn, "the node leaves", func() bool { return s.served(w).nowhere("i-n1") })
					w.addNode("n4")
					w.must(followIn, "the node joins", func() bool { return s.served(w).with("i-n4") })
					time.Sleep(half)
					w.restart()
					time.Sleep(3 * time.Hour)
					if diff := cmp.Diff(shown, w.get().Status.LoadBalancer); diff != "" {
						t.Errorf("the status (-before +after):\n%s", diff)
					}
					w.manager.from(nil)
					w.must(time.Hour, "in sync", w.inSync)
					for i := range before {
						before[i] = strings.ReplaceAll(before[i], "i-n1", "i-n4")
					}
					after := s.state(w)
					for _, lines := range [][]string{before, after} {
						for i := range lines { // the members of a group are in order of their names
							lines[i] = inOrder(lines[i])
						}
						slices.Sort(lines)
					}
					if diff := cmp.Diff(before, after); diff != "" {
						t.Errorf("the cloud (-before +after):\n%s", diff)
					}
				})
			})
		}
	})
}

// inOrder sorts the words of a line.
func inOrder(line string) string {
	words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" []", r) })
	slices.Sort(words)
	return strings.Join(words, " ")
}

// TestRefusedSettingWithdrawn: the author removes the annotation of a setting that the cloud refuses. The Service is in sync again, also
// while the cloud goes on to refuse it, and nothing more is written.
func TestRefusedSettingWithdrawn(t *testing.T) {
	t.Parallel()
	eachProduct(t, 2, func(t *testing.T, s *side) {
		s.tell(t, func(w *ruled) {
			before := s.state(w)
			w.manager.from(func(r request) (string, int) {
				for name := range r.values {
					if value := r.values.Get(name); strings.Contains(name, "Scheduler") && strings.EqualFold(value, "wlc") ||
						strings.HasSuffix(name, "Name") && value == "renamed" {
						return "InvalidParameter", http.StatusBadRequest
					}
				}
				return "", 0
			})
			w.change(with(annotation.Scheduler, "wlc"), with(annotation.Name, "renamed"))
			time.Sleep(12 * time.Hour)
			if w.inSync() {
				t.Error("nobody hears of the refusal")
			}
			w.change(unset(annotation.Scheduler), unset(annotation.Name))
			w.must(time.Minute, "in sync", w.inSync)
			w.written()
			time.Sleep(24 * time.Hour)
			if calls := w.written(); len(calls) > 0 {
				t.Errorf("%d writes, the first is %s", len(calls), calls[0].thing())
			}
			if diff := cmp.Diff(before, s.state(w)); diff != "" {
				t.Errorf("the cloud (-before +after):\n%s", diff)
			}
		})
	})
}

// TestTwoRefusalsAtOnce: the cloud refuses a setting of the listeners and a node. Everything else follows, and few calls are made.
func TestTwoRefusalsAtOnce(t *testing.T) {
	t.Parallel()
	eachProduct(t, 3, func(t *testing.T, s *side) {
		s.tell(t, func(w *ruled) {
			w.manager.from(func(r request) (string, int) {
				comes := !r.isRead() && !strings.HasPrefix(r.action, "Remove") && strings.Contains(r.values.Encode(), "i-n4")
				if comes || r.values.Get("IdleTimeout") == "20" {
					return "InvalidParameter", http.StatusBadRequest
				}
				return "", 0
			})
			w.change(with(annotation.IdleTimeout, "20"))
			w.addNode("n4")
			time.Sleep(time.Minute)
			w.deleteNode("n1")
			w.must(followIn, "the node leaves", func() bool { return s.served(w).nowhere("i-n1") })
			w.addNode("n5")
			w.must(followIn, "another node joins", func() bool { return s.served(w).everywhere("i-n2", "i-n3", "i-n5") })
			w.change(with(annotation.CertID, "cert-2"))
			w.must(openIn, "the certificate rotates", func() bool { return s.certificate(w) == "cert-2" })
			w.change(func(svc *corev1.Service) { svc.Spec.Ports[0].NodePort = 31111 })
			w.must(openIn, "another node port is served", func() bool { return s.served(w).everywhere("i-n2", "i-n3", "i-n5") })
			w.manager.since()
			w.events()
			time.Sleep(24 * time.Hour)
			done := run{broken: map[rule]string{}}
			w.costs(&done)
			if len(done.broken) > 0 {
				t.Errorf("%v", done.broken)
			}
			w.manager.from(nil)
			w.must(healIn, "all is served", func() bool { return w.inSync() && s.served(w).everywhere("i-n2", "i-n3", "i-n4", "i-n5") })
		})
	})
}

// TestLastBackendAndDoubt: all nodes are replaced at once while the members of the groups cannot be read. Those that are gone leave, and
// the one that comes serves.
func TestLastBackendAndDoubt(t *testing.T) {
	t.Parallel()
	eachProduct(t, 4, func(t *testing.T, s *side) {
		s.tell(t, func(w *ruled) {
			w.manager.from(refusesAction(s.members[0], "Forbidden.RAM", http.StatusForbidden))
			time.Sleep(time.Hour)
			for _, name := range []string{"n1", "n2", "n3"} {
				w.deleteNode(name)
			}
			w.addNode("n4")
			w.must(followIn, "the next node serves", func() bool { return s.served(w).everywhere("i-n4") })
			w.manager.from(nil)
			w.must(time.Hour, "in sync", w.inSync)
		})
	})
}

// TestStrangerOnTheNextPort: somebody has a listener on a port that the Service gets later. It stays as it is, the other ports follow, the
// Service says so, and is released with the stranger left in place.
func TestStrangerOnTheNextPort(t *testing.T) {
	t.Parallel()
	eachProduct(t, 0, func(t *testing.T, s *side) {
		make90 := func(w *ruled) { clbByHand(w, 90, false) }
		if s.name == "NLB" {
			make90 = func(w *ruled) { nlbByHand(w, balancer(w).ID, 90, true) }
		}
		s.tell(t, func(w *ruled) {
			make90(w)
			before := w.strangers()
			w.change(func(svc *corev1.Service) {
				svc.Spec.Ports = append(svc.Spec.Ports, testkube.Port(90, corev1.ProtocolTCP), testkube.Port(91, corev1.ProtocolTCP))
			})
			w.must(openIn, "the port beside it is served", func() bool {
				return len(s.served(w)["TCP:91"])+len(s.served(w)["tcp:91"]) == 3
			})
			time.Sleep(time.Minute)
			if said := strings.Join(w.events(), "\n"); strings.Count(said, problem.ReasonListenerConflict) != 1 {
				t.Errorf("events %s, want one %s", said, problem.ReasonListenerConflict)
			}
			time.Sleep(24 * time.Hour)
			if all := w.events(); len(all) > eventsADay {
				t.Errorf("%d events in a day, the first is %s", len(all), all[0])
			}
			if calls := w.written(); len(calls) > writesADay {
				t.Errorf("%d writes in a day", len(calls))
			}
			w.deleteIt()
			w.must(goneIn, "the Service is released", w.released)
			if diff := cmp.Diff(before, w.strangers()); diff != "" || before == "" {
				t.Errorf("somebody else's listener (-before +after):\n%s", diff)
			}
			if all := s.served(w); len(all) > 0 {
				t.Errorf("ours are left: %v", all)
			}
		})
	})
}

// TestUnreadGroupsHoldNoListener: somebody has a listener on the load balancer of a Service that is deleted, and the server groups, or
// their members, cannot be read. The listeners of the Service go at once. The Service is released, either with its groups, as soon as they
// can be read again, or without them and with one event.
func TestUnreadGroupsHoldNoListener(t *testing.T) {
	t.Parallel()
	reads := map[string][]string{
		"CLB": {"DescribeVServerGroups", "DescribeVServerGroupAttribute"}, "NLB": {"ListServerGroups", "ListServerGroupServers"},
	}
	eachProduct(t, 1, func(t *testing.T, s *side) {
		for _, tt := range []struct {
			name    string
			restart bool
			lasts   time.Duration
			stay    bool
		}{
			{"for minutes, known before", false, 4 * time.Minute, false},
			{"for minutes, to a new process", true, 4 * time.Minute, false},
			{"for long, to a new process", true, goneIn, true},
		} {
			for _, read := range reads[s.name] {
				t.Run(tt.name+", "+read, func(t *testing.T) {
					t.Parallel()
					s.tell(t, func(w *ruled) {
						if s.name == "NLB" {
							nlbByHand(w, balancer(w).ID, 9090, false)
						} else {
							clbByHand(w, 9090, false)
						}
						before := w.strangers()
						w.manager.from(refusesAction(read, "Forbidden.RAM", http.StatusForbidden))
						if tt.restart {
							w.restart()
						} else {
							time.Sleep(time.Hour) // the groups are due, and in doubt
						}
						w.deleteIt()
						w.must(time.Minute, "nothing is served", func() bool { return len(s.served(w)) == 0 })
						w.events()
						time.Sleep(tt.lasts)
						if said := strings.Contains(strings.Join(w.events(), "\n"), "stay if there are any"); said != tt.stay {
							t.Errorf("says that groups stay: %t", said)
						}
						if tt.stay && !w.released() {
							t.Error("the Service is held")
						}
						w.manager.from(nil)
						w.must(10*time.Minute, "the Service is released", w.released)
						left := slices.ContainsFunc(s.state(w), func(line string) bool {
							return strings.HasPrefix(line, "group k8s/") || strings.HasPrefix(line, "group k8s.")
						})
						if left != tt.stay {
							t.Errorf("server groups are left: %t: %v", left, s.state(w))
						}
						if diff := cmp.Diff(before, w.strangers()); diff != "" || before == "" {
							t.Errorf("somebody else's listener (-before +after):\n%s", diff)
						}
					})
				})
			}
		}
	})
}

// strangers shows the listeners that a person made.
func (w *ruled) strangers() string {
	w.t.Helper()
	if w.side.name == "NLB" {
		return text(slices.DeleteFunc(testkit.Must(w.person.ListNLBListeners(w.t.Context(), []string{balancer(w).ID}))(w.t),
			func(l alicloud.NLBListener) bool { return *l.Description != byHand }))
	}
	return text(slices.DeleteFunc(testkit.Must(w.person.DescribeListeners(w.t.Context(), clb(w).ID))(w.t)[clb(w).ID],
		func(l alicloud.Listener) bool { return l.Description != byHand }))
}
