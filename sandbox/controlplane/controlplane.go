// Package controlplane runs a real Kubernetes control plane (etcd, kube-apiserver, kube-controller-manager and kube-scheduler)
// inside the calling process, on loopback addresses and ports that it finds free.
//
// It runs no nodes and knows nothing of the cloud. The components keep process-wide state (feature gates, metrics, configz), so a
// process can hold one control plane only; programs that need several start several processes. The components of another release of
// Kubernetes run as processes of their own.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/alicloud-ccm/cloud-provider-alicloud/sandbox/pki"
)

const (
	// readyPoll is short against the two seconds that a start takes, so that polling adds nothing noticeable.
	readyPoll = 50 * time.Millisecond
	// readyTimeout bounds a start on a machine that is busy compiling; an idle one needs about two seconds.
	readyTimeout = 60 * time.Second
)

// Options configures Start.
type Options struct {
	// Dir takes etcd's data, keys and certificates; it must exist, be writable and hold no other control plane's files.
	Dir string
	// ClusterCIDR is the range that node pod CIDRs are cut from, /24 each, for example 10.244.0.0/16; with a comma and a range of IPv6
	// behind it each node also gets a /64 of that.
	ClusterCIDR string
	// ServiceCIDR is the range of cluster IPs, for example 10.96.0.0/16.
	ServiceCIDR string
	// NodeMonitorGrace is how long a node may miss its heartbeats before it becomes Ready=Unknown.
	NodeMonitorGrace time.Duration
	// Network is that of the machines, when it is not this host's; nil otherwise.
	Network *Network
	// AuditLog is a file that takes a line for each request of a service account, "" for none.
	AuditLog string
	// Programs is a directory with kube-apiserver, kube-controller-manager and kube-scheduler of another release of Kubernetes, as
	// hack/kubernetes/build.sh makes it; "" for the release of this module.
	Programs string
	// Trouble is what is to be wrong with the control plane, which may change while it runs; nil for nothing.
	Trouble *Trouble
	// Log takes what the components log.
	Log io.Writer
}

// ControlPlane is a running control plane.
type ControlPlane struct {
	files      *files
	kubeconfig []byte
	config     *rest.Config
	inNetwork  string // the API server's URL in the machines' network
	etcd       *embed.Etcd
	done       chan struct{}
	err        error // written before done is closed

	stopClients context.CancelFunc
	stopServer  context.CancelFunc
	clients     *errgroup.Group
	server      *errgroup.Group
}

// Start brings the control plane up and returns when its API answers as ready and its controllers run. ctx bounds the start only, and
// may be processed some seconds late; Stop ends what was started.
func Start(ctx context.Context, opts Options) (*ControlPlane, error) {
	files, err := writeFiles(opts)
	if err != nil {
		return nil, err
	}
	if opts.Trouble == nil {
		opts.Trouble = &Trouble{}
	}
	etcd, endpoint, err := startEtcd(ctx, filepath.Join(opts.Dir, "etcd"), opts)
	if err != nil {
		return nil, err
	}
	run := context.WithoutCancel(ctx)
	cp := &ControlPlane{files: files, etcd: etcd, done: make(chan struct{}), server: &errgroup.Group{}, clients: &errgroup.Group{}}
	var serverCtx, clientCtx context.Context
	serverCtx, cp.stopServer = context.WithCancel(run)
	clientCtx, cp.stopClients = context.WithCancel(run)
	if err := cp.startAll(ctx, serverCtx, clientCtx, opts, files, endpoint); err != nil {
		stopped := cp.Stop()
		if errors.Is(stopped, err) { // the component that failed says so once more
			return nil, stopped
		}
		return nil, errors.Join(err, stopped)
	}
	return cp, nil
}

