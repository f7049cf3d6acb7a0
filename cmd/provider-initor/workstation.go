package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	kruiseclient "github.com/openkruise/kruise-api/client/clientset/versioned"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/version"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor/rollout"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/node"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/provider"
)

// imageRepository is where the project publishes the image of this program.
const imageRepository = "ghcr.io/alicloud-ccm/provider-initor"

// workstation are the flags that the commands for a workstation share.
type workstation struct {
	kubeconfig  string
	config      rollout.Config
	output      string
	cloudConfig string // of check
}

func newWorkstation() *workstation {
	return &workstation{config: rollout.Config{
		Name: rollout.DefaultName, Namespace: rollout.DefaultNamespace, Driver: rollout.DriverBroadcastJob,
		Image: defaultImage(version.Get().GitVersion), Timeout: rollout.DefaultTimeout, AdmissionPolicy: true,
	}, output: outputTable}
}

// defaultImage is the image of this program's own version. What stands after a plus sign is no part of a tag.
func defaultImage(gitVersion string) string {
	tag, _, _ := strings.Cut(strings.TrimPrefix(gitVersion, "v"), "+")
	return imageRepository + ":" + tag
}

// addJobFlags adds what finds the objects of a rollout.
func (w *workstation) addJobFlags(flags *pflag.FlagSet) {
	flags.StringVar(&w.config.Name, "name", w.config.Name, "name of the job, its ServiceAccount and its role")
	flags.StringVar(&w.config.Namespace, "namespace", w.config.Namespace, "namespace of the pods; it must admit pods with hostNetwork")
	flags.StringVar((*string)(&w.config.Driver), "driver", string(w.config.Driver),
		"how to run a pod on each node: broadcastjob (requires OpenKruise) or job (one Job per node)")
}

// addPodFlags adds what describes the objects of a rollout.
func (w *workstation) addPodFlags(flags *pflag.FlagSet) {
	flags.StringVar(&w.config.Image, "image", w.config.Image, "image of provider-initor")
	flags.DurationVar(&w.config.Timeout, "timeout", w.config.Timeout, "time limit for all nodes")
	flags.BoolVar(&w.config.PrefixedProviderIDs, "prefixed-provider-ids", false,
		"write provider IDs as alicloud://region.instance instead of region.instance; both forms are always accepted")
	flags.BoolVar(&w.config.AdmissionPolicy, "admission-policy", w.config.AdmissionPolicy,
		"create a ValidatingAdmissionPolicy that lets the pods only set an empty provider ID, on their own nodes (Kubernetes 1.30 or later)")
	flags.BoolVar(&w.config.Keep, "keep", false,
		"keep the BroadcastJob, its ServiceAccount and its role in the cluster, for nodes that join later")
}

func (w *workstation) addOutputFlag(flags *pflag.FlagSet) {
	flags.StringVarP(&w.output, "output", "o", w.output, "output format: table or json")
}

// rollout builds what the flags describe; progress may be nil.
func (w *workstation) rollout(progress func([]rollout.NodeState)) (*rollout.Rollout, error) {
	config, err := clusterConfig(w.kubeconfig)
	if err != nil {
		return nil, err
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("API server %s: %w", config.Host, err)
	}
	kruise, err := kruiseclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("API server %s: %w", config.Host, err)
	}
	return &rollout.Rollout{Config: w.config, Kube: kube, Kruise: kruise, Progress: progress}, nil
}

// machines returns the Nodes that run on machines.
func (w *workstation) machines(ctx context.Context) ([]*corev1.Node, error) {
	r, err := w.rollout(nil)
	if err != nil {
		return nil, err
	}
	return rollout.Machines(ctx, r.Kube)
}

// command returns a command without positional arguments. Its long text lists the exit codes.
func (w *workstation) command(
	name, short, long string, run func(*cobra.Command, *workstation) error, flags ...func(*pflag.FlagSet),
) *cobra.Command {
	command := &cobra.Command{
		Use: name, Short: short, Long: long, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if w.output != outputTable && w.output != outputJSON {
				return fmt.Errorf("--output is %q: %s and %s are accepted", w.output, outputTable, outputJSON)
			}
			if err := w.config.Validate(); err != nil {
				return err
			}
			return run(command, w)
		},
	}
	command.Flags().StringVar(&w.kubeconfig, "kubeconfig", "", kubeconfigUsage)
	for _, add := range flags {
		add(command.Flags())
	}
	return command
}

// Limits of requests: a cluster of a thousand nodes has a thousand Jobs, and the client's default of five requests a second would take
// minutes to make them.
const (
	clientQPS   = 100
	clientBurst = 200
)

const kubeconfigUsage = "kubeconfig file; if empty, as kubectl finds it, else the ServiceAccount of the pod"

// clusterConfig finds the API server as kubectl does, which ends with the pod that this runs in.
func clusterConfig(kubeconfig string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath, rules.WarnIfAllMissing = kubeconfig, false
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("no API server by --kubeconfig %q, the variable KUBECONFIG %q or a pod's ServiceAccount: %w", kubeconfig,
			os.Getenv(clientcmd.RecommendedConfigPathEnvVar), err)
	}
	config.QPS, config.Burst = clientQPS, clientBurst
	return rest.AddUserAgent(config, userAgent), nil
}

// defaultConfigMap is the manager's, and cloudConfigKey is its key.
const (
	defaultConfigMap = "kube-system/cloud-config"
	cloudConfigKey   = "cloud-config.conf"
)

// configMapGetter reads a ConfigMap.
type configMapGetter func(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)

// newConfigMapSource asks ECS with the cloud-config of a ConfigMap, which it reads when it is asked: the role of most pods does not allow
// that, and most nodes never need it.
func newConfigMapSource(get configMapGetter, path string, environment provider.Environment) (initor.Source, error) {
	namespace, name, _ := strings.Cut(path, "/")
	if namespace == "" || name == "" {
		return initor.Source{}, fmt.Errorf("--cloud-config-map is %q: NAMESPACE/NAME such as %s is accepted, or nothing", path, defaultConfigMap)
	}
	return initor.Source{Name: "ECS", Identify: func(ctx context.Context, n *corev1.Node) (node.ProviderID, error) {
		stored, err := get(ctx, namespace, name)
		switch {
		case apierrors.IsForbidden(err), apierrors.IsNotFound(err), apierrors.IsUnauthorized(err):
			return node.ProviderID{}, fmt.Errorf("%w: the cloud-config cannot be read: %w", initor.ErrNotUsable, err)
		case err != nil:
			return node.ProviderID{}, fmt.Errorf("read ConfigMap %s/%s: %w", namespace, name, err)
		}
		var ecs *initor.ECSSource
		config, err := provider.ReadConfig(strings.NewReader(stored.Data[cloudConfigKey]))
		if err == nil {
			ecs, err = ecsSourceOf(config, environment)
		}
		if err != nil {
			return node.ProviderID{}, fmt.Errorf("%w: ConfigMap %s/%s, key %s: %w", initor.ErrIncomplete, namespace, name, cloudConfigKey, err)
		}
		return ecs.Source().Identify(ctx, n)
	}}, nil
}
