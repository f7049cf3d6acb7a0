package slb

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"
)

// writeLiteral finds the names of actions that write in the sources of the client; those of listeners are put together
// from two parts around the protocol.
var writeLiteral = regexp.MustCompile(`"((?:Create|Delete|Set|Add|Remove|Modify|Start|Stop|Tag|Untag)[A-Z][A-Za-z]*)"(?:\s*\+[^"]+\+\s*"([A-Za-z]+)")?`)

// noWrites are found, too: actions that other packages call and test, and parameters.
var noWrites = sets.New("CreateRouteEntries", "DeleteRouteEntries", "ModifyNetworkInterfaceAttribute", "DeleteProtection", "TagKey")

// clientWrites returns every action of the client by which this package writes.
func clientWrites(t *testing.T) sets.Set[string] {
	t.Helper()
	files, err := filepath.Glob("../alicloud/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d sources of the client, %v", len(files), err)
	}
	found := sets.New[string]()
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range writeLiteral.FindAllStringSubmatch(string(text), -1) {
			if match[2] == "" {
				found.Insert(match[1])
				continue
			}
			for _, protocol := range []string{"TCP", "UDP", "HTTP", "HTTPS"} {
				found.Insert(match[1] + protocol + match[2])
			}
		}
	}
	return found.Difference(noWrites)
}

// TestEveryWriteActionMayGoWrong: a new action that writes must be one of those that [TestEveryWriteMayGoWrong] makes fail.
func TestEveryWriteActionMayGoWrong(t *testing.T) {
	t.Parallel()
	covered := sets.New[string]()
	for _, op := range operations() {
		w := newWorld(t)
		op.prepare(w)
		w.calls()
		op.act(w)
		w.converge("web")
		covered.Insert(writesOf(w.calls())...)
	}
	if diff := cmp.Diff(sets.List(clientWrites(t)), sets.List(covered)); diff != "" {
		t.Errorf("actions (-of the client +covered by operations):\n%s", diff)
	}
}
