package nlb

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// idMove is a change of the annotation loadbalancer-id after which the Service web is on another NLB.
type idMove struct {
	name string
	// prepare has the Service where it is before, and act changes it. back takes that back.
	prepare, act, back func(*world)
	// owners is who has which listener in the end.
	owners map[string][]string
}

// onExisting changes a Service to use an existing NLB by its name.
func (w *world) onExisting(name string) func(*corev1.Service) {
	id := w.named(name)
	return func(svc *corev1.Service) {
		without(annotation.Group)(svc)
		with(annotation.LoadBalancerID, id)(svc)
		with(annotation.ForceOverrideListeners, "true")(svc)
	}
}

// onOwn changes a Service to use no existing NLB.
func onOwn(svc *corev1.Service) {
	without(annotation.LoadBalancerID)(svc)
	without(annotation.ForceOverrideListeners)(svc)
	without(annotation.Group)(svc)
}

// twoExisting are two NLBs that somebody made, and listeners the Service web has on them and elsewhere.
func twoExisting(first, second []string, more map[string][]string) map[string][]string {
	owners := map[string][]string{"first": first, "second": second}
	for name, listeners := range more {
		owners[name] = listeners
	}
	return owners
}

// idMoves are all such changes. The Service shop is in a group, on its own or together with web.
func idMoves() []idMove {
	web, none, shop := []string{"tcp:80 web"}, []string{}, map[string][]string{edgeNLB: {"tcp:81 shop"}}
	begin := func(change func(*world) func(*corev1.Service)) func(*world) {
		return func(w *world) {
			w.existing("first")
			w.existing("second")
			w.groupWorld(grouped("shop", "edge", 2, testkube.TCP(81)),
				newService("web", testkube.TCP(80), born(1), with(annotation.AdditionalTags, "a=1"), change(w)))
		}
	}
	own := func(*world) func(*corev1.Service) { return onOwn }
	existing := func(name string) func(*world) func(*corev1.Service) {
		return func(w *world) func(*corev1.Service) { return w.onExisting(name) }
	}
	inGroup := func(*world) func(*corev1.Service) { return with(annotation.Group, "edge") }
	to := func(change func(*world) func(*corev1.Service)) func(*world) {
		return func(w *world) { w.change("web", onOwn, change(w)) }
	}
	return []idMove{
		{"from its own to an existing one", begin(own), to(existing("first")), to(own), twoExisting(web, none, shop)},
		{"to another existing one", begin(existing("first")), to(existing("second")), to(existing("first")), twoExisting(none, web, shop)},
		{"from an existing one to its own", begin(existing("first")), to(own), to(existing("first")),
			twoExisting(none, none, map[string][]string{edgeNLB: shop[edgeNLB], ownNLB: web})},
		{"from a group to an existing one", begin(inGroup), to(existing("first")), to(inGroup), twoExisting(web, none, shop)},
		{"to an existing one after its group", func(w *world) {
			begin(inGroup)(w)
			w.change("web", onOwn)
			w.together("web", "shop")
		}, to(existing("first")), to(own), twoExisting(web, none, shop)},
		{"from an existing one to a group", begin(existing("first")), to(inGroup), to(existing("first")),
			twoExisting(none, none, map[string][]string{edgeNLB: {"tcp:80 web", "tcp:81 shop"}})},
	}
}

// reached makes passes over the Services web and shop until the one has moved and left all that it had, and checks after each that what web
// shows serves it. A process that is killed is followed by another one, and with restarts each pass is that of another process.
func (w *world) reached(rounds int, restarts bool) {
	w.t.Helper()
	for range rounds {
		for _, name := range []string{"web", "shop"} {
			w.steps(1, 0, name)
			if restarts || w.transport.isDead() {
				w.restart()
			}
			if shown := w.hostname("web"); !w.answers("web", shown) {
				w.t.Fatalf("after a pass over %s, web shows %q, which does not serve it; the listeners: %v; its Record: %+v; events:\n%s",
					name, shown, w.ownersOf(), w.recordOf("web"), strings.Join(w.newEvents(), "\n"))
			}
		}
		w.later(5 * time.Second)
	}
}

