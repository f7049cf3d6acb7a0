package account

import (
	"context"
	"fmt"
	"syscall"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/child"
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
	s.manager, err = child.StartLogged(m.Program, m.Log, append(args, m.Arguments...), m.Environment)
	return err //nolint:wrapcheck // it says what failed
}

// ended is an error once the manager has ended by itself.
func (s *Suite) ended() error {
	if s.manager == nil || s.manager.Failed() == nil {
		return nil
	}
	return errManagerEnded
}

// end ends the manager with a signal, if it runs.
func (s *Suite) end(signal syscall.Signal) error {
	if s.manager == nil {
		return nil
	}
	err := s.ended()
	if err == nil {
		if err = s.manager.Signal(signal); err == nil {
			<-s.manager.Done()
		}
	}
	s.manager = nil
	return err
}

func (s *Suite) stop(context.Context) error { return s.end(syscall.SIGTERM) }
func (s *Suite) kill(context.Context) error { return s.end(syscall.SIGKILL) }
