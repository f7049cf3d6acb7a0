package nlb

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// halfMoved moves the Service web from the group edge to the group other, where the cloud refuses one of its two ports, and returns the
// name that it shows.
func (w *world) halfMoved() string {
	w.t.Helper()
	w.groupWorld(grouped("shop", "other", 1, testkit.TCP(81)), grouped("web", "edge", 2, testkit.TCP(80, 443)))
	from := w.hostname("web")
	w.account.Fault(`{"after":1,"times":0,"action":"CreateListener","code":"OperationDenied.Test","status":400}`)
	w.change("web", with(annotation.Group, "other"))
	w.tries(3, "web")
	if w.hostname("web") != from || len(w.recordOf("web").Leaving) == 0 {
		w.t.Fatalf("the Service is not in the middle of its move: %+v", w.recordOf("web"))
	}
	return from
}

// tries makes passes over Services, which may fail.
func (w *world) tries(rounds int, names ...string) {
	w.t.Helper()
	for range rounds {
		for _, name := range names {
			w.fillServices()
			_ = w.try(name)
		}
		time.Sleep(10 * time.Second)
	}
}

// TestMoveMeetsATakenPort: in the middle of a move, somebody else takes a port at the new place. The Service goes back to the old one,
// which serves all ports and follows edits and nodes, and leaves nothing at the new one. It moves once the port is free.
func TestMoveMeetsATakenPort(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted %v", restarted), func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				from := w.halfMoved()
				w.account.ClearFaults()
				w.put(grouped("first", "other", 0, testkit.TCP(443)))
				if restarted {
					w.restart()
				}
				w.change("web", ports(tcpPort(8080), tcpPort(443)))
				w.tries(12, "first", "web")
				if shown := w.hostname("web"); shown != from {
					t.Errorf("the status shows %s, want %s", shown, from)
				}
				w.wantOwners(map[string][]string{edgeNLB: {"tcp:443 web", "tcp:8080 web"}, otherNLB: {"tcp:443 first", "tcp:81 shop"}})
				w.delete("first")
				w.tries(12, "web")
				w.wantOwners(map[string][]string{otherNLB: {"tcp:443 web", "tcp:8080 web", "tcp:81 shop"}})
				w.silent("web", "shop")
			})
		})
	}
}

// TestMoveIsTurnedBack: a Service that asks for its old group again, before it shows another place, is on the NLB of that as if it had
// never left, also if somebody there has the port that it asks for by now.
func TestMoveIsTurnedBack(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted %v", restarted), func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				from := w.halfMoved()
				w.account.ClearFaults()
				w.put(grouped("first", "edge", 0, testkit.TCP(81)))
				w.change("web", with(annotation.Group, "edge"), ports(tcpPort(81), tcpPort(443)))
				if restarted {
					w.restart()
				}
				w.tries(12, "first", "web")
				if shown := w.hostname("web"); shown != from {
					t.Errorf("the status shows %s, want %s", shown, from)
				}
				w.wantOwners(map[string][]string{edgeNLB: {"tcp:443 web", "tcp:81 first"}, otherNLB: {"tcp:81 shop"}})
			})
		})
	}
}

// TestStuckMoveFollowsTheNodes: while the cloud refuses a listener at the new place of a Service, the NLB that the Service still shows has
// the backend servers of the nodes by now: its listeners lead to the same server groups as those of the new NLB.
func TestStuckMoveFollowsTheNodes(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted %v", restarted), func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				from := w.halfMoved()
				if restarted {
					w.restart()
				}
				w.addNodes("n3", "n4")
				w.deleteNode("n1")
				w.deleteNode("n2")
				w.tries(6, "web")
				if shown := w.hostname("web"); shown != from {
					t.Fatalf("the status shows %s, want %s", shown, from)
				}
				id, _, _ := strings.Cut(from, ".")
				for _, port := range []string{"80", "443"} {
					leads := fmt.Sprintf("TCP:%s %s:30%03s=100 %s:30%03s=100", port, testkit.InstanceOf("n3"), port, testkit.InstanceOf("n4"), port)
					if got := w.listeners(id); !slices.Contains(got, leads) {
						t.Errorf("the old NLB has the listeners %v, want %s", got, leads)
					}
				}
			})
		})
	}
}
