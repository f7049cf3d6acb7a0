package facts_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/facts"
)

// TestMerge: the first three tests of each package in the order of their names, those that were known among them; none whose calls depend
// on chance. The order of the lines and the number of the files make no difference.
func TestMerge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, lines := range map[string]string{
		"1.jsonl": `{"package":"pkg/slb","test":"TestD","facts":["a"]}` + "\n" + `{"package":"pkg/slb","test":"TestB","facts":["a"]}` + "\n",
		"2.jsonl": `{"package":"pkg/slb","test":"TestC","facts":["a","b"]}` + "\n" + `{"package":"pkg/slb","test":"TestMoreServicesThanAnInstanceTakes","facts":["a","c"]}` +
			"\n" +
			`{"package":"pkg/nlb","test":"TestE","facts":null}` + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	known := facts.Coverage{"a": {"pkg/slb": {"TestA", "TestD"}}, "d": {"pkg/nlb": {"TestE"}}}
	for _, c := range []struct{ known, want facts.Coverage }{
		{nil, facts.Coverage{"a": {"pkg/slb": {"TestB", "TestC", "TestD"}}, "b": {"pkg/slb": {"TestC"}}}},
		{known, facts.Coverage{"a": {"pkg/slb": {"TestA", "TestB", "TestC"}}, "b": {"pkg/slb": {"TestC"}}, "d": {"pkg/nlb": {"TestE"}}}},
	} {
		got, err := facts.Merge(dir, c.known)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
