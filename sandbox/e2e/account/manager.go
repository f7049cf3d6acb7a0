package account

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/freeport"
)

// Manager says how to run the manager beside the cluster.
type Manager struct {
	// Program is the built one.
	Program                 string
	Kubeconfig, CloudConfig string
	// Arguments and Environment are further ones.
	Arguments, Environment []string
	// Log is a file for its output.
	Log string
	// Process are attributes of the process, for example to end with this one.
	Process *syscall.SysProcAttr
}

// process is a manager that runs.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// start runs the manager. Leader election is off: [Suite.Check] has seen that no other one runs.
func (s *Suite) start(ctx context.Context) error {
	port, err := freeport.FindOne(ctx)
	if err != nil {
		return err //nolint:wrapcheck // it says what failed
	}
	m := s.o.Manager
	args := []string{
		"--cloud-provider=alicloud", "--cloud-config=" + m.CloudConfig, "--kubeconfig=" + m.Kubeconfig,
		"--leader-elect=false", "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
	}
	if s.o.ClusterCIDR == "" {
		args = append(args, "--configure-cloud-routes=false")
	} else {
		args = append(args, "--cluster-cidr="+s.o.ClusterCIDR)
	}
	log, err := os.OpenFile(m.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of the manager: %w", err)
	}
	defer log.Close()
	p := &process{cmd: exec.Command(m.Program, append(args, m.Arguments...)...), done: make(chan struct{})} //nolint:noctx // a story ends it
	p.cmd.Env = append(os.Environ(), m.Environment...)
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.SysProcAttr = log, log, m.Process
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("run the manager: %w", err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // the log says why it has ended
	}()
	s.manager = p
	return nil
}

// ended is an error once the manager has ended by itself.
func (p *process) ended() error {
	if p == nil {
		return nil
	}
	select {
	case <-p.done:
		return errManagerEnded
	default:
		return nil
	}
}

// end ends the manager with a signal, if it runs.
func (s *Suite) end(signal syscall.Signal) error {
	p := s.manager
	if p == nil {
		return nil
	}
	s.manager = nil
	if err := p.ended(); err != nil {
		return err
	}
	if err := p.cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("end the manager: %w", err)
	}
	<-p.done
	return nil
}

func (s *Suite) stop(context.Context) error { return s.end(syscall.SIGTERM) }
func (s *Suite) kill(context.Context) error { return s.end(syscall.SIGKILL) }

// tail is the end of the log.
func (m *Manager) tail() string {
	const most = 6 << 10
	log, err := os.ReadFile(m.Log)
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-most):])
}
