//go:build unix

package e2e

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// demoDeadline is several times what the demo takes on two cores.
const demoDeadline = 4 * time.Minute

// report is the document that demo --output json prints.
type report struct {
	OK    bool
	Steps []struct {
		Name    string
		OK      bool
		Seen    string
		Seconds float64
		Reads   int
		Writes  int
	}
}

// TestDemo runs alone: beside other control planes two cores are too few for heartbeats every second.
func TestDemo(t *testing.T) { //nolint:paralleltest // see above
	tmp := t.TempDir()
	p := start(t, tmp, "demo", "--output", "json", "--bin-dir", binDir)
	if code := p.wait(demoDeadline); code != 0 {
		t.Fatalf("exit code is %d; standard error:\n%s", code, p.stderr.String())
	}
	report := reportOf(t, p)
	if !report.OK {
		t.Errorf("the report says that not all went as planned: %+v", report)
	}
	var names []string
	for _, step := range report.Steps {
		names = append(names, step.Name)
		if !step.OK || step.Seen == "" {
			t.Errorf("step %q: %+v", step.Name, step)
		}
		t.Logf("%-26s %5.1f s %4d reads %3d writes  %s", step.Name, step.Seconds, step.Reads, step.Writes, step.Seen)
	}
	want := []string{
		"control plane", "nodes join", "cloud config", "before: pods apart", "provider IDs", "cloud controller manager", "nodes initialized",
		"routes", "after: pods together", "service address", "requests answered", "node released", "service deleted", "footprint", "all stopped",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("steps differ (-want +got):\n%s", diff)
	}
	if want := "Kubernetes " + releaseUnderTest(); !strings.HasPrefix(report.Steps[0].Seen, want) {
		t.Errorf("step %s: %q, want %q", report.Steps[0].Name, report.Steps[0].Seen, want)
	}
	checkEmpty(t, tmp)
}

func TestDemoSaysWhyItFails(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	tmp := t.TempDir()
	p := start(t, tmp, "demo", "--output", "json", "--bin-dir", t.TempDir())
	if code := p.wait(stopDeadline); code != 1 {
		t.Errorf("exit code without programs is %d, want 1", code)
	}
	report := reportOf(t, p)
	if report.OK || len(report.Steps) != 2 || report.Steps[0].OK || report.Steps[0].Seen == "" {
		t.Errorf("the report is %+v, want a first step that says why it failed, and the clean-up", report)
	}
	checkEmpty(t, tmp)
}

func reportOf(t *testing.T, p *program) report {
	t.Helper()
	var r report
	if err := json.Unmarshal([]byte(p.stdout.String()), &r); err != nil {
		t.Fatalf("standard output is no JSON document: %v\n%s", err, p.stdout.String())
	}
	return r
}

func checkEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) > 0 {
		t.Errorf("left on disk: %v", entries)
	}
}
