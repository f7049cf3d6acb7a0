package chart

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

const (
	root     = "../.."
	chartDir = root + "/charts/cloud-controller-manager"
)

// binDir is the directory of the project's programs, as an absolute path. SANDBOX_BIN_DIR names it; else they are built.
var binDir = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("SANDBOX_BIN_DIR"); dir != "" {
		return filepath.Abs(dir)
	}
	build := exec.Command("make", "-C", root, "build", "kubectl")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("make build kubectl: %w", err)
	}
	return filepath.Abs(root + "/bin")
})

// program is the path of one of the project's programs.
func program(t *testing.T, name string) string {
	t.Helper()
	dir, err := binDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}
