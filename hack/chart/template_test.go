package chart

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// kubernetesVersions are those whose schemas testdata holds: the first with the API of admission policies, one between, the sandbox's.
// Without one, helm 3 built from source would take Kubernetes for 1.20.
var kubernetesVersions = []string{"1.30.10", "1.35.2", "1.37.1"}

// settings are ways to set the chart's values; each must render, and what it renders must be valid everywhere.
var settings = map[string][]string{
	"routes off":      {"routes.enabled=false", "clusterCIDR="},
	"daemon set":      {"kind=DaemonSet"},
	"daemon set, all": {"kind=DaemonSet", "controlPlaneNodes=ignore"},
	"one replica":     {"replicas=1", "controlPlaneNodes=require"},
	"pod network":     {"hostNetwork=false", "networkPolicy.enabled=true"},
	"policy peers": {"hostNetwork=false", "networkPolicy.enabled=true",
		"networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.team=monitoring"},
	"placement": {"nodeSelector.pool=system", "tolerations[0].key=dedicated", "tolerations[0].operator=Exists",
		"priorityClassName=system-node-critical"},
	"images": {"image.repository=registry.example.com/ccm", "image.tag=v9", "image.pullPolicy=Always",
		"imagePullSecrets[0].name=pull"},
	"two families": {`clusterCIDR=10.244.0.0/16\,fd00:10::/56`},
	"secret file":  {"cloudConfig.secretName=cloud-config"},
	"global": {"cloudConfig.global.region=cn-hangzhou", "cloudConfig.global.disablePublicSLB=true",
		"cloudConfig.global.quotas.slb_quota_listeners_num=70", "cloudConfig.global.allowedIDs[0].ids={cert-1}"},
	"global with key": {"cloudConfig.global.region=cn-hangzhou", "credentials.accessKeyID=id", "credentials.accessKeySecret=secret"},
	"key secret":      {"credentials.secretName=key", "credentials.secretIDKey=id", "credentials.secretSecretKey=secret"},
	"rrsa": {"credentials.rrsa.enabled=true", "credentials.rrsa.roleARN=acs:ram::1:role/ccm",
		"credentials.rrsa.oidcProviderARN=acs:ram::1:oidc-provider/k"},
	"endpoints": {"endpoints.ecs=ecs.example.com", "endpoints.slb=slb.example.com:8443", "endpoints.nlb=nlb.example.com",
		"endpoints.vpc=https://vpc.example.com", "endpoints.sts=sts.example.com", "endpoints.metadata=http://10.0.0.1"},
	"extras": {"extraArgs[0]=--v=4", "extraEnv[0].name=HTTPS_PROXY", "extraEnv[0].value=http://proxy:3128", "podLabels.a=b",
		"podAnnotations.c=d", "resources.limits.memory=1Gi"},
	"metrics": {"metrics.serviceMonitor.enabled=true", "metrics.serviceMonitor.labels.release=p", "metrics.readers[0].name=prometheus",
		"metrics.readers[0].namespace=monitoring"},
	"certificate": {"metrics.serviceMonitor.enabled=true", "serving.tlsSecretName=ccm-tls"},
	"alerts": {"metrics.prometheusRule.enabled=true", "metrics.prometheusRule.labels.release=p", "metrics.dashboard.enabled=true",
		"metrics.dashboard.labels.team=a"},
	"no policy":      {"admissionPolicy.enabled=false"},
	"warning policy": {"admissionPolicy.action=Warn"},
	"restrictions": {
		"admissionPolicy.restrictions[0].name=a", "admissionPolicy.restrictions[0].namespaceSelector.matchLabels.team=a",
		"admissionPolicy.restrictions[0].annotations={loadbalancer-id,loadbalancer-spec}",
		"admissionPolicy.restrictions[1].name=b", "admissionPolicy.restrictions[1].namespaceSelector.matchLabels.team=b",
		"admissionPolicy.restrictions[1].addressTypes={intranet}", "admissionPolicy.restrictions[1].action=Warn",
	},
	"no NLB":      {"nlb.enabled=false"},
	"no budget":   {"podDisruptionBudget.enabled=false"},
	"initializer": {"initializer.enabled=true", "initializer.image.tag=v9"},
	"initializer, jobs": {
		"initializer.enabled=true", "initializer.driver=job", "initializer.nodes={node-1,node-2}",
		"initializer.cloudConfig.configMapName=cloud-config",
		"initializer.extraArgs[0]=--require-ecs",
	},
	"part of another": {"global.imageRegistry=registry.example.com"},
}

