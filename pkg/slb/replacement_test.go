package slb

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// callOf returns the first call of an action.
func callOf(t *testing.T, calls []emulator.Call, action string) emulator.Call {
	t.Helper()
	i := slices.IndexFunc(calls, func(c emulator.Call) bool { return c.Action == action && c.Code == "" })
	if i < 0 {
		t.Fatalf("%s was not called", action)
	}
	return calls[i]
}

// TestProtocolChangeWhileThrottled: the old listener serves until the calls that put the new one in its place can follow at once, and
// those then wait for nobody.
func TestProtocolChangeWhileThrottled(t *testing.T) {
	t.Parallel()
	for _, throttled := range []string{"CreateLoadBalancerHTTPListener", "StartLoadBalancerListener"} {
		t.Run(throttled, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := processCloud(t)
				w := processWorld(t, e, e.Transport())
				threeNodes(w)
				w.put(testService("web", 80))
				w.mustPass("web")
				id := w.onlyCLB()
				// The cloud closes the action until the next minute.
				w.fault(map[string]any{"action": throttled, "code": "Throttling.User", "status": 400})
				byHand := alicloud.ListenerKey{Port: 9, Protocol: "http"}
				_ = w.api.CreateListener(t.Context(), id, alicloud.Listener{ListenerKey: byHand}) //nolint:errcheck // refused, or without a group
				_ = w.api.StartListener(t.Context(), id, byHand)                                  //nolint:errcheck // the same
				w.calls()
				w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.ProtocolPort, "http:80") })
				begun := time.Now()
				w.mustPass("web")
				calls := w.emulator.NewCalls()
				gone, back := callOf(t, calls, "DeleteLoadBalancerListener"), callOf(t, calls, "StartLoadBalancerListener")
				if down := back.Time.Sub(gone.Time); down > time.Second {
					t.Errorf("nothing served the port for %s", down)
				}
				if waited := gone.Time.Sub(begun); waited == 0 {
					t.Error("the action was not closed, so that the test shows nothing")
				}
				if keys := w.listenerKeys(); !slices.Equal(keys, []string{"http:80"}) {
					t.Errorf("listeners %v", keys)
				}
			})
		})
	}
}

// TestRefusedProtocolChangeKeepsTheListener: a listener that the cloud refuses leaves the old one as it was, with one event, and is
// not tried with each pass.
func TestRefusedProtocolChangeKeepsTheListener(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ from, to, refused string }{
		{"tcp:443", "http:443", "CreateLoadBalancerHTTPListener"},
		{"https:443", "tcp:443", "CreateLoadBalancerTCPListener"},
		{"http:443", "https:443", "CreateLoadBalancerHTTPSListener"},
	} {
		t.Run(test.from+" to "+test.to, func(t *testing.T) {
			t.Parallel()
			svc := secured("a.example.com:cert-1")
			annotate(svc, annotation.ProtocolPort, test.from)
			annotate(svc, annotation.HealthyThreshold, "7")
			w := settled(t, svc)
			before := w.state()
			w.fault(map[string]any{"action": test.refused, "code": "Forbidden.RAM", "status": 403, "times": 0})
			w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.ProtocolPort, test.to) })
			for range 4 {
				if err := w.pass("web"); err == nil || !strings.Contains(err.Error(), "Forbidden.RAM") {
					t.Errorf("the pass says %v, want the refusal", err)
				}
				if diff := cmp.Diff(before, w.state()); diff != "" {
					t.Errorf("state (-before +after):\n%s", diff)
				}
			}
			events := slices.DeleteFunc(w.newEvents(), func(text string) bool { return strings.Contains(text, problem.ReasonAnnotationNoEffect) })
			if len(events) != 1 || !strings.Contains(events[0], "stays in its place") {
				t.Errorf("events %q, want one that says what serves", events)
			}
			refusals := 0
			for _, call := range w.calls() {
				if strings.HasPrefix(call, test.refused+"=") {
					refusals++
				}
			}
			if refusals != 2 {
				t.Errorf("%d attempts in four passes, want two: each takes the port down", refusals)
			}
			w.clearFaults()
			w.restart()
			w.converge("web")
			if keys := w.listenerKeys(); !slices.Equal(keys, []string{test.to}) {
				t.Errorf("listeners %v once the cloud takes it, want %s", keys, test.to)
			}
		})
	}
}

// TestListenerWaitsForItsGroup: a listener stays as long as what the one in its place needs cannot be had.
func TestListenerWaitsForItsGroup(t *testing.T) {
	t.Parallel()
	w := settled(t, testService("web", 80))
	w.fault(map[string]any{"action": "CreateVServerGroup", "code": "Forbidden.RAM", "status": 403, "times": 0})
	w.change("web", func(svc *corev1.Service) {
		annotate(svc, annotation.ProtocolPort, "http:80")
		svc.Spec.Ports[0].NodePort = 31000
	})
	if err := w.pass("web"); err == nil {
		t.Error("the pass says nothing of the refusal")
	}
	if diff := cmp.Diff([]string{"CreateVServerGroup=Forbidden.RAM"}, writesOf(w.calls())); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// TestEveryWriteOfAPutBackMayGoWrong: whatever write goes wrong while a refused listener makes way for the old one again, the next passes
// end with what the Service wants.
func TestEveryWriteOfAPutBackMayGoWrong(t *testing.T) {
	t.Parallel()
	refused := func(svc *corev1.Service) { // the cloud refuses a list that it does not have
		annotate(svc, annotation.ProtocolPort, "http:80")
		annotate(svc, annotation.ACLStatus, "on")
		annotate(svc, annotation.ACLType, "white")
		annotate(svc, annotation.ACLID, "acl-none")
	}
	w := settled(t, testService("web", 80))
	w.change("web", refused)
	if err := w.pass("web"); err == nil {
		t.Fatal("the cloud refuses nothing")
	}
	writes := writesOf(w.calls())
	want := []string{
		"DeleteLoadBalancerListener", "CreateLoadBalancerHTTPListener=AclNotExist", "CreateLoadBalancerTCPListener", "StartLoadBalancerListener",
	}
	if diff := cmp.Diff(want, writes); diff != "" {
		t.Fatalf("writes (-want +got):\n%s", diff)
	}
	for i, mishap := range mishaps() {
		for _, k := range testkit.Sample(i, len(writes)) {
			t.Run(fmt.Sprintf("write %d %s", k+1, mishap.name), func(t *testing.T) {
				t.Parallel()
				w := settled(t, testService("web", 80))
				before := w.state()
				mishap.arm(w, k)
				w.change("web", refused)
				first := w.pass("web")
				mishap.after(w)
				w.clearFaults()
				w.change("web", func(svc *corev1.Service) {
					for _, suffix := range []annotation.Suffix{annotation.ProtocolPort, annotation.ACLStatus, annotation.ACLType, annotation.ACLID} {
						delete(svc.Annotations, key(suffix))
					}
				})
				w.converge("web")
				if diff := cmp.Diff(before, w.state()); diff != "" {
					t.Errorf("state (-before +after), the first pass said %v:\n%s", first, diff)
				}
				w.wantRest("web")
			})
		}
	}
}
