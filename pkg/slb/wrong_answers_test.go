package slb

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// liar is a transport that once gives a wrong answer to a read. It knows the answers so far.
type liar struct {
	next http.RoundTripper
	mu   sync.Mutex // guards the rest
	// past holds the last answer to each request before the scene begins, others those that were about the other Service, by action.
	past, others map[string]string
	// aboutOther says that requests are those of a pass over the other Service.
	aboutOther bool
	// lie is what is said instead of the answer to the read with the number at, counted from 0; reads counts them.
	lie       *lie
	at, reads int
	// request is the one that was answered wrongly. Its repetition at once, where the answer was none, gets the same.
	request string
	hit     bool
}

// lie is a wrong answer to a read. Where it has none to a request, ok is false.
type lie struct {
	name string
	// none says that the answer counts as none, so that the client asks once more.
	none   bool
	answer func(l *liar, action, request string) (status int, body string, ok bool)
}

func lies() []lie {
	always := func(status int, body string) func(*liar, string, string) (int, string, bool) {
		return func(*liar, string, string) (int, string, bool) { return status, body, true }
	}
	return []lie{
		{"empty body", true, always(http.StatusOK, "")},
		{"answer without content", false, always(http.StatusOK, `{"RequestId":"lie"}`)},
		{"empty list", false, always(http.StatusOK, `{"RequestId":"lie","PageNumber":1,"PageSize":100,"TotalCount":0}`)},
		{"not found", false, func(_ *liar, action, _ string) (int, string, bool) {
			code := map[string]string{"DescribeVServerGroupAttribute": "InvalidParameter",
				"DescribeAccessControlListAttribute": "AclNotExist"}[action]
			if code == "" {
				code = codeGone
			}
			return http.StatusNotFound, `{"RequestId":"lie","Code":"` + code + `","Message":"lie"}`, true
		}},
		{"error", false, always(http.StatusInternalServerError, `{"RequestId":"lie","Code":"InternalError","Message":"lie"}`)},
		{"another Service's", false, func(l *liar, action, _ string) (int, string, bool) {
			body, ok := l.others[action]
			return http.StatusOK, body, ok
		}},
		{"previous state", false, func(l *liar, _, request string) (int, string, bool) {
			body, ok := l.past[request]
			return http.StatusOK, body, ok
		}},
	}
}

// RoundTrip implements http.RoundTripper.
func (l *liar) RoundTrip(request *http.Request) (*http.Response, error) {
	action, key := requestKey(request)
	if !strings.HasPrefix(action, "Describe") {
		return l.next.RoundTrip(request)
	}
	if status, body, lied := l.lied(action, key); lied {
		return &http.Response{
			StatusCode: status, Status: http.StatusText(status), Header: http.Header{"Content-Type": {"application/json"}}, Request: request,
			Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
		}, nil
	}
	answer, err := l.next.RoundTrip(request)
	if err != nil || answer.StatusCode != http.StatusOK {
		return answer, err
	}
	body, err := io.ReadAll(answer.Body)
	answer.Body = io.NopCloser(bytes.NewReader(body))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.aboutOther {
		l.others[action] = string(body)
	} else if l.lie == nil {
		l.past[key] = string(body)
	}
	return answer, err
}

func (l *liar) lied(action, key string) (status int, body string, lied bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lie == nil || l.aboutOther {
		return 0, "", false
	}
	if repeated := l.lie.none && l.hit && l.reads == l.at+1 && key == l.request; l.reads != l.at && !repeated {
		l.reads++
		return 0, "", false
	}
	l.reads++
	if status, body, lied = l.lie.answer(l, action, key); lied {
		l.request, l.hit = key, true
	}
	return status, body, lied
}

// requestKey returns the action of a request, and all that it asks for.
func requestKey(request *http.Request) (action, key string) {
	query := maps.Clone(request.URL.Query())
	for _, name := range []string{"Signature", "SignatureNonce", "Timestamp"} {
		delete(query, name)
	}
	return query.Get("Action"), query.Encode()
}

// scene is a Service, what happens to it, and why its load balancer is read then.
type scene struct {
	name string
	// service makes the Service, which stands already, unless it is created.
	service func(*world) *corev1.Service
	created bool
	reread  func(*world)
	act     func(*world)
}

