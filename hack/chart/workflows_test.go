package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWorkflows lets actionlint judge the workflows of GitHub, and a broken one.
func TestWorkflows(t *testing.T) {
	t.Parallel()
	workflows, err := filepath.Glob(root + "/.github/workflows/*.yml")
	if err != nil || len(workflows) < 2 {
		t.Fatalf("workflows %v, %v", workflows, err)
	}
	// Without shellcheck, which not every machine has; make lint runs it.
	check := []string{"-shellcheck=", "-pyflakes=", "-no-color"}
	if got := run(t.Context(), t, nil, tool(t, actionlint), append(check, workflows...)...); got.code != 0 {
		t.Errorf("actionlint: %s%s", got.stdout, got.stderr)
	}
	broken := filepath.Join(t.TempDir(), "broken.yml")
	text := "on: push\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    steps:\n    - run: echo ${{ github.no_such_thing }}\n"
	if err := os.WriteFile(broken, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := run(t.Context(), t, nil, tool(t, actionlint), append(check, broken)...); got.code == 0 ||
		!strings.Contains(got.stdout, "no_such_thing") {
		t.Errorf("actionlint accepts a broken workflow: exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
}
