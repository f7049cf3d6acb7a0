package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// repositoryURL is what absolute links to files of the repository begin with.
const repositoryURL = "https://github.com/alicloud-ccm/cloud-provider-alicloud/blob/main/"

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestCodeOwners: a pattern that matches nothing, or a line without an owner, leaves changes without a reviewer.
func TestCodeOwners(t *testing.T) {
	t.Parallel()
	seen := 0
	for line := range strings.Lines(readFile(t, ".github/CODEOWNERS")) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		seen++
		if len(fields) < 2 || slices.ContainsFunc(fields[1:], func(owner string) bool { return !strings.HasPrefix(owner, "@") }) {
			t.Errorf("CODEOWNERS: %q does not name owners", fields)
		}
		if seen == 1 && fields[0] != "*" {
			t.Errorf("CODEOWNERS begins with %s, want * for all that no line names", fields[0])
		}
		if _, err := os.Stat(filepath.Join(root, fields[0])); fields[0] != "*" && err != nil {
			t.Errorf("CODEOWNERS: %v", err)
		}
	}
	if seen == 0 {
		t.Error("CODEOWNERS is empty")
	}
}

// TestIssueForms: GitHub shows no form that has another shape, and says so to nobody.
// https://docs.github.com/en/communities/using-templates-to-encourage-useful-issues-and-pull-requests/syntax-for-githubs-form-schema
func TestIssueForms(t *testing.T) {
	t.Parallel()
	forms, err := filepath.Glob(filepath.Join(root, ".github", "ISSUE_TEMPLATE", "*.yaml"))
	if err != nil || len(forms) < 2 {
		t.Fatalf("forms %v, %v", forms, err)
	}
	for _, path := range forms {
		var form struct {
			Name, Description string
			Body              []struct {
				Type, ID    string
				Attributes  struct{ Label, Description, Value, Render string }
				Validations struct{ Required bool }
			}
		}
		text := readFile(t, ".github/ISSUE_TEMPLATE/"+filepath.Base(path))
		if err := yaml.UnmarshalStrict([]byte(text), &form); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if form.Name == "" || form.Description == "" || len(form.Body) == 0 {
			t.Errorf("%s lacks a name, a description or fields", path)
		}
		ids, required := map[string]bool{}, false
		for _, field := range form.Body {
			if !slices.Contains([]string{"textarea", "input"}, field.Type) || field.Attributes.Label == "" || field.ID == "" || ids[field.ID] {
				t.Errorf("%s: field %+v", path, field)
			}
			ids[field.ID], required = true, required || field.Validations.Required
		}
		if !required {
			t.Errorf("%s: no field is required", path)
		}
	}
	var config struct {
		Blank *bool                               `json:"blank_issues_enabled"` //nolint:tagliatelle // GitHub's name for it
		Links []struct{ Name, URL, About string } `json:"contact_links"`        //nolint:tagliatelle // GitHub's name for it
	}
	if err := yaml.UnmarshalStrict([]byte(readFile(t, ".github/ISSUE_TEMPLATE/config.yml")), &config); err != nil {
		t.Fatal(err)
	}
	if config.Blank == nil || *config.Blank {
		t.Error("issues without a form are not switched off")
	}
	if !slices.ContainsFunc(config.Links, func(link struct{ Name, URL, About string }) bool {
		return strings.HasSuffix(link.URL, "/security/advisories/new") && link.About != ""
	}) {
		t.Errorf("links %+v, want one for vulnerabilities, which are not for an issue", config.Links)
	}
}

// templateTarget is one that a template tells people to make.
var templateTarget = regexp.MustCompile("`make ([a-z0-9 -]+)`")

// TestPullRequestTemplate: what it asks for exists.
func TestPullRequestTemplate(t *testing.T) {
	t.Parallel()
	makefile := readFile(t, "Makefile")
	found := templateTarget.FindAllStringSubmatch(readFile(t, ".github/pull_request_template.md"), -1)
	if len(found) == 0 {
		t.Error("the template asks for no test")
	}
	for _, match := range found {
		for _, target := range strings.Fields(match[1]) {
			if !strings.Contains(makefile, "\n"+target+": ") {
				t.Errorf("the template names make %s, which the Makefile lacks", target)
			}
		}
	}
}