// scenes are the Services of this test in all that may happen to them.
func scenes() []scene {
	services := map[string]func(*world) *corev1.Service{
		"plain": func(*world) *corev1.Service { return webService() },
		"rich": func(*world) *corev1.Service {
			svc := secured("a.example.com:cert-1,b.example.com:cert-2")
			svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}
			annotate(svc, annotation.AdditionalTags, "a=1")
			return svc
		},
		"named": func(*world) *corev1.Service { return with(webService, annotation.Name, "shop")() },
		"pods": func(w *world) *corev1.Service {
			svc := testService("web", 80)
			eni(svc)
			w.podsAt(svc, "a", "b", "c")
			return svc
		},
		"grouped": func(w *world) *corev1.Service {
			w.put(born(grouped("shop", "edge", 81), -1))
			w.converge("shop")
			return born(inGroup(), 0)
		},
		"reused": func(w *world) *corev1.Service {
			svc := onExistingCLB(w, "a.example.com:cert-1", "a=1")
			svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}
			return svc
		},
	}
	rereads := map[string]func(*world){
		"drift":                func(w *world) { w.drift("web") },
		"restart":              (*world).restart,
		"restart with preload": func(w *world) { w.restart(); w.cacheServices("web", "other") },
	}
	acts := map[string]func(*world){
		"nothing happens": func(*world) {},
		"changed": func(w *world) {
			w.deleteNode("c")
			w.addNode("d")
			w.change("web", func(svc *corev1.Service) {
				svc.Spec.Ports = []corev1.ServicePort{svc.Spec.Ports[0], testPort(8443, corev1.ProtocolTCP)}
				annotate(svc, annotation.HealthyThreshold, "9")
				setOrDelete(svc, annotation.AdditionalTags, "b=1")
			})
			if w.get("web").Annotations[annotation.BackendType] != "" {
				w.podsAt(w.get("web"), "a", "b", "d")
			}
		},
		"moved": changing(func(svc *corev1.Service) {
			if svc.Annotations[key(annotation.Group)] == "" {
				annotate(svc, annotation.Group, "edge")
			} else {
				delete(svc.Annotations, key(annotation.Group))
			}
		}),
		"deleted":          changing(deleteService),
		"no load balancer": changing(func(svc *corev1.Service) { svc.Spec.Type = corev1.ServiceTypeClusterIP }),
	}
	var all []scene
	for kind, svc := range services {
		all = append(all, scene{name: kind + ", created", service: svc, created: true})
		for why, reread := range rereads {
			for what, act := range acts {
				all = append(all, scene{name: kind + ", " + what + ", " + why, service: svc, reread: reread, act: act})
			}
		}
	}
	slices.SortFunc(all, func(a, b scene) int { return strings.Compare(a.name, b.name) })
	return all
}

// everydayScenes are those that run without -soak.real: all of them take minutes.
var everydayScenes = []string{
	"grouped, created", "grouped, deleted, drift", "grouped, moved, restart", "grouped, nothing happens, restart", "plain, moved, drift",
	"plain, nothing happens, restart", "pods, changed, drift", "reused, deleted, restart", "rich, created",
	"rich, changed, restart with preload",
	"rich, deleted, drift",
}

// play makes the world of a scene up to the moment in which its Service has to be read.
func (s scene) play(t *testing.T) (*world, *liar) {
	t.Helper()
	w := newWorld(t)
	l := &liar{next: w.emulator.Transport(), past: map[string]string{}, others: map[string]string{}}
	w.transport.next = l
	threeNodes(w)
	other := secured("a.example.com:cert-1")
	other.Name, other.UID = "other", "0f5e8a1c-other"
	other.Spec.LoadBalancerSourceRanges = []string{"203.0.113.0/24"}
	w.put(other)
	l.aboutOther = true
	w.mustPass("other")
	w.restart()
	w.transport.next = l
	w.mustPass("other")
	w.drift("other")
	w.mustPass("other")
	if _, err := w.api.DescribeLoadBalancer(t.Context(), w.get("other").Labels[driver.LabelLoadBalancerID]); err != nil {
		t.Fatal(err)
	}
	l.aboutOther = false
	svc := s.service(w)
	if s.created {
		w.put(svc)
		return w, l
	}
	w.put(svc)
	w.converge("web")
	w.restart() // reads everything in every way, for answers of the past
	w.transport.next = l
	w.drift("web")
	w.converge("web")
	s.reread(w)
	w.transport.next = l
	s.act(w)
	return w, l
}

// preload is what a start does where the scene asks for it.
func (s scene) preload(w *world) {
	if strings.HasSuffix(s.name, "preload") {
		_ = w.Preload(w.t.Context()) //nolint:errcheck // then each Service reads its own
	}
}

// outcome is what is there after a pass of a scene.
type outcome struct {
	clbs map[string]cloudLB
	ids  map[string]string
	// held says that the Service has the finalizer.
	held bool
}

