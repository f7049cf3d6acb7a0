// Package selfexec lets the test binary of a command run as the command itself, so that tests see the real process: name,
// environment, output and exit code. It is for tests only.
package selfexec

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// variable makes the test binary act as the program.
const variable = "TEST_BE_THE_PROGRAM"

// Main runs the tests, or program where this process is to be the program. It is the whole of a TestMain.
func Main(m *testing.M, program func()) {
	if os.Getenv(variable) != "" {
		program()
		return
	}
	os.Exit(m.Run())
}

// Result is what a user sees of a run that ended.
type Result struct {
	Code int
	// Output is what the program wrote, after RunApart to standard output only.
	Output string
	Took   time.Duration
}

// Run runs the program as name with args. Its environment is env and nothing else. The output holds both standard output and
// standard error, in order.
func Run(t *testing.T, name string, env []string, args ...string) Result {
	t.Helper()
	var output bytes.Buffer
	return run(t, &output, &output, name, env, args)
}

// RunApart is like Run, and writes standard error to stderr.
func RunApart(t *testing.T, stderr io.Writer, name string, env []string, args ...string) Result {
	t.Helper()
	return run(t, &bytes.Buffer{}, stderr, name, env, args)
}

func run(t *testing.T, stdout *bytes.Buffer, stderr io.Writer, name string, env, args []string) Result {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), self)
	command.Args = append([]string{name}, args...)
	command.Env = append([]string{variable + "=1"}, env...)
	command.Stdout, command.Stderr = stdout, stderr
	start := time.Now()
	err = command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return Result{Code: command.ProcessState.ExitCode(), Output: stdout.String(), Took: time.Since(start)}
}
