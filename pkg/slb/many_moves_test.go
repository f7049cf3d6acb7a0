package slb

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// TestManyMoves: the author of one Service puts it into ever more groups, each before the grace of the last move is over. It has few CLBs at
// a time all the same, also where it is served at none of the new ones.
func TestManyMoves(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]bool{"served": false, "served at none": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.moveGrace = time.Hour
				w.restart()
				threeNodes(w)
				w.putAll(testService("web", 80))
				for i := range 12 {
					w.change("web", func(svc *corev1.Service) {
						annotate(svc, annotation.Group, fmt.Sprint("edge", i))
						if refused {
							annotate(svc, annotation.ProtocolPort, "https:80")
							annotate(svc, annotation.CertID, "missing")
						}
					})
					for range 5 {
						w.fillGroups()
						_, _ = w.Reconcile(t.Context(), w.get("web")) //nolint:errcheck // it may wait
						time.Sleep(time.Second)
					}
					if all := w.lbs(); len(all) > maxPlaces {
						t.Fatalf("%d CLBs after %d moves", len(all), i+1)
					}
				}
			})
		})
	}
}

// maxPlaces is how many CLBs a Service may have at a time.
const maxPlaces = 6
