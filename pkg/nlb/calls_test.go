package nlb

import (
	"fmt"
	"slices"
	"testing"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
)

// TestCalls: what changes of one Service cost, but for the polls of jobs, which all Services share. Writes are the least that the API
// allows; reads happen when nothing is known, and when a user edits a Service.
func TestCalls(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n1", "n2", "n3")
		var table []string
		count := func(what string, writesWanted, readsWanted int) {
			t.Helper()
			w.converge("web")
			calls := slices.DeleteFunc(w.calls(), func(c string) bool { return c == "ListAsynJobs" })
			written := len(writes(slices.Clone(calls)))
			table = append(table, fmt.Sprintf("%s: %d writes, %d reads", what, written, len(calls)-written))
			if read := len(calls) - written; written != writesWanted || read > readsWanted {
				t.Errorf("%s: %d writes and %d reads, want %d and at most %d: %v", what, written, read, writesWanted, readsWanted, calls)
			}
		}
		w.calls()
		w.put(newService("web", testkit.TCP(80)))
		count("create, one port, three nodes", 4, 10)
		count("nothing changed", 0, 0)
		w.addNodes("n4")
		count("node added", 1, 0)
		w.deleteNode("n4")
		count("node deleted", 1, 0)
		w.change("web", with(annotation.DefaultWeight, "50"))
		count("weight changed", 1, 5)
		w.change("web", with(annotation.IdleTimeout, "60"))
		count("attribute of a listener changed", 1, 5)
		w.change("web", testkit.Annotation("example.com/note", "1"))
		count("annotation of others changed", 0, 5)
		testkit.Check(t, w.Invalidate(t.Context(), w.get("web"), "drift"))
		count("drift", 0, 5)
		w.remove("web")
		count("delete", 3, 15)
		t.Logf("%q", table)
	})
}
