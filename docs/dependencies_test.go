package docs

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestEveryModuleIsUpdated: a module that Dependabot does not know keeps its vulnerable dependencies for ever, and nobody notices.
func TestEveryModuleIsUpdated(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, ".github", "dependabot.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Updates []struct {
			Ecosystem   string   `json:"package-ecosystem"` //nolint:tagliatelle // the file's name for it
			Directory   string   `json:"directory"`
			Directories []string `json:"directories"`
		} `json:"updates"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	updated := map[string][]string{}
	for _, update := range config.Updates {
		updated[update.Ecosystem] = append(updated[update.Ecosystem], append(update.Directories, update.Directory)...)
	}
	files, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "*go.mod", "*package.json").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range strings.Fields(string(files)) {
		ecosystem := "gomod"
		if path.Base(file) == "package.json" {
			ecosystem = "npm"
		}
		if directory := path.Join("/", path.Dir(file)); !slices.Contains(updated[ecosystem], directory) {
			t.Errorf(".github/dependabot.yml does not list %s for %s", directory, ecosystem)
		}
	}
}

// TestKubernetesVersions: the page names the releases that the tests run with, and the range that the chart accepts.
func TestKubernetesVersions(t *testing.T) {
	t.Parallel()
	read := func(elements ...string) string {
		text, err := os.ReadFile(filepath.Join(append([]string{root}, elements...)...))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	page := read("docs", "reference", "kubernetes-versions.md")
	modules, err := filepath.Glob(filepath.Join(root, "hack", "kubernetes", "v*", "go.mod"))
	if err != nil || len(modules) != 2 {
		t.Fatalf("modules of other releases: %v, %v", modules, err)
	}
	version := regexp.MustCompile(`k8s\.io/kubernetes v(\S+)`)
	texts := []string{read("sandbox", "go.mod")}
	for _, module := range modules {
		texts = append(texts, read("hack", "kubernetes", filepath.Base(filepath.Dir(module)), "go.mod"))
	}
	for _, text := range texts {
		found := version.FindStringSubmatch(text)
		if found == nil || !strings.Contains(page, "| "+found[1]+" |") {
			t.Errorf("the table does not have the version of the module, %v: run make test-kubernetes", found)
		}
	}
	if strings.Contains(page, "failed**") {
		t.Error("the table has failed tests")
	}
	accepted := regexp.MustCompile(`kubeVersion: "(.*)"`).FindStringSubmatch(read("charts", "cloud-controller-manager", "Chart.yaml"))
	if accepted == nil || !strings.Contains(page, "`"+accepted[1]+"`") {
		t.Errorf("the page does not name the range of the chart, %v", accepted)
	}
}
