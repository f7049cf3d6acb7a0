package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/names"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/healthport"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/provider"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/vpcroute"
)

const (
	// apiServerTimeout is how long the start waits for the API server. Longer than a restart of one takes, so that both
	// may start together; not for ever, so that a wrong address shows.
	apiServerTimeout = 10 * time.Second
	apiServerRetry   = time.Second
	// apiServerCall bounds one try, where packets are dropped and nothing answers.
	apiServerCall = 5 * time.Second
)

// starter makes the cloud provider out of the finished configuration.
type starter struct {
	flags    *ownFlags
	stop     <-chan struct{}
	election *election
	secure   *securePort
}

// cloud implements [app.InitCloudFunc]. That type has no error, so a failure ends the process here.
func (s starter) cloud(completed *config.CompletedConfig) cloudprovider.Interface {
	cloud, err := s.start(wait.ContextForChannel(s.stop), completed)
	if err != nil {
		klog.Flush()
		exit(err)
	}
	return cloud
}

// start connects, and serves health from then on.
func (s starter) start(ctx context.Context, completed *config.CompletedConfig) (*provider.Cloud, error) {
	if err := s.secure.listen(completed); err != nil {
		return nil, fmt.Errorf("--secure-port: %w", err)
	}
	cloud, err := s.connect(ctx, completed)
	if err != nil {
		return nil, err
	}
	if err = s.election.prepare(completed, cloud); err != nil {
		return nil, err
	}
	if completed.SecureServing == nil {
		return cloud, s.flags.addresses.serve(nil, nil, s.stop)
	}
	debugging := &completed.ComponentConfig.Generic.Debugging
	secure := completed.SecureServing.Listener.Addr()
	health, err := healthport.Serve(completed.SecureServing, debugging, &completed.Authentication, &completed.Authorization, cloud.Ready,
		s.stop)
	if err != nil {
		return nil, fmt.Errorf("--secure-port: serve health: %w", err)
	}
	return cloud, s.flags.addresses.serve(health, secure, s.stop)
}

// connect checks everything that a user can get wrong and returns a provider that has reached cluster and cloud.
func (s starter) connect(ctx context.Context, completed *config.CompletedConfig) (*provider.Cloud, error) {
	settings, err := s.settings(completed)
	if err != nil {
		return nil, err
	}
	cloudProvider := completed.ComponentConfig.KubeCloudShared.CloudProvider
	cloud, err := load(cloudProvider.Name, cloudProvider.CloudConfigFile)
	if err != nil {
		return nil, err
	}
	settings.APIServerAddresses = provider.APIServerAddresses(ctx, completed.Kubeconfig.Host)
	cloud.Configure(settings)
	if err = waitForAPIServer(ctx, completed); err != nil {
		return nil, err
	}
	if err = cloud.Connect(ctx, completed.Client); err != nil {
		return nil, atPlace(cloudProvider.CloudConfigFile, completed.Kubeconfig.Host, err)
	}
	if completed.ComponentConfig.KubeCloudShared.UseServiceAccountCredentials {
		completed.ClientBuilder, err = controllerClients(ctx, completed.Client, completed.Kubeconfig, completed.ClientBuilder)
	}
	completed.ClientBuilder = guardedClients{each: completed.ClientBuilder, guard: cloud.GuardDeletions}
	return cloud, err
}

