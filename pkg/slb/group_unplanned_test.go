package slb

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// TestWithdrawnPlaceStopsNoFollowing: in the middle of a move to an existing CLB, somebody gives that to another Service or controller. The old place follows the nodes.
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
type noReads struct{ id string }

func (n noReads) RoundTrip(request *http.Request) (*http.Response, error) {
	q := request.URL.Query()
	if strings.HasPrefix(q.Get("Action"), "Describe") && strings.Contains(request.URL.RawQuery, n.id) {
		return nil, errors.New("no answer")
	}
	return http.DefaultTransport.RoundTrip(request)
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
				w.transport.next = noReads{to}
				w.drift("web")
				w.passes("web", 2)
				w.replaceNodes()
				w.passes("web", 4)
				w.transport.next = nil
				w.wantLeads("stuck", from, 2, "d", "e", "f")
			})
		}
	}
}

// TestPortsAreEditedInAStuckMove: in the middle of a stuck move, the node port and the target port change. What the status shows leads to the new ones.
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
