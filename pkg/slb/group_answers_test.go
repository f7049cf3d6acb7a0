package slb

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
)

// hiding is a cloud that does not show something for a number of answers: a CLB by its id, or a listener by its port.
type hiding struct {
	next  http.RoundTripper
	id    string
	port  float64
	mu    sync.Mutex // guards the rest
	times int
	hit   bool
}

// RoundTrip implements http.RoundTripper.
func (h *hiding) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := h.next.RoundTrip(request)
	action := request.URL.Query().Get("Action")
	if err != nil || answer.StatusCode != http.StatusOK || !strings.HasPrefix(action, "Describe") {
		return answer, err
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	var content map[string]any
	if err := json.Unmarshal(body, &content); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.times > 0 && (h.id != "" || action == "DescribeLoadBalancerListeners") && h.hide(content) {
		h.times--
		h.hit = true
		if body, err = json.Marshal(content); err != nil {
			return nil, err
		}
		if action == "DescribeLoadBalancerAttribute" {
			answer.StatusCode, body = http.StatusNotFound, []byte(`{"RequestId":"r","Code":"`+codeGone+`","Message":"hidden"}`)
		}
	}
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	answer.Header.Del("Content-Length")
	return answer, nil
}

// hide takes something out of an answer, and reports whether it was there.
func (h *hiding) hide(content map[string]any) bool {
	hidden := func(item any) bool {
		fields, _ := item.(map[string]any)
		if h.id != "" {
			return fields["LoadBalancerId"] == h.id
		}
		return fields["ListenerPort"] == h.port
	}
	found := h.id != "" && content["LoadBalancerId"] == h.id
	for key, value := range content {
		switch value := value.(type) {
		case map[string]any:
			found = h.hide(value) || found
		case []any:
			kept := slices.DeleteFunc(slices.Clone(value), hidden)
			found = found || len(kept) < len(value)
			content[key] = kept
		}
	}
	if total, counts := content["TotalCount"].(float64); counts && found {
		content["TotalCount"] = total - 1 // or the client would notice
	}
	return found
}

// twoCLBs makes a world in which a group has two CLBs, and returns that of the Service with the name.
func twoCLBs(t *testing.T, of string) (w *world, id string) {
	t.Helper()
	w = groupWorld(t, grouped("web", "edge", 80), overflowing(grouped("shop", "edge", 80)))
	return w, w.get(of).Labels[driver.LabelLoadBalancerID]
}

// TestOneAnswerMovesNobodyInAGroup: a Service stays on its CLB while answers do not show that, although its group has another one.
func TestOneAnswerMovesNobodyInAGroup(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"web", "shop"} {
		for why, begin := range map[string]func(*world){"drift": func(w *world) { w.drift(name) }, "restart": (*world).restart} {
			t.Run(name+" "+why, func(t *testing.T) {
				t.Parallel()
				w, id := twoCLBs(t, name)
				owners, address := w.ownersOf(), w.address(name)
				begin(w)
				hidden := &hiding{next: w.transport.next, id: id, times: 2} // in the search and by its id
				w.transport.next = hidden
				if _, err := w.Reconcile(t.Context(), w.get(name)); err != nil {
					t.Log(err)
				}
				wantOwners(t, w, owners)
				if now := w.address(name); now != address || !hidden.hit {
					t.Errorf("the status shows %s, want %s as before; hidden %v", now, address, hidden.hit)
				}
				w.transport.next = w.emulator.Transport()
				for range 3 {
					w.mustPass(name)
				}
				wantOwners(t, w, owners)
				w.silent("afterwards", "web", "shop")
				w.leavesNothing("web", "shop")
			})
		}
	}
}

// TestCLBOfAGroupIsReplaced: once it is proven that the CLB of a Service is gone, the Service goes to another one of its group.
func TestCLBOfAGroupIsReplaced(t *testing.T) {
	t.Parallel()
	w := groupWorld(t, grouped("web", "edge", 80), overflowing(grouped("shop", "edge", 80)), overflowing(grouped("wiki", "edge", 81)))
	id := w.get("shop").Labels[driver.LabelLoadBalancerID]
	w.must(w.api.SetDeleteProtection(t.Context(), id, "off"))
	w.must(w.api.DeleteLoadBalancer(t.Context(), id))
	w.change("web", deleteService)
	w.mustPass("web")
	w.vanish("web")
	w.drift("shop")
	for range 3 {
		w.mustPass("shop")
	}
	wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 shop", "tcp:81 wiki"}})
	w.leavesNothing("shop", "wiki")
}

// TestNewcomerMakesNoSecondCLB: a Service that joins a group makes no CLB while answers do not show the one that others are on.
func TestNewcomerMakesNoSecondCLB(t *testing.T) {
	t.Parallel()
	for why, begin := range knownOrNot() {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			w := groupWorld(t, grouped("web", "edge", 80))
			id := w.onlyCLB()
			newcomer := born(grouped("shop", "edge", 81), -5) // decides on the attributes of a CLB that were new
			annotate(newcomer, annotation.DeleteProtection, "off")
			w.put(newcomer)
			begin(w)
			w.transport.next = &hiding{next: w.transport.next, id: id, times: 3} // in the searches and by its id
			w.fillGroups()
			if _, err := w.Reconcile(t.Context(), w.get("shop")); err != nil {
				t.Log(err)
			}
			w.transport.next = w.emulator.Transport()
			if n := len(w.lbs()); n != 1 {
				t.Errorf("%d CLBs, want 1", n)
			}
			for range 3 {
				w.mustPass("shop")
			}
			wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 web", "tcp:81 shop"}})
		})
	}
}

