package openkruise

import (
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// stopGrace is how long the manager may take to end after SIGTERM before it is killed.
const stopGrace = 10 * time.Second

// process is a program that ends with this one, however that ends.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the program has ended
}

func startProcess(program string, log io.Writer, args, env []string) (*process, error) {
	//nolint:noctx // stop ends it, with its own grace
	p := &process{cmd: exec.Command(program, args...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
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

func (p *process) stop() {
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
