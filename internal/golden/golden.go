// Package golden compares what the code generates with the file in the repository that holds it: reference pages, manifests, and the
// expected outcomes of tests. Only tests import it.
package golden

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the generated files instead of comparing them; make generate sets it")

// Lines around a generated part of a page, the first one with its name.
const (
	begin = "<!-- generated:%s -->\n"
	end   = "<!-- end of generated part -->\n"
)

// FreshParts is Fresh for a page of which only parts are generated, each between two lines:
//
//	<!-- generated:NAME -->
//	<!-- end of generated part -->
//
// parts is the text of each by its name. A page without one of these parts fails the test.
func FreshParts(tb testing.TB, path string, parts map[string]string) {
	tb.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	page := string(content)
	for name, text := range parts {
		if page, err = replacePart(page, name, text); err != nil {
			tb.Fatalf("%s: %v", path, err)
		}
	}
	Fresh(tb, path, page)
}

func replacePart(page, name, text string) (string, error) {
	first := fmt.Sprintf(begin, name)
	before, rest, found := strings.Cut(page, first)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", fmt.Errorf("the page has no generated part %q", name)
	}
	return before + first + "\n" + text + "\n" + end + after, nil
}

// Fresh fails the test when the file at path is not what the code generates. With the flag -update it writes the file.
func Fresh(tb testing.TB, path, generated string) {
	tb.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(generated), 0o644); err != nil { //nolint:gosec // published files
			tb.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	if diff := cmp.Diff(generated, string(have)); diff != "" {
		tb.Errorf("%s is stale, run make generate if the change is meant (-generated +file):\n%s", path, diff)
	}
}
