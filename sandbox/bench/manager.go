package bench

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/cluster"
)

const managerProgram = "cloud-controller-manager"

// emulatedVPC is the VPC of the emulator's built-in configuration.
const emulatedVPC = "vpc-emulator"

// fastClient are flags of the manager for what is prepared, not measured: the default of 20 requests a second to the API server would make
// thousands of nodes take minutes.
var fastClient = []string{"--kube-api-qps=500", "--kube-api-burst=500"}

// manager is a running cloud controller manager.
type manager struct {
	*process
	// leading is when it became leader, by its own clock.
	leading time.Time
}

// startManager runs the cloud controller manager with the published arguments and args, with its own identity, and waits until it leads.
func (w *world) startManager(ctx context.Context, args ...string) error {
	kubeconfig, err := w.identify(ctx, "ccm.yaml")
	if err != nil {
		return err
	}
	config, err := w.writeCloudConfig()
	if err != nil {
		return err
	}
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	// The lease of a manager that was killed would hold the next one up.
	leases := w.client.CoordinationV1().Leases(metav1.NamespaceSystem)
	if err := leases.Delete(ctx, managerProgram, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the lease of the manager before: %w", err)
	}
	endpoint := strings.TrimPrefix(w.url, "http://")
	p, err := startProcess(ctx, w.path(managerProgram+".log"), w.program(managerProgram), append([]string{
		"--cloud-provider=alicloud", "--cloud-config=" + config, "--kubeconfig=" + kubeconfig, "--leader-elect=true",
		"--configure-cloud-routes=true", "--cluster-cidr=" + podCIDR, "--route-reconciliation-period=5m",
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
	}, args...), []string{
		"SLB_ENDPOINT=" + endpoint, "VPC_ENDPOINT=" + endpoint, "ECS_ENDPOINT=" + endpoint, "ALICLOUD_CLIENT_SCHEME=HTTP",
	})
	if err != nil {
		return err
	}
	w.manager = &manager{process: p}
	return w.until(ctx, "the manager leads", func(ctx context.Context) (string, error) {
		lease, err := leases.Get(ctx, managerProgram, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || (err == nil && !held(lease)) {
			return "nobody holds the lease", nil
		}
		if err != nil {
			return "", fmt.Errorf("read the manager's lease: %w", err)
		}
		w.manager.leading = lease.Spec.AcquireTime.Time
		return "", nil
	})
}

func held(lease *coordinationv1.Lease) bool {
	return lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" && lease.Spec.AcquireTime != nil
}

// stopManager ends the manager; what it made stays.
func (w *world) stopManager(ctx context.Context) error {
	m := w.manager
	w.manager = nil
	return errors.Join(m.ended(), m.stop(ctx))
}

// writeCloudConfig writes the official file format, whose parts of the access key are base64.
func (w *world) writeCloudConfig() (string, error) {
	encode := base64.StdEncoding.EncodeToString
	content, err := json.Marshal(map[string]any{"Global": map[string]string{
		"accessKeyID": encode([]byte(cluster.AccessKeyID)), "accessKeySecret": encode([]byte(cluster.AccessKeySecret)),
		"region": cluster.Region, "vpcid": emulatedVPC, "vswitchid": "cn-hangzhou-a:vsw-a",
	}})
	if err != nil {
		return "", fmt.Errorf("encode the cloud config: %w", err)
	}
	path := w.path("cloud-config.conf")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", fmt.Errorf("write the cloud config: %w", err)
	}
	return path, nil
}

// freePort is a TCP port that was free a moment ago.
func freePort(ctx context.Context) (int, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		return 0, fmt.Errorf("free the port again: %w", err)
	}
	return port, nil
}
