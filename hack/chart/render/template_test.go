package render

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yannh/kubeconform/pkg/validator"
)

// template renders the chart, which must succeed.
func template(t *testing.T, o Options) string {
	t.Helper()
	text, err := Template(chartDir, o)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestLint(t *testing.T) {
	t.Parallel()
	messages, err := Lint(chartDir, Options{KubeVersion: KubernetesVersions[0]})
	if err != nil || len(messages) > 0 {
		t.Errorf("%v, %v", messages, err)
	}
	if messages, err = Lint(chartDir, Options{Set: []string{"replicas=two"}}); err != nil || len(messages) == 0 {
		t.Errorf("two replicas: %v, %v", messages, err)
	}
}

// TestRendersValidManifests renders every setting for every version and lets kubeconform judge. TestHelms compares with what users get.
func TestRendersValidManifests(t *testing.T) {
	t.Parallel()
	for _, version := range KubernetesVersions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			v := conform(t, version)
			for setting, sets := range Settings {
				manifest := template(t, Options{KubeVersion: version, Set: sets})
				checkPods(t, setting, manifest)
				v.check(setting, manifest)
			}
			files, err := filepath.Glob(root + "/deploy/*.yaml")
			if err != nil || len(files) == 0 {
				t.Fatalf("deploy/ has %v, %v", files, err)
			}
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				v.check(file, string(text))
			}
		})
	}
}

// conformer lets kubeconform judge manifests.
type conformer struct {
	*testing.T
	validator.Validator
}

// conform judges by the schemas of a Kubernetes version. Custom resources are judged by their own Go types, see TestCustomResources.
func conform(t *testing.T, version string) conformer {
	t.Helper()
	custom := map[string]struct{}{"BroadcastJob": {}, "PrometheusRule": {}, "ServiceMonitor": {}}
	v, err := validator.New([]string{schemas(t, version) + "/{{ .ResourceKind }}.json"}, validator.Opts{Strict: true, SkipKinds: custom})
	if err != nil {
		t.Fatal(err)
	}
	return conformer{T: t, Validator: v}
}

// faults are the reasons why a manifest is not valid.
func (c conformer) faults(name, manifest string) []error {
	var faults []error
	valid := 0
	for _, result := range c.Validate(name, io.NopCloser(strings.NewReader(manifest))) {
		switch result.Status {
		case validator.Valid:
			valid++
		case validator.Skipped, validator.Empty:
		default:
			faults = append(faults, fmt.Errorf("%s: %w", name, result.Err))
		}
	}
	if valid == 0 && len(faults) == 0 {
		faults = append(faults, fmt.Errorf("%s: has no object", name))
	}
	return faults
}

func (c conformer) check(name, manifest string) {
	c.Helper()
	for _, fault := range c.faults(name, manifest) {
		c.Error(fault)
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
	for _, version := range KubernetesVersions {
		v := conform(t, version)
		for name, manifest := range map[string]string{
			"unknown field": "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 80, prot: TCP}]}\n",
			"wrong type":    "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: eighty}]}\n",
			"unknown kind":  "apiVersion: v1\nkind: Servce\nmetadata: {name: a}\n",
		} {
			if faults := v.faults(name, manifest); len(faults) != 1 {
				t.Errorf("%s, Kubernetes %s: %v, want one fault", name, version, faults)
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
	for _, version := range KubernetesVersions {
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
	for _, test := range Refused {
		_, err := Template(chartDir, test.Options)
		for _, want := range append(test.Want, "") {
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("%v: %v, want an error that holds %q", test.Options, err, test.Want)
			}
		}
	}
}

// TestDeployIsFresh renders deploy/ anew, without blank lines, and without comments and labels of a Helm release, because kubectl creates
// none. It comes after the tests that write what it renders.
func TestDeployIsFresh(t *testing.T) { // not parallel, see above
	for _, test := range []struct {
		file, about string
		options     Options
	}{
		{"ccm", "cloud-controller-manager. Set --cluster-cidr to the pod network of your cluster.", Options{ShowOnly: []string{"rbac", "workload", "poddisruptionbudget"}}},
		{"provider-initor", "provider-initor on every node. Requires OpenKruise. Before Kubernetes 1.30, delete the policy and its binding at the end.",
			Options{Set: []string{"initializer.enabled=true", "routes.enabled=false"}, ShowOnly: []string{"initializer", "initializer-policy"}}},
		{"admission-policy", "Policies for the annotations of Services. Require Kubernetes 1.30 or later.",
			Options{Set: []string{"routes.enabled=false"}, ShowOnly: []string{"admission-policy", "admission-unknown-keys"}}},
		{"admission-restrictions", "Allows public, existing and preserved load balancers only in namespaces with the label alicloud-ccm/internet=allowed. Requires Kubernetes 1.30 or later.",
			Options{ValuesFile: root + "/hack/restrictions.yaml", Set: []string{"routes.enabled=false"}, ShowOnly: []string{"admission-restrictions"}}},
	} {
		test.options.Release, test.options.KubeVersion = "cloud-controller-manager", "1.30.0"
		for i, name := range test.options.ShowOnly {
			test.options.ShowOnly[i] = "templates/" + name + ".yaml"
		}
		lines := strings.SplitAfter(template(t, test.options), "\n")
		lines = slices.DeleteFunc(lines, func(line string) bool {
			return line == "\n" || strings.HasPrefix(line, "# Source: ") || strings.HasSuffix(line, "app.kubernetes.io/managed-by: Helm\n")
		})
		fresh(t, root+"/deploy/"+test.file+".yaml", []byte("# "+test.about+
			"\n# Rendered from charts/cloud-controller-manager: change the chart and run make generate.\n"+strings.Join(lines, "")))
	}
}

// TestOldKubernetes: before 1.30, the API server has no admission policies.
func TestOldKubernetes(t *testing.T) {
	t.Parallel()
	if text := template(t, Options{KubeVersion: "1.29.0"}); strings.Contains(text, "AdmissionPolicy") {
		t.Errorf("for 1.29: an admission policy in\n%s", text)
	}
}
