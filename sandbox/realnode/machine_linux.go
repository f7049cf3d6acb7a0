package realnode

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
)

// Namespace is the network of a machine.
type Namespace interface {
	// Do runs f on a thread in the namespace.
	Do(f func()) error
}

// Options describe a machine.
type Options struct {
	// Program is the path of ProgramName.
	Program string
	Tools   Tools
	// Dir keeps the machine's disk; it outlives the power.
	Dir string
	// Cgroup is the machine's cgroup ("/sandbox/name"), alone its own.
	Cgroup  string
	Network Namespace
	// Console takes what the machine's first process complains about.
	Console io.Writer
	Node    Node
	// Images are archives that the container runtime has from the first boot on.
	Images []string
	// Registry is the URL of the registry that stands for all others.
	Registry string
}

// Machine is one that has power.
type Machine struct {
	opts   Options
	cmd    *exec.Cmd
	orders io.WriteCloser
	off    chan struct{} // closed when all its processes have ended

	mu      sync.Mutex // one order at a time
	answers *bufio.Reader
}

// Boot puts a machine under power. It returns when the machine's programs are being started.
func Boot(opts Options) (*Machine, error) {
	if err := opts.writeDisk(); err != nil {
		return nil, err
	}
	if err := makeCgroup(opts.Cgroup); err != nil {
		return nil, err
	}
	m := &Machine{opts: opts, off: make(chan struct{})}
	err := m.start()
	if err == nil {
		err = m.exchange(opts.bootSpec())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("boot %s: %w", opts.Node.Name, err), m.PowerOff())
	}
	return m, nil
}

// start runs the first process in fresh namespaces, in the network of the machine.
func (m *Machine) start() error {
	m.cmd = exec.Command(m.opts.Program, InitCommand) //nolint:noctx // it runs until PowerOff
	m.cmd.Stderr = m.opts.Console
	m.cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		// A sandbox that is killed takes its machines along. The kernel goes by the thread that started the process: the one below
		// waits for it and does nothing else.
		Pdeathsig: syscall.SIGKILL,
		// A Ctrl-C in the terminal is for the sandbox, which then stops the machines in its own order.
		Setpgid: true,
	}
	var err error
	if m.orders, err = m.cmd.StdinPipe(); err != nil {
		return err
	}
	answers, err := m.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	m.answers = bufio.NewReader(answers)
	started := make(chan error, 1)
	go func() {
		defer close(m.off)
		err := m.opts.Network.Do(func() {
			err := m.cmd.Start()
			started <- err
			if err == nil {
				_ = m.cmd.Wait() // it ends by being killed
			}
		})
		if err != nil {
			started <- err
		}
	}()
	return <-started
}

// exchange sends a line and reads the answer.
func (m *Machine) exchange(message any) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var reply answer
	if err := json.NewEncoder(m.orders).Encode(message); err != nil {
		return fmt.Errorf("send an order to the first process of %s: %w", m.opts.Node.Name, err)
	}
	if err := readLine(m.answers, &reply); err != nil {
		return fmt.Errorf("hear from the first process of %s: %w", m.opts.Node.Name, err)
	}
	if reply.Error != "" {
		return fmt.Errorf("machine %s: %s", m.opts.Node.Name, reply.Error)
	}
	return nil
}

// StopProgram ends a program ("kubelet") of the machine for good and waits for its end.
func (m *Machine) StopProgram(name string) error {
	return m.exchange(order{Stop: name})
}

// StartProgram lets a stopped program run again.
func (m *Machine) StartProgram(name string) error {
	return m.exchange(order{Start: name})
}

// Off is closed when the machine has lost its power, by PowerOff or by itself.
func (m *Machine) Off() <-chan struct{} { return m.off }

// PowerOff cuts the power: all processes of the machine end at once, and its mounts with them. The disk stays.
func (m *Machine) PowerOff() error {
	if m.cmd != nil && m.cmd.Process != nil {
		if err := m.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("cut the power of %s: %w", m.opts.Node.Name, err)
		}
		<-m.off
	}
	return removeCgroup(m.opts.Cgroup)
}

// Log is where a program of the machine logs ("kubelet"), a file of the host.
func (m *Machine) Log(program string) string {
	return filepath.Join(m.opts.Dir, logDir, program+".log")
}
