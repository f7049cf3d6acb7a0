package docs

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// behavior is a row of docs/contributing/behaviors.md: what users see, its tests for CLBs or for all, and those for NLBs if these stand
	// apart.
	behavior = regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \|(?: ([^|]+) \|)?$`)
	// testCell is the tests of a row, none, or a dash for what the product does not have.
	testCell = regexp.MustCompile("^(?:`[\\w/.]*Test\\w+`(?:, `[\\w/.]*Test\\w+`)*|none|–)$")
	// testName is a test, with its directory where several have one of this name.
	testName = regexp.MustCompile(`(?:([\w/]+)\.)?(Test\w+)`)
	testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	// annotationKey is the definition of an annotation, with its prefix or without.
	annotationKey = regexp.MustCompile(`(?m)^(?:\t|const )(?:\w+ +Suffix|Annotation\w+|BackendType|Paused) += "(\S+)"`)
	section       = regexp.MustCompile(`(?m)^## .+$`)
)

// TestBehaviorsHaveTests: the table of behaviors names tests that exist, and each annotation, each event and each heading of the pages that
// it repeats has a place in it. Otherwise, a behavior could go unnoticed while the code for Services is rebuilt.
func TestBehaviorsHaveTests(t *testing.T) {
	t.Parallel()
	all := pages(t)
	table, tests := all["docs/contributing/behaviors.md"], definitions(t, testFunc, "*_test.go")
	rows := behavior.FindAllStringSubmatch(table, -1)
	if len(rows) < 250 {
		t.Errorf("behaviors.md has %d rows: where are the others?", len(rows))
	}
	for _, row := range rows {
		if row[1] == "behavior" || row[1] == "---" {
			continue
		}
		checkTests(t, row[1], row[2], tests, "pkg/nlb/")
		if row[3] != "" {
			checkTests(t, row[1], row[3], tests, "pkg/slb/")
		}
	}
	for pattern, files := range map[*regexp.Regexp]string{annotationKey: "pkg/service/*.go", reason: "pkg/*.go"} {
		for name := range definitions(t, pattern, files) {
			if !strings.Contains(table, "\n| `"+name+"`") {
				t.Errorf("behaviors.md has no row of %s", name)
			}
		}
	}
	for _, page := range []string{"docs/how-to/share-load-balancers.md", "docs/how-to/pause.md"} {
		for _, heading := range section.FindAllString(all[page], -1) {
			if !strings.Contains(table, "\n#"+heading+"\n") {
				t.Errorf("behaviors.md lacks the heading %q of %s", heading, page)
			}
		}
	}
}

// checkTests checks that a cell names tests, each of them one alone, where those of the emulator are left out, and so are those of the other
// product that the cell does not name with their directory.
func checkTests(t *testing.T, row, cell string, tests map[string][]string, other string) {
	t.Helper()
	if !testCell.MatchString(cell) {
		t.Errorf("behaviors.md: %s: %q is neither tests nor none nor –", row, cell)
	}
	for _, match := range testName.FindAllStringSubmatch(cell, -1) {
		found := slices.DeleteFunc(slices.Clone(tests[match[2]]), func(path string) bool {
			return match[1] == "" && strings.HasPrefix(path, other) || strings.HasPrefix(path, "internal/emulator/") ||
				!strings.HasSuffix(filepath.Dir(path), match[1])
		})
		if len(found) != 1 {
			t.Errorf("behaviors.md: %s: %s is in %v, want one file", row, match[0], found)
		}
	}
}

// definitions returns what a pattern captures in files of the repository, each with the paths of its files.
func definitions(t *testing.T, pattern *regexp.Regexp, files string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for path, text := range texts(t, files) {
		for _, match := range pattern.FindAllStringSubmatch(text, -1) {
			found[match[1]] = append(found[match[1]], path)
		}
	}
	if len(found) < 20 {
		t.Errorf("%d definitions in %s: where are the others?", len(found), files)
	}
	return found
}
