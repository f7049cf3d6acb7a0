package slb

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/nodes"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/backend"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/config"
)

// TestDrainedNodesMakeRoom: the only node of a Service is about to be deleted, and the CLB has no room for another one beside it: that one takes its place.
func TestDrainedNodesMakeRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleetIn(t, cloud.Limits{BackendsPerLB: 2}, config.Config{BackendSubset: backend.SubsetAuto, Quotas: smallQuotas(2, 50)})
		defer func() { f.stop() }()
		for i := range 2 {
			f.createFleetNode(nodeName(i))
		}
		f.put(testService("web", 80, 81))
		f.rest()
		before := f.backendsOf("web")["30080"]
		if len(before) != 1 {
			t.Fatalf("backend servers %v, want 1", before)
		}
		f.changeNode(strings.TrimPrefix(before[0], "i-"), taintedBy(nodes.TaintToBeDeleted))
		time.Sleep(time.Minute)
		synctest.Wait()
		for port, after := range f.backendsOf("web") {
			if len(after) != 1 || slices.Equal(after, before) {
				t.Errorf("port %s has %v, and had %v", port, after, before)
			}
		}
	})
}
