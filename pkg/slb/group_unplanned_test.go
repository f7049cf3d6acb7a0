package slb

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// TestWithdrawnPlaceStopsNoFollowing: in the middle of a move to an existing CLB, somebody gives that to another Service or controller. The
// old place follows the nodes.
func TestWithdrawnPlaceStopsNoFollowing(t *testing.T) {
	t.Parallel()
	for when, then := range knownOrNot() {
		for _, tag := range []string{mark.TagCluster, mark.TagOwner} {
			t.Run(when+" "+tag, func(t *testing.T) {
				t.Parallel()
				web := grouped("web", "edge", 80, 443)
				annotate(web, annotation.ProtocolPort, "http:443")
				w := groupWorld(t, grouped("shop", "edge", 81), web)
				from := w.address("web")
				target := w.makeCLB()
				w.refuses443()
				w.change("web", func(svc *corev1.Service) {
					delete(svc.Annotations, key(annotation.Group))
					annotate(svc, annotation.LoadBalancerID, target.ID)
					annotate(svc, annotation.ForceOverrideListeners, "true")
					annotate(svc, annotation.Hostname, "web.example.com")
				})
				w.passes("web", 3)
				w.must(w.api.TagLoadBalancer(t.Context(), target.ID, []alicloud.Tag{{Key: tag, Value: "somebody"}}))
				then(w)
				w.drift("web")
				w.passes("web", 3)
				w.replaceNodes()
				w.passes("web", 4)
				w.wantLeads("stuck", from, 2, "d", "e", "f")
			})
		}
	}
}

// noReads fails every read by id, and of listeners and groups, of one CLB.
type noReads struct {
	next http.RoundTripper
	id   string
}

func (n noReads) RoundTrip(request *http.Request) (*http.Response, error) {
	q := request.URL.Query()
	if strings.HasPrefix(q.Get("Action"), "Describe") && strings.Contains(request.URL.RawQuery, n.id) {
		return nil, errors.New("no answer")
	}
	return n.next.RoundTrip(request)
}

// TestUnreadablePlaceStopsNoFollowing: in the middle of a move, the new place cannot be read. The old place follows the nodes.
func TestUnreadablePlaceStopsNoFollowing(t *testing.T) {
	t.Parallel()
	for _, move := range stuckMoves() {
		for when, then := range knownOrNot() {
			t.Run(move.name+" "+when, func(t *testing.T) {
				t.Parallel()
				w, from := move.begin(t, false, false, 80, 443)
				var to string
				for _, lb := range w.balancers() {
					if lb.Address != from && w.answers("web", lb.Address) {
						to = lb.ID
					}
				}
				if to == "" {
					t.Fatal("no new place")
				}
				then(w)
				reads := w.transport.next
				w.transport.next = noReads{reads, to}
				w.drift("web")
				w.passes("web", 2)
				w.replaceNodes()
				w.passes("web", 4)
				w.transport.next = reads
				w.wantLeads("stuck", from, 2, "d", "e", "f")
			})
		}
	}
}

// TestPortsAreEditedInAStuckMove: in the middle of a stuck move, the node port and the target port change. What the status shows leads to
// the new ones.
func TestPortsAreEditedInAStuckMove(t *testing.T) {
	t.Parallel()
	for _, pods := range []bool{false, true} {
		for _, move := range stuckMoves() {
			t.Run(fmt.Sprint(move.name, " pods ", pods), func(t *testing.T) {
				t.Parallel()
				w, from := move.begin(t, pods, false, 80, 443)
				w.change("web", func(svc *corev1.Service) {
					svc.Spec.Ports[0].NodePort = 31999
					svc.Spec.Ports[0].TargetPort.IntVal = 9999
				})
				if pods {
					w.podsOf(w.get("web"), "a", "b", "c")
				}
				w.passes("web", 4)
				if w.address("web") != from {
					t.Fatal("moved")
				}
				for _, lb := range w.balancers() {
					listeners, err := w.api.DescribeListeners(t.Context(), lb.ID)
					testkit.Check(t, err)
					for _, l := range listeners[lb.ID] {
						owner, _, _ := mark.Parse(l.Description)
						if lb.Address != from || owner.Name != "web" || l.Port != 80 {
							continue
						}
						group, err := w.api.DescribeVServerGroup(t.Context(), l.VServerGroupID)
						testkit.Check(t, err)
						for _, server := range group.Backends {
							if server.Port != 31999 && server.Port != 9999 {
								t.Errorf("%s leads to port %d", l.ListenerKey, server.Port)
							}
						}
					}
				}
			})
		}
	}
}

// TestStuckMoveReadsTheOldPlaceOnce: each pass over a Service whose move is stuck reads the old place once.
func TestStuckMoveReadsTheOldPlaceOnce(t *testing.T) {
	t.Parallel()
	for _, move := range stuckMoves() {
		t.Run(move.name, func(t *testing.T) {
			t.Parallel()
			w, _ := move.begin(t, false, false, 80, 443)
			w.calls()
			_ = w.pass("web")
			calls := w.calls()
			reads := 0
			for _, call := range calls {
				if call == "DescribeLoadBalancerAttribute" { // nobody doubts the new place
					reads++
				}
			}
			if reads != 1 {
				t.Errorf("a pass reads the old place %d times: %v", reads, calls)
			}
		})
	}
}

// TestUnreadablePlaceKeepsNoGatesShut: in the middle of a move, the new place cannot be read. The gate of a pod opens once the pod is a
// backend server at the old place, which the Service shows, and not before.
func TestUnreadablePlaceKeepsNoGatesShut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _ := gateWorld(t)
		w.putPod("p", true, webGate)
		w.putPod("q", false, webGate)
		w.mustPass("web")
		from := w.address("web")
		w.fault(map[string]any{"action": "CreateLoadBalancerTCPListener", "code": "OperationDenied.Test", "status": 400, "times": 1000})
		w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Group, "other") })
		w.isRefused("web", from)
		reads := w.transport.next
		for _, lb := range w.balancers() {
			if lb.Address != from {
				w.transport.next = noReads{reads, lb.ID}
			}
		}
		w.drift("web")
		_ = w.pass("web")
		w.clearFaults()
		w.fault(map[string]any{"action": "AddVServerGroupBackendServers", "code": "InternalError", "status": 500, "times": 1000})
		w.putPod("q", true)
		for range 3 {
			time.Sleep(backend.MaxGateWait)
			_ = w.pass("web")
		}
		if p, q := w.gateOfPod("p"), w.gateOfPod("q"); p != registered || q == registered {
			t.Errorf("the gates are %q and %q while the cloud refuses backend servers", p, q)
		}
		w.clearFaults()
		for range 3 {
			time.Sleep(backend.MaxGateWait)
			_ = w.pass("web")
		}
		if p, q := w.gateOfPod("p"), w.gateOfPod("q"); p != registered || q != registered {
			t.Errorf("the gates are %q and %q", p, q)
		}
		w.transport.next = reads
		w.wantLeads("unreadable", from, 1, "a", "b")
	})
}
