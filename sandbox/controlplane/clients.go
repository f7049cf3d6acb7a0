package controlplane

import (
	"context"
	"fmt"

	kcmapp "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kcmoptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	schedapp "k8s.io/kubernetes/cmd/kube-scheduler/app"
	schedoptions "k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

// Client-side limits far above what a sandbox needs: a test must not measure them.
const (
	clientQPS   = "500"
	clientBurst = "1000"
)

// nodeMonitorPeriod is how often the node lifecycle controller checks heartbeats. Grace periods of the sandbox are a few seconds;
// the default of 5 s would more than double the time until a dead node is seen.
const nodeMonitorPeriod = "1s"

// newControllerManager configures kube-controller-manager; the returned function runs it.
func newControllerManager(ctx context.Context, opts Options, files *files, kubeconfig []byte) (func(context.Context) error, error) {
	kubeconfigFile := files.path("controller-manager.kubeconfig")
	if err := write(kubeconfigFile, kubeconfig); err != nil {
		return nil, err
	}
	args := []string{
		"--kubeconfig=" + kubeconfigFile,
		"--leader-elect=false",
		"--secure-port=0",
		"--controllers=*",
		"--controller-start-interval=0s",
		"--service-account-private-key-file=" + files.serviceAccountKey,
		"--root-ca-file=" + files.ca,
		"--allocate-node-cidrs=true",
		"--cluster-cidr=" + opts.ClusterCIDR, // pieces of /24 and, of IPv6, /64 are the default
		"--service-cluster-ip-range=" + opts.ServiceCIDR,
		"--node-monitor-period=" + nodeMonitorPeriod,
		"--node-monitor-grace-period=" + opts.NodeMonitorGrace.String(),
		"--kube-api-qps=" + clientQPS,
		"--kube-api-burst=" + clientBurst,
	}
	if opts.Programs != "" {
		return opts.program("kube-controller-manager", args), nil
	}
	options, err := kcmoptions.NewKubeControllerManagerOptions()
	if err != nil {
		return nil, fmt.Errorf("configure kube-controller-manager: %w", err)
	}
	all, disabled, aliases := kcmapp.KnownControllers(), kcmapp.ControllersDisabledByDefault(), kcmapp.ControllerAliases()
	flags := options.Flags(all, disabled, aliases)
	options.ParsedFlags = &flags
	if err = parseFlags("kube-controller-manager", flags, args); err != nil {
		return nil, err
	}
	config, err := options.Config(ctx, all, disabled, aliases)
	if err != nil {
		return nil, fmt.Errorf("configure kube-controller-manager: %w", err)
	}
	return func(ctx context.Context) error { return kcmapp.Run(ctx, config.Complete()) }, nil
}

// newScheduler configures kube-scheduler; the returned function runs it.
func newScheduler(ctx context.Context, opts Options, files *files, kubeconfig []byte) (func(context.Context) error, error) {
	kubeconfigFile := files.path("scheduler.kubeconfig")
	if err := write(kubeconfigFile, kubeconfig); err != nil {
		return nil, err
	}
	args := []string{
		"--kubeconfig=" + kubeconfigFile,
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=" + clientQPS,
		"--kube-api-burst=" + clientBurst,
	}
	if opts.Programs != "" {
		return opts.program("kube-scheduler", args), nil
	}
	options := schedoptions.NewOptions()
	if err := parseFlags("kube-scheduler", *options.Flags, args); err != nil {
		return nil, err
	}
	config, scheduler, err := schedapp.Setup(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("configure kube-scheduler: %w", err)
	}
	return func(ctx context.Context) error { return schedapp.Run(ctx, config, scheduler) }, nil
}
