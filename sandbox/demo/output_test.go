package demo

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var failedReport = Report{Steps: []Result{
	{Name: "nodes join", OK: true, Seen: "3 nodes", Seconds: 1.23456, Reads: 1},
	{Name: "routes", Seen: strings.Repeat("long ", 40), Seconds: 2, Reads: 2, Writes: 3},
}}

func TestWriteJSON(t *testing.T) {
	t.Parallel()
	report := failedReport
	report.Steps = report.Steps[:1]
	var out bytes.Buffer
	if err := report.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	want := `{
  "ok": false,
  "steps": [
    {
      "name": "nodes join",
      "ok": true,
      "seen": "3 nodes",
      "seconds": 1.235,
      "reads": 1,
      "writes": 0
    }
  ]
}
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("document differs (-want +got):\n%s", diff)
	}
}

func TestWriteTable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := failedReport.WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 4 {
		t.Fatalf("the table has %d lines, want a head, two steps and the sums:\n%s", len(lines), out.String())
	}
	if got := strings.Fields(lines[3]); !cmp.Equal(got, []string{"all", "3.2", "3", "3", "failed"}) {
		t.Errorf("the sums are %q", lines[3])
	}
	if !strings.Contains(lines[2], "FAILED: long") || !strings.HasSuffix(lines[2], "…") {
		t.Errorf("the failed step reads %q", lines[2])
	}
}
