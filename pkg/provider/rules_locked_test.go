package provider

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// lockAll locks all load balancers for an unpaid bill, or unlocks them.
func lockAll(w *ruled, locked bool) {
	if w.side.name == "NLB" {
		for _, lb := range testkit.Must(w.person.ListNLBs(w.t.Context(), alicloud.NLBQuery{}))(w.t) {
			if locked {
				w.server.SetNLBLocks(lb.ID, "FinancialLocked")
			} else {
				w.server.SetNLBLocks(lb.ID)
			}
		}
		return
	}
	status := map[bool]string{true: "locked", false: "active"}[locked]
	for _, lb := range testkit.Must(w.person.DescribeLoadBalancers(w.t.Context(), alicloud.LoadBalancerQuery{}))(w.t) {
		w.server.Admin("PUT", "/_emulator/loadbalancers/"+lb.ID, fmt.Sprintf(`{"LoadBalancerStatus":%q}`, status))
	}
}

func (w *ruled) deleteIt() {
	deleted := metav1.Now()
	w.change(func(svc *corev1.Service) { svc.DeletionTimestamp = &deleted })
}

func (w *ruled) released() bool { return len(w.get().Finalizers) == 0 }

func (w *ruled) cheap(what string) {
	w.t.Helper()
	done := run{broken: map[rule]string{}}
	w.costs(&done)
	if len(done.broken) > 0 {
		w.t.Errorf("%s: %v", what, done.broken)
	}
}

// TestLeftWhileLocked: a Service is deleted, or moves to a load balancer of a group, while its own is locked. That costs few calls and
// events, and nothing is left once the bill is paid.
func TestLeftWhileLocked(t *testing.T) {
	t.Parallel()
	eachProduct(t, 0, func(t *testing.T, s *side) {
		for name, moves := range map[string]bool{"deleted": false, "moves": true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s.tell(t, func(w *ruled) {
					w.change(ranges()) // those of a group of NLB have none
					time.Sleep(2 * time.Minute)
					lockAll(w, true)
					if moves {
						w.change(with(annotation.Group, "shop"))
					} else {
						w.deleteIt()
					}
					time.Sleep(time.Hour)
					w.manager.since()
					w.events()
					time.Sleep(24 * time.Hour)
					w.cheap("a day of the lock")
					lockAll(w, false)
					if moves {
						w.must(healIn, "in sync", w.inSync)
						time.Sleep(healIn)
						w.deleteIt()
					}
					w.must(healIn, "released", w.released)
					if state := s.state(w); len(state) > 0 {
						t.Errorf("left: %v", state)
					}
				})
			})
		}
	})
}

// TestRevocationWhileQuotasAreUsedUp: neither a further source range nor a further node fits. What is revoked, and who is gone, leaves all
// the same, few calls are made, and both come once there is room.
func TestRevocationWhileQuotasAreUsedUp(t *testing.T) {
	t.Parallel()
	eachProduct(t, 0, func(t *testing.T, s *side) {
		s.tell(t, func(w *ruled) {
			w.change(ranges("192.0.2.0/24", "203.0.113.0/24"))
			time.Sleep(2 * time.Minute)
			w.manager.from(func(r request) (string, int) {
				switch r.action {
				case "AddAccessControlListEntry", "AuthorizeSecurityGroup", "AddVServerGroupBackendServers", "AddServersToServerGroup":
					return map[string]string{"AddA": "QuotaLimitExceeds.TotalAclEntry", "Auth": "AuthorizationLimitExceed"}[r.action[:4]] +
						map[string]string{"AddV": "QuotaExceeded.Any", "AddS": "QuotaExceeded.ServerGroup"}[r.action[:4]], 400
				}
				return "", 0
			})
			w.change(ranges("198.51.100.0/24", "203.0.113.0/24"))
			w.deleteNode("n1")
			w.addNode("n4")
			w.must(followIn, "the node leaves", func() bool { return s.served(w).nowhere("i-n1") })
			w.must(openIn, "the range is revoked", func() bool { return !strings.Contains(strings.Join(s.state(w), " "), "192.0.2.0") })
			w.manager.since()
			w.events()
			time.Sleep(24 * time.Hour)
			w.cheap("a day of used-up quotas")
			w.manager.from(nil)
			w.must(healIn, "in sync", w.inSync)
			w.must(healIn, "n4", func() bool { return s.served(w).everywhere("i-n2", "i-n3", "i-n4") })
			if !strings.Contains(strings.Join(s.state(w), " "), "198.51.100.0") {
				t.Error("the new range is not there")
			}
		})
	})
}
