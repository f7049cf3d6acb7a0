// Package golden compares what the code generates with the file in the repository that holds it: reference pages, manifests, and the
// expected outcomes of tests. Only tests import it.
package golden

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the generated files instead of comparing them; make generate sets it")

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
