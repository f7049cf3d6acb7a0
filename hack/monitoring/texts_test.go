package monitoring

import (
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

// unexpanded is what is left in a text where a template fails.
var unexpanded = regexp.MustCompile(`<error|<no value>|\{\{`)

// TestAlertTexts evaluates the rules as Prometheus does, minute by minute: an alert is pending until its time is over, then it fires, and
// its texts say everything that they are to say. These are the texts that people on call read.
func TestAlertTexts(t *testing.T) {
	t.Parallel()
	engine := newEngine(t)
	for name, rule := range alerts(t) {
		scene := scenes[strings.TrimPrefix(name, "CloudControllerManager")]
		store := promqltest.LoadedStorage(t, "load 1m\n\t"+strings.ReplaceAll(scene.fires, "\n", "\n\t"))
		expr, err := parser.ParseExpr(rule.Expr)
		if err != nil {
			t.Fatal(err)
		}
		alerting := rules.NewAlertingRule(name, expr, time.Duration(rule.For), 0, labels.FromMap(rule.Labels), labels.FromMap(rule.Annotations),
			labels.EmptyLabels(), "", true, slog.Default())
		query := rules.EngineQueryFunc(engine, store)
		for when := time.Hour; when <= time.Hour+time.Duration(rule.For); when += time.Minute {
			if _, err = alerting.Eval(t.Context(), 0, start.Add(when), query, &url.URL{}, 0); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if want := when >= time.Hour+time.Duration(rule.For); (alerting.State() == rules.StateFiring) != want {
				t.Errorf("%s is %s after %s, for is %s", name, alerting.State(), when-time.Hour, rule.For)
			}
		}
		for _, alert := range alerting.ActiveAlerts() {
			alert.Annotations.Range(func(text labels.Label) {
				if unexpanded.MatchString(text.Value) {
					t.Errorf("%s: %s %q", name, text.Name, text.Value)
				}
			})
			t.Log(name + ": " + alert.Annotations.Get("description"))
		}
	}
}
