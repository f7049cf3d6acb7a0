//go:build linux && real

package real

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDemo tells the README's story on real machines: this project's programs are pods there.
func TestDemo(t *testing.T) {
	tmp := t.TempDir()
	cmd := exec.Command(filepath.Join(sandbox.binDir, "sandbox"), "demo", "--node-kind", "real", "--output", "json", "--bin-dir",
		sandbox.binDir)
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v; standard error:\n%s", err, stderr.String())
	}
	var report struct {
		OK    bool
		Steps []struct {
			Name, Seen string
			OK         bool
			Seconds    float64
		}
	}
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil || !report.OK {
		t.Errorf("the report: %v\n%s", err, stdout.String())
	}
	seen := map[string]string{}
	for _, step := range report.Steps {
		seen[step.Name] = step.Seen
		t.Logf("%-26s %5.1f s  %s", step.Name, step.Seconds, step.Seen)
	}
	for step, want := range map[string]string{
		"provider IDs": "by a pod on each node", "cloud controller manager": "Deployment kube-system/cloud-controller-manager is ready",
		"requests answered": "10 requests answered", "all stopped": "its pods are gone",
	} {
		if !strings.Contains(seen[step], want) {
			t.Errorf("step %q has seen %q, want %q in it", step, seen[step], want)
		}
	}
	if left, err := filepath.Glob(filepath.Join(tmp, "*")); err != nil || len(left) > 0 {
		t.Errorf("the demo has left %v, %v", left, err)
	}
}
