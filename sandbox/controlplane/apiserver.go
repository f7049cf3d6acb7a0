package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	basecompatibility "k8s.io/component-base/compatibility"
	logsapi "k8s.io/component-base/logs/api/v1"
	apiserverapp "k8s.io/kubernetes/cmd/kube-apiserver/app"
	apiserveroptions "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// apiServer is a kube-apiserver that is configured.
type apiServer struct {
	url string
	run func(context.Context) error
}

// newAPIServer configures kube-apiserver on a free port of the loopback address.
func newAPIServer(ctx context.Context, opts Options, files *files, etcd string) (*apiServer, error) {
	flags := apiServerFlags(opts, files, etcd)
	if opts.Network != nil {
		egress, err := opts.Network.startEgress(ctx, files)
		if err != nil {
			return nil, err
		}
		flags = append(flags, "--egress-selector-config-file="+egress)
	}
	listener, err := listen(ctx, opts.Network)
	if err != nil {
		return nil, err
	}
	listener = &troubledListener{Listener: listener, trouble: opts.Trouble}
	server := &apiServer{url: "https://" + listener.Addr().String()}
	if opts.Programs != "" {
		server.run, err = apiServerOfRelease(ctx, opts, listener, flags)
	} else {
		server.run, err = apiServerOfModule(ctx, opts, listener, flags)
	}
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return server, nil
}

// apiServerOfModule configures a kube-apiserver inside this process. The components' own commands are not used, as they install signal
// handlers, which a process may do only once.
func apiServerOfModule(ctx context.Context, opts Options, listener net.Listener, flags []string) (func(context.Context) error, error) {
	options := apiserveroptions.NewServerRunOptions()
	if err := parseFlags("kube-apiserver", options.Flags(), flags); err != nil {
		return nil, err
	}
	// Handing over the open listener leaves no moment in which somebody else can take the port.
	options.SecureServing.Listener = listener
	if err := setUpProcess(options, opts); err != nil {
		return nil, err
	}
	completed, err := options.Complete(ctx)
	if err == nil {
		err = errors.Join(completed.Validate()...)
	}
	if err != nil {
		return nil, fmt.Errorf("configure kube-apiserver: %w", err)
	}
	return func(ctx context.Context) error { return apiserverapp.Run(ctx, completed) }, nil
}

// listen opens a free port of the loopback address, and the same one in the machines' network.
func listen(ctx context.Context, network *Network) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the API server: %w", err)
	}
	if network == nil {
		return listener, nil
	}
	both, err := network.listenAlso(ctx, listener)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return both, nil
}

// urlInNetwork is the API server's URL for machines; the port is the one of this host.
func (s *apiServer) urlInNetwork(network *Network) string {
	here, err := url.Parse(s.url)
	if network == nil || err != nil {
		return s.url
	}
	return "https://" + net.JoinHostPort(network.Address.String(), here.Port())
}

// setUpProcess settles what all components of the process share: feature gates, logging and the client's warning handler.
func setUpProcess(options *apiserveroptions.ServerRunOptions, opts Options) error {
	registry := compatibility.DefaultComponentGlobalsRegistry
	if err := registry.Set(); err != nil {
		return fmt.Errorf("set the feature gates: %w", err)
	}
	// Deprecation warnings concern whoever wrote a manifest, not the control plane's own clients.
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	// The second and third component apply the same logging options again; that is no mistake here.
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
	gate := registry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
	streams := &logsapi.LoggingOptions{ErrorStream: opts.Log, InfoStream: opts.Log}
	if err := logsapi.ValidateAndApplyWithOptions(options.Logs, streams, gate); err != nil {
		return fmt.Errorf("set up logging: %w", err)
	}
	return nil
}

func apiServerFlags(opts Options, files *files, etcd string) []string {
	// A loopback address is no valid endpoint of the Service kubernetes.default: then it has none.
	advertise, reconciler := "127.0.0.1", "none"
	if opts.Network != nil {
		advertise, reconciler = opts.Network.Address.String(), "lease"
	}
	flags := []string{
		"--etcd-servers=" + etcd,
		"--advertise-address=" + advertise,
		"--tls-cert-file=" + files.serverCert,
		"--tls-private-key-file=" + files.serverKey,
		"--client-ca-file=" + files.ca,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + files.serviceAccountKey,
		"--service-account-signing-key-file=" + files.serviceAccountKey,
		"--service-cluster-ip-range=" + opts.ServiceCIDR,
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--endpoint-reconciler-type=" + reconciler,
		"--kubelet-preferred-address-types=InternalIP",
		"--kubelet-client-certificate=" + files.kubeletCert,
		"--kubelet-client-key=" + files.kubeletKey,
		"--requestheader-client-ca-file=" + files.ca,
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + files.proxyCert,
		"--proxy-client-key-file=" + files.proxyKey,
		// Scale tests with thousands of nodes come from one client; fair queueing between tenants is not what they measure.
		"--max-requests-inflight=3000",
		"--max-mutating-requests-inflight=1000",
		"--profiling=false",
		// Watches end before the server waits for its connections: the client of one may be a machine that no longer exists, whose
		// connection nobody else ends, and the server would wait for it for a minute.
		"--shutdown-watch-termination-grace-period=2s",
	}
	if opts.AuditLog != "" {
		flags = append(flags, "--audit-policy-file="+files.auditPolicy, "--audit-log-path="+opts.AuditLog, "--audit-log-format=json")
	}
	return flags
}

// parseFlags applies args to a component's flags, exactly as its command line would.
func parseFlags(component string, named cliflag.NamedFlagSets, args []string) error {
	all := pflag.NewFlagSet(component, pflag.ContinueOnError)
	for _, set := range named.FlagSets {
		all.AddFlagSet(set)
	}
	if err := all.Parse(args); err != nil {
		return fmt.Errorf("flags of %s: %w", component, err)
	}
	return nil
}
