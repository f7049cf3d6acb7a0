package backend

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/golden"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/plot"
)

// The fleet of the plot of members has the proportions of [plot.FleetServices] Services on 5,000 nodes, and needs less time.
const plottedNodes, plottedServices, plottedFew = 1250, 500, 25

// TestPlotsAreFresh computes what the plots of docs/explanation/scale.md show that is about subsets under the published quotas.
func TestPlotsAreFresh(t *testing.T) {
	t.Parallel()
	f := newFleet(plottedNodes, 3, plottedServices)
	f.most, f.quota, f.subset = backendsPerCLB, clbsPerInstance, SubsetAuto
	f.settle(t)
	computed := plot.Subsets{Members: plot.Distribution(slices.Collect(maps.Values(f.loads())))}
	for _, nodes := range []int{500, 1000, 2000, 5000, 10_000} {
		low, high := sharesOf(nodes, plot.FleetServices, backendsPerCLB, clbsPerInstance)
		per := func(backends int) float64 {
			return math.Round(float64(10*backends*plot.FleetServices)/float64(nodes)) / 10
		}
		computed.Nodes = append(computed.Nodes, float64(nodes))
		computed.Least, computed.Most = append(computed.Least, per(low)), append(computed.Most, per(high))
		computed.Few = append(computed.Few, min(per(plottedFew), clbsPerInstance))
	}
	text, err := json.MarshalIndent(computed, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Fresh(t, "../../../internal/plot/computed-subsets.json", string(text)+"\n")
}
