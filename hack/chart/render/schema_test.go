package render

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// update rewrites generated files instead of comparing them; `make generate` sets it.
var update = flag.Bool("update", false, "write what is generated from values.yaml")

const (
	root     = "../../.."
	chartDir = root + "/charts/cloud-controller-manager"
)

// TestValuesAreFresh compares the schema and the reference page with values.yaml, and so holds every value to have a description.
func TestValuesAreFresh(t *testing.T) { // not parallel: TestDeployIsFresh reads what it writes
	text, err := os.ReadFile(filepath.Join(chartDir, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	values, err := parseValues(text)
	if err != nil {
		t.Fatalf("values.yaml: %v", err)
	}
	for path, render := range map[string]func([]value) ([]byte, error){
		chartDir + "/values.schema.json":         renderSchema,
		root + "/docs/reference/chart-values.md": renderPage,
	} {
		want, err := render(values)
		if err != nil {
			t.Fatal(err)
		}
		fresh(t, path, want)
	}
}

// fresh compares a generated file with what it should hold.
func fresh(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil { //nolint:gosec // files for everybody
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is stale, run make generate (-want +got):\n%s", path, diff)
	}
}

func TestBadValuesFileIsRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"no comment":         {"a: 1", "a: has no comment"},
		"nested, no comment": {"# A.\na:\n  b: 1", "a.b: has no comment"},
		"bad rule":           {"# A.\n# @schema {\na: 1", "a: @schema {"},
		"unknown type":       {"# A.\na: 1.5", "a: has a default of type !!float"},
		"not a mapping":      {"- a", "not a mapping"},
	} {
		if _, err := parseValues([]byte(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, test.want)
		}
	}
}
