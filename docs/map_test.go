package docs

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/golden"
)

const (
	module       = "github.com/alicloud-ccm/cloud-provider-alicloud/"
	packagesPage = root + "/docs/reference/packages.md"
)

// TestEveryPackageIsOnTheMap checks that docs/reference/packages.md has one line for each package, of the sandbox and of hack/ too.
func TestEveryPackageIsOnTheMap(t *testing.T) {
	t.Parallel()
	page := pages(t)["docs/reference/packages.md"]
	for path := range importsOf(t) {
		if count := strings.Count(page, "\n| `"+path+"` | "); count != 1 {
			t.Errorf("docs/reference/packages.md has %d lines of the package %s, want one", count, path)
		}
	}
}

// TestImportsAreFresh compares the list of imports in docs/reference/packages.md with the code.
func TestImportsAreFresh(t *testing.T) {
	t.Parallel()
	all := importsOf(t)
	var text strings.Builder
	text.WriteString("```text\n")
	for _, path := range slices.Sorted(maps.Keys(all)) {
		short, isProduct := product(path)
		if targets := all[path]; isProduct && len(targets) > 0 {
			fmt.Fprintf(&text, "%-28s -> %s\n", short, strings.Join(targets, ", "))
		}
	}
	text.WriteString("```\n")
	golden.FreshParts(t, packagesPage, map[string]string{"imports": text.String()})
}

// product returns the name of a package in the list of imports. Packages of pkg/ stand without it.
func product(path string) (short string, ok bool) {
	if short, ok = strings.CutPrefix(path, "pkg/"); ok {
		return short, true
	}
	return path, strings.HasPrefix(path, "cmd/") && path != "cmd/alicloud-emulator"
}

// importsOf returns every package of the repository by its path, with the packages of the product that its files, tests aside, import.
// It counts a directory that has only tests, such as this one, as a package.
func importsOf(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".")):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		directory, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		all[directory] = append(all[directory], importsOfFile(t, path)...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, targets := range all {
		slices.Sort(targets)
		all[path] = slices.Compact(targets)
	}
	return all
}

func importsOfFile(t *testing.T, path string) []string {
	t.Helper()
	if strings.HasSuffix(path, "_test.go") {
		return nil
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		local, isLocal := strings.CutPrefix(imported, module)
		if short, isProduct := product(local); isLocal && isProduct {
			targets = append(targets, short)
		}
	}
	return targets
}
