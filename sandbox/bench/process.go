package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// stopGrace is how long a program may take to end after SIGTERM before it is killed.
	stopGrace = 10 * time.Second
	// tailSize is how much of a program's log an error shows.
	tailSize = 4 << 10
)

// process is a program that runs in the background and logs to a file.
type process struct {
	cmd  *exec.Cmd
	log  *os.File
	done chan struct{} // closed when the program has ended
}

// startProcess starts a program with env added to this process's environment.
func startProcess(ctx context.Context, log, program string, args, env []string) (*process, error) {
	file, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", filepath.Base(program), err)
	}
	// The program must outlive the start; stop ends it.
	p := &process{cmd: exec.CommandContext(context.WithoutCancel(ctx), program, args...), log: file, done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = file, file
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s (make build makes it): %w", filepath.Base(program), err), file.Close())
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // how it ended stands in ProcessState
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// ended is nil while the program runs, else an error with the end of its log.
func (p *process) ended() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s has ended (%s), the end of its log:\n%s", filepath.Base(p.cmd.Path), p.cmd.ProcessState, p.tail())
	default:
		return nil
	}
}

func (p *process) tail() []byte {
	content, err := os.ReadFile(p.log.Name())
	if err != nil {
		return []byte(err.Error())
	}
	return content[max(0, len(content)-tailSize):]
}

// whilePaused does something while the program stands still. A manager loses its Lease after twenty seconds.
func (p *process) whilePaused(do func() error) error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("pause %s: %w", filepath.Base(p.cmd.Path), err)
	}
	err := do()
	if resumed := p.cmd.Process.Signal(syscall.SIGCONT); resumed != nil {
		err = errors.Join(err, fmt.Errorf("resume %s: %w", filepath.Base(p.cmd.Path), resumed))
	}
	return err
}

// stop ends the program and waits for it.
func (p *process) stop(ctx context.Context) error {
	err := p.cmd.Process.Signal(syscall.SIGTERM)
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	// Also after an interruption of the benchmark the program gets its time to end.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	select {
	case <-p.done:
	case <-ctx.Done():
		err = errors.Join(fmt.Errorf("%s did not end within %s of SIGTERM", filepath.Base(p.cmd.Path), stopGrace), p.cmd.Process.Kill())
		<-p.done
	}
	return errors.Join(err, p.log.Close())
}
