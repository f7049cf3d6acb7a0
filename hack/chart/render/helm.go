package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"helm.sh/helm/v4/pkg/strvals"
)

// Options are those of "helm template". The zero value renders for the newest Kubernetes that is tested; without a version, a Helm that is
// built from source would take it for 1.20.
type Options struct {
	Release, KubeVersion, ValuesFile string
	SetJSON, Set, ShowOnly           []string
}

// complete sets what is not set, and the pod network, without which nothing renders.
func (o Options) complete() Options {
	o.Release = cmp.Or(o.Release, "ccm")
	o.KubeVersion = cmp.Or(o.KubeVersion, KubernetesVersions[len(KubernetesVersions)-1])
	o.Set = append([]string{"clusterCIDR=10.244.0.0/16"}, o.Set...)
	return o
}

// Flags are the options as flags of Helm.
func (o Options) Flags() []string {
	o = o.complete()
	flags := []string{"--namespace", "kube-system", "--kube-version", o.KubeVersion}
	for _, set := range o.SetJSON {
		flags = append(flags, "--set-json", set)
	}
	for _, set := range o.Set {
		flags = append(flags, "--set", set)
	}
	return flags
}

// read reads what a user sets, in Helm's order.
func (o Options) read() (map[string]any, *common.KubeVersion, error) {
	version, err := common.ParseKubeVersion(o.KubeVersion)
	if err != nil {
		return nil, nil, err
	}
	values := common.Values{}
	if o.ValuesFile != "" {
		if values, err = common.ReadValuesFile(o.ValuesFile); err != nil {
			return nil, nil, err
		}
	}
	for _, set := range o.SetJSON {
		if err := strvals.ParseJSON(set, values); err != nil {
			return nil, nil, fmt.Errorf("--set-json %s: %w", set, err)
		}
	}
	for _, set := range o.Set {
		if err := strvals.ParseInto(set, values); err != nil {
			return nil, nil, fmt.Errorf("--set %s: %w", set, err)
		}
	}
	return values, version, nil
}

// Template returns what "helm template" prints, but for blank lines: TestHelms compares.
func Template(chartDir string, o Options) (string, error) {
	o = o.complete()
	values, version, err := o.read()
	if err != nil {
		return "", err
	}
	chart, err := loader.LoadDir(chartDir)
	if err != nil {
		return "", err
	}
	if wanted := chart.Metadata.KubeVersion; !chartutil.IsCompatibleRange(wanted, version.String()) {
		return "", fmt.Errorf("chart requires kubeVersion: %s which is incompatible with Kubernetes %s", wanted, version.Version)
	}
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *version
	all, err := util.ToRenderValues(chart, values, common.ReleaseOptions{Name: o.Release, Namespace: "kube-system", Revision: 1, IsInstall: true},
		capabilities)
	if err != nil {
		return "", err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return "", err
	}
	delete(files, chart.Name()+"/templates/NOTES.txt")
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return "", err
	}
	for _, hook := range hooks {
		manifests = append(manifests, releaseutil.Manifest{Name: hook.Path, Content: hook.Manifest})
	}
	return o.show(chart.Name(), manifests), nil
}

// show prints the manifests that are asked for, in the order in which they are.
func (o Options) show(chart string, manifests []releaseutil.Manifest) string {
	var shown strings.Builder
	only := o.ShowOnly
	if len(only) == 0 {
		only = []string{""}
	}
	for _, name := range only {
		for _, m := range manifests {
			if name == "" || m.Name == chart+"/"+name {
				fmt.Fprintf(&shown, "---\n# Source: %s\n%s\n", m.Name, m.Content)
			}
		}
	}
	return shown.String()
}

// Lint returns what "helm lint --strict" fails for.
func Lint(chartDir string, o Options) ([]support.Message, error) {
	values, version, err := o.complete().read()
	if err != nil {
		return nil, err
	}
	messages := lint.RunAll(chartDir, values, "kube-system", lint.WithKubeVersion(version)).Messages
	return slices.DeleteFunc(messages, func(m support.Message) bool { return m.Severity < support.WarningSev }), nil
}
