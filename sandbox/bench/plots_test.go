package bench

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/plot"
)

// TestPlots: the charts show what this run and earlier ones have measured, the notes say which is which, and what nobody has measured.
func TestPlots(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "plots")
	zone := plot.Measured{Date: "2026-01-01", Members: []int{30, 31}}
	zone.Storm(1333*time.Second, 1414*time.Second)
	again := plot.Measured{Date: "2026-01-02"}
	again.Storm(500*time.Second, 449*time.Second)
	var circles []int
	for _, c := range []struct {
		measured map[string]plot.Measured
		notes    []string
		without  string
	}{
		{map[string]plot.Measured{plot.ScenarioZone: zone},
			[]string{"leave out what the scenario scale-new has not", "leave out what the scenario scale-fleet has not"}, "scale-zone"},
		{map[string]plot.Measured{plot.ScenarioNew: again},
			[]string{"show what the scenario scale-zone measured on 2026-01-01", "leave out what the scenario scale-fleet has not"}, "scale-new"},
	} {
		var notes bytes.Buffer
		if err := WritePlots(dir, c.measured, &notes); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.notes {
			if !strings.Contains(notes.String(), want) {
				t.Errorf("the notes lack %q:\n%s", want, notes.String())
			}
		}
		if strings.Contains(notes.String(), c.without) {
			t.Errorf("the notes name %s:\n%s", c.without, notes.String())
		}
		storms, err := os.ReadFile(filepath.Join(dir, "scale-storms.svg"))
		if err != nil {
			t.Fatal(err)
		}
		circles = append(circles, bytes.Count(storms, []byte("<circle")))
	}
	if circles[1] != circles[0]+1 {
		t.Errorf("points in the chart of storms: %v, want one more after the second run", circles)
	}
	if err := os.WriteFile(filepath.Join(dir, plot.MeasuredFile), []byte("much"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := WritePlots(dir, nil, &bytes.Buffer{}); err == nil {
		t.Error("a file of earlier runs that cannot be read is accepted")
	}
}

// TestMeasuredIsInTheDocument: what charts show goes from the process of a scenario to the one that draws them.
func TestMeasuredIsInTheDocument(t *testing.T) {
	t.Parallel()
	var m plot.Measured
	m.Events(5000, 100.0/3, 40)
	var out bytes.Buffer
	if err := (Report{Measured: map[string]plot.Measured{plot.ScenarioFleet: m}}).WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	var report Report
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]plot.Measured{plot.ScenarioFleet: {Nodes: 5000, Joined: 33.3, Left: 40}}, report.Measured); diff != "" {
		t.Errorf("measured (-want +got):\n%s", diff)
	}
}

func TestLoads(t *testing.T) {
	t.Parallel()
	if got := slices.Sorted(slices.Values(loads(map[string][]string{"g": {"a", "b"}, "h": {"a"}}, 4))); !slices.Equal(got, []int{0, 0, 1, 2}) {
		t.Errorf("loads = %v", got)
	}
}