// hasMoved checks that the Service is where it is to be, and that nothing of it is elsewhere.
func (w *world) hasMoved(owners map[string][]string) {
	w.t.Helper()
	w.wantOwners(owners)
	for _, name := range []string{"first", "second"} {
		var want []string
		if svc := w.get("web"); len(owners[name]) > 0 && svc.Annotations[annotation.AdditionalTags.Key()] != "" {
			want = []string{"a"}
		}
		if got := w.tagKeys(w.named(name)); !slices.Equal(got, want) {
			w.t.Errorf("tags of the %s existing NLB: %v, want %v", name, got, want)
		}
	}
	if record := w.recordOf("web"); len(record.Leaving)+len(record.Left) > 0 {
		w.t.Errorf("the Record still says that something is to be left: %+v", record)
	}
	if groups := w.groups("web"); len(groups) != 1 {
		w.t.Errorf("%d server groups for one port", len(groups))
	}
	if orphans := w.orphans(w.census()); len(orphans) > 0 {
		w.t.Errorf("orphans: %v", orphans)
	}
	w.silent("web", "shop")
}

// maxWritesOfMove is more than a move takes.
const maxWritesOfMove = 8

// TestMoveByIDInterrupted: a Service moves because of its annotation loadbalancer-id, and the process dies after any of its writes, or
// after each pass. What its status shows serves it all the time, and nothing stays behind.
func TestMoveByIDInterrupted(t *testing.T) {
	t.Parallel()
	for row, move := range idMoves() {
		for _, died := range testkit.Sample(row, maxWritesOfMove) {
			for _, restarts := range []bool{false, true} {
				if died > 0 && restarts {
					continue // it is another process after each pass anyway
				}
				t.Run(fmt.Sprintf("%s/%d writes, restarts %v", move.name, died, restarts), func(t *testing.T) {
					t.Parallel()
					inWorld(t, func(_ *testing.T, w *world) {
						move.prepare(w)
						move.act(w)
						if died > 0 {
							w.transport.diesAfter(died)
						}
						w.reached(12, restarts)
						w.reached(12, false)
						w.hasMoved(move.owners)
					})
				})
			}
		}
	}
}

// TestMoveByIDTakenBack: the annotation is as it was before again in the middle of a move, in the same process or in another one. The
// Service is served all the time, and has nothing at the other NLB in the end.
func TestMoveByIDTakenBack(t *testing.T) {
	t.Parallel()
	allRounds := []int{1, 2, 4, 6, 8, 20}
	for row, move := range idMoves() {
		for _, i := range testkit.Sample(row, len(allRounds)) {
			rounds := allRounds[i]
			for _, restarted := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d rounds, restarted %v", move.name, rounds, restarted), func(t *testing.T) {
					t.Parallel()
					inWorld(t, func(_ *testing.T, w *world) {
						move.prepare(w)
						before := w.ownersOf()
						move.act(w)
						w.reached(rounds, false)
						if restarted {
							w.restart()
						}
						move.back(w)
						w.reached(24, false)
						w.hasMoved(before)
					})
				})
			}
		}
	}
}

// TestGraceOfMovesByID: clients have 30 seconds to follow the new name, wherever the Service moves, or the time of the annotation, also if
// another process begins meanwhile.
func TestGraceOfMovesByID(t *testing.T) {
	t.Parallel()
	for _, move := range idMoves() {
		for _, restarted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restarted %v", move.name, restarted), func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, w *world) {
					grace := 30 * time.Second
					move.prepare(w)
					if restarted {
						grace = 75 * time.Second
						w.change("web", with(annotation.MoveGrace, grace.String()))
					}
					before := w.hostname("web")
					move.act(w)
					for range 60 {
						if w.steps(1, time.Second, "web", "shop"); w.hostname("web") != before {
							break
						}
					}
					w.later(grace / 2)
					if restarted {
						w.restart()
					}
					for since := time.Now().Add(-grace / 2); time.Since(since) < grace; w.steps(1, time.Second, "web", "shop") {
						if !w.answers("web", before) {
							t.Fatalf("the old place does not serve the Service any more %s after its status shows the new one", time.Since(since))
						}
					}
				})
			})
		}
	}
}

// TestMoveByIDWithoutRecord: a process died in the middle of a move, and somebody has removed the Record that says what the Service leaves.
func TestMoveByIDWithoutRecord(t *testing.T) {
	t.Parallel()
	for _, move := range idMoves()[:3] {
		t.Run(move.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(_ *testing.T, w *world) {
				move.prepare(w)
				w.change("web", without(annotation.AdditionalTags)) // nobody knows any more who has set tags
				w.converge("web")
				label := w.get("web").Labels[driver.LabelLoadBalancerID]
				move.act(w)
				for range 60 {
					if w.steps(1, 0, "web"); w.places("web") == 2 {
						break
					}
					w.later(time.Second)
				}
				w.restart()
				w.change("web", func(svc *corev1.Service) {
					svc.Labels[driver.LabelLoadBalancerID] = label
					meta.RemoveStatusCondition(&svc.Status.Conditions, driver.ConditionWritten)
				})
				w.reached(24, false)
				w.hasMoved(move.owners)
			})
		})
	}
}

