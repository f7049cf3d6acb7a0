//go:build linux && real

package real

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestKilledSandbox kills sandboxes with a machine as a power cut would. The next one anywhere on the host, or `sandbox clean`, removes
// what they have left, and nothing of the one that runs.
func TestKilledSandbox(t *testing.T) {
	first, second := filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "second")
	kill(t, up(t, first), first)
	if left := mustList(t, first); len(left) == 0 {
		t.Error("a killed sandbox leaves nothing, so this test shows nothing")
	}
	begin := time.Now()
	next := up(t, second)
	t.Logf("a sandbox with a machine is ready %.1fs after its start", time.Since(begin).Seconds())
	if left := mustList(t, first); len(left) > 0 {
		t.Errorf("the next sandbox, in another directory, has not removed:\n%s", strings.Join(left, "\n"))
	}
	kill(t, next, second)
	out, err := exec.Command(filepath.Join(sandbox.binDir, "sandbox"), "clean").CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != second {
		t.Errorf("sandbox clean: %v, %q", err, out)
	}
	if left := mustList(t, second); len(left) > 0 {
		t.Errorf("sandbox clean has not removed:\n%s", strings.Join(left, "\n"))
	}
	stillThere := func(name string) {
		if _, err := ask(t.Context(), "GET", "/_sandbox/namespace?of="+name, ""); err != nil {
			t.Errorf("the sandbox that runs: %v", err)
		}
		if _, err := os.Stat(at(t, name).path); err != nil {
			t.Errorf("the sandbox that runs: %v", err)
		}
	}
	stillThere(instanceID(1))
	stillThere(vpcClient)
}

// kill kills a sandbox and waits until its processes have ended: the kernel takes them along.
func kill(t *testing.T, cmd *exec.Cmd, dir string) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	until(t, "the processes of a killed sandbox have ended", func(context.Context) string {
		processes, err := processesIn(dir)
		if err != nil {
			return err.Error()
		}
		return strings.Join(processes, "\n")
	})
}

func mustList(t *testing.T, dir string) []string {
	t.Helper()
	left, err := leftBehind(dir)
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// up starts a sandbox with one machine and returns when it is ready.
func up(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(filepath.Join(sandbox.binDir, "sandbox"), "up", "--dir", dir, "--node-kind", "real", "--nodes", "1",
		"--published", published())
	cmd.Stderr = os.Stderr
	// No Pdeathsig: a test runs on a thread that may end before it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, unless the test failed
	if err := awaitReady(stdout); err != nil {
		t.Fatal(err)
	}
	return cmd
}
