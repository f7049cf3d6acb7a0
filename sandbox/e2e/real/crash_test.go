//go:build linux && real

package real

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestKilledSandbox kills a second sandbox with a machine as a power cut would, starts another one in its directory, and interrupts that.
func TestKilledSandbox(t *testing.T) {
	before, err := takeInventory()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "killed")
	first := up(t, dir)
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // it was killed
	begin := time.Now()
	for processesIn(t, dir) != "" {
		if time.Since(begin) > eventDeadline {
			t.Fatalf("a killed sandbox leaves processes:\n%s", processesIn(t, dir))
		}
		time.Sleep(look)
	}
	second := up(t, dir)
	if err := second.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := second.Wait(); err != nil {
		t.Errorf("after SIGINT: %v", err)
	}
	after, err := takeInventory()
	if err != nil {
		t.Fatal(err)
	}
	if left := after.without(before); len(left) > 0 {
		t.Errorf("two sandboxes have left behind:\n%s", strings.Join(left, "\n"))
	}
	// The second one found the directory, so it leaves it, empty.
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
}

// up starts a sandbox with one machine and returns when it is ready.
func up(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(filepath.Join(sandbox.binDir, "sandbox"), "up", "--dir", dir, "--node-kind", "real", "--nodes", "1")
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

// processesIn lists processes that mention a directory or have it mounted.
func processesIn(t *testing.T, dir string) string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var found strings.Builder
	for _, process := range all {
		if process == fmt.Sprintf("/proc/%d", os.Getpid()) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(process, "cmdline")) // a process that has ended is none
		mounts, _ := os.ReadFile(filepath.Join(process, "mounts"))
		if strings.Contains(string(line), dir) || strings.Contains(string(mounts), dir) {
			fmt.Fprintf(&found, "%s %s\n", process, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found.String()
}
