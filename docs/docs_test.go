// Package docs checks all pages, including those in other directories: links, paths and identifiers exist, a test runs every command or the
// page states what it needs, targets of make exist, every event is explained, and the map of the packages is complete.
package docs

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the root of the repository, relative to this package.
const root = ".."

// pages returns all pages by their path from the root. Pages below hack/ are templates of generated ones.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := texts(t, "*.md", ":!hack/")
	if found["README.md"] == "" || len(found) < 20 {
		t.Fatalf("found %d pages: where are the others?", len(found))
	}
	return found
}

// texts returns files of the repository, also new ones, by their path from the root.
func texts(t *testing.T, patterns ...string) map[string]string {
	t.Helper()
	args := append([]string{"-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"}, patterns...)
	list, err := exec.CommandContext(t.Context(), "git", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for path := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		found[path] = string(text)
	}
	return found
}

var (
	fence = regexp.MustCompile("(?m)^```(.*)$")
	// notCommands are the languages of blocks that are not commands.
	notCommands = []string{"text", "yaml", "json", "go", "hcl"}
	// needs are requirements that no test meets.
	needs = []string{"cloud", "machines", "aliyun", "minutes", "root", "pypi", "terraform", "docker"}
	// programs are the languages of blocks that are run like commands.
	programs = []string{"sh", "go", "python", "js", "yaml", "hcl"}
)

// TestCommandsAreRun checks that every block of commands states how it is tested: "sh run" (hack/chart runs it in the sandbox; in a
// tutorial, also "sh run=background" in another terminal, and "sh run=interrupt", which ends those), "sh test=NAME" (that test does the
// same), or "sh needs=WHAT" (no test can run it).
func TestCommandsAreRun(t *testing.T) {
	t.Parallel()
	for path, text := range pages(t) {
		for i, match := range fence.FindAllStringSubmatch(text, -1) {
			if i%2 == 1 { // the end of a block
				continue
			}
			language, how, _ := strings.Cut(match[1], " ")
			key, value, _ := strings.Cut(how, "=")
			tutorial := strings.HasPrefix(path, "docs/tutorials/")
			switch {
			case slices.Contains(notCommands, language) && how == "", language == "sh" && how == "run":
			case tutorial && language == "sh" && key == "run" && (value == "background" || value == "interrupt"):
			case slices.Contains(programs, language) && key == "needs" && slices.Contains(needs, value):
			case slices.Contains(programs, language) && key == "test" && testExists(t, value):
			default:
				t.Errorf("%s: block %d begins with ```%s; accepted: sh run, sh test=NAME of a test, sh needs=%s, or one of %s",
					path, i/2+1, match[1], strings.Join(needs, "|"), strings.Join(notCommands, ", "))
			}
		}
	}
}

func testExists(t *testing.T, name string) bool {
	t.Helper()
	return exec.CommandContext(t.Context(), "git", "-C", root, "grep", "--quiet", "func "+name+"(t ", "--", "*_test.go").Run() == nil
}

// makeTarget is a command of make in a page, as opposed to the word in prose.
var makeTarget = regexp.MustCompile("(?m)(?:`|^)make ([a-z][a-z0-9-]*)")

func TestMakeTargetsExist(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range pages(t) {
		for _, match := range makeTarget.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(string(makefile), "\n"+match[1]+": ") {
				t.Errorf("%s: the Makefile has no target %s", path, match[1])
			}
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)#: ]+)(#[^)]*)?\)`)

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	for path, text := range pages(t) {
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(path), match[1])); err != nil {
				t.Errorf("%s: link to %s: %v", path, match[1], err)
			}
		}
	}
}

// reason is the definition of an event reason in the controllers.
var reason = regexp.MustCompile(`(?m)^\t[rR]eason\w+ += "([A-Z]\w+)"`)

func TestEveryEventIsExplained(t *testing.T) {
	t.Parallel()
	page := pages(t)["docs/reference/events.md"]
	seen := 0
	err := filepath.WalkDir(root+"/pkg", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, match := range reason.FindAllStringSubmatch(string(text), -1) {
			seen++
			if !strings.Contains(page, "| `"+match[1]+"` |") {
				t.Errorf("docs/reference/events.md lacks the event %s of %s", match[1], path)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 20 {
		t.Errorf("found %d reasons: where are the others?", seen)
	}
	for _, row := range strings.Split(pages(t)["docs/reference/waits.md"], "\n") {
		cells := strings.Split(strings.TrimSuffix(row, " |"), "|")
		if !strings.Contains(cells[len(cells)-1], "event") {
			continue
		}
		for i, name := range strings.Split(cells[len(cells)-1], "`") {
			if i%2 == 1 && !strings.Contains(page, "| `"+name+"` |") {
				t.Errorf("docs/reference/events.md lacks the event %s of docs/reference/waits.md", name)
			}
		}
	}
}

// change is a row of the table "Where do I change X?": one change, one file, the declaration to begin at, and a test that shows it.
var change = regexp.MustCompile("(?m)^\\| [^|]+ \\| \\[([^\\]]+)\\]\\(([^)]+)\\) \\| (?:`([^`]+)` )?\\| (?:`([^`]+)`(?: of `([^`]+)`)? )?\\|$")

func TestChangesStartInAFile(t *testing.T) {
	t.Parallel()
	rows := change.FindAllStringSubmatch(pages(t)["CONTRIBUTING.md"], -1)
	if len(rows) < 25 {
		t.Errorf("CONTRIBUTING.md has %d changes, want 25 or more", len(rows))
	}
	for _, row := range rows {
		path, symbol := filepath.Join(root, row[2]), row[3]
		switch info, err := os.Stat(path); {
		case err != nil || info.IsDir() || row[1] != row[2]:
			t.Errorf("CONTRIBUTING.md: %s does not name one file", row[0])
		case strings.HasSuffix(path, ".go") && !declared(t, path)[symbol]:
			t.Errorf("CONTRIBUTING.md: %s does not declare %q", row[2], symbol)
		}
	}
}
