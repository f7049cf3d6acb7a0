package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/node"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/provider"
)

// envMetadataEndpoint gives --metadata-endpoint its default.
const envMetadataEndpoint = "METADATA_ENDPOINT"

// userAgent names this program to the API server and to the cloud.
const userAgent = "provider-initor"

// requestTimeout bounds one request to the API server, so that one that hangs leaves time for another attempt.
const requestTimeout = 10 * time.Second

// options are the flags of init. Those of the run itself are set in it.
type options struct {
	initor.Options
	metadataEndpoint string
	kubeconfig       string
	providerID       string
	cloudConfig      string
	cloudConfigMap   string
	environment      provider.Environment
	reportFile       string
	logs             *logsapi.LoggingConfiguration
}

func (o *options) addFlags(flags *pflag.FlagSet, getenv func(string) string) {
	o.environment, o.logs = provider.EnvironmentFrom(getenv), logsapi.NewLoggingConfiguration()
	flags.StringVar(&o.NodeName, "node-name", getenv(initor.EnvNodeName),
		"name of the Node object of this machine (environment: "+initor.EnvNodeName+")")
	flags.StringVar(&o.metadataEndpoint, "metadata-endpoint", getenv(envMetadataEndpoint),
		"URL of the ECS metadata service, "+alicloud.DefaultMetadataEndpoint+" if empty (environment: "+envMetadataEndpoint+")")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", kubeconfigUsage)
	flags.StringVar(&o.providerID, "provider-id", "",
		"provider ID of this machine, for example cn-hangzhou.i-bp1...; skips all other sources")
	flags.StringVar(&o.cloudConfig, "cloud-config", "",
		"cloud-config file with region, vpcid and an access key, to look up the instance by address if the metadata service does not identify it")
	flags.StringVar(&o.cloudConfigMap, "cloud-config-map", defaultConfigMap,
		"ConfigMap whose key "+cloudConfigKey+" is used if --cloud-config is not set, if the ConfigMap exists and the role allows reading it")
	flags.BoolVar(&o.RequireECS, "require-ecs", false,
		"fail if the node is not an ECS instance, instead of skipping it")
	flags.BoolVar(&o.PrefixedProviderIDs, "prefixed-provider-ids", false,
		"write the provider ID as alicloud://region.instance instead of region.instance; both forms are always accepted")
	flags.DurationVar(&o.Timeout, "timeout", initor.DefaultTimeout, "time limit, including retries")
	flags.StringVar(&o.reportFile, "report-file", getenv(initor.EnvReportFile),
		"file to write the result to as JSON; in a pod, the termination log (environment: "+initor.EnvReportFile+")")
	logsapi.AddFlags(o.logs, flags)
}

// run does what the flags describe. Its errors name the flag and the variable that it may come from.
func (o *options) run(ctx context.Context) (initor.Result, error) {
	if o.NodeName == "" {
		return initor.Result{}, fmt.Errorf("--node-name is empty: set it to the name of the node; in a pod, set the variable %s "+
			"from spec.nodeName", initor.EnvNodeName)
	}
	if o.Timeout <= 0 {
		return initor.Result{}, fmt.Errorf("--timeout is %s: a positive duration such as %s is accepted", o.Timeout, initor.DefaultTimeout)
	}
	if err := checkEndpoint(o.metadataEndpoint); err != nil {
		return initor.Result{}, err
	}
	var client *kubernetes.Clientset // made last, as an API server is the last thing to be missing
	var err error
	o.Sources, err = o.sources(func(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
		return client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	})
	if err != nil {
		return initor.Result{}, err
	}
	config, err := clusterConfig(o.kubeconfig)
	if err != nil {
		return initor.Result{}, err
	}
	config.Timeout = requestTimeout
	if client, err = kubernetes.NewForConfig(config); err != nil {
		return initor.Result{}, fmt.Errorf("API server %s: %w", config.Host, err)
	}
	o.Nodes = client.CoreV1().Nodes()
	return initor.Run(ctx, o.Options)
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

// sources returns what is asked for the instance, in order: the flag, or else the metadata service and then ECS. Without a file, ECS
// is asked with the cloud-config that maps has.
func (o *options) sources(maps configMapGetter) ([]initor.Source, error) {
	if o.providerID != "" {
		id, err := node.ParseProviderID(o.providerID)
		if err != nil {
			return nil, fmt.Errorf("--provider-id is %q: %w", o.providerID, err)
		}
		return []initor.Source{initor.Given(id)}, nil
	}
	sources := []initor.Source{initor.NewMetadataSource(alicloud.NewMetadata(o.metadataEndpoint), os.DirFS("/sys"))}
	switch {
	case o.cloudConfig != "":
		ecs, err := ecsSource(o.cloudConfig, o.environment)
		if err != nil {
			return nil, fmt.Errorf("--cloud-config %q: %w", o.cloudConfig, err)
		}
		sources = append(sources, ecs.Source())
	case o.cloudConfigMap != "":
		ecs, err := newConfigMapSource(maps, o.cloudConfigMap, o.environment)
		if err != nil {
			return nil, err
		}
		sources = append(sources, ecs)
	}
	return sources, nil
}

// ecsSource asks ECS as the cloud-config at path and the environment say.
func ecsSource(path string, environment provider.Environment) (*initor.ECSSource, error) {
	config, err := provider.ReadConfigFile(path)
	if err != nil {
		return nil, err
	}
	return ecsSourceOf(config, environment)
}

func ecsSourceOf(config provider.Config, environment provider.Environment) (*initor.ECSSource, error) {
	if err := environment.Check(); err != nil {
		return nil, err
	}
	endpoints := environment.Endpoints.Over(config.Endpoints)
	forClient := endpoints.ForClient("", environment.PlainHTTP)
	keys, source := provider.Credentials(provider.CredentialsOptions{
		Environment: environment, Config: config, Metadata: alicloud.NewMetadata(endpoints["metadata"]),
		Region: config.Region, Endpoints: forClient, SessionName: userAgent,
	})
	// Each is optional for the manager, which has other ways to know. This program has none when it gets here: a RAM role's
	// keys come from the metadata service, too.
	for _, needed := range []struct {
		field string
		known bool
	}{{"region", config.Region != ""}, {"vpcid", config.VPCID != ""}, {"accessKeyID", source != provider.SourceRole}} {
		if !needed.known {
			misspelled := "" // one of the unknown fields may be
			if len(config.Unknown) > 0 {
				misspelled = "; unknown fields: " + strings.Join(config.Unknown, ", ")
			}
			return nil, fmt.Errorf("Global.%s is empty: it is needed to look instances up by address, and deploy/cloud-config.sh "+
				"writes it; without a cloud-config, only the metadata service is used%s", needed.field, misspelled)
		}
	}
	client, err := alicloud.New(alicloud.Options{
		Region: config.Region, Credentials: keys, Endpoints: forClient, UserAgent: userAgent,
	})
	if err != nil {
		return nil, err
	}
	return &initor.ECSSource{API: client, VPCID: config.VPCID}, nil
}
