//go:build unix

package e2e

import (
	"strings"
	"testing"
)

// TestInitorWithoutOpenKruise runs the workstation's commands against a real API server; the pods of its Jobs run provider-initor with
// the role that run makes.
func TestInitorWithoutOpenKruise(t *testing.T) {
	t.Parallel()
	w := newInitorWorld(t)
	w.addFiveNodes()
	w.addMachine("other")
	w.setProviderID("other", "cn-hangzhou.i-another")

	if code, _, stderr := w.initor("run"); code != 1 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "--driver job") {
		w.Errorf("run without OpenKruise: exit code %d with %q, want 1 and one line that offers --driver job", code, stderr)
	}
	code, stdout, _ := w.initor("check")
	if code != 4 || !strings.Contains(stdout, "plain     -                      missing") || strings.Contains(stdout, "virtual") {
		w.Errorf("check: exit code %d with\n%s\nwant 4, and the node without ID missing", code, stdout)
	}

	code, stdout, stderr := w.initor("run", "--driver", "job", "--timeout", "90s", "--output", "json")
	w.wantNodes("run --driver job", stdout, map[string]string{
		"plain": "set cn-hangzhou.i-plain", "done": "unchanged cn-hangzhou.i-done", "cordoned": "set cn-hangzhou.i-cordoned",
		"other": "failed cn-hangzhou.i-another", "idc-1": "skipped",
	})
	if code != 4 || !strings.Contains(stderr, "1 of 5 failed") {
		w.Errorf("run --driver job: exit code %d, want 4 for the failed node; standard error:\n%s", code, stderr)
	}
	w.wantNothingLeft()
	w.p.stop()
}
