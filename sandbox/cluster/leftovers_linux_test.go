package cluster

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/vishvananda/netns"
)

// TestClean needs root, as what it removes does. Without root, sandboxes leave nothing of the kind.
//
//nolint:paralleltest // it removes what other sandboxes left
func TestClean(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: network namespaces")
	}
	left := func(name string) []string {
		found, err := filepath.Glob("/run/netns/" + name + "-*")
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	const dead, living = "sbt-dead", "sbt-live"
	deadDir, livingDir := filepath.Join(t.TempDir(), "dead"), filepath.Join(t.TempDir(), "living")
	for _, dir := range []string{deadDir, livingDir} {
		if err := os.MkdirAll(filepath.Join(dir, stateDir, "machines"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, kubeconfigFile), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	killed, err := takeRecord(dead, deadDir)
	if err != nil {
		t.Fatal(err)
	}
	running, err := takeRecord(living, livingDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dead, living} {
		makeNetwork(t, name+"-cloud")
	}
	if err := killed.Close(); err != nil { // as the kernel closes a dead process's
		t.Fatal(err)
	}
	cleaned, err := Clean()
	if err != nil || !slices.Contains(cleaned, deadDir) || slices.Contains(cleaned, livingDir) {
		t.Errorf("cleaned up after %v, %v", cleaned, err)
	}
	if left := left(dead); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if files := list(t, deadDir); len(files) > 0 {
		t.Errorf("files left: %v", files)
	}
	if len(left(living)) != 1 || len(list(t, livingDir)) != 2 {
		t.Errorf("of the living one there are %v and %v", left(living), list(t, livingDir))
	}
	if err := running.Close(); err != nil {
		t.Fatal(err)
	}
	if cleaned, err = Clean(); err != nil || !slices.Contains(cleaned, livingDir) || len(left(living)) > 0 {
		t.Errorf("cleaned up after %v, %v; left %v", cleaned, err, left(living))
	}
	if cleaned, err = Clean(); err != nil || slices.Contains(cleaned, livingDir) {
		t.Errorf("cleaned up twice: %v, %v", cleaned, err)
	}
}

func makeNetwork(t *testing.T, name string) {
	t.Helper()
	made := make(chan error, 1)
	go func() {
		// The thread changes its namespace, so it must end with the goroutine.
		runtime.LockOSThread()
		handle, err := netns.NewNamed(name)
		if err == nil {
			err = handle.Close()
		}
		made <- err
	}()
	if err := <-made; err != nil {
		t.Fatal(err)
	}
}
