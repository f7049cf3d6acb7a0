package account

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Sandbox is a cluster with light nodes beside an emulator.
type Sandbox struct {
	// URL is that of the emulator.
	URL string
	// From is the instance from which requests come that come from outside: light nodes have no other place.
	From string
	*StandIn
}

// joining is the instance behind the Node that joins.
const joining = "i-joining"

// Outside implements Cluster.
func (s *Sandbox) Outside(ctx context.Context, target string) (string, error) {
	return s.get(ctx, s.From, target)
}

// InPod implements Cluster: a light pod has the network of its node.
func (s *Sandbox) InPod(ctx context.Context, pod *corev1.Pod, target string) (string, error) {
	instances, err := s.Client.CoreV1().Nodes().Get(ctx, pod.Spec.NodeName, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("find the node of a pod: %w", err)
	}
	return s.get(ctx, instanceOf(instances), target)
}

func (s *Sandbox) get(ctx context.Context, from, target string) (string, error) {
	u, err := url.Parse(target)
	if err != nil {
		return "", fmt.Errorf("ask %s: %w", target, err)
	}
	query := url.Values{"from": {from}, "to": {u.Host}}
	return Get(ctx, http.DefaultClient, s.URL+"/_sandbox/get?"+query.Encode())
}

// Join implements Cluster.
func (s *Sandbox) Join(ctx context.Context, node string) error {
	return s.admin(ctx, http.MethodPut, fmt.Sprintf(`{"InstanceName":%q}`, node))
}

// Release implements Cluster.
func (s *Sandbox) Release(ctx context.Context, _ string) error {
	return s.admin(ctx, http.MethodDelete, "")
}

// admin makes or releases the instance. One that is not there is released.
func (s *Sandbox) admin(ctx context.Context, method, body string) error {
	request, err := http.NewRequestWithContext(ctx, method, s.URL+"/_emulator/instances/"+joining, strings.NewReader(body))
	if err != nil {
		return fmt.Errorf("ask the emulator: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err //nolint:wrapcheck // it names method and URL
	}
	answer, err := io.ReadAll(response.Body)
	err = errors.Join(err, response.Body.Close())
	gone := method == http.MethodDelete && response.StatusCode == http.StatusNotFound
	if err == nil && response.StatusCode/100 != 2 && !gone {
		err = fmt.Errorf("%s %s: %s: %s", method, request.URL, response.Status, answer)
	}
	return err
}

// Official implements Cluster.
func (s *Sandbox) Official(ctx context.Context, run bool) error { return s.Run(ctx, run) }

// What the clusters of "sandbox up" have; package cluster, which has it too, contains a whole control plane.
const (
	sandboxImage   = "docker.io/library/testserver:v1"
	sandboxPodCIDR = "10.244.0.0/16"
	sandboxNode    = "i-sandbox0001"
)

// InSandbox are the options for a sandbox with light nodes that runs in a directory ("sandbox up --node-ip --dir DIR"). They use the files
// that a user gives for an account. The emulated cloud takes no time, so that the manager does not wait, either.
func InSandbox(ctx context.Context, dir, program, log string) (Options, error) {
	const poll, patience = 100 * time.Millisecond, 2 * time.Minute
	address, err := os.ReadFile(filepath.Join(dir, "emulator"))
	if err != nil {
		return Options{}, fmt.Errorf("no sandbox runs in %s: %w", dir, err)
	}
	kubeconfig, cloudConfig := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "cloud-config.conf")
	environment := map[string]string{"ALICLOUD_CLIENT_SCHEME": "HTTP"}
	connection, err := Connect(kubeconfig, cloudConfig, func(name string) string { return environment[name] })
	if err != nil {
		return Options{}, err
	}
	zones, err := connection.Zones(ctx)
	if err != nil {
		return Options{}, err
	}
	official := &StandIn{Client: connection.Client, Cloud: connection.Cloud, ClusterID: "clusterid", Poll: poll}
	return Options{
		Cluster: &Sandbox{URL: strings.TrimSpace(string(address)), From: sandboxNode, StandIn: official},
		Client:  connection.Client, Cloud: connection.Cloud, VPC: connection.VPC,
		Manager: Manager{
			Program: program, Kubeconfig: kubeconfig, CloudConfig: cloudConfig,
			Arguments: []string{"--node-monitor-period=1s", "--node-gone-confirmations=2", "--node-gone-over=1s",
				"--route-reconciliation-period=1s"},
			Environment: []string{"ALICLOUD_CLIENT_SCHEME=HTTP"}, Log: log,
		},
		Image: sandboxImage, Zones: zones, ClusterCIDR: sandboxPodCIDR, Poll: poll, Patience: patience,
	}, nil
}
