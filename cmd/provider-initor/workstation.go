package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
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
	access      access
	config      rollout.Config
	output      string
	cloudConfig string // of check
}

func newWorkstation(getenv func(string) string) *workstation {
	return &workstation{access: newAccess(getenv), config: rollout.Config{
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

// clients returns the clients of the cluster.
func (w *workstation) clients() (kubernetes.Interface, kruiseclient.Interface, error) {
	config, err := w.access.workstationConfig()
	if err != nil {
		return nil, nil, err
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("API server %s: %w", config.Host, err)
	}
	kruise, err := kruiseclient.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("API server %s: %w", config.Host, err)
	}
	return kube, kruise, nil
}

// machines returns the Nodes that run on machines.
func (w *workstation) machines(ctx context.Context) ([]*corev1.Node, error) {
	kube, _, err := w.clients()
	if err != nil {
		return nil, err
	}
	return rollout.Machines(ctx, kube)
}

// rollout builds what the flags describe; progress may be nil.
func (w *workstation) rollout(progress func([]rollout.NodeState)) (*rollout.Rollout, error) {
	kube, kruise, err := w.clients()
	if err != nil {
		return nil, err
	}
	return rollout.New(rollout.Options{Config: w.config, Kube: kube, Kruise: kruise, Progress: progress})
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
			return run(command, w)
		},
	}
	w.access.addFlags(command.Flags())
	for _, add := range flags {
		add(command.Flags())
	}
	return command
}

// envKubeconfig gives --kubeconfig its default.
const envKubeconfig = "KUBECONFIG"

// Limits of a workstation's requests: a cluster of a thousand nodes has a thousand Jobs, and the client's default of five
// requests a second would take minutes to make them.
const (
	workstationQPS   = 100
	workstationBurst = 200
)

// access says how the API server is reached.
type access struct {
	path string   // of the flag
	list []string // of the environment
}

func newAccess(getenv func(string) string) access {
	return access{list: filepath.SplitList(getenv(envKubeconfig))}
}

func (a *access) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&a.path, "kubeconfig", "",
		"kubeconfig file; if empty, those of the environment's "+envKubeconfig+", else the pod's ServiceAccount")
}

// restConfig says how the API server is reached: the flag, else the environment, else the pod that this runs in.
func (a *access) restConfig() (*rest.Config, error) {
	var config *rest.Config
	var err error
	switch {
	case a.path == "" && len(a.list) == 0:
		config, err = rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, fmt.Errorf("no API server: set --kubeconfig or the variable %s, or run in a pod", envKubeconfig)
		}
		if err != nil {
			return nil, fmt.Errorf("the pod's ServiceAccount: %w", err)
		}
	default:
		config, err = load(&clientcmd.ClientConfigLoadingRules{ExplicitPath: a.path, Precedence: a.list})
		if err != nil && a.path != "" {
			return nil, fmt.Errorf("--kubeconfig %q: %w", a.path, err)
		}
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", envKubeconfig, a.list, err)
		}
	}
	return rest.AddUserAgent(config, userAgent), nil
}

// workstationConfig is like restConfig, but finds the cluster as kubectl does, ~/.kube/config included.
func (a *access) workstationConfig() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = a.path
	config, err := load(rules)
	if err != nil {
		return nil, fmt.Errorf("no cluster: set --kubeconfig or the variable %s: %w", envKubeconfig, err)
	}
	config.QPS, config.Burst = workstationQPS, workstationBurst
	return rest.AddUserAgent(config, userAgent), nil
}

func load(rules *clientcmd.ClientConfigLoadingRules) (*rest.Config, error) {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
}

// defaultConfigMap is the manager's, and cloudConfigKey is its key.
const (
	defaultConfigMap = "kube-system/cloud-config"
	cloudConfigKey   = "cloud-config.conf"
)

// configMapGetter reads a ConfigMap.
type configMapGetter func(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)

// configMapSource asks ECS with the cloud-config of a ConfigMap, which it reads when it is asked: the role of most pods does not allow that,
// and most nodes never need it.
type configMapSource struct {
	get             configMapGetter
	namespace, name string
	environment     provider.Environment
}

func newConfigMapSource(get configMapGetter, path string, environment provider.Environment) (*configMapSource, error) {
	namespace, name, _ := strings.Cut(path, "/")
	if namespace == "" || name == "" {
		return nil, fmt.Errorf("--cloud-config-map is %q: NAMESPACE/NAME such as %s is accepted, or nothing", path, defaultConfigMap)
	}
	return &configMapSource{get: get, namespace: namespace, name: name, environment: environment}, nil
}

// Name implements [initor.Source].
func (*configMapSource) Name() string { return "ECS" }

// Identify implements [initor.Source].
func (s *configMapSource) Identify(ctx context.Context, n *corev1.Node) (node.ProviderID, error) {
	stored, err := s.get(ctx, s.namespace, s.name)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err), apierrors.IsUnauthorized(err):
		return node.ProviderID{}, fmt.Errorf("%w: the cloud-config cannot be read: %w", initor.ErrNotUsable, err)
	case err != nil:
		return node.ProviderID{}, fmt.Errorf("read ConfigMap %s/%s: %w", s.namespace, s.name, err)
	}
	ecs, err := s.parse(stored)
	if err != nil {
		return node.ProviderID{}, fmt.Errorf("%w: ConfigMap %s/%s, key %s: %w", initor.ErrIncomplete, s.namespace, s.name, cloudConfigKey, err)
	}
	return ecs.Identify(ctx, n)
}

func (s *configMapSource) parse(stored *corev1.ConfigMap) (*initor.ECSSource, error) {
	config, err := provider.ReadConfig(strings.NewReader(stored.Data[cloudConfigKey]))
	if err != nil {
		return nil, err
	}
	return ecsSourceOf(config, s.environment)
}
