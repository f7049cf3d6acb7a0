//go:build unix

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// binDir holds the programs under test.
var binDir string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if binDir = os.Getenv("SANDBOX_BIN_DIR"); binDir != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "sandbox-e2e-")
	if err == nil {
		binDir = dir
		err = build(dir)
	}
	code := 1
	if err == nil {
		code = m.Run()
	}
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	return code
}

// build builds the sandbox and the project's programs into dir.
func build(dir string) error {
	flags, err := exec.Command("../version-flags.sh").Output()
	if err != nil {
		return fmt.Errorf("find out the version flags: %w", err)
	}
	if err := goBuild("..", "-ldflags", strings.TrimSpace(string(flags)), "-o", dir, "./cmd/sandbox", "./cmd/kubectl"); err != nil {
		return err
	}
	return goBuild("../..", "-ldflags", "-s -w", "-o", dir, "./cmd/cloud-controller-manager", "./cmd/provider-initor")
}

func goBuild(dir string, args ...string) error {
	cmd := exec.Command("go", append([]string{"build"}, args...)...)
	// Like the Makefile: with another setting Go would compile Kubernetes a second time.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build %s: %w", strings.Join(args, " "), err)
	}
	return nil
}
