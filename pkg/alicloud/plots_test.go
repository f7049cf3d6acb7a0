package alicloud

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/golden"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/plot"
)

// stormBegins is when in a minute of the cloud the storms of the plot begin, as those of pkg/slb do.
const stormBegins = 10 * time.Second

// measuredStorms are storms of pkg/slb in virtual time: how many writes with one action they took, and how many seconds, which differ a little from run to run.
// In their order: TestNodesAtOnce (join), TestZoneDies, and TestFleetUnderPublishedLimits (a dead node removed, swapped, and a new one added). They log the
// figures. Measured on 2026-11-23 with:
//
//	go test ./pkg/slb -run 'TestNodesAtOnce|TestZoneDies|TestFleetUnderPublishedLimits' -v
var measuredStorms = []plot.Point{{X: 120, Y: 51}, {X: 160, Y: 90}, {X: 314, Y: 179}, {X: 686, Y: 431}, {X: 1000, Y: 651}}

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

// TestPlotsAreFresh draws the plot of docs/explanation/scale.md that shows how long storms take.
func TestPlotsAreFresh(t *testing.T) {
	t.Parallel()
	per := func(time func(writes int) float64) (points []plot.Point) {
		for _, writes := range []int{100, 150, 200, 300, 500, 700, 1000, 1500, 2000} {
			points = append(points, plot.Point{X: float64(writes), Y: time(writes)})
		}
		return points
	}
	golden.Fresh(t, "../../docs/images/scale-storms.svg", plot.Chart{
		Title: "Time of writes that are due at once, 10 s after the start of a minute", X: "writes with one action", Y: "seconds",
		XTicks: []float64{100, 200, 500, 1000, 2000}, YTicks: []float64{20, 50, 100, 200, 500, 1000, 2000},
		Lines: []plot.Line{
			{Name: "the manager", Points: per(func(n int) float64 { return timeOfWrites(t, n).Round(time.Second).Seconds() })},
			{Name: "measured storms", Loose: true, Points: measuredStorms},
			{Name: "90 writes per minute", Dashed: true, Points: per(func(n int) float64 { return float64(n) * 60 / 90 })},
			{Name: "least possible", Dashed: true, Points: per(func(n int) float64 { return float64((n-1)/90*60) - stormBegins.Seconds() })},
		},
	}.SVG())
}
