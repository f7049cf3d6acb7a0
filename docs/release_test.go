package docs

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// script runs one of the scripts in hack/ and returns its exit code and output.
func script(ctx context.Context, t *testing.T, env []string, args ...string) (int, string) {
	t.Helper()
	command := exec.CommandContext(ctx, "bash", args...)
	command.Dir = root
	command.Env = append(os.Environ(), env...)
	output, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), string(output)
}

// TestReleaseRefuses: a release of something else than the tree describes ends before anything is built.
func TestReleaseRefuses(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"": "VERSION is", "0.1.0": `VERSION is "0.1.0"`, "v0.0.0-3ddfc12-dirty": "VERSION is", "v9.9.9": "another appVersion than 9.9.9",
	} {
		if code, output := script(t.Context(), t, nil, "hack/release.sh", version); code != 1 || !strings.Contains(output, want) {
			t.Errorf("%q: exit code %d, %s, want 1 and %q", version, code, output, want)
		}
	}
}

// TestScansSayThatNothingIsKnown: without a database or a scanner, "no vulnerability" would be a lie.
func TestScansSayThatNothingIsKnown(t *testing.T) {
	t.Parallel()
	nowhere := []string{"GOVULNDB=http://127.0.0.1:1", "GOVULNCHECK=false"}
	if code, output := script(t.Context(), t, nowhere, "hack/vuln.sh"); code != 3 || !strings.Contains(output, "http://127.0.0.1:1 cannot be reached: nothing was checked") {
		t.Errorf("vuln without a database: exit code %d, %s", code, output)
	}
	db := t.TempDir()
	if err := os.MkdirAll(filepath.Join(db, "index"), 0o755); err != nil { //nolint:gosec // nothing secret
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(db, "index/db.json"), []byte(`{"modified":"2026-01-01T00:00:00Z"}`), 0o644); err != nil { //nolint:gosec // nothing secret
		t.Fatal(err)
	}
	if code, output := script(t.Context(), t, []string{"GOVULNDB=file://" + db, "GOVULNCHECK=echo checked"}, "hack/vuln.sh"); code != 0 || strings.Count(output, "checked") < 4 {
		t.Errorf("vuln with a database: exit code %d, %s", code, output)
	}
	if code, output := script(t.Context(), t, []string{"GOVULNDB=file://" + db, "GOVULNCHECK=false"}, "hack/vuln.sh"); code != 1 {
		t.Errorf("vuln with findings: exit code %d, %s", code, output)
	}
	bin := t.TempDir() // without a scanner
	for _, name := range []string{"bash", "dirname"} {
		path, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(path, filepath.Join(bin, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if code, output := script(t.Context(), t, []string{"PATH=" + bin}, "hack/image-scan.sh"); code != 3 || !strings.Contains(output, "nothing was checked") {
		t.Errorf("image-scan without a scanner: exit code %d, %s", code, output)
	}
}
