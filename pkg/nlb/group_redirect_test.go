package nlb

import (
	"fmt"
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// TestRedirectedMoveGoesBack: a Service that has begun to move into a group, and shows its old place, is to be in a group where its port is taken, also with another process,
// which may begin after any write. It keeps the place that it shows, and what was begun goes.
func TestRedirectedMoveGoesBack(t *testing.T) {
	t.Parallel()
	for died := range 6 { // 0: no process does
		t.Run(fmt.Sprintf("%d writes", died), func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				w.groupWorld(grouped("old", "third", 1, testkit.TCP(80)), grouped("web", "other", 2, testkit.TCP(80)))
				shown := w.hostname("web")
				w.change("web", with(annotation.Group, "edge"))
				if died > 0 {
					w.transport.diesAfter(died)
				}
				for pass := 0; pass < max(died, 1) && !w.transport.isDead(); pass++ {
					w.fillServices()
					_, _ = w.Reconcile(t.Context(), w.get("web"))
					time.Sleep(3 * settle)
				}
				if died > 0 {
					w.restart()
				}
				w.change("web", with(annotation.Group, "third"))
				w.tries(20, "web", "old")
				owners := w.ownersOf()
				if now := w.hostname("web"); now != shown || !w.answers("web", now) {
					t.Errorf("the status shows %s, want %s, which serves; %v", now, shown, owners)
				}
				if owners, begun := owners[edgeNLB]; begun {
					t.Errorf("the NLB where the move began stays: %v", owners)
				}
			})
		})
	}
}
