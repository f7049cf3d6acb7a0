// Package child runs programs that end with this one, however that ends.
package child

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// stopGrace is how long a program may take to end after SIGTERM before it is killed.
const stopGrace = 10 * time.Second

// Process is a program that runs, or has run.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the program has ended
}

// Start starts a program with further variables in its environment. Whatever it prints goes to log.
func Start(program string, log io.Writer, args, env []string) (*Process, error) {
	cmd := exec.Command(program, args...) //nolint:noctx // Stop ends it, with its own grace
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	return StartCommand(cmd)
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
	return fmt.Errorf("%s has ended: %s", filepath.Base(p.cmd.Path), p.cmd.ProcessState)
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
