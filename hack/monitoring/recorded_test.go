package monitoring

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
)

const (
	// interval is the time between two scrapes of record.sh.
	interval = 15 * time.Second
	// held is how long the last samples stay after the recording, and perHold how many samples that is.
	held    = 2 * time.Hour
	perHold = int(held / interval)
)

// recorded returns what record.sh recorded of a real manager, with the labels that Prometheus adds, and how long that took. Then the last
// samples stay. Times in the metrics are counted from the beginning of the recording.
func recorded(t *testing.T) (store storage.Queryable, took time.Duration) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(read(t, "testdata/recorded.txt")), "\n")
	begin, err := strconv.ParseFloat(strings.TrimPrefix(lines[0], "# "), 64)
	if err != nil {
		t.Fatal(err)
	}
	var load strings.Builder
	fmt.Fprintf(&load, "load %s\n", interval)
	for _, line := range lines[1:] {
		series, samples := cutSeries(line)
		for i, sample := range samples {
			value, err := strconv.ParseFloat(sample, 64)
			switch {
			case sample == "_" && i > 0:
				samples[i] = "stale" // as Prometheus marks a series that a scrape no longer has
			case err == nil && strings.Contains(series, "_timestamp_seconds"):
				samples[i] = strconv.FormatFloat(value-begin, 'f', -1, 64)
			}
		}
		took = max(took, time.Duration(len(samples)-1)*interval)
		if last := samples[len(samples)-1]; last != "stale" {
			samples = append(samples, fmt.Sprintf("%sx%d", last, perHold))
		}
		fmt.Fprintf(&load, "\t%s %s\n", scraped(series), strings.Join(samples, " "))
	}
	return promqltest.LoadedStorage(t, load.String()), took
}

// cutSeries splits a line of the recording into a series and its samples.
func cutSeries(line string) (series string, samples []string) {
	end := strings.LastIndexByte(line, '}') + 1
	if end == 0 {
		end = strings.IndexByte(line, ' ')
	}
	return line[:end], strings.Fields(line[end:])
}

// scraped adds the labels of a target.
func scraped(series string) string {
	const target = `job="kube-system/cloud-controller-manager",pod="cloud-controller-manager-1"`
	if name, labels, ok := strings.Cut(series, "{"); ok {
		return name + "{" + target + "," + labels
	}
	return series + "{" + target + "}"
}

// TestEveryMetricIsServed: the recording has every metric of the reference page.
func TestEveryMetricIsServed(t *testing.T) {
	t.Parallel()
	recording := read(t, "testdata/recorded.txt")
	for series := range known(t) {
		if strings.HasPrefix(series, "alicloud_") && !strings.Contains(recording, "\n"+series+"{") &&
			!strings.Contains(recording, "\n"+series+" ") {
			t.Errorf("no %s was served: run record.sh", series)
		}
	}
}

// TestPanelsShowARealManager: every query of the dashboard selects something from what a real manager served.
func TestPanelsShowARealManager(t *testing.T) {
	t.Parallel()
	store, took := recorded(t)
	engine := newEngine(t)
	for _, panel := range panels(t).Panels {
		for _, target := range panel.Targets {
			if len(evaluate(t, engine, store, target.Expr, took)) == 0 {
				t.Errorf("panel %s: nothing is selected by %s", panel.Title, target.Expr)
			}
		}
	}
}

// TestAlertsOfARealManager: if what the manager served at the end of the recording stays, exactly the alerts about the troubles of
// record.sh fire.
func TestAlertsOfARealManager(t *testing.T) {
	t.Parallel()
	store, took := recorded(t)
	engine := newEngine(t)
	var fire []string
	for name, rule := range alerts(t) {
		fires := true
		for when := took + held - time.Duration(rule.For); fires && when <= took+held; when += time.Minute {
			fires = len(evaluate(t, engine, store, rule.Expr, when)) > 0
		}
		if fires {
			fire = append(fire, strings.TrimPrefix(name, "CloudControllerManager"))
		}
	}
	slices.Sort(fire)
	// The route table is not read any more, because time stands still for the manager.
	want := []string{"NodesNotInitialized", "QuotaNearlyUsedUp", "RouteTableUnread", "RoutesMissing", "ServicesNeedTheirOwners",
		"ServicesNotSynced"}
	if !slices.Equal(fire, want) {
		t.Errorf("alerts %v, want %v", fire, want)
	}
}
