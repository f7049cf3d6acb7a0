package main

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/provider"
)

// envMetadataEndpoint gives --metadata-endpoint its default.
const envMetadataEndpoint = "METADATA_ENDPOINT"

// userAgent names this program to the API server and to the cloud.
const userAgent = "provider-initor"

// requestTimeout bounds one request to the API server, so that one that hangs leaves time for another attempt.
const requestTimeout = 10 * time.Second

// options are the flags of init.
type options struct {
	nodeName         string
	metadataEndpoint string
	access           access
	providerID       string
	cloudConfig      string
	cloudConfigMap   string
	environment      provider.Environment
	requireECS       bool
	prefixed         bool
	timeout          time.Duration
	reportFile       string
	logs             *logsapi.LoggingConfiguration
}

func newOptions(getenv func(string) string) *options {
	return &options{
		nodeName:         getenv(initor.EnvNodeName),
		metadataEndpoint: getenv(envMetadataEndpoint),
		access:           newAccess(getenv),
		cloudConfigMap:   defaultConfigMap,
		environment:      provider.EnvironmentFrom(getenv),
		timeout:          initor.DefaultTimeout,
		reportFile:       getenv(initor.EnvReportFile),
		logs:             logsapi.NewLoggingConfiguration(),
	}
}

func (o *options) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.nodeName, "node-name", o.nodeName,
		"name of the Node object of this machine (environment: "+initor.EnvNodeName+")")
	flags.StringVar(&o.metadataEndpoint, "metadata-endpoint", o.metadataEndpoint,
		"URL of the ECS metadata service, "+alicloud.DefaultMetadataEndpoint+" if empty (environment: "+envMetadataEndpoint+")")
	o.access.addFlags(flags)
	flags.StringVar(&o.providerID, "provider-id", "",
		"provider ID of this machine, for example cn-hangzhou.i-bp1...; skips all other sources")
	flags.StringVar(&o.cloudConfig, "cloud-config", "",
		"cloud-config file with region, vpcid and an access key, to look up the instance by address if the metadata service does not identify it")
	flags.StringVar(&o.cloudConfigMap, "cloud-config-map", o.cloudConfigMap,
		"ConfigMap whose key "+cloudConfigKey+" is used if --cloud-config is not set, if the ConfigMap exists and the role allows reading it")
	flags.BoolVar(&o.requireECS, "require-ecs", false,
		"fail if the node is not an ECS instance, instead of skipping it")
	flags.BoolVar(&o.prefixed, "prefixed-provider-ids", false,
		"write the provider ID as alicloud://region.instance instead of region.instance; both forms are always accepted")
	flags.DurationVar(&o.timeout, "timeout", o.timeout, "time limit, including retries")
	flags.StringVar(&o.reportFile, "report-file", o.reportFile,
		"file to write the result to as JSON; in a pod, the termination log (environment: "+initor.EnvReportFile+")")
	logsapi.AddFlags(o.logs, flags)
}

// initializer builds what the flags describe. Its errors name the flag and the variable that it may come from.
func (o *options) initializer() (*initor.Initializer, error) {
	if o.nodeName == "" {
		return nil, fmt.Errorf("--node-name is empty: set it to the name of the node; in a pod, set the variable %s from spec.nodeName",
			initor.EnvNodeName)
	}
	if o.timeout <= 0 {
		return nil, fmt.Errorf("--timeout is %s: a positive duration such as %s is accepted", o.timeout, initor.DefaultTimeout)
	}
	if err := checkEndpoint(o.metadataEndpoint); err != nil {
		return nil, err
	}
	var client *kubernetes.Clientset // made last, as an API server is the last thing to be missing
	sources, err := o.sources(func(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
		return client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	})
	if err != nil {
		return nil, err
	}
	config, err := o.access.restConfig()
	if err != nil {
		return nil, err
	}
	config.Timeout = requestTimeout
	if client, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("API server %s: %w", config.Host, err)
	}
	return initor.New(initor.Options{
		Nodes:      client.CoreV1().Nodes(),
		NodeName:   o.nodeName,
		Sources:    sources,
		RequireECS: o.requireECS,
		Timeout:    o.timeout,

		PrefixedProviderIDs: o.prefixed,
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
