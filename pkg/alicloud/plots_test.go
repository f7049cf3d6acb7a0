package alicloud

import (
	"encoding/json"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/golden"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/plot"
)

// stormBegins is when in a minute of the cloud the storms of the plot begin, as those of pkg/slb do.
const stormBegins = 10 * time.Second

// measuredStorms are storms of pkg/slb in virtual time: how many writes with one action they took, and how many seconds, which differ a
// little from run to run. In their order: TestNodesAtOnce (join) and TestZoneDies (one process) alike, and TestFleetUnderPublishedLimits (a
// dead node removed, swapped, and a new one added). They log the figures, which nothing compares with these. Measured on 2026-11-26 with:
//
//	go test ./pkg/slb -run 'TestNodesAtOnce|TestZoneDies|TestFleetUnderPublishedLimits' -v
var measuredStorms = []plot.Point{{X: 120, Y: 51}, {X: 314, Y: 179}, {X: 686, Y: 431}, {X: 1000, Y: 651}}

// timeOfWrites is how long n writes with one action wait for the rate limit altogether.
func timeOfWrites(t *testing.T, n int) (took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + stormBegins)))
		l, began := newLimiter(publishedQuotas), time.Now()
		var calls sync.WaitGroup
		for range n {
			calls.Go(func() {
				if err := l.wait(t.Context(), sharedAction); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		took = time.Since(began)
	})
	return took
}

// TestPlotsAreFresh computes what the plot of docs/explanation/scale.md shows that is about the time of storms.
func TestPlotsAreFresh(t *testing.T) {
	t.Parallel()
	storms := plot.Storms{}
	for _, writes := range []int{100, 150, 200, 300, 500, 700, 1000, 1500, 2000} {
		storms.Limiter = append(storms.Limiter, plot.Point{X: forced(float64(writes)), Y: timeOfWrites(t, writes).Round(time.Second).Seconds()})
	}
	for _, measured := range measuredStorms {
		storms.Virtual = append(storms.Virtual, plot.Point{X: forced(measured.X), Y: measured.Y})
	}
	text, err := json.MarshalIndent(storms, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Fresh(t, "../../internal/plot/computed-storms.json", string(text)+"\n")
}

// forced is how many seconds 90 writes per minute take.
func forced(writes float64) float64 { return math.Round(writes * 60 / 90) }
