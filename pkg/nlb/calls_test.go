package nlb

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/alicloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/mark"
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
		w.put(newService("web", testkube.TCP(80)))
		count("create, one port, three nodes", 4, 8)
		count("nothing changed", 0, 0)
		w.addNodes("n4")
		count("node added", 1, 0)
		w.deleteNode("n4")
		count("node deleted", 1, 0)
		w.change("web", with(annotation.DefaultWeight, "50"))
		count("weight changed", 1, 5)
		w.change("web", with(annotation.IdleTimeout, "60"))
		count("attribute of a listener changed", 1, 5)
		w.change("web", testkube.Annotation("example.com/note", "1"))
		count("annotation of others changed", 0, 5)
		testkit.Check(t, w.Invalidate(t.Context(), w.get("web"), "drift"))
		count("drift", 0, 5)
		w.remove("web")
		count("delete", 3, 16) // one of them of the listeners, right before
		t.Logf("%q", table)
	})
}

// TestRestartReadsInPages: a new process reads the load balancers and the server groups of all Services in pages, the listeners twenty load
// balancers at a time, and the backend servers of each group once. It writes nothing. Where the search by tag lacks a group that a listener
// uses, that Service's groups are searched on their own, and the group gets its tag again.
func TestRestartReadsInPages(t *testing.T) {
	t.Parallel()
	const services = 21
	inWorld(t, func(t *testing.T, w *world) {
		w.addNodes("n1")
		for i := range services {
			w.put(newService(fmt.Sprintf("web-%d", i), testkube.TCP(80)))
			w.converge(fmt.Sprintf("web-%d", i))
		}
		restart := func() map[string]int {
			w.restart()
			for i := range services {
				testkit.Check(t, w.factory.Core().V1().Services().Informer().GetIndexer().Add(w.get(fmt.Sprintf("web-%d", i))))
			}
			w.calls()
			testkit.Check(t, w.Preload(t.Context()))
			for i := range services {
				w.converge(fmt.Sprintf("web-%d", i))
			}
			count := map[string]int{}
			for _, action := range w.calls() {
				count[action]++
			}
			return count
		}
		want := map[string]int{"ListLoadBalancers": 1, "ListListeners": 2, "ListServerGroups": 1, "ListServerGroupServers": services}
		if diff := cmp.Diff(want, restart()); diff != "" {
			t.Errorf("calls of a restart (-want +got):\n%s", diff)
		}
		group := w.groups("web-0")[0]
		testkit.Check(t, w.account.NewClient().UntagNLB(t.Context(), alicloud.NLBTagGroup, []string{group.ID}, []string{mark.TagCluster}))
		if found := restart(); found["ListServerGroups"] < 2 || found["TagResources"] != 1 {
			t.Errorf("calls of a restart without the tag of a group: %v", found)
		}
		if diff := cmp.Diff(want, restart()); diff != "" {
			t.Errorf("calls of a restart after that (-want +got):\n%s", diff)
		}
	}, func(c *cloud.Config) { c.Quotas.NLBs = services })
}
