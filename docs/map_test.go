package docs

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryPackageIsOnTheMap checks that docs/reference/packages.md has one line for each package, of the sandbox and of hack/ too. A
// directory that has only tests, such as this one, counts as a package.
func TestEveryPackageIsOnTheMap(t *testing.T) {
	t.Parallel()
	page := pages(t)["docs/reference/packages.md"]
	seen := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".")) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		directory, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil || seen[directory] {
			return err
		}
		seen[directory] = true
		if count := strings.Count(page, "\n| `"+directory+"` | "); count != 1 {
			t.Errorf("docs/reference/packages.md has %d lines of the package %s, want one", count, directory)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
