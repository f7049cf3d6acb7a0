//go:build unix

package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Deadlines of end-to-end tests are generous: the machine may be compiling something else.
const (
	startDeadline = 90 * time.Second
	eventDeadline = 60 * time.Second
	stopDeadline  = 30 * time.Second
)

// linesOfFailure is how much of a log a failure shows without -v.
const linesOfFailure = 12

// program is a run of one of the programs in a process group of its own.
type program struct {
	*testing.T
	name           string
	cmd            *exec.Cmd
	stdout, stderr buffer
	done           chan struct{}
	err            error // what Wait returned; written before done is closed
}

// buffer is a bytes.Buffer that may be read while a process writes to it.
type buffer struct {
	mu   sync.Mutex
	data bytes.Buffer // guarded by mu
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}

// start runs "sandbox args..." with its temporary files in tmp.
func start(t *testing.T, tmp string, args ...string) *program {
	t.Helper()
	return launch(t, "sandbox", []string{"TMPDIR=" + tmp}, args...)
}

// launch runs one of the built programs with env added to this process's environment. The test fails when it or a child of it is left
// running.
func launch(t *testing.T, name string, env []string, args ...string) *program {
	t.Helper()
	p := &program{T: t, name: name, done: make(chan struct{}), cmd: exec.Command(filepath.Join(binDir, name), args...)}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		p.err = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.done
		if !t.Failed() && !errors.Is(err, syscall.ESRCH) {
			t.Errorf("the process group of %s %v was left running: kill gives %v", name, args, err)
		}
	})
	return p
}

// lastLines are what a reader of a failure wants of a log: the last lines, and with -v all.
func lastLines(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	if !testing.Verbose() {
		lines = slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, `"Wrote to the cloud"`) })
		lines = lines[max(0, len(lines)-linesOfFailure):]
	}
	return strings.Join(lines, "\n")
}

// wait waits for the program's end and returns its exit code.
func (p *program) wait(deadline time.Duration) int {
	p.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(deadline):
		p.Fatalf("not ended after %s; standard error:\n%s", deadline, lastLines(p.stderr.String()))
		return 0
	}
}

// stop asks the program to end and expects it to do so without complaint.
func (p *program) stop() {
	p.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.Fatal(err)
	}
	if code := p.wait(stopDeadline); code != 0 {
		p.Errorf("exit code after SIGTERM is %d, want 0; standard error:\n%s", code, lastLines(p.stderr.String()))
	}
}

// until polls a condition with a deadline and fails when the program has ended meanwhile.
func (p *program) until(what string, deadline time.Duration, condition func(ctx context.Context) bool) {
	p.Helper()
	err := wait.PollUntilContextTimeout(p.Context(), 100*time.Millisecond, deadline, true, func(ctx context.Context) (bool, error) {
		select {
		case <-p.done:
			return false, errors.New("the sandbox has ended")
		default:
			return condition(ctx), nil
		}
	})
	if err != nil {
		p.Fatalf("%s: %v; standard error:\n%s", what, err, lastLines(p.stderr.String()))
	}
}

func (p *program) untilReady() {
	p.Helper()
	p.until("the sandbox is ready", startDeadline, func(context.Context) bool { return strings.Contains(p.stdout.String(), "ready\n") })
}
