package bench

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFiguresAreJudgedByTheirBound(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		figure Figure
		want   bool
	}{
		{"at most, reached", atMost("o", 5, "calls", 5), true},
		{"at most, missed by little", atMost("o", 5.0004, "s", 5), false},
		{"at most zero", atMost("o", 1, "calls", 0), false},
		{"no goal", withoutGoal("o", 1e9, "s"), true},
	} {
		if tt.figure.OK != tt.want {
			t.Errorf("%s: ok is %t, want %t", tt.name, tt.figure.OK, tt.want)
		}
	}
}

func TestWriteJSON(t *testing.T) {
	t.Parallel()
	report := Report{Figures: []Figure{atMost("create", 5, "calls", 0), withoutGoal("median", 1.23456, "s")}}
	var out bytes.Buffer
	if err := report.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	want := `{
  "figures": [
    {
      "operation": "create",
      "value": 5,
      "unit": "calls",
      "goal": 0,
      "bound": "at most",
      "ok": false
    },
    {
      "operation": "median",
      "value": 1.235,
      "unit": "s",
      "ok": true
    }
  ]
}
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
	var read Report
	if err := json.Unmarshal(out.Bytes(), &read); err != nil {
		t.Fatal(err)
	}
	if got := read.Figures[0]; !cmp.Equal(got, report.Figures[0]) {
		t.Errorf("read back as %+v", got)
	}
}

func TestWriteJSONWithoutFigures(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := (Report{}).WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(strings.Fields(out.String()), ""); got != `{"figures":[]}` {
		t.Errorf("document %s", got)
	}
}

func TestWriteTable(t *testing.T) {
	t.Parallel()
	report := Report{Figures: []Figure{
		atMost("create", 6, "calls", 5), atMost("read", 3456.78, "calls", 4000), withoutGoal("median", 0.123, "s"),
	}}
	var out bytes.Buffer
	if err := report.WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Fields(line))
	}
	want := [][]string{
		{"OPERATION", "VALUE", "UNIT", "GOAL", "MET"},
		{"create", "6", "calls", "at", "most", "5", "NO"},
		{"read", "3457", "calls", "at", "most", "4000", "yes"},
		{"median", "0.12", "s"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}
