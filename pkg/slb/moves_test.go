package slb

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/problem"
)

// TestEveryMoveHasItsGrace: a Service that has moved before serves at the place that it leaves as long after a second move as after the
// first one, whether the first place is left entirely by then, or not yet.
func TestEveryMoveHasItsGrace(t *testing.T) {
	t.Parallel()
	for name, entirely := range map[string]bool{"the first place is left": true, "the first place is being left": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const grace = 30 * time.Second
				w := newWorld(t)
				w.moveGrace = grace
				w.restart()
				threeNodes(w)
				w.putAll(grouped("web", "first", 80), grouped("shop", "second", 81))
				move := func(to string) (from string) {
					from = w.address("web")
					w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Group, to) })
					w.passesFor("web", time.Millisecond)
					if w.address("web") == from {
						t.Fatalf("the Service did not move to group %s", to)
					}
					return from
				}
				move("second")
				w.passesFor("web", grace)
				for entirely {
					if record, _ := driver.RecordOn(w.get("web")); len(record.Leaving) == 0 {
						break
					}
					w.passesFor("web", time.Millisecond)
				}
				from := move("third")
				w.passesFor("web", grace-time.Second)
				if !w.answers("web", from) {
					t.Errorf("%s answers no more, less than %s after the status showed it", from, grace)
				}
				w.passesFor("web", 2*time.Second)
				if w.answers("web", from) {
					t.Errorf("%s answers still", from)
				}
			})
		})
	}
}

// TestMoveGrace: the annotation says how long the former place serves after a move, the condition says until when, and neither a new process
// nor an edit of the annotation begins the time anew.
func TestMoveGrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.moveGrace = 30 * time.Second
		w.restart()
		threeNodes(w)
		web := grouped("web", "first", 80)
		annotate(web, annotation.MoveGrace, "1h")
		w.putAll(web, grouped("shop", "second", 81))
		from := w.address("web")
		w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Group, "second") })
		w.passesFor("web", time.Millisecond)
		moved, to := time.Now(), w.address("web")
		if to == from {
			t.Fatal("the Service did not move")
		}
		isMoving := func() (moving bool, text string) {
			condition := meta.FindStatusCondition(w.get("web").Status.Conditions, service.ConditionMoving)
			return condition != nil && condition.Status == metav1.ConditionTrue, condition.Message
		}
		until := func(end time.Time) string {
			return "The Service has moved to " + to + " from " + from + ", which serves until " + end.UTC().Format(time.RFC3339)
		}
		if moving, text := isMoving(); !moving || text != until(moved.Add(time.Hour)) {
			t.Errorf("moving: %t, %q; want %q", moving, text, until(moved.Add(time.Hour)))
		}
		w.passesFor("web", 40*time.Minute)
		w.restart()
		w.passesFor("web", 10*time.Minute)
		if moving, _ := isMoving(); !moving || !w.answers("web", from) {
			t.Error("the former place is left after a restart")
		}
		w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.MoveGrace, "55m") })
		w.passesFor("web", time.Until(moved.Add(55*time.Minute-2*time.Second)))
		if moving, text := isMoving(); !moving || text != until(moved.Add(55*time.Minute)) || !w.answers("web", from) {
			t.Errorf("moving: %t, %q; want %q", moving, text, until(moved.Add(55*time.Minute)))
		}
		w.passesFor("web", 4*time.Second)
		if moving, text := isMoving(); moving || w.answers("web", from) {
			t.Errorf("the former place answers still: moving: %t, %q", moving, text)
		}
	})
}

// TestSecondMoveHasItsGraceAfterARestart: the condition of a move that has not ended says nothing about when the next one began.
func TestSecondMoveHasItsGraceAfterARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		threeNodes(w)
		web := grouped("web", "first", 80)
		annotate(web, annotation.MoveGrace, "1h")
		w.putAll(web)
		move := func(group string) (from string) {
			from = w.address("web")
			w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Group, group) })
			return from
		}
		move("second")
		w.passesFor("web", 50*time.Minute)
		second := move("third")
		w.restart()
		w.passesFor("web", 55*time.Minute)
		if w.address("web") == second || !w.answers("web", second) {
			t.Error("the second place is left before its grace is over")
		}
		w.passesFor("web", 10*time.Minute)
		if w.answers("web", second) {
			t.Error("the second place answers still")
		}
	})
}