func (w *world) outcome() outcome {
	w.t.Helper()
	var raw rawState
	w.read("state", &raw)
	now := outcome{clbs: raw.plain(), ids: map[string]string{}, held: driver.HasFinalizer(w.get("web"), Finalizer)}
	for _, lb := range raw.LoadBalancers {
		now.ids[lb.LoadBalancerName] = lb.LoadBalancerId
	}
	return now
}

// serving returns the servers of a listener, without their weights.
func (lb cloudLB) serving(listener string) []string {
	group, _ := lb.Listeners[listener]["VServerGroupId"].(string)
	return short(lb.Groups[group])
}

// wrongs returns what is worse now than it may be between before and want.
func (now outcome) wrongs(before, want outcome) []string {
	var wrongs []string
	wrong := func(format string, args ...any) { wrongs = append(wrongs, fmt.Sprintf(format, args...)) }
	for name := range now.clbs {
		_, was := before.clbs[name]
		_, wanted := want.clbs[name]
		switch {
		case !was && !wanted:
			wrong("%s is there", name)
		case !wanted && !now.held:
			wrong("%s is there, and its Service is released", name)
		}
	}
	for name, was := range before.clbs {
		wanted, stays := want.clbs[name]
		is, there := now.clbs[name]
		switch {
		case !stays:
			continue
		case !there:
			wrong("%s is gone", name)
			continue
		case now.ids[name] != before.ids[name]:
			wrong("%s is another one", name)
		}
		for listener := range was.Listeners {
			if wanted.Listeners[listener] == nil {
				continue
			}
			if is.Listeners[listener] == nil {
				wrong("listener %s of %s is gone", listener, name)
			}
			for _, server := range was.serving(listener) {
				if slices.Contains(wanted.serving(listener), server) && !slices.Contains(is.serving(listener), server) {
					wrong("listener %s of %s has lost %s", listener, name, server)
				}
			}
		}
	}
	return wrongs
}

// TestEveryReadAnswersWrongOnce: whichever read of a Service's life is answered wrongly once, with nothing, an empty list, "not found", the
// answer about another Service or that of the past, no CLB is lost or doubled, no listener and no ready backend server goes, the Service
// is not released while it has something in the cloud, and the next passes come to the same state as if nothing had happened.
func TestEveryReadAnswersWrongOnce(t *testing.T) {
	t.Parallel()
	var given sync.Map
	t.Run("scenes", func(t *testing.T) {
		for _, s := range scenes() {
			row := slices.Index(everydayScenes, s.name)
			if row < 0 {
				continue
			}
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				smooth, _ := s.play(t)
				smooth.calls()
				s.preload(smooth)
				smooth.converge("web")
				reads := 0
				for _, action := range smooth.calls() {
					if strings.HasPrefix(action, "Describe") {
						reads++
					}
				}
				want := smooth.outcome()
				for i, lie := range lies() {
					for _, at := range testkit.Sample(row+i, reads) {
						counter, _ := given.LoadOrStore(lie.name, &atomic.Int64{})
						if s.deceive(t, lie, at, want) {
							counter.(*atomic.Int64).Add(1)
						}
					}
				}
			})
		}
	})
	given.Range(func(name, counter any) bool {
		n := counter.(*atomic.Int64).Load()
		t.Logf("%s: %d", name, n)
		if n == 0 {
			t.Errorf("%s: never given", name)
		}
		return true
	})
}

// deceive plays the scene with one wrong answer, and reports whether it was given.
func (s scene) deceive(t *testing.T, wrong lie, at int, want outcome) bool {
	t.Helper()
	w, l := s.play(t)
	before := w.outcome()
	l.lie, l.at = &wrong, at
	s.preload(w)
	var story []string
	bad := false
	pass := func() bool {
		err := w.pass("web")
		calls := w.calls()
		story = append(story, fmt.Sprintf("  %v: %v", calls, err))
		for _, text := range w.outcome().wrongs(before, want) {
			bad = true
			story = append(story, "  !! "+text)
		}
		return err == nil && len(writesOf(calls)) == 0
	}
	w.calls()
	for range 3 {
		pass()
	}
	if !l.hit {
		return false
	}
	w.drift("web")
	settled := false
	for i := 0; i < maxPasses && !settled; i++ {
		settled = pass()
	}
	got := w.outcome()
	diff := cmp.Diff(want.clbs, got.clbs, cmp.Transformer("sorted", sortedBackends))
	if bad || !settled || diff != "" || got.held != want.held {
		t.Errorf("%s at read %d (%s): settled %v, finalizer %v, state (-undisturbed +got):\n%s\n%s", wrong.name, at, l.request, settled, got.held,
			diff, strings.Join(story, "\n"))
	}
	return true
}
