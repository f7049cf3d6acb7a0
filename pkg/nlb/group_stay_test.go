package nlb

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/nlb/model"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/groups"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// moveToNewNLB is a change of the Service web for which the cloud has to create an NLB.
type moveToNewNLB struct {
	name   string
	before func(*world) *corev1.Service
	change []func(*corev1.Service)
	// owners are the listeners while the creation is refused, after those once it is not.
	owners, after map[string][]string
}

func movesToNewNLBs() []moveToNewNLB {
	reusing := func(w *world) *corev1.Service {
		return newService("web", testkube.TCP(80), born(1), with(annotation.LoadBalancerID, w.existing("mine")),
			with(annotation.ForceOverrideListeners, "true"))
	}
	inEdge := func(*world) *corev1.Service { return grouped("web", "edge", 1, testkube.TCP(80)) }
	unnamed := []func(*corev1.Service){without(annotation.LoadBalancerID), without(annotation.ForceOverrideListeners)}
	shop, web := []string{"tcp:81 shop"}, []string{"tcp:80 web"}
	both := map[string][]string{edgeNLB: {"tcp:80 web", "tcp:81 shop"}}
	toOther := with(annotation.Group, "other")
	return []moveToNewNLB{
		{
			"into a group", func(*world) *corev1.Service { return newService("web", testkube.TCP(80), born(1)) }, []func(*corev1.Service){toOther},
			map[string][]string{edgeNLB: shop, ownNLB: web}, map[string][]string{edgeNLB: shop, otherNLB: web},
		},
		{"out of a group", inEdge, []func(*corev1.Service){without(annotation.Group)}, both, map[string][]string{edgeNLB: shop, ownNLB: web}},
		{"between groups", inEdge, []func(*corev1.Service){toOther}, both, map[string][]string{edgeNLB: shop, otherNLB: web}},
		{
			"from an existing NLB to a group", reusing, append(slices.Clone(unnamed), toOther),
			map[string][]string{edgeNLB: shop, "mine": web}, map[string][]string{edgeNLB: shop, "mine": {}, otherNLB: web},
		},
		{"from an existing NLB to its own", reusing, unnamed, map[string][]string{edgeNLB: shop, "mine": web},
			map[string][]string{edgeNLB: shop, "mine": {}, ownNLB: web}},
		{
			"to the next NLB of its group", inEdge, []func(*corev1.Service){with(annotation.GroupOverflow, "true"), testkube.TCP(81)},
			both, map[string][]string{edgeNLB: shop, edgeNLB + "+": {"tcp:80 web", "tcp:81 web"}},
		},
	}
}

// live makes the passes over a Service that are due within a time.
func (w *world) live(name string, d time.Duration) {
	w.t.Helper()
	for end := time.Now().Add(d); ; {
		w.fillServices()
		wait, err := w.Reconcile(w.t.Context(), w.get(name))
		if err != nil {
			w.t.Fatalf("pass over %s: %v", name, err)
		}
		if wait == 0 || time.Now().Add(wait).After(end) {
			time.Sleep(time.Until(end))
			return
		}
		time.Sleep(wait)
	}
}

// TestRefusedMoveStaysOnItsNLB: while the cloud refuses the NLB that a Service is to move to, the old place is kept up to date as before,
// one Warning says so, few calls are made, and the Service moves once the creation succeeds.
func TestRefusedMoveStaysOnItsNLB(t *testing.T) {
	t.Parallel()
	refusals := map[string]string{"quota": `"code":"QuotaExceeded.LoadBalancersNum","status":400`,
		"permission": `"code":"Forbidden.RAM","status":403`}
	for i, move := range movesToNewNLBs() {
		for j, why := range slices.Sorted(maps.Keys(refusals)) {
			if !testkit.Tried(i+j, 2) {
				continue
			}
			refusal := refusals[why]
			t.Run(move.name+" "+why, func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, w *world) {
					w.groupWorld(grouped("shop", "edge", 0, testkube.TCP(81)), move.before(w))
					before := w.hostname("web")
					w.account.Fault(fmt.Sprintf(`{"product":"nlb","action":"CreateLoadBalancer","times":0,%s}`, refusal))
					w.change("web", move.change...)
					w.live("web", 2*time.Second)
					w.staysOn(move, before)
					w.saysRefused(t, 1)

					w.calls()
					w.live("web", 32*time.Minute)
					creations := slices.DeleteFunc(w.calls(), func(call string) bool { return !strings.HasPrefix(call, "CreateLoadBalancer=") })
					if len(creations) == 0 || len(creations) > 6 {
						t.Errorf("32 minutes take %d creations", len(creations))
					}
					w.saysRefused(t, 0)
					w.staysOn(move, before)

					w.account.ClearFaults()
					w.live("web", groups.MovePause.Longest+4*time.Minute)
					w.together("web", "shop")
					w.wantOwners(move.after)
					if now := w.hostname("web"); now == before || !w.answers("web", now) {
						t.Errorf("the status shows %s, want the new name", now)
					}
					if condition := w.synced("web"); condition.Status != metav1.ConditionTrue {
						t.Errorf("condition %+v after the move", condition)
					}
					w.silent("web", "shop")
					w.leavesNothing("web", "shop")
				})
			})
		}
	}
}