// TestChartAnnotations: what a hub of charts shows of this one is what a release of it has.
func TestChartAnnotations(t *testing.T) {
	t.Parallel()
	var chart struct {
		AppVersion  string
		Home        string
		Annotations map[string]string
	}
	if err := yaml.Unmarshal([]byte(readFile(t, "charts/cloud-controller-manager/Chart.yaml")), &chart); err != nil {
		t.Fatal(err)
	}
	var images []struct {
		Name, Image string
		Platforms   []string
	}
	if err := yaml.UnmarshalStrict([]byte(chart.Annotations["artifacthub.io/images"]), &images); err != nil {
		t.Fatal(err)
	}
	values := readFile(t, "charts/cloud-controller-manager/values.yaml")
	built := regexp.MustCompile(`"arch", "([a-z0-9,]+)"`).FindStringSubmatch(readFile(t, "hack/image/main.go"))
	if built == nil || len(images) != 2 {
		t.Fatalf("architectures %v, images %v", built, images)
	}
	want := "linux/" + strings.ReplaceAll(built[1], ",", " linux/")
	for _, image := range images {
		repository, tag, _ := strings.Cut(image.Image, ":")
		if tag != chart.AppVersion || !strings.Contains(values, "repository: "+repository+"\n") || strings.Join(image.Platforms, " ") != want {
			t.Errorf("image %+v, want one of values.yaml with the tag %s for %s", image, chart.AppVersion, want)
		}
	}
	var links []struct{ Name, URL string }
	if err := yaml.UnmarshalStrict([]byte(chart.Annotations["artifacthub.io/links"]), &links); err != nil || len(links) == 0 {
		t.Fatalf("links %v, %v", links, err)
	}
	for _, link := range links {
		path, ok := strings.CutPrefix(link.URL, repositoryURL)
		if _, err := os.Stat(filepath.Join(root, path)); !ok || err != nil {
			t.Errorf("link %+v leads nowhere: %v", link, err)
		}
	}
	// https://semver.org: before 1.0.0 anything may change.
	if before := strings.HasPrefix(chart.AppVersion, "0."); chart.Annotations["artifacthub.io/prerelease"] == "true" != before {
		t.Errorf("version %s, prerelease %s", chart.AppVersion, chart.Annotations["artifacthub.io/prerelease"])
	}
}

// TestChartReadme: each value that it names exists.
func TestChartReadme(t *testing.T) {
	t.Parallel()
	documented := readFile(t, "docs/reference/chart-values.md")
	row := regexp.MustCompile("(?m)^\\|[^|]+\\| (`[^|]+) \\|$")
	name := regexp.MustCompile("`([a-zA-Z.]+)")
	seen := 0
	for _, match := range row.FindAllStringSubmatch(readFile(t, "charts/cloud-controller-manager/README.md"), -1) {
		for _, value := range name.FindAllStringSubmatch(match[1], -1) {
			seen++
			if !strings.Contains(documented, "`"+value[1]+"`") && !strings.Contains(documented, "`"+value[1]+".") {
				t.Errorf("the README of the chart names %s, which the chart lacks", value[1])
			}
		}
	}
	if seen < 8 {
		t.Errorf("saw %d values", seen)
	}
}

// TestWorkflowsAreBounded: a workflow has no more rights than it says, no job runs for ever, and a command that fails in front of a pipe
// ends its step. actionlint checks the rest.
func TestWorkflowsAreBounded(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yml"))
	if err != nil || len(paths) < 2 {
		t.Fatalf("workflows %v, %v", paths, err)
	}
	for _, path := range paths {
		var workflow struct {
			Permissions map[string]string
			Defaults    struct{ Run struct{ Shell string } }
			Jobs        map[string]struct {
				Timeout int `json:"timeout-minutes"` //nolint:tagliatelle // GitHub's name for it
				Steps   []struct{ Run string }
			}
		}
		if err := yaml.Unmarshal([]byte(readFile(t, ".github/workflows/"+filepath.Base(path))), &workflow); err != nil {
			t.Fatal(err)
		}
		if len(workflow.Permissions) != 1 || workflow.Permissions["contents"] != "read" {
			t.Errorf("%s: permissions %v, want to read only, and more in single jobs", path, workflow.Permissions)
		}
		// https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-syntax#defaultsrunshell: only when it is named, bash has pipefail.
		if workflow.Defaults.Run.Shell != "bash" {
			t.Errorf("%s: the shell is %q, want bash", path, workflow.Defaults.Run.Shell)
		}
		for name, job := range workflow.Jobs {
			if job.Timeout == 0 {
				t.Errorf("%s: job %s has no time limit", path, name)
			}
			for _, step := range job.Steps {
				if strings.Contains(step.Run, "${{") {
					t.Errorf("%s: job %s puts an expression into a script: %s", path, name, step.Run)
				}
			}
		}
	}
}

// pinnedAction is an action by its commit, with the version of that in a comment, as Dependabot keeps it.
var pinnedAction = regexp.MustCompile(`uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)

// TestActionsArePinned: a tag of an action can be moved, and the release job signs and publishes as this project.
func TestActionsArePinned(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yml"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, path := range paths {
		for line := range strings.Lines(readFile(t, ".github/workflows/"+filepath.Base(path))) {
			if line = strings.TrimSpace(line); !strings.Contains(line, "uses:") || strings.HasPrefix(line, "#") {
				continue
			}
			if found++; !pinnedAction.MatchString(line) {
				t.Errorf("%s: %q is not pinned to a commit with the version in a comment", filepath.Base(path), line)
			}
		}
	}
	if found < 5 {
		t.Errorf("%d actions", found)
	}
}
