package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/freeport"
)

const managerProgram = "cloud-controller-manager"

// fastClient are flags of the manager for what is prepared, not measured: the default of 100 requests a second to the API server would make
// thousands of nodes take minutes.
var fastClient = []string{"--kube-api-qps=500", "--kube-api-burst=500"}

// manager is a running cloud controller manager.
type manager struct {
	*process
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
	p, err := e.launchManager(ctx, managerProgram, args...)
	if err != nil {
		return err
	}
	e.manager = &manager{process: p}
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

// launchManager runs the cloud controller manager, whose log has the name, beside those that run already.
func (e *env) launchManager(ctx context.Context, name string, args ...string) (*process, error) {
	kubeconfig, err := e.identify(ctx, "ccm.yaml")
	if err != nil {
		return nil, err
	}
	port, err := freeport.FindOne(ctx)
	if err != nil {
		return nil, err
	}
	return startProcess(ctx, e.path(name+".log"), e.program(managerProgram), append([]string{
		"--cloud-provider=alicloud", "--cloud-config=" + filepath.Join(e.sandbox.Dir(), "cloud-config.conf"), "--kubeconfig=" + kubeconfig,
		"--leader-elect=true",
		"--configure-cloud-routes=true", "--cluster-cidr=" + podCIDR, "--route-reconciliation-period=5m",
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
	}, args...), []string{"ALICLOUD_CLIENT_SCHEME=HTTP"})
}

func isHeld(lease *coordinationv1.Lease) bool {
	return lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" && lease.Spec.AcquireTime != nil
}

// stopManager ends the manager; what it made stays.
func (e *env) stopManager(ctx context.Context) error {
	m := e.manager
	e.manager = nil
	return errors.Join(m.ended(), m.stop(ctx))
}
