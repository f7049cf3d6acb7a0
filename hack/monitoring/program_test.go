package monitoring

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/promqltest"
)

var (
	metricsFile = flag.String("metrics", "", "metrics of a running manager, as it serves them")
	wantAlerts  = flag.String("alerts", "", "comma-separated names of the alerts that fire if these metrics stay")
)

// TestMetricsOfAProgram takes metrics that a manager served, holds them for two hours, and evaluates the alerts. hack/chart runs it.
func TestMetricsOfAProgram(t *testing.T) {
	t.Parallel()
	if *metricsFile == "" {
		t.Skip("no -metrics")
	}
	var load strings.Builder
	load.WriteString("load 1m\n")
	for line := range strings.Lines(read(t, *metricsFile)) {
		// Other programs' series are not in the rules, and their help texts are no samples.
		if series, value, ok := cutLast(strings.TrimSpace(line)); ok && strings.HasPrefix(series, "alicloud_") {
			fmt.Fprintf(&load, "\t%s %sx120\n", series, value)
		}
	}
	store := promqltest.LoadedStorage(t, load.String())
	engine, want := newEngine(t), strings.Split(*wantAlerts, ",")
	rules := alerts(t)
	for _, name := range want {
		rule, ok := rules[name]
		if !ok {
			t.Fatalf("there is no alert %s", name)
		}
		for when := time.Duration(0); when <= time.Duration(rule.For); when += time.Minute {
			if len(evaluate(t, engine, store, rule.Expr, when)) == 0 {
				t.Errorf("%s does not fire after %s, on\n%s", name, when, load.String())
				break
			}
		}
	}
}

// cutLast splits a sample into its series and its value.
func cutLast(line string) (series, value string, ok bool) {
	i := strings.LastIndexByte(line, ' ')
	if i < 0 || strings.HasPrefix(line, "#") {
		return "", "", false
	}
	return line[:i], line[i+1:], true
}
