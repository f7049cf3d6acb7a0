//go:build linux && real

package real

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// demoStep is what the demo says of a step: its name, what the sandbox says meanwhile, and what it has seen.
var demoStep = regexp.MustCompile(`(?m)^-> (.+)\n(?:.*\n)*?   (.+) \([\d.]+ s, \d+ reads, \d+ writes\)$`)

// TestDemo tells the README's story on real machines: this project's programs are pods there.
func TestDemo(t *testing.T) {
	tmp := t.TempDir()
	cmd := exec.Command(filepath.Join(sandbox.binDir, "sandbox"), "demo", "--node-kind", "real", "--bin-dir", sandbox.binDir)
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v; standard error:\n%s", err, stderr.String())
	}
	t.Log(stdout.String())
	seen := map[string]string{}
	for _, step := range demoStep.FindAllStringSubmatch(stderr.String(), -1) {
		seen[step[1]] = step[2]
	}
	for step, want := range map[string]string{
		"provider IDs": "by a pod on each node", "cloud controller manager": "Deployment kube-system/cloud-controller-manager is ready",
		"requests answered": "10 requests answered", "all stopped": "the pods of the cloud controller manager are gone",
	} {
		if !strings.Contains(seen[step], want) {
			t.Errorf("step %q has seen %q, want %q in it", step, seen[step], want)
		}
	}
	if left, err := filepath.Glob(filepath.Join(tmp, "*")); err != nil || len(left) > 0 {
		t.Errorf("the demo has left %v, %v", left, err)
	}
}
