package main

import (
	"context"
	"fmt"
	"strings"

	kruiseclient "github.com/openkruise/kruise-api/client/clientset/versioned"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/version"

	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/initor/rollout"
)

// imageRepository is where the project publishes the image of this program.
const imageRepository = "ghcr.io/alicloud-ccm/provider-initor"

// workstation are the flags that the commands for a workstation share.
type workstation struct {
	access access
	config rollout.Config
	output string
}

func newWorkstation(getenv func(string) string) *workstation {
	return &workstation{access: newAccess(getenv), config: rollout.Config{
		Name: rollout.DefaultName, Namespace: rollout.DefaultNamespace, Driver: rollout.DriverBroadcastJob,
		Image: defaultImage(version.Get().GitVersion), Timeout: rollout.DefaultTimeout, AdmissionPolicy: true,
	}}
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
	flags.BoolVar(&w.config.Keep, "keep", false, "keep the BroadcastJob, its ServiceAccount and its role in the cluster, for nodes that join later")
}

func (w *workstation) addOutputFlag(flags *pflag.FlagSet) {
	flags.StringVarP(&w.output, "output", "o", outputTable, "output format: table or json")
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
	return rollout.Machines(ctx, kube.CoreV1().Nodes())
}

// rollout builds what the flags describe; progress may be nil.
func (w *workstation) rollout(progress func([]rollout.NodeState)) (*rollout.Rollout, error) {
	kube, kruise, err := w.clients()
	if err != nil {
		return nil, err
	}
	return rollout.New(rollout.Options{Config: w.config, Kube: kube, Kruise: kruise, Progress: progress})
}

// newWorkstationCommand returns a command without positional arguments. Its long text lists the exit codes.
func newWorkstationCommand(name, short, long string, run func(*cobra.Command) error) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Long: long, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return run(command) },
	}
}
