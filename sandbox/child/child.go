// Package child runs programs that end with this one, however that ends.
package child

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

const (
	// stopGrace is how long a program may take to end after SIGTERM before it is killed.
	stopGrace = 10 * time.Second
	// tailSize is how much of a log an error shows: the end, where the reason of a failure stands.
	tailSize = 6 << 10
)

// Process is a program that runs, or has run.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the program has ended
	log  string        // the path of its log, empty for a writer
}

// Start starts a program with further variables in its environment. Whatever it prints goes to log.
func Start(program string, log io.Writer, args, env []string) (*Process, error) {
	cmd := exec.Command(program, args...) //nolint:noctx // Stop ends it, with its own grace
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	return StartCommand(cmd)
}

// StartLogged is [Start] with a log file, to which the output is appended. What says that the program has ended then has the end of the log.
func StartLogged(program, log string, args, env []string) (*Process, error) {
	file, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", filepath.Base(program), err)
	}
	defer file.Close() //nolint:errcheck // the program has its own
	p, err := Start(program, file, args, env)
	if err != nil {
		return nil, fmt.Errorf("start %s (make build makes it): %w", filepath.Base(program), err)
	}
	p.log = log
	return p, nil
}

// StartCommand is [Start] for a command with a directory, arguments, environment and output of its own.
func StartCommand(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, done: make(chan struct{})}
	p.cmd.SysProcAttr = dieWithParent()
	started := make(chan error)
	go func() {
		// To the kernel the parent is the thread that started the program; it must live as long.
		runtime.LockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // how it ended stands in ProcessState
		}
		close(p.done)
	}()
	return p, <-started
}

// Done is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended says how the program ended, once it has.
func (p *Process) Ended() error {
	err := fmt.Errorf("%s has ended: %s", filepath.Base(p.cmd.Path), p.cmd.ProcessState)
	if p.log != "" {
		err = fmt.Errorf("%w; the end of its log:\n%s", err, Tail(p.log))
	}
	return err
}

// Failed is nil while the program runs, then [Process.Ended].
func (p *Process) Failed() error {
	select {
	case <-p.done:
		return p.Ended()
	default:
		return nil
	}
}

// Tail is the end of a log file, for those who read an error.
func Tail(path string) string {
	log, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-tailSize):])
}

// Pid is the ID of the process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Signal sends a signal; to a program that has ended it is none.
func (p *Process) Signal(signal os.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to %s: %w", signal, filepath.Base(p.cmd.Path), err)
	}
	return nil
}

// ExitCode is that of a program that has ended, -1 where a signal ended it.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// Stop ends the program, and waits for it. It kills one that does not end by itself.
func (p *Process) Stop() {
	if p.cmd.Process == nil {
		return // it never started
	}
	// An error means that it has ended already.
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(stopGrace):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}
