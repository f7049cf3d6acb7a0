package monitoring

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/golden"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/plot"
)

// picture is the dashboard as the page about monitoring shows it.
const picture = root + "/docs/images/dashboard.svg"

// TestDashboardPictureIsFresh draws every panel of the dashboard with what its queries select from the recording, in place of a screenshot:
// no registry of packages has a Grafana with its user interface.
func TestDashboardPictureIsFresh(t *testing.T) {
	t.Parallel()
	store, took := recorded(t)
	engine := newEngine(t)
	board := plot.Board{Title: panels(t).Title, End: took.Seconds(), Step: interval.Seconds()}
	for _, panel := range panels(t).Panels {
		drawn := plot.Panel{
			Title: panel.Title, X: panel.GridPos.X, Y: panel.GridPos.Y, W: panel.GridPos.W, H: panel.GridPos.H,
			Unit: plot.Unit(panel.FieldConfig.Defaults.Unit), Stat: panel.Type == "stat",
		}
		for _, target := range panel.Targets {
			drawn.Lines = append(drawn.Lines, lines(t, engine, store, target.Expr, target.LegendFormat, took)...)
		}
		if len(drawn.Lines) == 0 {
			t.Errorf("the panel %s is empty", panel.Title)
		}
		board.Panels = append(board.Panels, drawn)
	}
	golden.Fresh(t, picture, board.SVG())
}

// inLegend is a label in the format of a legend.
var inLegend = regexp.MustCompile(`\{\{(\w+)\}\}`)

// lines returns what a query selects from the beginning of the recording to its end.
func lines(t *testing.T, engine *promql.Engine, store storage.Queryable, query, legend string, took time.Duration) []plot.Line {
	t.Helper()
	ranged, err := engine.NewRangeQuery(t.Context(), store, nil, query, start, start.Add(took), interval)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer ranged.Close()
	matrix, err := ranged.Exec(t.Context()).Matrix()
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	var found []plot.Line
	for _, series := range matrix {
		line := plot.Line{Name: named(legend, series.Metric)}
		for _, point := range series.Floats {
			if !math.IsNaN(point.F) { // the quantile of nothing is none
				line.Points = append(line.Points, plot.Point{X: time.Duration(point.T * int64(time.Millisecond)).Seconds(), Y: point.F})
			}
		}
		if len(line.Points) > 0 {
			found = append(found, line)
		}
	}
	slices.SortFunc(found, func(a, b plot.Line) int { return strings.Compare(a.Name, b.Name) })
	return found
}

func named(legend string, metric labels.Labels) string {
	return inLegend.ReplaceAllStringFunc(legend, func(label string) string { return metric.Get(strings.Trim(label, "{}")) })
}
