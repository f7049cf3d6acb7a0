package chart

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// The tools of this module's go.mod.
const (
	helm3      = "helm.sh/helm/v3/cmd/helm"
	helm4      = "helm.sh/helm/v4/cmd/helm"
	actionlint = "github.com/rhysd/actionlint/cmd/actionlint"
)

// helms are both Helms by name or, with -short, the newer one.
func helms() map[string]string {
	if testing.Short() {
		return map[string]string{"helm4": helm4}
	}
	return map[string]string{"helm3": helm3, "helm4": helm4}
}

var toolPaths sync.Map // package -> func() (string, error)

// tool returns the path of a tool, built on first use.
func tool(t *testing.T, pkg string) string {
	t.Helper()
	build, _ := toolPaths.LoadOrStore(pkg, sync.OnceValues(func() (string, error) {
		command := exec.Command("go", "tool", "-n", pkg)
		// As the sandbox is built: with another setting Go would compile Kubernetes' libraries a second time.
		command.Env = append(os.Environ(), "CGO_ENABLED=0")
		command.Stderr = os.Stderr
		path, err := command.Output()
		return strings.TrimSpace(string(path)), err
	}))
	path, err := build.(func() (string, error))() //nolint:forcetypeassert // nothing else is stored
	if err != nil {
		t.Fatalf("build %s: %v", pkg, err)
	}
	return path
}

// result is what a command said.
type result struct {
	code           int
	stdout, stderr string
}

// run runs a command with env added to this process's environment.
func run(ctx context.Context, t *testing.T, env []string, name string, args ...string) result {
	t.Helper()
	command := exec.CommandContext(ctx, name, args...)
	command.Env = append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return result{code: command.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
}