// TestInvalidMoveGraceAfterARestart: the former place serves on while nobody knows for how long it is to.
func TestInvalidMoveGraceAfterARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		threeNodes(w)
		web := grouped("web", "first", 80)
		annotate(web, annotation.MoveGrace, "1h")
		w.putAll(web)
		from := w.address("web")
		w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.Group, "second") })
		w.passesFor("web", 5*time.Minute)
		w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.MoveGrace, "1d") })
		w.restart()
		w.passesFor("web", 30*time.Minute)
		if !w.answers("web", from) {
			t.Error("the former place is left although the grace is not known")
		}
		w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.MoveGrace, "10m") })
		w.passesFor("web", 5*time.Second)
		if w.answers("web", from) {
			t.Error("the former place answers after the grace")
		}
	})
}

// TestMoveByID: with the annotation, a Service follows loadbalancer-id to another CLB, and serves at one of them all the time.
func TestMoveByID(t *testing.T) {
	t.Parallel()
	names := func(to int) func(w *world, clbs []string) {
		return func(w *world, clbs []string) {
			w.change("web", func(svc *corev1.Service) {
				annotate(svc, annotation.LoadBalancerID, clbs[to])
				annotate(svc, annotation.ForceOverrideListeners, "true")
			})
		}
	}
	for name, test := range map[string]struct {
		named bool // the Service begins on the first of the existing CLBs
		move  func(w *world, clbs []string)
		want  map[string][]string
	}{
		"from its own to an existing one":     {false, names(1), map[string][]string{"mine": {}, "other": {"tcp:80 web"}}},
		"from an existing one to another one": {true, names(1), map[string][]string{"mine": {}, "other": {"tcp:80 web"}}},
		"from an existing one to its own": {true, func(w *world, _ []string) {
			w.change("web", func(svc *corev1.Service) {
				delete(svc.Annotations, key(annotation.LoadBalancerID))
				delete(svc.Annotations, key(annotation.ForceOverrideListeners))
			})
		}, map[string][]string{"mine": {}, "other": {}, "a0f5e8a1cweb": {"tcp:80 web"}}},
	} {
		for _, restarted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restarted %t", name, restarted), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				threeNodes(w)
				other := testkit.Must(w.api.CreateLoadBalancer(t.Context(), alicloud.LoadBalancer{
					Name: "other", AddressType: alicloud.AddressIntranet, VPCID: "vpc-emulator", VSwitchID: "vsw-a",
				}, "other"))(t)
				clbs := []string{w.makeCLB().ID, other.ID}
				web := testService("web", 80)
				if test.named {
					web = reusing("web", clbs[0], "true", 80)
				}
				annotate(web, annotation.Move, annotation.MoveAllow)
				w.putAll(web)
				from := w.address("web")
				test.move(w, clbs)
				for range 8 {
					if restarted {
						w.restart()
					}
					w.mustPass("web")
					if address := w.address("web"); address != from && !w.answers("web", from) {
						break
					} else if !w.answers("web", address) {
						t.Fatalf("the status shows %s, which does not serve", address)
					}
				}
				w.mustPass("web")
				wantOwners(t, w, test.want)
				if record, _ := driver.RecordOn(w.get("web")); len(record.Leaving) > 0 {
					t.Errorf("the Record still says that %v is to be left", record.Leaving)
				}
				if found := w.orphans(); len(found) > 0 {
					t.Errorf("orphans: %v", found)
				}
				w.silent("afterwards", "web")
			})
		}
	}
}

// TestMoveByIDRefused: while the Service may not use the CLB that its annotation names, it stays where it is, and says why.
func TestMoveByIDRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threeNodes(w)
	web := testService("web", 80)
	annotate(web, annotation.Move, annotation.MoveAllow)
	w.putAll(web)
	from := w.address("web")
	w.change("web", func(svc *corev1.Service) { annotate(svc, annotation.LoadBalancerID, "lb-missing") })
	w.mustPass("web")
	if events := strings.Join(w.newEvents(), "\n"); !strings.Contains(events, "Warning "+problem.ReasonMoveRefused) ||
		!strings.Contains(events, "lb-missing") {
		t.Errorf("events %s, want %s", events, problem.ReasonMoveRefused)
	}
	if w.address("web") != from || !w.answers("web", from) {
		t.Errorf("the Service shows %s, want %s, which serves", w.address("web"), from)
	}
	w.change("web", func(svc *corev1.Service) { delete(svc.Annotations, key(annotation.LoadBalancerID)) })
	w.mustPass("web")
	w.silent("afterwards", "web")
}

// passesFor makes passes over a Service for a time, as they become due.
func (w *world) passesFor(name string, d time.Duration) {
	w.t.Helper()
	testkit.Passes(d, func() (time.Duration, error) {
		w.fillGroups()
		wait, err := w.Reconcile(w.t.Context(), w.get(name))
		if err != nil {
			w.t.Fatal(err)
		}
		return wait, nil
	})
}
