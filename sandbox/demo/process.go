package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// tailSize is how much of a program's output is kept: the end, where the reason of a failure stands.
	tailSize = 8 << 10
	// stopGrace is how long a program may take to end after SIGTERM before it is killed.
	stopGrace = 10 * time.Second
)

// process is a program that runs in the background.
type process struct {
	name   string
	cmd    *exec.Cmd
	output tailBuffer
	done   chan struct{}
	err    error // what Wait returned; written before done is closed
}

// startProcess starts a program with env added to this process's environment.
func startProcess(ctx context.Context, program string, args, env []string) (*process, error) {
	p := &process{name: filepath.Base(program), done: make(chan struct{})}
	// The program must outlive the step that starts it; stop ends it.
	p.cmd = exec.CommandContext(context.WithoutCancel(ctx), program, args...)
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	go func() {
		defer close(p.done)
		p.err = p.cmd.Wait()
	}()
	return p, nil
}

// ended is nil while the program runs, else an error that says how it ended.
func (p *process) ended() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s has ended (%s): %s", p.name, p.cmd.ProcessState, p.lastLine())
	default:
		return nil
	}
}

// stop asks the program to end, waits for it and says how it ended; one that has ended before by itself is an error.
func (p *process) stop(ctx context.Context) (string, error) {
	if err := p.ended(); err != nil {
		return "", err
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return "", fmt.Errorf("stop %s: %w", p.name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	select {
	case <-p.done:
		return p.cmd.ProcessState.String(), nil
	case <-ctx.Done():
	}
	if err := p.cmd.Process.Kill(); err != nil {
		return "", fmt.Errorf("kill %s: %w", p.name, err)
	}
	<-p.done
	return "", fmt.Errorf("%s did not end within %s of SIGTERM and was killed", p.name, stopGrace)
}

func (p *process) tail(context.Context) string { return p.output.String() }

func (p *process) pid(context.Context) (int, error) { return p.cmd.Process.Pid, nil }

func (p *process) lastLine() string { return lastLine(p.output.String()) }

// runProgram runs a program to its end and returns its standard output. The error of one that fails has its last line of output.
func runProgram(ctx context.Context, program string, args, env []string, input []byte) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin = bytes.NewReader(input)
	var stdout bytes.Buffer
	var stderr tailBuffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		reason := lastLine(stderr.String())
		if reason == "" {
			reason = lastLine(stdout.String())
		}
		return "", fmt.Errorf("%s: %w: %s", filepath.Base(program), err, reason)
	}
	return strings.TrimSpace(stdout.String()), nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// tailBuffer keeps the last tailSize bytes written to it.
type tailBuffer struct {
	mu   sync.Mutex
	data []byte // guarded by mu
}

func (b *tailBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data = append(b.data, p...)
	if over := len(b.data) - tailSize; over > 0 {
		b.data = append(b.data[:0], b.data[over:]...)
	}
	return len(p), nil
}

func (b *tailBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.data)
}