func (s starter) settings(completed *config.CompletedConfig) (provider.Settings, error) {
	if err := s.flags.check(); err != nil {
		return provider.Settings{}, err
	}
	onPremises, err := s.flags.nodes.onPremises()
	if err != nil {
		return provider.Settings{}, err
	}
	tenants, err := s.flags.tenantPolicy()
	if err != nil {
		return provider.Settings{}, err
	}
	shared := &completed.ComponentConfig.KubeCloudShared
	settings := provider.Settings{
		Policy:               tenants,
		RoutePeriod:          shared.RouteReconciliationPeriod.Duration,
		ServiceWorkers:       int(completed.ComponentConfig.ServiceController.ConcurrentServiceSyncs),
		NodeEventWait:        time.Duration(s.flags.nodeEventWait) * time.Second,
		BackendBatch:         s.flags.backendBatch,
		RouteBatch:           s.flags.routeBatch,
		NodeBatch:            s.flags.nodeBatch,
		SkipSourceDestCheck:  s.flags.skipSourceDestCheck,
		Network:              s.flags.network,
		ControlPlaneNodes:    backend.ControlPlanePolicy(s.flags.controlPlaneNodes),
		PrefixedProviderIDs:  s.flags.prefixedProviderIDs,
		NodeIPv6:             s.flags.nodeIPv6,
		NodeGuard:            s.flags.nodes.guardOptions(),
		OnPremises:           onPremises,
		NodeMonitorPeriod:    completed.ComponentConfig.NodeLifecycleController.NodeMonitorPeriod.Duration,
		RouteTableVSwitches:  s.flags.routeTableVSwitches,
		RouteTableTag:        s.flags.tableTag(),
		CredentialsFile:      s.flags.credentialsFile,
		Endpoints:            s.flags.endpoints,
		PlainMetadata:        !s.flags.tokenMode,
		ControllerIdentities: shared.UseServiceAccountCredentials,
		WithoutCLB:           !isEnabled(names.ServiceLBController, completed),
		WithoutNLB:           !isEnabled(nlbController, completed),
	}
	if lease := completed.ComponentConfig.Generic.LeaderElection; lease.LeaderElect {
		settings.Lease = provider.ElectionLease{Namespace: lease.ResourceNamespace, Name: lease.ResourceName,
			RetryPeriod: lease.RetryPeriod.Duration}
	}
	if shared.AllocateNodeCIDRs {
		klog.InfoS("Pod CIDRs are assigned by the kube-controller-manager; set this flag there", "flag", "--allocate-node-cidrs")
	}
	if !shared.ConfigureCloudRoutes || !isEnabled(names.NodeRouteController, completed) {
		return settings, nil
	}
	cidrs, err := clusterCIDRs(shared.ClusterCIDR)
	settings.ClusterCIDRs = cidrs
	return settings, err
}

func clusterCIDRs(text string) ([]netip.Prefix, error) {
	cidrs, err := vpcroute.ParseClusterCIDRs(text)
	if err != nil {
		return nil, fmt.Errorf("--cluster-cidr: %w; without routes: --configure-cloud-routes=false", err)
	}
	return cidrs, nil
}

// load does what cloudprovider.InitCloudProvider does, which ends the process with a stack trace when the file is missing.
func load(name, file string) (*provider.Cloud, error) {
	var cloud cloudprovider.Interface
	var err error
	if file == "" {
		cloud, err = cloudprovider.GetCloudProvider(name, nil)
	} else {
		cloud, err = loadFile(name, file)
	}
	if err != nil {
		return nil, inConfigFile(file, err)
	}
	ours, ok := cloud.(*provider.Cloud)
	if !ok {
		return nil, fmt.Errorf("--cloud-provider: %q, accepted: %q", name, provider.Name)
	}
	return ours, nil
}

func loadFile(name, path string) (cloudprovider.Interface, error) {
	file, err := os.Open(path)
	if reason, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, fmt.Errorf("%w, accepted: a file that this process may read", reason.Err)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return cloudprovider.GetCloudProvider(name, file)
}

// atPlace names what err is about: the API server, where the error is an answer of it, else the file.
func atPlace(file, apiServer string, err error) error {
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		return fmt.Errorf("API server at %s: %w", apiServer, err)
	}
	return inConfigFile(file, err)
}

// inConfigFile names the file that err is about.
func inConfigFile(file string, err error) error {
	if file == "" {
		file = "(not set)"
	}
	return fmt.Errorf("--cloud-config: %s: %w", file, err)
}

// waitForAPIServer keeps the stock app from its own ways with a silent API server: waiting for ever as a candidate for
// leader, ending with a stack trace as the leader.
func waitForAPIServer(ctx context.Context, completed *config.CompletedConfig) error {
	bounded := rest.CopyConfig(completed.Kubeconfig)
	bounded.Timeout = apiServerCall
	client, err := discovery.NewDiscoveryClientForConfig(bounded)
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, apiServerRetry, apiServerTimeout, true, func(context.Context) (bool, error) {
		_, last = client.ServerVersion()
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("--kubeconfig, --master: no answer from the API server at %s within %s: %w", completed.Kubeconfig.Host,
			apiServerTimeout, last)
	}
	return nil
}
