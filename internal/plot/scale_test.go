package plot_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/golden"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/plot"
)

// TestScaleChartsAreFresh draws the charts of docs/explanation/scale.md with what the bench has measured last.
func TestScaleChartsAreFresh(t *testing.T) {
	t.Parallel()
	images := filepath.Join("..", "..", "docs", "images")
	text, err := os.ReadFile(filepath.Join(images, plot.MeasuredFile))
	if err != nil {
		t.Fatal(err)
	}
	var measured map[string]plot.Measured
	if err = json.Unmarshal(text, &measured); err != nil {
		t.Fatal(err)
	}
	charts, _, err := plot.ScaleCharts(measured)
	if err != nil {
		t.Fatal(err)
	}
	for name, svg := range charts {
		golden.Fresh(t, filepath.Join(images, name), svg)
	}
}

// TestScaleCharts: what was measured is a point or a line, and what was not is named.
func TestScaleCharts(t *testing.T) {
	t.Parallel()
	bare, _, err := plot.ScaleCharts(nil)
	if err != nil {
		t.Fatal(err)
	}
	storm := plot.Measured{Forced: 500, Took: 1000}
	fleet := plot.Measured{Nodes: 5000, Joined: 20, Left: 50, Members: plot.Distribution([]int{30, 20, 40})}
	for _, c := range []struct {
		measured                map[string]plot.Measured
		lacking                 []string
		members, writes, storms int // lines that show measured values, and points
	}{
		{nil, []string{plot.ScenarioFleet, plot.ScenarioFew, plot.ScenarioNew, plot.ScenarioGroups, plot.ScenarioZone}, 0, 0, 0},
		{map[string]plot.Measured{plot.ScenarioFleet: fleet, plot.ScenarioNew: storm},
			[]string{plot.ScenarioFew, plot.ScenarioGroups, plot.ScenarioZone}, 1, 2, 1},
		{map[string]plot.Measured{plot.ScenarioFleet: {Nodes: 5000, Joined: 20, Left: 50}},
			[]string{plot.ScenarioFleet, plot.ScenarioFew, plot.ScenarioNew, plot.ScenarioGroups, plot.ScenarioZone}, 0, 2, 0},
	} {
		charts, lacking, err := plot.ScaleCharts(c.measured)
		if err != nil || !slices.Equal(lacking, c.lacking) {
			t.Errorf("%v: lacking %v, %v, want %v", c.measured, lacking, err, c.lacking)
		}
		if got := strings.Count(charts["scale-members.svg"], ">measured,"); got != c.members {
			t.Errorf("%v: %d measured lines of members, want %d", c.measured, got, c.members)
		}
		for name, want := range map[string]int{"scale-writes.svg": c.writes, "scale-storms.svg": c.storms} {
			// And the one of the legend.
			if got := strings.Count(charts[name], "<circle") - strings.Count(bare[name], "<circle"); got != want+min(want, 1) {
				t.Errorf("%v: %s has %d measured points, want %d", c.measured, name, got, want)
			}
		}
	}
}

func TestDistribution(t *testing.T) {
	t.Parallel()
	values := []int{}
	for i := range 101 {
		values = append(values, 100-i)
	}
	if got := plot.Distribution(values); len(got) != 21 || got[0] != 0 || got[1] != 5 || got[20] != 100 {
		t.Errorf("distribution of 0 to 100: %v", got)
	}
	if got := plot.Distribution(nil); len(got) != 0 {
		t.Errorf("distribution of nothing: %v", got)
	}
}
