package monitoring

import (
	"encoding/json"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

const (
	root  = "../.."
	chart = root + "/charts/cloud-controller-manager/files/"
)

// others are metrics that the manager exports and that are not on the reference page, with their labels.
var others = map[string][]string{
	"leader_election_master_status": {"name"},
	"workqueue_depth":               {"name"},
	"process_resident_memory_bytes": {"job", "pod"},
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// metricRow is a row of the reference page: name, type and labels.
var metricRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (\\w+) \\| ([^|]*) \\|")

// known returns the labels of all metrics by the names of their series.
func known(t *testing.T) map[string][]string {
	t.Helper()
	series := maps.Clone(others)
	for _, row := range metricRow.FindAllStringSubmatch(read(t, root+"/docs/reference/metrics.md"), -1) {
		names := strings.Split(strings.NewReplacer("`", "", " ", "").Replace(row[3]), ",")
		if row[2] == "histogram" {
			series[row[1]+"_bucket"] = append([]string{"le"}, names...)
			series[row[1]+"_count"], series[row[1]+"_sum"] = names, names
			continue
		}
		series[row[1]] = names
	}
	if len(series) < 30 {
		t.Fatalf("%d series: where are the others?", len(series))
	}
	return series
}

func alerts(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.Parse([]byte(read(t, chart+"alerts.yaml")), false)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	rules := map[string]rulefmt.Rule{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			rules[rule.Alert] = rule
		}
	}
	return rules
}

type dashboard struct {
	Panels []struct {
		ID      int
		Title   string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ Expr, LegendFormat string }
	}
}

func panels(t *testing.T) dashboard {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal([]byte(read(t, chart+"dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// queries returns the queries of alerts and panels by what they are of.
func queries(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for name, rule := range alerts(t) {
		all["alert "+name] = rule.Expr
	}
	for _, panel := range panels(t).Panels {
		for i, target := range panel.Targets {
			all["panel "+panel.Title+" "+string(rune('A'+i))] = target.Expr
		}
	}
	return all
}

// TestAlertsHaveRunbooks: each alert has a severity, a summary, a description and a page; each page is that of an alert.
func TestAlertsHaveRunbooks(t *testing.T) {
	t.Parallel()
	pages := map[string]bool{}
	for name, rule := range alerts(t) {
		if !slices.Contains([]string{"critical", "warning", "info"}, rule.Labels["severity"]) || rule.Annotations["summary"] == "" ||
			rule.Annotations["description"] == "" || rule.For == 0 {
			t.Errorf("%s: labels %v, annotations %v, for %s", name, rule.Labels, rule.Annotations, rule.For)
		}
		page := path.Base(rule.Annotations["runbook_url"])
		pages[page] = true
		text := read(t, root+"/docs/runbooks/"+page)
		for _, part := range []string{"# " + name + "\n", "\n## Meaning\n", "\n## First commands\n", "\n## Remedy\n", "\n## Silence\n"} {
			if !strings.Contains(text, part) {
				t.Errorf("docs/runbooks/%s lacks %q", page, part)
			}
		}
	}
	entries, err := os.ReadDir(root + "/docs/runbooks")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !pages[entry.Name()] {
			t.Errorf("docs/runbooks/%s is the page of no alert", entry.Name())
		}
	}
}

// TestQueriesUseWhatExists: every query selects series that the manager exports, by labels that they have.
func TestQueriesUseWhatExists(t *testing.T) {
	t.Parallel()
	series := known(t)
	for of, query := range queries(t) {
		expr, err := parser.ParseExpr(query)
		if err != nil {
			t.Errorf("%s: %v", of, err)
			continue
		}
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			selector, ok := node.(*parser.VectorSelector)
			if !ok {
				return nil
			}
			have, ok := series[selector.Name]
			if !ok {
				t.Errorf("%s: there is no series %s", of, selector.Name)
			}
			for _, matcher := range selector.LabelMatchers {
				if matcher.Name != labels.MetricName && !slices.Contains(have, matcher.Name) {
					t.Errorf("%s: %s has no label %s", of, selector.Name, matcher.Name)
				}
			}
			return nil
		})
	}
}

// TestPanelsHaveTheirPlaces: ids are unique, and no panel covers another.
func TestPanelsHaveTheirPlaces(t *testing.T) {
	t.Parallel()
	ids, places := map[int]bool{}, map[[2]int]string{}
	for _, panel := range panels(t).Panels {
		if ids[panel.ID] || len(panel.Targets) == 0 {
			t.Errorf("%s: id %d, %d queries", panel.Title, panel.ID, len(panel.Targets))
		}
		ids[panel.ID] = true
		for x := range panel.GridPos.W {
			for y := range panel.GridPos.H {
				at := [2]int{panel.GridPos.X + x, panel.GridPos.Y + y}
				if places[at] != "" || at[0] >= 24 {
					t.Fatalf("%s covers %s at %v", panel.Title, places[at], at)
				}
				places[at] = panel.Title
			}
		}
	}
}
