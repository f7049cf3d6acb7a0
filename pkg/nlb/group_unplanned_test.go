package nlb

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
)

// noReads fails every read of one NLB and of its listeners.
type noReads struct {
	next http.RoundTripper
	id   string
}

func (n noReads) RoundTrip(request *http.Request) (*http.Response, error) {
	var sent []byte
	if request.Body != nil {
		sent, _ = io.ReadAll(request.Body)
		request.Body = io.NopCloser(bytes.NewReader(sent))
	}
	call := request.URL.RawQuery + string(sent) + request.Header.Get("x-acs-action")
	if strings.Contains(call, n.id) && (strings.Contains(call, "GetLoadBalancerAttribute") || strings.Contains(call, "ListListeners")) {
		return nil, errors.New("no answer")
	}
	return n.next.RoundTrip(request)
}

// replaceNodes has nodes come in the place of all others.
func (w *world) replaceNodes() {
	w.t.Helper()
	w.addNodes("n3", "n4")
	w.deleteNode("n1")
	w.deleteNode("n2")
}

// wantLeads checks that the listeners of an NLB on some ports lead to the nodes that have replaced others.
func (w *world) wantLeads(name string, ports ...string) {
	w.t.Helper()
	id, _, _ := strings.Cut(name, ".")
	for _, port := range ports {
		leads := fmt.Sprintf("TCP:%s %s:30%03s=100 %s:30%03s=100", port, testkit.InstanceOf("n3"), port, testkit.InstanceOf("n4"), port)
		if got := w.listeners(id); !slices.Contains(got, leads) {
			w.t.Errorf("NLB %s has the listeners %v, want %s", id, got, leads)
		}
	}
}

func knownOrNot() map[string]func(*world) {
	return map[string]func(*world){"known": func(*world) {}, "after a restart": (*world).restart}
}

// TestUnreadablePlaceStopsNoFollowing: in the middle of a move, the new place cannot be read. The old place follows the nodes, and the
// Service goes on to move afterwards.
func TestUnreadablePlaceStopsNoFollowing(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	for when, then := range knownOrNot() {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				from := w.halfMoved()
				to := w.named(otherNLB)
				then(w)
				reads := w.transport.next
				w.transport.next = noReads{reads, to}
				testkit.Check(t, w.Invalidate(t.Context(), w.get("web"), "the test says so"))
				w.tries(2, "web")
				w.replaceNodes()
				w.tries(8, "web")
				if shown := w.hostname("web"); shown != from {
					t.Errorf("the status shows %s, want %s", shown, from)
				}
				w.wantLeads(from, "80", "443")
				w.calls()
				w.tries(2, "web")
				if made := writes(w.calls()); len(made) > 0 {
					t.Errorf("at rest, passes make the calls %v", made)
				}
				w.transport.next = reads
				w.account.ClearFaults()
				w.tries(12, "web")
				w.wantOwners(map[string][]string{otherNLB: {"tcp:443 web", "tcp:80 web", "tcp:81 shop"}})
				w.wantLeads(w.hostname("web"), "80", "443")
			})
		})
	}
}

// TestWithdrawnPlaceStopsNoFollowing: in the middle of a move to an existing NLB, somebody gives that to another Service or controller. The
// old place follows the nodes.
func TestWithdrawnPlaceStopsNoFollowing(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	for when, then := range knownOrNot() {
		for _, tag := range []string{mark.TagCluster, mark.TagOwner} {
			t.Run(when+" "+tag, func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, w *world) {
					w.groupWorld(grouped("shop", "edge", 1, testkit.TCP(81)), grouped("web", "edge", 2, testkit.TCP(80, 443)))
					from, target := w.hostname("web"), w.existing("target")
					w.account.Fault(`{"after":1,"times":0,"action":"CreateListener","code":"OperationDenied.Test","status":400}`)
					w.change("web", without(annotation.Group), with(annotation.LoadBalancerID, target), with(annotation.ForceOverrideListeners, "true"))
					w.tries(3, "web")
					testkit.Check(t,
						w.account.Client.TagNLB(t.Context(), alicloud.NLBTagLoadBalancer, []string{target}, []alicloud.Tag{{Key: tag, Value: "somebody"}}))
					then(w)
					testkit.Check(t, w.Invalidate(t.Context(), w.get("web"), "the test says so"))
					w.tries(3, "web")
					w.replaceNodes()
					w.tries(8, "web")
					if shown := w.hostname("web"); shown != from {
						t.Errorf("the status shows %s, want %s", shown, from)
					}
					w.wantLeads(from, "80", "443")
				})
			})
		}
	}
}
