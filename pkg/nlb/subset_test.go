package nlb

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit/testkube"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// TestNodesBeyondTheQuotaOfAnNLB: of more nodes than an NLB takes, as many become servers as fit, and nothing is refused. One that leaves
// makes room for another one, which comes afterwards: an NLB has no call that replaces a server.
func TestNodesBeyondTheQuotaOfAnNLB(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		w.config.Quotas = quota.NewBook(map[string]int{string(quota.ServersPerNLB): 8})
		w.restart()
		var names []string
		for i := range 6 {
			names = append(names, fmt.Sprintf("n%d", i))
		}
		w.addNodes(names...)
		w.put(newService("web", testkube.TCP(80, 443)))
		w.converge("web")
		servers := func() []string {
			found := w.listeners(w.balancer("web").ID)
			var ids []string
			for _, field := range strings.Fields(found[0])[1:] {
				id, _, _ := strings.Cut(field, ":")
				ids = append(ids, id)
			}
			return ids
		}
		before := servers()
		if len(before) != 4 {
			t.Fatalf("servers %v, want 4 behind each of two ports", before)
		}
		w.quiet("web")
		w.addNodes("n7")
		w.quiet("web")
		w.deleteNode(strings.TrimPrefix(before[0], "i-"))
		w.converge("web")
		w.later(time.Minute)
		w.converge("web")
		if after := servers(); len(after) != 4 || slices.Contains(after, before[0]) {
			t.Errorf("servers %v after %s left", after, before[0])
		}
		for _, call := range w.calls() {
			if strings.Contains(call, "=") {
				t.Errorf("refused: %s", call)
			}
		}
		w.quiet("web")
		w.change("web", with(annotation.BackendSubset, "2"))
		w.converge("web")
		if after := servers(); len(after) != 2 {
			t.Errorf("servers %v, want 2", after)
		}
	}, func(cfg *cloud.Config) { cfg.Quotas.ServersPerNLB = 8 })
}
