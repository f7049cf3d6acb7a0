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
	// logTail is how much of the manager's log an error shows.
	logTail = 4 << 10
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

// Manager is a running OpenKruise manager.
type Manager struct {
	process *child.Process
	log     *os.File
}

// Start installs OpenKruise and returns when its manager serves its webhooks and BroadcastJobs are known. ctx bounds the start only.
func Start(ctx context.Context, opts Options) (*Manager, error) {
	objects, err := readObjects(opts.Build)
	if err != nil {
		return nil, err
	}
	if err := objects.install(ctx, opts.Config); err != nil {
		return nil, err
	}
	m := &Manager{}
	if err := m.start(ctx, opts); err != nil {
		return nil, errors.Join(err, m.Stop())
	}
	return m, nil
}

func (m *Manager) start(ctx context.Context, opts Options) error {
	kubeconfig := filepath.Join(opts.State, "kruise.kubeconfig")
	if err := os.WriteFile(kubeconfig, opts.Kubeconfig, 0o600); err != nil {
		return fmt.Errorf("write the OpenKruise manager's kubeconfig: %w", err)
	}
	ports, err := freeport.Find(ctx, 2)
	if err != nil {
		return err
	}
	if m.log, err = os.Create(filepath.Join(opts.State, "kruise.log")); err != nil {
		return fmt.Errorf("open the OpenKruise manager's log: %w", err)
	}
	health := net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0]))
	m.process, err = child.Start(filepath.Join(opts.Build, "kruise-manager"), m.log, []string{
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
		return fmt.Errorf("start the OpenKruise manager (hack/kruise/build.sh %s builds it): %w", opts.Build, err)
	}
	return m.waitReady(ctx, "http://"+health+"/readyz")
}

// waitReady returns when the webhooks answer; the manager says so on its probe address.
func (m *Manager) waitReady(ctx context.Context, url string) error {
	missing := errors.New("not asked yet")
	err := wait.PollUntilContextTimeout(ctx, readyPoll, readyTimeout, true, func(ctx context.Context) (bool, error) {
		select {
		case <-m.process.Done():
			return true, nil
		default:
		}
		missing = probe(ctx, url)
		return missing == nil, nil
	})
	if ended := m.Err(); ended != nil {
		return ended
	}
	if err != nil {
		return fmt.Errorf("wait for the OpenKruise manager (%w): %w; the end of its log:\n%s", missing, err, m.tail())
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

// Done is closed when the manager has ended; Err then says how.
func (m *Manager) Done() <-chan struct{} { return m.process.Done() }

// Err is how the manager ended by itself, nil while it runs.
func (m *Manager) Err() error {
	select {
	case <-m.process.Done():
		return fmt.Errorf("OpenKruise: %w, the end of its log:\n%s", m.process.Ended(), m.tail())
	default:
		return nil
	}
}

func (m *Manager) tail() []byte {
	content, err := os.ReadFile(m.log.Name())
	if err != nil {
		return []byte(err.Error())
	}
	return content[max(0, len(content)-logTail):]
}

// Stop ends the manager and waits for it. What it installed stays, as in a cluster whose manager is down: BroadcastJobs are then
// refused, because nobody answers for their webhooks. It also ends a start that failed half-way.
func (m *Manager) Stop() error {
	if m.process != nil {
		m.process.Stop()
	}
	if m.log != nil {
		return m.log.Close()
	}
	return nil
}
