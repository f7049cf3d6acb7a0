// Package openkruise runs the real OpenKruise manager beside a sandbox's control plane, so that BroadcastJobs work there as they do in
// a user's cluster.
//
// It installs what BroadcastJobs need and no more. It builds nothing: hack/kruise/build.sh makes the program and its objects.
package openkruise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/child"
	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/freeport"
)

const (
	// readyTimeout leaves a busy machine its time; alone the manager is ready within two seconds.
	readyTimeout = 90 * time.Second
	readyPoll    = 100 * time.Millisecond
)

// Options configures Start. All are required.
type Options struct {
	// Build is the directory that hack/kruise/build.sh made.
	Build string
	// State is an existing directory that takes the manager's certificate and log.
	State string
	// Config is the administrator's, Kubeconfig is the same as a file's content.
	Config     *rest.Config
	Kubeconfig []byte
}

// Start installs OpenKruise, runs its manager, and returns when that serves its webhooks and BroadcastJobs are known. ctx bounds the start
// only. What it installed outlives the manager, as in a cluster whose manager is down: BroadcastJobs are then refused, because nobody
// answers for their webhooks.
func Start(ctx context.Context, opts Options) (*child.Process, error) {
	if err := install(ctx, opts.Config, opts.Build); err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(opts.State, "kruise.kubeconfig")
	if err := os.WriteFile(kubeconfig, opts.Kubeconfig, 0o600); err != nil {
		return nil, fmt.Errorf("write the OpenKruise manager's kubeconfig: %w", err)
	}
	ports, err := freeport.Find(ctx, 2)
	if err != nil {
		return nil, err
	}
	log := filepath.Join(opts.State, "kruise.log")
	health := net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0]))
	process, err := child.StartLogged(filepath.Join(opts.Build, "kruise-manager"), log, []string{
		"--health-probe-addr=" + health, "--metrics-addr=0", "--enable-pprof=false", "--enable-leader-election=false",
		// Pods are left alone: only BroadcastJobs are installed.
		"--feature-gates=PodWebhook=false,KruiseDaemon=false",
		// The defaults of 30 a second would measure the client's patience and not the manager.
		"--rest-config-qps=500", "--rest-config-burst=1000",
	}, []string{
		"KUBECONFIG=" + kubeconfig, "POD_NAMESPACE=" + namespace,
		// The API server reaches the webhooks by this name and not through a Service. The manager listens on all addresses, which
		// cannot be changed; without a client it does nothing.
		"WEBHOOK_HOST=localhost", "WEBHOOK_PORT=" + strconv.Itoa(ports[1]), "WEBHOOK_CERT_DIR=" + filepath.Join(opts.State, "kruise-certs"),
	})
	if err != nil {
		return nil, fmt.Errorf("start the OpenKruise manager (hack/kruise/build.sh %s builds it): %w", opts.Build, err)
	}
	if err = waitReady(ctx, process, "http://"+health+"/readyz"); err != nil {
		process.Stop()
		return nil, fmt.Errorf("wait for the OpenKruise manager: %w; the end of its log:\n%s", err, child.Tail(log))
	}
	return process, nil
}

// waitReady returns when the webhooks answer; the manager says so on its probe address.
func waitReady(ctx context.Context, process *child.Process, url string) error {
	missing := errors.New("not asked yet")
	err := wait.PollUntilContextTimeout(ctx, readyPoll, readyTimeout, true, func(ctx context.Context) (bool, error) {
		if ended := process.Failed(); ended != nil {
			return false, ended
		}
		missing = probe(ctx, url)
		return missing == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w (%w)", err, missing)
	}
	return nil
}

func probe(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	if err = errors.Join(err, response.Body.Close()); err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	return err
}
