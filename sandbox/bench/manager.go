package bench

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/deploy"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/child"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/freeport"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/identity"
)

const managerProgram = "cloud-controller-manager"

// fastClient are flags of the manager for what is prepared, not measured: the default of 100 requests a second to the API server would make
// thousands of nodes take minutes.
var fastClient = []string{"--kube-api-qps=500", "--kube-api-burst=500"}

// manager is a running cloud controller manager.
type manager struct {
	*child.Process
	log string
	// leading is when it became leader, by its own clock.
	leading time.Time
}

// startManager runs the cloud controller manager with the published arguments and args, with its own identity, and waits until it leads.
func (e *env) startManager(ctx context.Context, args ...string) error {
	// The lease of a manager that was killed would hold the next one up.
	leases := e.client.CoordinationV1().Leases(metav1.NamespaceSystem)
	if err := leases.Delete(ctx, managerProgram, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the lease of the manager before: %w", err)
	}
	kubeconfig, err := e.identify(ctx, "ccm.yaml")
	if err != nil {
		return err
	}
	port, err := freeport.FindOne(ctx)
	if err != nil {
		return err
	}
	log := e.path(managerProgram + ".log")
	p, err := child.StartLogged(e.program(managerProgram), log, append([]string{
		"--cloud-provider=alicloud", "--cloud-config=" + e.sandbox.CloudConfig(), "--kubeconfig=" + kubeconfig, "--leader-elect=true",
		"--configure-cloud-routes=true", "--cluster-cidr=" + podCIDR, "--route-reconciliation-period=5m",
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
	}, args...), []string{"ALICLOUD_CLIENT_SCHEME=HTTP"})
	if err != nil {
		return err
	}
	e.manager = &manager{Process: p, log: log}
	return e.until(ctx, "the manager leads", func(ctx context.Context) (string, error) {
		lease, err := leases.Get(ctx, managerProgram, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || (err == nil && !isHeld(lease)) {
			return "nobody holds the lease", nil
		}
		if err != nil {
			return "", fmt.Errorf("read the manager's lease: %w", err)
		}
		e.manager.leading = lease.Spec.AcquireTime.Time
		return "", nil
	})
}

// identify makes the ServiceAccount and the roles of a published manifest, and returns the path of a kubeconfig that has nothing but
// its token.
func (e *env) identify(ctx context.Context, manifest string) (string, error) {
	content, err := deploy.Files.ReadFile(manifest)
	if err != nil {
		return "", fmt.Errorf("read the published manifest: %w", err)
	}
	granted, err := identity.Grant(ctx, identity.Options{Client: e.client, Config: e.config, Manifest: content, Dir: e.dir})
	return granted.Kubeconfig, err
}

func isHeld(lease *coordinationv1.Lease) bool {
	return lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" && lease.Spec.AcquireTime != nil
}

// stopManager ends the manager; what it made stays.
func (e *env) stopManager() error {
	m := e.manager
	e.manager = nil
	if err := m.Failed(); err != nil {
		return err
	}
	m.Stop()
	return nil
}

// whilePaused does something while the manager stands still. It loses its Lease after twenty seconds.
func (m *manager) whilePaused(do func() error) error {
	if err := m.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return errors.Join(do(), m.Signal(syscall.SIGCONT))
}
