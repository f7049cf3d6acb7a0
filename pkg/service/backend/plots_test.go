package backend

import (
	"maps"
	"slices"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/golden"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/plot"
)

// Services of the plots, and how many events of nodes their means are of.
const (
	plottedServices = 500
	plottedEvents   = 8
)

var plottedNodes = []int{20, 50, 100, 150, 200, 300, 500, 1000}

// fleetsOfPlots are fleets of each size that have come to rest.
func fleetsOfPlots(t *testing.T, subset Subset) []*fleet {
	t.Helper()
	var fleets []*fleet
	for _, nodes := range plottedNodes {
		f := newFleet(nodes, 3, plottedServices)
		f.most, f.quota, f.subset = 200, 50, subset
		f.settle(t)
		fleets = append(fleets, f)
	}
	return fleets
}

// writesPerEvent is how many Services change with a node that leaves or joins, on average.
func (f *fleet) writesPerEvent() float64 {
	writes := 0
	for i := range plottedEvents {
		if i%2 == 0 {
			f.leave(i * len(f.nodes) / plottedEvents)
		} else {
			f.join(len(f.nodes)+plottedEvents, f.nodes[i].Zone)
		}
		writes += len(f.pass(f.services))
	}
	return float64(writes) / plottedEvents
}

// TestPlotsAreFresh draws the plots of docs/explanation/scale.md with what the manager chooses under the published quotas.
func TestPlotsAreFresh(t *testing.T) {
	t.Parallel()
	auto, few := fleetsOfPlots(t, SubsetAuto), fleetsOfPlots(t, 25)
	per := func(y func(i int) float64) (points []plot.Point) {
		for i, nodes := range plottedNodes {
			points = append(points, plot.Point{X: float64(nodes), Y: y(i)})
		}
		return points
	}
	members := func(of func(loads []int) int) []plot.Point {
		return per(func(i int) float64 { return float64(of(slices.Collect(maps.Values(auto[i].loads())))) })
	}
	sizes := []float64{20, 50, 100, 200, 500, 1000}
	golden.Fresh(t, "../../../docs/images/scale-attachments.svg", plot.Chart{
		Title: "CLBs that a node is behind: 500 Services of one port", X: "nodes in the cluster", Y: "CLBs", XTicks: sizes, YTicks: []float64{10, 20, 50, 100, 200, 500},
		Lines: []plot.Line{
			{Name: "auto, the most", Points: members(slices.Max)},
			{Name: "auto, the least", Points: members(slices.Min)},
			{Name: "without subsets", Dashed: true, Points: per(func(int) float64 { return plottedServices })},
			{Name: "quota", Dashed: true, Points: per(func(int) float64 { return 50 })},
		},
	}.SVG())
	golden.Fresh(t, "../../../docs/images/scale-writes.svg", plot.Chart{
		Title: "Writes when a node joins or leaves: 500 Services of one port", X: "nodes in the cluster", Y: "writes", XTicks: sizes, YTicks: []float64{1, 5, 10, 50, 100, 500},
		Lines: []plot.Line{
			{Name: "auto", Points: per(func(i int) float64 { return auto[i].writesPerEvent() })},
			{Name: "25 nodes per Service", Points: per(func(i int) float64 { return few[i].writesPerEvent() })},
			{Name: "without subsets", Dashed: true, Points: per(func(int) float64 { return plottedServices })},
			{Name: "writes in a minute", Dashed: true, Points: per(func(int) float64 { return 90 })},
		},
	}.SVG())
}
