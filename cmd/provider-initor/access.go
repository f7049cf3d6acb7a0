package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

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
	config, err := a.loadConfig()
	if err != nil {
		return nil, err
	}
	return rest.AddUserAgent(config, userAgent), nil
}

// workstationConfig is like restConfig, but finds the cluster as kubectl does, ~/.kube/config included.
func (a *access) workstationConfig() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = a.path
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("no cluster: set --kubeconfig or the variable %s: %w", envKubeconfig, err)
	}
	config.QPS, config.Burst = workstationQPS, workstationBurst
	return rest.AddUserAgent(config, userAgent), nil
}

func (a *access) loadConfig() (*rest.Config, error) {
	if a.path == "" && len(a.list) == 0 {
		config, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, fmt.Errorf("no API server: set --kubeconfig or the variable %s, or run in a pod", envKubeconfig)
		}
		if err != nil {
			return nil, fmt.Errorf("the pod's ServiceAccount: %w", err)
		}
		return config, nil
	}
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: a.path, Precedence: a.list}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.kubeconfigName(), err)
	}
	return config, nil
}

func (a *access) kubeconfigName() string {
	if a.path != "" {
		return fmt.Sprintf("--kubeconfig %q", a.path)
	}
	return fmt.Sprintf("%s %q", envKubeconfig, a.list)
}
