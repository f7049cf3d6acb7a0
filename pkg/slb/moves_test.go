package slb

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/driver"
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
