// Package docs holds pages to what they promise: links lead somewhere, every command was run by a test or says what it needs, and every
// reason of an event is explained.
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

// pages returns the pages of this directory by path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		found[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

var (
	fence = regexp.MustCompile("(?m)^```(.*)$")
	// notCommands are the languages of blocks that nobody runs.
	notCommands = []string{"text", "yaml", "json", "go", "hcl", "mermaid"}
	// needs are what no test has.
	needs = []string{"cloud", "machines", "aliyun", "minutes", "root"}
)

// TestCommandsAreRun holds every block of commands to say how it is known to work: "sh run" (hack/chart runs it against the sandbox),
// "sh test=NAME" (that test does the same), or "sh needs=WHAT" (no test can).
func TestCommandsAreRun(t *testing.T) {
	t.Parallel()
	for path, text := range pages(t) {
		for i, match := range fence.FindAllStringSubmatch(text, -1) {
			if i%2 == 1 { // the end of a block
				continue
			}
			language, how, _ := strings.Cut(match[1], " ")
			key, value, _ := strings.Cut(how, "=")
			switch {
			case slices.Contains(notCommands, language) && how == "", language == "sh" && how == "run":
			case language == "sh" && key == "needs" && slices.Contains(needs, value):
			case language == "sh" && key == "test" && testExists(t, value):
			default:
				t.Errorf("%s: block %d begins with ```%s; accepted: sh run, sh test=NAME of a test, sh needs=%s, or one of %s",
					path, i/2+1, match[1], strings.Join(needs, "|"), strings.Join(notCommands, ", "))
			}
		}
	}
}

func testExists(t *testing.T, name string) bool {
	t.Helper()
	return exec.CommandContext(t.Context(), "git", "-C", "..", "grep", "--quiet", "func "+name+"(t ", "--", "*_test.go").Run() == nil
}

var link = regexp.MustCompile(`\]\(([^)#: ]+)(#[^)]*)?\)`)

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	for path, text := range pages(t) {
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), match[1])); err != nil {
				t.Errorf("%s: link to %s: %v", path, match[1], err)
			}
		}
	}
}

// reason is the definition of an event's reason in the controllers.
var reason = regexp.MustCompile(`(?m)^\t[rR]eason\w+ += "([A-Z]\w+)"`)

func TestEveryEventIsExplained(t *testing.T) {
	t.Parallel()
	page := pages(t)["how-to/troubleshooting.md"]
	files, err := filepath.Glob("../pkg/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range reason.FindAllStringSubmatch(string(text), -1) {
			seen++
			if !strings.Contains(page, "| `"+match[1]+"` |") {
				t.Errorf("docs/how-to/troubleshooting.md lacks the event %s of %s", match[1], file)
			}
		}
	}
	if seen < 20 {
		t.Errorf("saw %d reasons: where have they gone?", seen)
	}
}
