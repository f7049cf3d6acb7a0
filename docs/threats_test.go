package docs

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// setting is a value of the chart in a page.
var setting = regexp.MustCompile("`((?:policy|admissionPolicy|initializer|cloudConfig|credentials|controlPlaneNodes|clusterCIDR|serving|metrics|networkPolicy)(?:\\.\\w+)*)(?:=[^`]*)?`")

// TestPagesOnSecurityNameRealSettings: a setting that does not exist protects nobody.
func TestPagesOnSecurityNameRealSettings(t *testing.T) {
	t.Parallel()
	values, err := os.ReadFile("reference/chart-values.md")
	if err != nil {
		t.Fatal(err)
	}
	for path, least := range map[string]int{"docs/explanation/threat-model.md": 8, "docs/how-to/multi-tenancy.md": 2,
		"charts/cloud-controller-manager/README.md": 7} {
		found := setting.FindAllStringSubmatch(pages(t)[path], -1)
		if len(found) < least {
			t.Errorf("%s names %d settings, want at least %d", path, len(found), least)
		}
		for _, match := range found {
			if !strings.Contains(string(values), "| `"+match[1]+"` |") {
				t.Errorf("%s: the chart has no value %s", path, match[1])
			}
		}
	}
}