// startAll starts the API server and, once it is ready, its clients.
func (cp *ControlPlane) startAll(ctx, serverCtx, clientCtx context.Context, opts Options, files *files, etcd string) error {
	failed := make(chan error, 1)
	supervise := func(group *errgroup.Group, running context.Context, name string, run func() error) {
		group.Go(func() error {
			err := run()
			if running.Err() != nil {
				return nil // asked to stop: what a component says about that is not a failure
			}
			err = fmt.Errorf("%s ended by itself: %w", name, err)
			select {
			case failed <- err:
			default:
			}
			return err
		})
	}
	server, err := newAPIServer(serverCtx, opts, files, etcd)
	if err != nil {
		return err
	}
	supervise(cp.server, serverCtx, "kube-apiserver", func() error { return server.run(serverCtx) })
	cp.inNetwork = server.urlInNetwork(opts.Network)
	if cp.kubeconfig, err = files.kubeconfig(server.url, files.admin); err != nil {
		return err
	}
	if cp.config, err = clientcmd.RESTConfigFromKubeConfig(cp.kubeconfig); err != nil {
		return fmt.Errorf("read back the kubeconfig: %w", err)
	}
	// Not broken off by ctx: an API server that is stopped while its start-up hooks run ends the whole process, and nothing is
	// cleaned up.
	if err = waitReady(serverCtx, cp.config, failed); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("start the control plane: %w", ctx.Err())
	}
	manager, err := newControllerManager(clientCtx, opts, files, cp.kubeconfig)
	if err != nil {
		return err
	}
	supervise(cp.clients, clientCtx, "kube-controller-manager", func() error { return manager(clientCtx) })
	scheduler, err := newScheduler(clientCtx, opts, files, cp.kubeconfig)
	if err != nil {
		return err
	}
	supervise(cp.clients, clientCtx, "kube-scheduler", func() error { return scheduler(clientCtx) })
	go func() {
		defer close(cp.done)
		select {
		case cp.err = <-failed:
		case <-serverCtx.Done():
		}
	}()
	return nil
}

// Kubeconfig is the administrator's kubeconfig.
func (cp *ControlPlane) Kubeconfig() []byte { return cp.kubeconfig }

// MachineKubeconfig makes an identity for a program on a machine, with the API server's address in the machines' network.
func (cp *ControlPlane) MachineKubeconfig(user string, groups ...string) ([]byte, error) {
	pair, err := cp.files.authority.Issue(pki.Subject{CommonName: user, Organization: groups})
	if err != nil {
		return nil, err
	}
	return cp.files.kubeconfig(cp.inNetwork, pair)
}

// CA is the cluster's certificate authority, PEM.
func (cp *ControlPlane) CA() []byte { return cp.files.authority.CertPEM() }

// RESTConfig is a copy of the administrator's client configuration.
func (cp *ControlPlane) RESTConfig() *rest.Config { return rest.CopyConfig(cp.config) }

// Done is closed when the control plane has stopped or a component of it has failed; Err then says which.
func (cp *ControlPlane) Done() <-chan struct{} { return cp.done }

// Err is why a component ended by itself, nil before Done and after an orderly stop.
func (cp *ControlPlane) Err() error {
	select {
	case <-cp.done:
		return cp.err
	default:
		return nil
	}
}

// Stop ends the components in the order that keeps each one's server alive until its clients are gone, and waits for them.
func (cp *ControlPlane) Stop() error {
	cp.stopClients()
	err := cp.clients.Wait()
	cp.stopServer()
	err = errors.Join(err, cp.server.Wait())
	cp.etcd.Close()
	return err
}

// waitReady returns when /readyz answers 200, or with the error of a component that failed before.
func waitReady(ctx context.Context, config *rest.Config, failed <-chan error) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client of the API server: %w", err)
	}
	var component error
	err = wait.PollUntilContextTimeout(ctx, readyPoll, readyTimeout, true, func(ctx context.Context) (bool, error) {
		select {
		case component = <-failed:
			return false, component
		default:
		}
		status := 0
		client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&status)
		return status == http.StatusOK, nil
	})
	if err != nil && component == nil {
		return fmt.Errorf("wait for the API server to be ready: %w", err)
	}
	return err
}