// TestGroupWithoutListenersInTheAnswer: after a restart, an answer that shows no listener moves no Service to another CLB of the group.
func TestGroupWithoutListenersInTheAnswer(t *testing.T) {
	t.Parallel()
	names := []string{"web", "shop", "blog", "wiki"}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var services []*corev1.Service
			for _, each := range names {
				services = append(services, overflowing(grouped(each, "edge", 80)))
			}
			w := groupWorld(t, services...)
			owners, address := w.ownersOf(), w.address(name)
			w.restart()
			w.fault(map[string]any{"action": "DescribeLoadBalancerListeners",
				"body": `{"RequestId":"r","TotalCount":0,"MaxResults":100,"Listeners":[]}`, "times": 1})
			for range 3 {
				w.mustPass(name)
				wantOwners(t, w, owners)
			}
			if now := w.address(name); now != address || w.faultHits() != 1 {
				t.Errorf("the status shows %s, want %s as before; %d faults", now, address, w.faultHits())
			}
		})
	}
}

// TestGroupAndLateTagSearch: while the search by tag does not show what was made within the last hour, a group has one CLB, whoever comes
// first after a restart, and although the Service that decides on its attributes has changed meanwhile.
func TestGroupAndLateTagSearch(t *testing.T) {
	t.Parallel()
	late := func(w *world) {
		w.emulator.Change(func(s *emulator.Settings) { s.TagSearchLag = cloud.Duration(time.Hour) })
	}
	t.Run("restart", func(t *testing.T) {
		t.Parallel()
		w := groupWorld(t, grouped("web", "edge", 80))
		w.put(born(grouped("shop", "edge", 81), -5)) // the new one decides on attributes
		late(w)
		w.restart()
		for range 2 {
			w.mustPass("shop")
			w.mustPass("web")
		}
		wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 web", "tcp:81 shop"}})
		w.restart()
		w.leavesNothing("web", "shop")
	})
	for _, restarted := range []bool{false, true} {
		lost := func(t *testing.T) *world {
			t.Helper()
			w := newWorld(t)
			threeNodes(w)
			w.put(born(grouped("web", "edge", 80), 1))
			w.fault(map[string]any{"action": "CreateLoadBalancer", "drop": "after", "times": 1})
			if err := w.pass("web"); err == nil {
				t.Fatal("the creation was answered")
			}
			late(w)
			if restarted {
				w.restart()
			}
			return w
		}
		t.Run(fmt.Sprintf("lost creation, restarted %v", restarted), func(t *testing.T) {
			t.Parallel()
			w := lost(t)
			older := born(grouped("shop", "edge", 81), 0)
			annotate(older, annotation.DeleteProtection, "off")
			w.put(older)
			for range 2 {
				w.converge("shop")
				w.converge("web")
			}
			wantOwners(t, w, map[string][]string{edgeCLB: {"tcp:80 web", "tcp:81 shop"}})
		})
		for what, change := range map[string]func(*corev1.Service){
			"deletion": deleteService, "move": func(svc *corev1.Service) { delete(svc.Annotations, key(annotation.Group)) },
		} {
			t.Run(fmt.Sprintf("lost creation and %s, restarted %v", what, restarted), func(t *testing.T) {
				t.Parallel()
				w := lost(t)
				w.change("web", change)
				for range 3 {
					_ = w.pass("web") //nolint:errcheck // what is left counts
				}
				if _, left := w.state()[edgeCLB]; left {
					t.Error("the CLB of the group is left")
				}
			})
		}
	}
}

// meeting has another process run in the middle of a pass: before the request with the number at, counted from 0.
type meeting struct {
	next  http.RoundTripper
	mu    sync.Mutex // guards the rest
	at, n int
	other func()
}

// RoundTrip implements http.RoundTripper.
func (m *meeting) RoundTrip(request *http.Request) (*http.Response, error) {
	m.mu.Lock()
	now := m.n == m.at
	m.n++
	m.mu.Unlock()
	if now {
		m.other()
	}
	return m.next.RoundTrip(request)
}

// TestTwoLeadersOfAGroup: a leader that does not know yet that it has lost its Lease, and the next one, make one CLB, whenever in the pass
// of the former the latter begins.
func TestTwoLeadersOfAGroup(t *testing.T) {
	t.Parallel()
	begun := func(t *testing.T) *world {
		t.Helper()
		w := newWorld(t)
		threeNodes(w)
		w.put(born(grouped("web", "edge", 80), 1))
		w.put(born(grouped("shop", "edge", 81), 2))
		return w
	}
	smooth := begun(t)
	smooth.mustPass("web")
	for at := range len(smooth.calls()) {
		t.Run(fmt.Sprintf("call %d", at), func(t *testing.T) {
			t.Parallel()
			w := begun(t)
			next := *w
			next.restart()
			w.transport.next = &meeting{next: w.transport.next, at: at, other: func() {
				if err := next.pass("shop"); err != nil {
					t.Log(err)
				}
			}}
			if err := w.pass("web"); err != nil {
				t.Log(err)
			}
			for _, name := range []string{"web", "shop"} {
				next.drift(name)
				next.converge(name)
			}
			wantOwners(t, &next, map[string][]string{edgeCLB: {"tcp:80 web", "tcp:81 shop"}})
			if groups := next.state()[edgeCLB].Groups; len(groups) != 2 {
				t.Errorf("vServer groups %v, want one for each port", groups)
			}
			next.leavesNothing("web", "shop")
		})
	}
}
