//go:build unix

package e2e

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
)

// demoDeadline is several times what the demo takes on two cores.
const demoDeadline = 4 * time.Minute

// demoStep is what the demo says of a step: its name, what the sandbox says meanwhile, and what it has seen.
var demoStep = regexp.MustCompile(`(?m)^-> (.+)\n(?:.*\n)*?   (.+) \([\d.]+ s, \d+ reads, \d+ writes\)$`)

// TestDemo runs alone: beside other control planes two cores are too few for heartbeats every second.
func TestDemo(t *testing.T) { //nolint:paralleltest // see above
	tmp := t.TempDir()
	p := start(t, tmp, "demo", "--bin-dir", binDir)
	if code := p.wait(demoDeadline); code != 0 {
		t.Fatalf("exit code is %d; standard error:\n%s", code, lastLines(p.stderr.String()))
	}
	t.Log(p.stdout.String())
	steps := demoStep.FindAllStringSubmatch(p.stderr.String(), -1)
	var names []string
	for _, step := range steps {
		names = append(names, step[1])
	}
	want := []string{
		"control plane", "nodes join", "cloud config", "before: pods apart", "provider IDs", "cloud controller manager", "nodes initialized",
		"routes", "after: pods together", "service address", "requests answered", "node released", "service deleted", "all stopped",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Fatalf("steps differ (-want +got):\n%s\nstandard error:\n%s", diff, lastLines(p.stderr.String()))
	}
	if want := "Kubernetes " + releaseUnderTest(); !strings.HasPrefix(steps[0][2], want) {
		t.Errorf("step %s: %q, want %q", steps[0][1], steps[0][2], want)
	}
	if !strings.HasSuffix(p.stdout.String(), " passed\n") {
		t.Error("the table does not say that all went as planned")
	}
	checkEmpty(t, tmp)
}

func TestDemoSaysWhyItFails(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	tmp := t.TempDir()
	p := start(t, tmp, "demo", "--bin-dir", t.TempDir())
	if code := p.wait(stopDeadline); code != 1 {
		t.Errorf("exit code without programs is %d, want 1", code)
	}
	if lines := strings.Split(p.stdout.String(), "\n"); len(lines) != 5 || !strings.Contains(lines[1], "FAILED: find the programs") {
		t.Errorf("the table is\n%s\nwant a first step that says why it failed, the clean-up, and the sums", p.stdout.String())
	}
	checkEmpty(t, tmp)
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
