package docs

import (
	"os"
	"regexp"
	"testing"
)

var (
	appVersion = regexp.MustCompile(`(?m)^appVersion: (\S+)$`)
	imageTag   = regexp.MustCompile(`ghcr\.io/alicloud-ccm/[a-z-]+:([\w.-]+)`)
)

// TestPagesNameOneImage: the tag in commands is that of the chart, which is that of make image at that version.
func TestPagesNameOneImage(t *testing.T) {
	t.Parallel()
	chart, err := os.ReadFile(root + "/charts/cloud-controller-manager/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := appVersion.FindStringSubmatch(string(chart))
	if want == nil {
		t.Fatal("the chart has no appVersion")
	}
	for path, text := range pages(t) {
		for _, found := range imageTag.FindAllStringSubmatch(text, -1) {
			if found[1] != want[1] && found[1] != "sandbox" { // the sandbox builds its own
				t.Errorf("%s: %s, want the tag %s of the chart", path, found[0], want[1])
			}
		}
	}
}

// TestUpgradesKeepValues: without this flag, an upgrade of a release resets what somebody has set before.
func TestUpgradesKeepValues(t *testing.T) {
	t.Parallel()
	command := regexp.MustCompile(`helm upgrade (?:[^\n]*\\\n)*[^\n]*`)
	seen := 0
	for path, text := range pages(t) {
		for _, found := range command.FindAllString(text, -1) {
			seen++
			if !regexp.MustCompile(`--reset-then-reuse-values|--values `).MatchString(found) {
				t.Errorf("%s: %s: want --reset-then-reuse-values", path, found)
			}
		}
	}
	if seen == 0 {
		t.Error("no page has an upgrade")
	}
}