// arguments are those of helm template and helm install for one of the settings.
func arguments(sets []string) []string {
	args := []string{"--namespace", "kube-system", "--set", "clusterCIDR=10.244.0.0/16"}
	for _, set := range sets {
		args = append(args, "--set", set)
	}
	return args
}

func TestLint(t *testing.T) {
	t.Parallel()
	for name, pkg := range helms() {
		got := run(t.Context(), t, nil, tool(t, pkg), "lint", "--strict", chartDir, "--set", "clusterCIDR=10.244.0.0/16", "--kube-version",
			kubernetesVersions[0])
		if got.code != 0 {
			t.Errorf("%s lint: %s%s", name, got.stdout, got.stderr)
		}
	}
}

// TestRendersValidManifests renders every setting with both Helms for every version and lets kubeconform judge.
func TestRendersValidManifests(t *testing.T) {
	t.Parallel()
	for _, version := range kubernetesVersions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, pkg := range helms() {
				for setting, sets := range settings {
					got := run(t.Context(), t, nil, tool(t, pkg),
						append([]string{"template", "ccm", chartDir, "--kube-version", version}, arguments(sets)...)...)
					if got.code != 0 {
						t.Errorf("%s, %s: %s", name, setting, got.stderr)
					}
					checkPods(t, name+", "+setting, got.stdout)
					file := strings.NewReplacer(" ", "-", ",", "").Replace(name + "-" + setting + ".yaml")
					if err := os.WriteFile(filepath.Join(dir, file), []byte(got.stdout), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			conform(t, version, dir, filepath.Join(root, "deploy"))
		})
	}
}

// conform lets kubeconform judge manifests. Custom resources are judged by their own Go types, see TestCustomResources.
func conform(t *testing.T, version string, paths ...string) {
	t.Helper()
	args := []string{"-strict", "-summary", "-skip", "BroadcastJob,PrometheusRule,ServiceMonitor", "-schema-location",
		schemas(t, version) + "/{{ .ResourceKind }}.json"}
	got := run(t.Context(), t, nil, tool(t, kubeconform), append(args, paths...)...)
	if got.code != 0 || !strings.Contains(got.stdout, "Invalid: 0, Errors: 0") {
		t.Errorf("kubeconform for Kubernetes %s: %s%s", version, got.stdout, got.stderr)
	}
}

