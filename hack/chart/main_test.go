package chart

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// binDir holds the project's programs. SANDBOX_BIN_DIR names it; else they are built.
var binDir string

func TestMain(m *testing.M) {
	if binDir = os.Getenv("SANDBOX_BIN_DIR"); binDir == "" {
		build := exec.Command("make", "-C", root, "build")
		build.Stdout, build.Stderr = os.Stderr, os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "make build:", err)
			os.Exit(1)
		}
		binDir = root + "/bin"
	}
	var err error
	if binDir, err = filepath.Abs(binDir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
