package main

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/provider"
)

// The environment variables that give flags their defaults.
const (
	envNodeName         = "NODE_NAME"
	envMetadataEndpoint = "METADATA_ENDPOINT"
	envKubeconfig       = "KUBECONFIG"
)

// userAgent names this program to the API server and to the cloud.
const userAgent = "provider-initor"

// requestTimeout bounds one request to the API server, so that one that hangs leaves time for another attempt.
const requestTimeout = 10 * time.Second

// options are the flags of init.
type options struct {
	nodeName         string
	metadataEndpoint string
	kubeconfig       string
	kubeconfigList   []string // of the environment
	cloudConfig      string
	environment      provider.Environment
	requireECS       bool
	timeout          time.Duration
	logs             *logsapi.LoggingConfiguration
}

func newOptions(getenv func(string) string) *options {
	return &options{
		nodeName:         getenv(envNodeName),
		metadataEndpoint: getenv(envMetadataEndpoint),
		kubeconfigList:   filepath.SplitList(getenv(envKubeconfig)),
		environment:      provider.EnvironmentFrom(getenv),
		timeout:          initor.DefaultTimeout,
		logs:             logsapi.NewLoggingConfiguration(),
	}
}

func (o *options) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.nodeName, "node-name", o.nodeName,
		"name of the Node object of this machine (environment: "+envNodeName+")")
	flags.StringVar(&o.metadataEndpoint, "metadata-endpoint", o.metadataEndpoint,
		"URL of the ECS metadata service, "+alicloud.DefaultMetadataEndpoint+" if empty (environment: "+envMetadataEndpoint+")")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "",
		"kubeconfig file; if empty, those of the environment's "+envKubeconfig+", else the pod's ServiceAccount")
	flags.StringVar(&o.cloudConfig, "cloud-config", "",
		"cloud-config file with region, vpcid and an access key; where the metadata service knows nothing, the instance is looked up by address")
	flags.BoolVar(&o.requireECS, "require-ecs", false,
		"fail when the node is not an ECS instance, instead of leaving it alone")
	flags.DurationVar(&o.timeout, "timeout", o.timeout, "time for everything, retries included")
	logsapi.AddFlags(o.logs, flags)
}

// initializer builds what the flags describe. Its errors name the flag and the variable that it may come from.
func (o *options) initializer() (*initor.Initializer, error) {
	if o.nodeName == "" {
		return nil, fmt.Errorf("--node-name is empty: give the node's name, in a pod through the variable %s from spec.nodeName",
			envNodeName)
	}
	if o.timeout <= 0 {
		return nil, fmt.Errorf("--timeout is %s: a positive duration such as %s is accepted", o.timeout, initor.DefaultTimeout)
	}
	if err := checkEndpoint(o.metadataEndpoint); err != nil {
		return nil, err
	}
	sources, err := o.sources()
	if err != nil {
		return nil, err
	}
	config, err := o.restConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("API server %s: %w", config.Host, err)
	}
	return initor.New(initor.Options{
		Nodes:      client.CoreV1().Nodes(),
		NodeName:   o.nodeName,
		Sources:    sources,
		RequireECS: o.requireECS,
		Timeout:    o.timeout,
	})
}

func checkEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	parsed, err := url.Parse(endpoint)
	if err != nil || parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https") {
		return fmt.Errorf("--metadata-endpoint (or %s) is %q: a URL such as %s is accepted",
			envMetadataEndpoint, endpoint, alicloud.DefaultMetadataEndpoint)
	}
	return nil
}

// restConfig says how the API server is reached: the flag, else the environment, else the pod that this runs in.
func (o *options) restConfig() (*rest.Config, error) {
	config, err := o.loadConfig()
	if err != nil {
		return nil, err
	}
	config.Timeout = requestTimeout
	return rest.AddUserAgent(config, userAgent), nil
}

func (o *options) loadConfig() (*rest.Config, error) {
	if o.kubeconfig == "" && len(o.kubeconfigList) == 0 {
		config, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, fmt.Errorf("no API server: give --kubeconfig or the variable %s, or run in a pod", envKubeconfig)
		}
		if err != nil {
			return nil, fmt.Errorf("the pod's ServiceAccount: %w", err)
		}
		return config, nil
	}
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: o.kubeconfig, Precedence: o.kubeconfigList}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.kubeconfigName(), err)
	}
	return config, nil
}

func (o *options) kubeconfigName() string {
	if o.kubeconfig != "" {
		return fmt.Sprintf("--kubeconfig %q", o.kubeconfig)
	}
	return fmt.Sprintf("%s %q", envKubeconfig, o.kubeconfigList)
}