// places is on how many NLBs a Service has listeners.
func (w *world) places(name string) (places int) {
	w.t.Helper()
	for _, owners := range w.ownersOf() {
		if slices.ContainsFunc(owners, func(owner string) bool { return strings.HasSuffix(owner, " "+name) }) {
			places++
		}
	}
	return places
}

// TestExistingNLBGoneInTheMove: the existing NLB to which a Service moves is deleted before the Service has left the one that it shows. It
// stays there, follows its nodes, and moves once the annotation names another NLB.
func TestExistingNLBGoneInTheMove(t *testing.T) {
	t.Parallel()
	for _, move := range slices.Concat(idMoves()[:2], idMoves()[3:5]) {
		for _, restarted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restarted %v", move.name, restarted), func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, w *world) {
					move.prepare(w)
					before := w.hostname("web")
					w.account.Fault(`{"times":0,"action":"CreateListener","code":"OperationDenied.Test","status":400}`)
					move.act(w)
					w.reached(2, false)
					target := w.get("web").Annotations[annotation.LoadBalancerID.Key()]
					w.account.ClearFaults()
					w.deleteByHand(target)
					if restarted {
						w.restart()
					}
					testkit.Check(t, w.Invalidate(t.Context(), w.get("web"), "drift"))
					w.reached(6, false)
					w.addNodes("n9")
					w.reached(6, false)
					if servers := w.serversOf("web"); !slices.Contains(servers, "i-n9:30080=100") {
						t.Errorf("backend servers %v after a node joined", servers)
					}
					if now := w.hostname("web"); now != before {
						t.Errorf("the status shows %s, want %s", now, before)
					}
					if record := w.recordOf("web"); len(record.Leaving) > 0 {
						t.Errorf("the Record still says that %v is to be left", record.Leaving)
					}
					w.existing("third")
					w.change("web", w.onExisting("third"))
					w.reached(24, false)
					if owners := w.ownersOf(); !slices.Equal(owners["third"], []string{"tcp:80 web"}) || w.places("web") != 1 {
						t.Errorf("listeners %v after the annotation was corrected", owners)
					}
				})
			})
		}
	}
}

// TestMoveToListenersOfOthers: a Service that does not manage the listeners of the existing NLB that it moves to keeps what serves it,
// because nobody can tell whether those listeners do. It leaves that once it manages them.
func TestMoveToListenersOfOthers(t *testing.T) {
	t.Parallel()
	for _, move := range idMoves()[:2] {
		t.Run(move.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				move.prepare(w)
				before := w.ownersOf()
				move.act(w)
				w.change("web", without(annotation.ForceOverrideListeners))
				w.steps(24, 5*time.Second, "web", "shop")
				w.wantOwners(before)
				mustReport(t, w.newEvents(), "what the Service used before is kept")
				if got := w.synced("web").Reason; got != problem.ReasonListenersLeftAlone {
					t.Errorf("condition %s", got)
				}
				w.change("web", with(annotation.ForceOverrideListeners, "true"))
				w.steps(24, 5*time.Second, "web", "shop")
				w.hasMoved(move.owners)
			})
		})
	}
}

// TestMoveByIDPreserves: with the annotation preserve-lb-on-delete, a Service leaves the NLB of its own to its author, with the listeners,
// also for processes that begin later. It never leaves listeners on an existing NLB: their ports would be taken.
func TestMoveByIDPreserves(t *testing.T) {
	t.Parallel()
	for i, move := range idMoves()[:2] {
		t.Run(move.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				move.prepare(w)
				w.change("web", with(annotation.PreserveOnDelete, "true"))
				w.converge("web")
				move.act(w)
				w.reached(20, false)
				w.silent("web", "shop")
				if i == 0 {
					move.owners[ownNLB] = []string{"tcp:80 web"}
					if lb := w.only(ownNLB); !hasTag(&lb, mark.TagPreserved) || hasTag(&lb, mark.TagOwner) {
						t.Errorf("tags of the NLB that it has left: %v", lb.Tags)
					}
				}
				w.wantOwners(move.owners)
				if record := w.recordOf("web"); len(record.Leaving) > 0 {
					t.Errorf("the Record still says that %v is to be left", record.Leaving)
				}
			})
		})
	}
}
