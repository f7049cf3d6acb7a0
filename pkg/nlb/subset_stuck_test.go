package nlb

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/emulator/cloud"
	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/testkit"
	"github.com/alicloud-ccm/cloud-provider-alicloud/pkg/service/quota"
)

// TestStuckServiceKeepsItsServers: the deletion of a Service is stuck that began while the job was under way that adds its servers. They
// count all the same: what the cloud refuses to others shows the quota as it is.
func TestStuckServiceKeepsItsServers(t *testing.T) {
	t.Parallel()
	const truly = 2
	inWorld(t, func(t *testing.T, w *world) {
		w.config.Quotas = quota.NewBook(map[string]int{string(quota.GroupsPerServer): truly})
		w.restart()
		w.addNodes("n1", "n2", "n3")
		w.put(newService("stuck", testkit.TCP(80)))
		for added := false; !added; added = slices.Contains(w.calls(), addServers) {
			testkit.Must(w.Reconcile(t.Context(), w.get("stuck")))(t)
			time.Sleep(settle)
		}
		for _, action := range []string{"DeleteLoadBalancer", "DeleteListener", "DeleteServerGroup", "RemoveServersFromServerGroup"} {
			w.account.Fault(fmt.Sprintf(`{"times":0,"action":%q,"code":"OperationDenied","status":400}`, action))
		}
		w.remove("stuck")
		for range 6 {
			_, _ = w.Reconcile(t.Context(), w.get("stuck"))
			time.Sleep(time.Minute)
		}
		for _, name := range []string{"first", "second"} {
			w.put(newService(name, testkit.TCP(80)))
			_ = w.try(name)
		}
		testkit.WantLearned(t, w.config.Quotas.Refused(quota.GroupsPerServer), truly)
	}, func(cfg *cloud.Config) { cfg.Quotas.NLBGroupsPerServer = truly })
}
