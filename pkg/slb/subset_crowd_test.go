package slb

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/annotation"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// TestSubsetLargerThanTheCluster: a Service that asks for more nodes than there are has all of them, and takes none from other Services.
func TestSubsetLargerThanTheCluster(t *testing.T) {
	t.Parallel()
	const nodes = 5
	synctest.Test(t, func(t *testing.T) {
		f := newFleetIn(t, cloud.Limits{}, config.Config{BackendSubset: backend.SubsetAuto, Quotas: quota.NewBook(nil)})
		defer func() { f.stop() }()
		for i := range nodes {
			f.createFleetNode(nodeName(i))
		}
		for i := range 3 {
			f.put(testService(fmt.Sprint("web", i), 80))
		}
		f.rest()
		large := testService("large", 80)
		annotate(large, annotation.BackendSubset, "9999")
		f.put(large)
		f.rest()
		for _, name := range []string{"web0", "web1", "web2", "large"} {
			if n := len(f.backendsOf(name)["30080"]); n != nodes {
				t.Errorf("%s has %d of %d nodes", name, n, nodes)
			}
		}
	})
}

// TestGroupsAndAttachments: an instance is behind a CLB once for all Services of a group. With more of them than an instance can be behind CLBs, each has as many
// backend servers as its share of the CLB, and Services beside the group have theirs.
func TestGroupsAndAttachments(t *testing.T) {
	t.Parallel()
	const nodes, attachments, members, grouping, alone, shared = 6, 5, 24, 12, 3, 4
	synctest.Test(t, func(t *testing.T) {
		f := newFleetIn(t, cloud.Limits{LBsPerInstance: attachments, BackendsPerLB: members}, config.Config{
			BackendSubset: backend.SubsetAuto, Quotas: smallQuotas(members, attachments),
		})
		defer func() { f.stop() }()
		for i := range nodes {
			f.createFleetNode(nodeName(i))
		}
		for i := range grouping {
			f.put(born(overflowing(grouped(nameOfSharing(i), "edge", int32(1000+i))), int64(i))) //nolint:gosec // a port
		}
		for i := range alone {
			f.put(testService(fmt.Sprint("web", i), 80))
		}
		f.rest()
		groups := 0
		for name, lb := range f.state() {
			for group, servers := range lb.Groups {
				want := nodes
				if len(lb.Groups) > 1 {
					want = shared
				}
				if groups++; len(servers) != want {
					t.Errorf("%s of %s has %d nodes, want %d", group, name, len(servers), want)
				}
			}
		}
		if groups != grouping+alone {
			t.Errorf("%d vServer groups, want %d", groups, grouping+alone)
		}
		for _, call := range f.emulator.NewCalls() {
			if call.Code != "" {
				t.Errorf("%s: %s", call.Action, call.Code)
			}
		}
	})
}