// schemas returns a directory with the schemas of a Kubernetes version.
func schemas(t *testing.T, version string) string {
	t.Helper()
	packed, err := os.ReadFile("testdata/kubernetes-" + version + ".json.gz")
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := unpack(packed)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := unpacked.write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestConformRefuses proves that the schemas refuse something.
func TestConformRefuses(t *testing.T) {
	t.Parallel()
	for _, version := range kubernetesVersions {
		for name, manifest := range map[string]string{
			"unknown field": "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 80, prot: TCP}]}\n",
			"wrong type":    "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: eighty}]}\n",
			"unknown kind":  "apiVersion: v1\nkind: Servce\nmetadata: {name: a}\n",
		} {
			path := filepath.Join(t.TempDir(), "bad.yaml")
			if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := run(t.Context(), t, nil, tool(t, kubeconform), "-strict", "-schema-location", schemas(t, version)+"/{{ .ResourceKind }}.json",
				path); got.code == 0 {
				t.Errorf("%s, Kubernetes %s: accepted", name, version)
			}
		}
	}
}

// TestSchemasUpdate makes testdata anew from the modules of Kubernetes' releases (some 50 MB each), when asked to.
func TestSchemasUpdate(t *testing.T) {
	if !*update {
		t.Log("only with -update")
		return
	}
	for _, version := range kubernetesVersions {
		download := exec.Command("go", "mod", "download", "-json", "k8s.io/kubernetes@v"+version)
		download.Dir = t.TempDir() // outside of this module: no checksum of Kubernetes belongs into its go.sum
		text, err := download.Output()
		if err != nil {
			t.Fatalf("download Kubernetes %s: %v: %s", version, err, text)
		}
		_, after, _ := strings.Cut(string(text), `"Dir": "`)
		dir, _, _ := strings.Cut(after, `"`)
		d, err := readOpenAPI(dir)
		if err != nil {
			t.Fatalf("Kubernetes %s: %v", version, err)
		}
		packed, err := d.pack()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("testdata/kubernetes-"+version+".json.gz", packed, 0o644); err != nil { //nolint:gosec // for everybody
			t.Fatal(err)
		}
	}
}

// TestBadValuesAreRefused holds every mistake to one message that names the value.
func TestBadValuesAreRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		sets []string
		want []string
	}{
		{[]string{"clusterCIDR="}, []string{"clusterCIDR is empty", "10.244.0.0/16"}},
		{[]string{"clusterCidr=10.0.0.0/8"}, []string{"clusterCidr"}},
		{[]string{"image.tags=v1"}, []string{"image", "tags"}},
		{[]string{"replicas=0"}, []string{"replicas", "1"}},
		{[]string{"replicas=two"}, []string{"replicas", "integer"}},
		{[]string{"kind=StatefulSet"}, []string{"kind", "Deployment", "DaemonSet"}},
		{[]string{"routes.reconciliationPeriod=often"}, []string{"routes", "reconciliationPeriod", "often"}},
		{[]string{"credentials.accessKeyID=id"}, []string{"credentials.accessKeySecret", "only one is set"}},
		{[]string{"credentials.accessKeyID=id", "credentials.accessKeySecret=s3cr3t"}, []string{"cloudConfig.global is empty"}},
		{[]string{"credentials.secretName=key", "credentials.rrsa.enabled=true"}, []string{"more than one of"}},
		{[]string{"credentials.rrsa.enabled=true"}, []string{"credentials.rrsa.roleARN", "acs:ram::"}},
		{[]string{"credentials.rrsa.roleARN=ccm"}, []string{"roleARN"}},
		{[]string{"cloudConfig.global.accessKeyID=id"}, []string{"cloudConfig.global.accessKeyID", "credentials.accessKeyID"}},
		{[]string{"networkPolicy.enabled=true"}, []string{"networkPolicy.enabled", "hostNetwork"}},
		{[]string{"extraArgs[0]=v=4"}, []string{"extraArgs"}},
		{[]string{"admissionPolicy.action=Refuse"}, []string{"action", "Deny"}},
		{[]string{"metrics.readers[0].name=prometheus"}, []string{"readers", "namespace"}},
	} {
		for name, pkg := range helms() {
			got := run(t.Context(), t, nil, tool(t, pkg),
				append([]string{"template", "ccm", chartDir, "--kube-version", kubernetesVersions[2]}, arguments(test.sets)...)...)
			missing := slices.ContainsFunc(test.want, func(want string) bool { return !strings.Contains(got.stderr, want) })
			if got.code == 0 || missing || strings.Contains(got.stderr, "s3cr3t") {
				t.Errorf("%s with %v: exit code %d, %s, want an error that holds %q", name, test.sets, got.code, got.stderr, test.want)
			}
		}
	}
}

// TestDeployIsFresh renders deploy/ anew.
func TestDeployIsFresh(t *testing.T) {
	t.Parallel()
	if got := run(t.Context(), t, []string{"HELM=" + tool(t, helm4)}, root+"/hack/render.sh", "--check"); got.code != 0 {
		t.Errorf("%s%s", got.stdout, got.stderr)
	}
}

func TestOldKubernetes(t *testing.T) {
	t.Parallel()
	for name, pkg := range helms() {
		got := run(t.Context(), t, nil, tool(t, pkg),
			append([]string{"template", "ccm", chartDir, "--kube-version", "1.29.0"}, arguments(nil)...)...)
		if got.code != 0 || strings.Contains(got.stdout, "AdmissionPolicy") {
			t.Errorf("%s for 1.29: exit code %d, %s, want manifests without admission policy", name, got.code, got.stderr)
		}
		got = run(t.Context(), t, nil, tool(t, pkg),
			append([]string{"template", "ccm", chartDir, "--kube-version", "1.20.0"}, arguments(nil)...)...)
		if got.code == 0 || !strings.Contains(got.stderr, ">=1.21.0") {
			t.Errorf("%s for 1.20: exit code %d, %s, want an error that names the version needed", name, got.code, fmt.Sprint(got.stderr))
		}
	}
}