// staysOn checks that nodes which join and leave reach the NLB on which the Service stays.
func (w *world) staysOn(move moveToNewNLB, hostname string) {
	w.t.Helper()
	w.wantOwners(move.owners)
	w.addNodes("n9")
	w.live("web", 20*time.Second)
	if servers := w.serversOf("web"); !slices.Contains(servers, "i-n9:30080=100") {
		w.t.Errorf("backend servers %v after a node joined", servers)
	}
	w.deleteNode("n9")
	w.live("web", 20*time.Second)
	if diff := cmp.Diff([]string{"i-n1:30080=100", "i-n2:30080=100"}, w.serversOf("web")); diff != "" {
		w.t.Errorf("backend servers as before (-want +got):\n%s", diff)
	}
	if now := w.hostname("web"); now != hostname || !w.answers("web", now) {
		w.t.Errorf("the status shows %s, want %s, which serves", now, hostname)
	}
}

// serversOf are the backend servers behind port 80 of a Service.
func (w *world) serversOf(name string) []string {
	w.t.Helper()
	var servers []string
	for _, group := range w.groups(name) {
		servers = append(servers, w.servers(group.ID)...)
	}
	return slices.DeleteFunc(servers, func(s string) bool { return !strings.Contains(s, ":30080=") })
}

// answers reports whether the NLB with the name has a running listener of the Service.
func (w *world) answers(name, hostname string) bool {
	w.t.Helper()
	for _, lb := range testkit.Must(w.account.Client.ListNLBs(w.t.Context(), alicloud.NLBQuery{}))(w.t) {
		if lb.DNSName != hostname {
			continue
		}
		listeners := testkit.Must(w.account.Client.ListNLBListeners(w.t.Context(), []string{lb.ID}))(w.t)
		return slices.ContainsFunc(listeners, func(l alicloud.NLBListener) bool {
			owner, _, _ := mark.ParseNLB(model.Text(l.Description))
			return owner.Name == name && l.Status == alicloud.NLBListenerRunning
		})
	}
	return false
}

func (w *world) synced(name string) metav1.Condition {
	w.t.Helper()
	return *meta.FindStatusCondition(w.get(name).Status.Conditions, service.ConditionSynced)
}

// saysRefused checks that so many new Warnings, and the condition, say why the Service web stays.
func (w *world) saysRefused(t *testing.T, events int) {
	t.Helper()
	condition := w.synced("web")
	if condition.Status != metav1.ConditionFalse {
		t.Errorf("condition %+v, want %s", condition, metav1.ConditionFalse)
	}
	said := w.newEvents()
	refused := slices.DeleteFunc(slices.Clone(said), func(event string) bool {
		return !strings.Contains(event, "Warning "+problem.ReasonMoveRefused)
	})
	if len(refused) != events || strings.Contains(strings.Join(said, "\n"), problem.ReasonSyncFailed) {
		t.Errorf("events %v, want %d of %s", said, events, problem.ReasonMoveRefused)
	}
}

// TestMoveServesAllTheTime: at no moment of a move does the status show an NLB that does not serve, and the old one serves for the grace
// after that.
func TestMoveServesAllTheTime(t *testing.T) {
	t.Parallel()
	for i, move := range movesToNewNLBs() {
		if strings.HasPrefix(move.name, "from an existing NLB to its own") {
			continue // it is left at once
		}
		for j, restarted := range []bool{false, true} {
			if !testkit.Tried(i+j, 2) {
				continue
			}
			t.Run(fmt.Sprint(move.name, restarted), func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, w *world) {
					w.groupWorld(grouped("shop", "edge", 0, testkube.TCP(81)), move.before(w))
					before := w.hostname("web")
					w.change("web", move.change...)
					if restarted {
						w.restart()
					}
					shownAt := time.Time{}
					for range 200 {
						w.live("web", time.Second)
						now := w.hostname("web")
						if !w.answers("web", now) {
							t.Fatalf("the status shows %s, which does not serve", now)
						}
						if now != before && shownAt.IsZero() {
							shownAt = time.Now()
						}
						if !w.answers("web", before) {
							break
						}
					}
					if grace := time.Since(shownAt); shownAt.IsZero() || grace < 25*time.Second {
						t.Errorf("the old place was left %s after the new one was shown", grace)
					}
					w.together("web", "shop")
					w.wantOwners(move.after)
					w.silent("web", "shop")
					w.leavesNothing("web", "shop")
				})
			})
		}
	}
}

// recordOf returns the Record of a Service.
func (w *world) recordOf(name string) driver.Record {
	record, _ := driver.RecordOn(w.get(name))
	return record
}

// deleteByHand deletes an NLB as somebody else does.
func (w *world) deleteByHand(id string) {
	w.t.Helper()
	testkit.Check(w.t, w.account.Client.ProtectNLB(w.t.Context(), id, alicloud.NLBProtection{Deletion: new(bool)}))
	testkit.Must(w.account.Client.DeleteNLB(w.t.Context(), id))(w.t)
	w.later(5 * time.Second)
}
