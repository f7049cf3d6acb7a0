package waits

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/golden"
)

const root = "../.."

// TestWaitsPageIsFresh compares the tables of the page with the code.
func TestWaitsPageIsFresh(t *testing.T) {
	t.Parallel()
	tables := map[string]string{}
	for _, area := range All() {
		var text strings.Builder
		text.WriteString("| what is waited for | meanwhile | at most | then | what says so |\n| --- | --- | --- | --- | --- |\n")
		for _, w := range area.Waits {
			bound := regexp.MustCompile(`^(\d+)([hms])\D*.*$`).ReplaceAllString(w.Bound.String(), "$1 $2")
			bound = strings.ReplaceAll(bound, " m", " min")
			if w.Bound%time.Minute > 0 {
				bound = fmt.Sprintf("%.0f s", w.Bound.Seconds())
			}
			if w.Bound == 0 {
				bound = "until a person acts"
			}
			fmt.Fprintf(&text, "| %s | %s | %s | %s | %s |\n", w.For, w.Meanwhile, bound, w.Then, w.Says)
		}
		tables[strings.ToLower(area.Name)] = text.String()
	}
	golden.FreshParts(t, root+"/docs/reference/waits.md", tables)
}

// TestBoundsStandHere: the manager takes each bound from here, and no grace, nor the longest pause after refusals, has its length
// elsewhere.
func TestBoundsStandHere(t *testing.T) {
	t.Parallel()
	elsewhere := regexp.MustCompile(`(?m)^\s*(?:const )?\w*(?:Grace|Patience)\s*=.*\btime\.\w+|\bLongest:\s*(?:\d+ \* )?time\.\w+`)
	takes := map[string]bool{}
	for _, dir := range []string{"service", "slb", "nlb", "vpcroute", "node", "initor"} {
		err := filepath.WalkDir(root+"/pkg/"+dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, found := range elsewhere.FindAllString(string(text), -1) {
				t.Errorf("%s: %s: its length belongs into internal/waits", path, strings.TrimSpace(found))
			}
			for _, found := range regexp.MustCompile(`\b(?:waits|bounds)\.(\w+)`).FindAllStringSubmatch(string(text), -1) {
				takes[found[1]] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("waits.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, bound := range regexp.MustCompile(`(?m)^\t([A-Z]\w+) += `).FindAllStringSubmatch(string(text), -1) {
		if !takes[bound[1]] {
			t.Errorf("nothing takes the bound %s", bound[1])
		}
	}
}
